//! A point that runs a trace, recorded or of a collective's own: what it took on the point's machine, event by event [ASTRA2].

use super::evaluate::Evaluation;
use super::files::of_collectives;
use crate::astra_sim::fit;
use crate::engine::Report;
use crate::engine::event_driven::{Ask, LIMIT, Outcome, Rank, simulate_by};
use crate::input::Remarks;
use crate::sweep::recording::{Own, Recording};
use crate::sweep::{Inputs, Sweep, point};
use crate::system::System;
use crate::system::collective::Collective;
use crate::system::machine::{Machine, Place, RemoteMemory};
use crate::units::{Bytes, Time, narrow};
use crate::workload::program::Account;
use crate::workload::trace::graph::Draft;
use crate::workload::trace::{Graph, Node, Trace, Work};
use crate::workload::{Footprint, Infeasible, Job, Reason, check};

/// Simulates the trace that a point runs, or the collective that is one; none if it runs no trace.
///
/// # Errors
/// [`Reason::Trace`] if there is no such trace or the machine has not what it needs, [`Reason::RemoteMemory`] if it loads or stores
/// and nothing says where, [`Reason::Deadlock`] if it does not end, [`Reason::TimeRange`] if its time does not fit, [`Reason::Limit`] if there are too many events.
pub fn evaluate(sweep: &Sweep, inputs: &Inputs, job: &Job, system: &System) -> Option<Result<Evaluation, Infeasible>> {
    match (sweep.recording(inputs), job) {
        (Some(recording), _) => Some(trace(sweep, inputs, &recording, system)),
        (None, &Job::Collective { collective, size }) => {
            let own = sweep.own(inputs).pop()?;
            Some(alone(sweep, &own, (collective, size), system))
        }
        _ => None,
    }
}

const fn refused(reason: Reason) -> Infeasible {
    Infeasible::new(reason, f64::NAN, f64::NAN)
}

/// A recorded trace. Computations take as long as they were recorded, or what the NPU's roofline says if the point has an NPU with
/// a rate.
fn trace(sweep: &Sweep, inputs: &Inputs, recording: &Recording, system: &System) -> Result<Evaluation, Infeasible> {
    check(&Job::Recorded, system)?;
    let loader = sweep.loader.as_ref().ok_or_else(|| refused(Reason::Trace))?;
    let trace = loader.trace(recording, narrow(system.network.npus())).map_err(|_| refused(Reason::Trace))?;
    let machine = machine(system, point::remote_memory(inputs));
    let machine = Machine { own: of_collectives(&recording.own), ..machine };
    if machine.remote.is_none() && moves(&trace) {
        return Err(refused(Reason::RemoteMemory));
    }
    let mut remarks = Remarks::default();
    fit(&machine, &trace, &mut remarks);
    if remarks.errors() > 0 {
        return Err(refused(Reason::Trace));
    }
    let outcome = simulate(&machine, &trace)?;
    let last = last(&outcome)?;
    let total = last.finish.ok_or_else(|| refused(Reason::Deadlock))?;
    Ok(evaluation(total, last.computed, &last.sent, system))
}

/// One collective among all ranks that is a trace of its own.
fn alone(
    sweep: &Sweep,
    own: &Own,
    (collective, size): (Collective, Bytes),
    system: &System,
) -> Result<Evaluation, Infeasible> {
    check(&Job::Recorded, system)?;
    let ranks = narrow(system.network.npus());
    let loader = sweep.loader.as_ref().ok_or_else(|| refused(Reason::Trace))?;
    let graphs = loader.own(&own.prefix, ranks).map_err(|_| refused(Reason::Trace))?;
    let machine = Machine { own: of_collectives(std::slice::from_ref(own)), ..Machine::of(system, None) };
    let bytes = if collective == Collective::AllGather { size.get() / u64::from(ranks.max(1)) } else { size.get() };
    let work = Work::Collective { collective, bytes, group: None, dimensions: u32::MAX };
    let mut draft = Draft::default();
    draft.push(Node { id: 0, work, recorded: 0, on_host: false }, "", []);
    let graph = draft.finish().map_err(|_| refused(Reason::Trace))?;
    let trace = Trace { own: vec![graphs.to_vec()], ..Trace::same(graph, ranks) };
    let outcome = simulate(&machine, &trace)?;
    let total = last(&outcome)?.finish.ok_or_else(|| refused(Reason::Deadlock))?;
    let busiest = |k: usize| outcome.ranks.iter().map(|rank| rank.sent[k]).max().unwrap_or(0);
    let sent: Vec<u64> = (0..system.network.dims.len()).map(busiest).collect();
    Ok(evaluation(total, Time::default(), &sent, system))
}

/// What a trace comes to, if it comes to an end.
fn simulate(machine: &Machine, trace: &Trace) -> Result<Outcome, Infeasible> {
    let ask = Ask { limit: Some(LIMIT), ..Ask::default() };
    let outcome = simulate_by(machine, trace, ask).map_err(|why| why.infeasible())?;
    if outcome.stuck.is_empty() { Ok(outcome) } else { Err(refused(Reason::Deadlock)) }
}

/// The rank that ends last.
fn last(outcome: &Outcome) -> Result<&Rank, Infeasible> {
    let last = outcome.ranks.iter().max_by_key(|rank| rank.finish).ok_or_else(|| refused(Reason::Trace))?;
    if last.finish == Some(Time::MAX) { Err(refused(Reason::TimeRange)) } else { Ok(last) }
}

/// The accounts of what was computed so long and sent so much.
fn evaluation(total: Time, computed: Time, sent: &[u64], system: &System) -> Evaluation {
    let exposed = total.saturating_sub(computed);
    let mut report = Report { total, data_busy: exposed, ..Report::default() };
    report.exposed[Account::Data as usize] = exposed;
    report.exposed[Account::Compute as usize] = computed;
    for (k, (&sent, dim)) in sent.iter().zip(&system.network.dims).enumerate() {
        report.sent[k] = sent;
        report.wire[k] = (Bytes::new(sent) / dim.bandwidth).round();
    }
    Evaluation { footprint: Footprint::default(), report }
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
