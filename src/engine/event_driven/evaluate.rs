//! The whole graph of a job's step, event by event: the same program as the closed form's, and the same report.

use std::collections::BTreeMap;

use super::fabric::Fabric;
use super::run::Sum;
use super::symmetry::Classes;
use super::{Ask, Refused, Simulation, shares_bandwidth, simulate_by};
use crate::engine::{Report, closed_form};
use crate::system::System;
use crate::system::collective::Collective;
use crate::system::machine::Machine;
use crate::system::network::{Span, Spans};
use crate::units::{Bytes, Time, narrow};
use crate::workload::infeasible::{Infeasible, Reason};
use crate::workload::placement::{self, Placement};
use crate::workload::program::{Account, Operation, Program, Work};
use crate::workload::trace::{self, Node, Trace};
use crate::workload::unfold::{Prices, Stage, Unfolded, unfold};

/// Events of a point at most: some seconds of simulation.
pub const LIMIT: u64 = 20_000_000;

/// How long a program takes on a machine, simulated.
///
/// One rank stands for each pipeline stage: all ranks of a stage do the same at the same time.
///
/// # Errors
/// [`Reason::TimeRange`] if the time does not fit, [`Reason::Limit`] if there are too many events.
pub fn evaluate(program: &Program, placement: &Placement, system: &System) -> Result<Report, Infeasible> {
    let machine = Machine::of(system, tier(program));
    let too_long = || Infeasible::new(Reason::TimeRange, f64::INFINITY, Time::MAX.as_seconds());
    if let Some(work) = single(program, placement) {
        return match collective(&machine, system, work) {
            Ok(report) => report.ok_or_else(too_long),
            Err(refused) => Err(refused.infeasible()),
        };
    }
    let Unfolded { stages, blocks, sums } = unfold(program, &Alone { placement, system }).map_err(|_| too_long())?;
    let placed = Placed::of(&machine, placement, narrow(stages.len() as u64));
    let fabric = shares_bandwidth(&machine).then(|| Fabric::new(&machine, &placed.trace, Some(&placed.spans)));
    let mut measured = BTreeMap::new();
    for (&block, stage) in &blocks {
        let alone = Classes { of_rank: vec![0], representatives: vec![placed.classes.representatives[0]] };
        let mut simulation = Simulation::new(&machine, &placed.trace, alone, std::iter::once(&stage.graph));
        simulation.is_folded = true;
        simulation.fabric =
            shares_bandwidth(&machine).then(|| Fabric::new(&machine, &placed.trace, Some(&placed.spans)));
        simulation.account(std::iter::once(stage.accounts.as_slice()));
        simulation.limit = LIMIT;
        simulation.go();
        if let Some(refused) = &simulation.refused {
            return Err(refused.infeasible());
        }
        measured.insert(block, simulation.sum().ok_or_else(too_long)?);
    }
    let sum = |parts: &Vec<(usize, u64)>| {
        let mut sum = Sum::default();
        for (block, times) in parts {
            sum.add(&measured[block], *times);
        }
        sum
    };
    let sums: Vec<Sum> = sums.iter().map(sum).collect();
    let graphs = stages.iter().map(|stage| &stage.graph);
    let mut simulation = Simulation::new(&machine, &placed.trace, placed.classes, graphs);
    simulation.is_folded = true;
    simulation.fabric = fabric;
    simulation.sums = &sums;
    simulation.pipeline = Some(placement.spans(placement::Group::Pipeline));
    simulation.account(stages.iter().map(|stage| stage.accounts.as_slice()));
    simulation.limit = LIMIT;
    simulation.go();
    if let Some(refused) = &simulation.refused {
        return Err(refused.infeasible());
    }
    simulation.report(&stages, system).ok_or_else(too_long)
}

/// Operations that are alone on the machine.
#[derive(Debug, Clone, Copy)]
pub struct Alone<'a> {
    /// Where the groups lie.
    pub placement: &'a Placement,
    /// The machine.
    pub system: &'a System,
}

impl Prices for Alone<'_> {
    fn members(&self, group: placement::Group) -> u64 {
        self.placement.spans(group).iter().map(|span| u64::from(span.members)).product()
    }

    fn time(&self, operation: &Operation) -> Time {
        closed_form::alone(operation, self.placement, self.system)
    }

    fn sent(&self, operation: &Operation) -> f64 {
        closed_form::sent(operation, self.placement, self.system)
    }

    fn system(&self) -> &System {
        self.system
    }
}

/// The tier that a program streams states through.
fn tier(program: &Program) -> Option<u8> {
    program.operations.iter().find_map(|operation| match operation.work {
        Work::Transfer { tier, .. } => Some(tier),
        _ => None,
    })
}

