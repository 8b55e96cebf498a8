//! A point that runs a recorded trace: what it took on the point's machine, event by event [ASTRA2].

use super::evaluate::Evaluation;
use crate::astra_sim::fit;
use crate::engine::Report;
use crate::engine::event_driven::{Ask, LIMIT, Refused, simulate_by};
use crate::input::Remarks;
use crate::sweep::recording::Recording;
use crate::sweep::{Inputs, Sweep, point};
use crate::system::System;
use crate::system::machine::{Machine, Place, RemoteMemory};
use crate::units::{Bytes, Time, narrow, real};
use crate::workload::program::Account;
use crate::workload::trace::{Graph, Trace, Work};
use crate::workload::{Footprint, Infeasible, Job, Reason, check};

/// Simulates a trace on the machine of some inputs. Computations take as long as they were recorded, or what the NPU's roofline says if the
/// point has an NPU with a rate.
///
/// # Errors
/// [`Reason::Trace`] if there is no such trace or the machine has not what it needs, [`Reason::RemoteMemory`] if it loads or stores
/// and nothing says where, [`Reason::Deadlock`] if it does not end,
/// [`Reason::TimeRange`] if its time does not fit, [`Reason::Limit`] if there are too many events.
pub fn evaluate(
    sweep: &Sweep,
    inputs: &Inputs,
    recording: &Recording,
    system: &System,
) -> Result<Evaluation, Infeasible> {
    let refused = |reason| Infeasible::new(reason, f64::NAN, f64::NAN);
    check(&Job::Recorded, system)?;
    let loader = sweep.loader.as_ref().ok_or_else(|| refused(Reason::Trace))?;
    let trace = loader.trace(recording, narrow(system.network.npus())).map_err(|_| refused(Reason::Trace))?;
    let machine = machine(system, point::remote_memory(inputs));
    if machine.remote.is_none() && moves(&trace) {
        return Err(refused(Reason::RemoteMemory));
    }
    let mut remarks = Remarks::default();
    fit(&machine, &trace, &mut remarks);
    if remarks.errors() > 0 {
        return Err(refused(Reason::Trace));
    }
    let ask = Ask { limit: Some(LIMIT), ..Ask::default() };
    let outcome = simulate_by(&machine, &trace, ask).map_err(|why| match why {
        Refused::Limit(limit) => Infeasible::new(Reason::Limit, f64::INFINITY, real(limit)),
        _ => refused(Reason::Trace),
    })?;
    if !outcome.stuck.is_empty() {
        return Err(refused(Reason::Deadlock));
    }
    let last = outcome.ranks.iter().max_by_key(|rank| rank.finish).ok_or_else(|| refused(Reason::Trace))?;
    let total = last.finish.ok_or_else(|| refused(Reason::Deadlock))?;
    if total == Time::MAX {
        return Err(refused(Reason::TimeRange));
    }
    let exposed = total.saturating_sub(last.computed);
    let mut report = Report { total, data_busy: exposed, ..Report::default() };
    report.exposed[Account::Data as usize] = exposed;
    report.exposed[Account::Compute as usize] = last.computed;
    for (k, (&sent, dim)) in last.sent.iter().zip(&system.network.dims).enumerate() {
        report.sent[k] = sent;
        report.wire[k] = (Bytes::new(sent) / dim.bandwidth).round();
    }
    Ok(Evaluation { footprint: Footprint::default(), report })
}

/// A machine whose NPUs that share a tier wait for each other there.
fn machine(system: &System, tier: Option<u8>) -> Machine {
    let machine = Machine::of(system, tier);
    let tier = tier.and_then(|tier| system.memory.tiers.get(usize::from(tier)));
    let share = |remote: RemoteMemory| match tier.map(|tier| (narrow(tier.shared_by), tier.bandwidth.get() / 1e9)) {
        Some((npus, bandwidth)) if npus > 1 => RemoteMemory { place: Place::PerNode { npus }, bandwidth, ..remote },
        _ => remote,
    };
    Machine { remote: machine.remote.map(share), ..machine }
}

/// Whether a trace loads or stores.
fn moves(trace: &Trace) -> bool {
    let mut nodes = trace.graphs.iter().flat_map(Graph::nodes);
    nodes.any(|node| matches!(node.work, Work::Load { .. } | Work::Store { .. }))
}