/// The one collective among all ranks that a program is, if it is one.
fn single(program: &Program, placement: &Placement) -> Option<trace::Work> {
    let [operation] = program.operations.as_slice() else { return None };
    let Work::Collective { collective, group: placement::Group::Everyone, size } = operation.work else { return None };
    let ranks = placement.spans(placement::Group::Everyone).iter().map(|span| u64::from(span.members)).product::<u64>();
    let bytes = if collective == Collective::AllGather { size.get() / ranks.max(1) } else { size.get() };
    Some(trace::Work::Collective { collective, bytes, group: None, dimensions: u32::MAX })
}

/// The report of one collective among all ranks; none if its time does not fit.
fn collective(machine: &Machine, system: &System, work: trace::Work) -> Result<Option<Report>, Refused> {
    let mut draft = trace::graph::Draft::default();
    draft.push(Node { id: 0, work, recorded: 0, on_host: false }, "", []);
    let Ok(graph) = draft.finish() else { return Ok(None) };
    let trace = Trace::same(graph, machine.npus());
    let outcome = simulate_by(machine, &trace, Ask { limit: Some(LIMIT), ..Ask::default() })?;
    let Some(last) = outcome.ranks.iter().max_by_key(|rank| rank.finish) else { return Ok(None) };
    if let Some(stuck) = outcome.stuck.first() {
        return Err(Refused::Operation { rank: stuck.rank, operation: stuck.operation, what: "it waits for ever" });
    }
    let Some(total) = last.finish else { return Ok(None) };
    let mut report = Report { total, data_busy: total, ..Report::default() };
    report.exposed[Account::Data as usize] = total;
    let busiest = |k: usize| outcome.ranks.iter().map(|rank| rank.sent[k]).max().unwrap_or(0);
    let sent: Vec<u64> = (0..last.sent.len()).map(busiest).collect();
    wires(&mut report, &sent, system);
    Ok(Some(report))
}

/// Fills in what was sent in each dimension, and how long that takes on the wire.
fn wires(report: &mut Report, sent: &[u64], system: &System) {
    for (k, (&sent, dim)) in sent.iter().zip(&system.network.dims).enumerate() {
        report.sent[k] = sent;
        report.wire[k] = (Bytes::new(sent) / dim.bandwidth).round();
    }
}

/// Groups of the ranks that stand for stages.
struct Placed {
    trace: Trace,
    spans: Vec<Spans>,
    classes: Classes,
}

impl Placed {
    fn of(machine: &Machine, placement: &Placement, stages: u32) -> Self {
        let pipeline = placement.spans(placement::Group::Pipeline);
        let strides: Vec<u32> = (0..machine.dimensions.len())
            .map(|k| machine.dimensions[..k].iter().map(|dimension| dimension.size).product())
            .collect();
        let member = |spans: &Spans, place: u32| {
            let step = |(rank, place): (u32, u32), span: &Span| {
                (rank + place % span.members * span.stride * strides[span.dim], place / span.members)
            };
            spans.iter().fold((0, place), step).0
        };
        let representatives: Vec<u32> = (0..stages).map(|stage| member(pipeline, stage)).collect();
        let mut groups = Vec::new();
        let mut all_spans = Vec::new();
        for &first in &representatives {
            for group in placement::Group::ALL {
                let spans = placement.spans(group);
                let members = spans.iter().map(|span| span.members).product();
                // Only rings that are laid out flat look at ranks one by one.
                let is_flat = !shares_bandwidth(machine);
                let ranks = (0..if is_flat { members } else { 0 }).map(|place| first + member(spans, place)).collect();
                groups.push(trace::Group { id: groups.len() as u64 + 1, ranks });
                all_spans.push(spans.clone());
            }
        }
        // Messages name stages, and a stage is simulated in the place of its number.
        let of_rank = (0..stages).collect();
        let trace = Trace { groups, ..Trace::default() };
        Self { trace, spans: all_spans, classes: Classes { of_rank, representatives } }
    }
}

impl Simulation<'_> {
    /// What one graph took; none if something waits for ever.
    fn sum(&self) -> Option<Sum> {
        let run = self.runs.first()?;
        let sent = self.wire.sent(0).to_vec();
        Some(Sum { time: run.finish?, exposed: run.exposed, data_busy: run.data_busy.total, sent })
    }

    /// The report of the stage that is busiest, once all has happened; none if something waits for ever or does not fit.
    fn report(&self, stages: &[Stage], system: &System) -> Option<Report> {
        let finish = self.runs.iter().take(stages.len()).map(|run| run.finish).collect::<Option<Vec<u64>>>()?;
        let end = finish.into_iter().max()?;
        let total = self.machine.time(end);
        // The first of equals.
        let run = self.runs.iter().take(stages.len()).rev().max_by_key(|run| run.account_sum())?;
        let exposed = run.exposed.map(|ticks| self.machine.time(ticks));
        let bubble = total.saturating_sub(exposed.iter().copied().sum());
        let data_busy = self.machine.time(run.data_busy.total);
        let mut report = Report { total, exposed, bubble, data_busy, ..Report::default() };
        wires(&mut report, self.wire.sent(run.npu as usize), system);
        (total != Time::MAX).then_some(report)
    }
}
