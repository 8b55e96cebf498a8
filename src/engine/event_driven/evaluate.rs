//! The whole graph of a job's step, event by event: the same program as the closed form's, and the same report.

use std::collections::BTreeMap;

use super::fabric::Fabric;
use super::run::{Run, Sum};
use super::symmetry::Classes;
use super::{Ask, Outcome, Refused, Simulation, shares_bandwidth, simulate_by};
use crate::engine::{Report, prices};
use crate::system::System;
use crate::system::collective::Collective;
use crate::system::machine::Machine;
use crate::system::network::{Network, Spans};
use crate::system::rules::{Quirk, Rules};
use crate::units::{Bytes, Time, index, narrow};
use crate::workload::infeasible::{Infeasible, Reason};
use crate::workload::members::Members;
use crate::workload::placement::{self, Placement};
use crate::workload::program::{Account, Operation, Program, RankClass, Work};
use crate::workload::trace::{self, Node, Trace};
use crate::workload::unfold::{Passes, Prices, Stage, Unfolded, unfold};

/// Events of a point at most: some seconds of simulation.
pub const LIMIT: u64 = 20_000_000;

/// How long a program takes on a machine, simulated.
///
/// One rank stands for each pipeline stage: all ranks of a stage do the same at the same time.
///
/// # Errors
/// [`Reason::TimeRange`] if the time does not fit, [`Reason::Limit`] if there are too many events.
pub fn evaluate(program: &Program, placement: &Placement, system: &System) -> Result<Report, Infeasible> {
    let machine = machine(program, system);
    if let Some(work) = single(program, placement) {
        return match collective(&machine, system, work) {
            Ok(report) => report.ok_or_else(too_long),
            Err(refused) => Err(refused.infeasible()),
        };
    }
    // Where an NPU has one communication at a time, a message beside a pass and what the pass sends wait for each other.
    let is_shared = program.overlap_sends && machine.rules.has(Quirk::OneCommunication);
    let passes = if is_shared { Passes::Whole } else { Passes::Summed };
    let Unfolded { stages, blocks, sums } =
        unfold(program, &Alone { placement, system }, passes).map_err(|_| too_long())?;
    let placed = Placed::of(&machine, placement, &system.network, narrow(stages.len() as u64));
    let mut measured = BTreeMap::new();
    for (&block, stage) in &blocks {
        let of_block = |class: &&RankClass| (class.start..class.end).contains(&block);
        let first = program.classes.iter().find(of_block).map_or(0, |class| class.stage);
        let representatives = vec![placed.classes.representatives[index(first)]];
        let alone = Classes { of_rank: vec![0], representatives };
        let mut simulation = placed.simulation(&machine, alone, std::slice::from_ref(stage));
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
    let mut simulation = placed.simulation(&machine, placed.classes.clone(), &stages);
    simulation.sums = &sums;
    simulation.pipeline = Some(placement.spans(placement::Group::Pipeline));
    simulation.go();
    if let Some(refused) = &simulation.refused {
        return Err(refused.infeasible());
    }
    let (stage, report) = simulation.report(&stages, system).ok_or_else(too_long)?;
    let class = program.classes.iter().rev().find(|class| class.stage <= stage);
    let memory_bound = class.map(|class| prices::memory_bound(program, class, placement, system));
    Ok(Report { memory_bound: memory_bound.unwrap_or_default(), ..report })
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
        prices::alone(operation, self.placement, self.system)
    }

    fn sent(&self, operation: &Operation) -> f64 {
        prices::sent(operation, self.placement, self.system)
    }

    fn system(&self) -> &System {
        self.system
    }
}

/// The machine that a program runs on.
#[must_use]
pub fn machine(program: &Program, system: &System) -> Machine {
    Machine::of(system, program.tier())
}

/// Every operation of every stage.
///
/// # Errors
/// As [`evaluate`].
pub fn whole(program: &Program, placement: &Placement, system: &System) -> Result<Vec<Stage>, Infeasible> {
    let unfolded = unfold(program, &Alone { placement, system }, Passes::Whole).map_err(|_| too_long())?;
    Ok(unfolded.stages)
}

/// Why one rank of each stage cannot stand for all under the reference's rules, as [`evaluate`] has it; none if it can.
///
/// # Errors
/// As [`evaluate`].
pub fn asymmetry(
    program: &Program,
    placement: &Placement,
    system: &System,
) -> Result<Option<&'static str>, Infeasible> {
    if single(program, placement).is_some() {
        return Ok(None);
    }
    let machine = machine(program, system);
    let stages = whole(program, placement, system)?;
    let placed = Placed::of(&machine, placement, &system.network, narrow(stages.len() as u64));
    let graphs = stages.iter().map(|stage| &stage.graph);
    Ok(Classes::stand_for_all(&machine, &placed.trace, graphs).err())
}

/// Every operation of a step with its start and its end: what each rank does, and what came of it. One rank stands for each
/// pipeline stage, as [`evaluate`] has it.
///
/// # Errors
/// As [`evaluate`].
pub fn record(program: &Program, placement: &Placement, system: &System) -> Result<(Trace, Outcome), Infeasible> {
    let machine = machine(program, system);
    let ask = Ask { limit: Some(LIMIT), keeps_spans: true, ..Ask::default() };
    if let Some(work) = single(program, placement) {
        let trace = everyone(&machine, work).ok_or_else(too_long)?;
        let outcome = simulate_by(&machine, &trace, ask).map_err(|refused| refused.infeasible())?;
        return Ok((trace, outcome));
    }
    let stages = whole(program, placement, system)?;
    let placed = Placed::of(&machine, placement, &system.network, narrow(stages.len() as u64));
    let mut simulation = placed.simulation(&machine, placed.classes.clone(), &stages);
    simulation.pipeline = Some(placement.spans(placement::Group::Pipeline));
    simulation.keep_spans();
    simulation.go();
    if let Some(refused) = &simulation.refused {
        return Err(refused.infeasible());
    }
    let outcome = simulation.outcome(None);
    let pipeline = Members::of(placement.spans(placement::Group::Pipeline), &system.network);
    let of_rank: Vec<u32> = (0..machine.npus()).map(|rank| pipeline.place(rank)).collect();
    let ranks = &placed.classes.representatives;
    let peers = |node: &Node| match node.work {
        trace::Work::Send { to, bytes, tag } => trace::Work::Send { to: ranks[to as usize], bytes, tag },
        trace::Work::Receive { from, bytes, tag } => trace::Work::Receive { from: ranks[from as usize], bytes, tag },
        other => other,
    };
    let graphs = stages.into_iter().map(|stage| stage.graph.map(peers)).collect();
    Ok((Trace { graphs, of_rank: of_rank.clone(), ..Trace::default() }, Outcome { classes: of_rank, ..outcome }))
}

fn too_long() -> Infeasible {
    Infeasible::new(Reason::TimeRange, f64::INFINITY, Time::MAX.as_seconds())
}

/// The one collective among all ranks that a program is, if it is one.
fn single(program: &Program, placement: &Placement) -> Option<trace::Work> {
    let [operation] = program.operations.as_slice() else { return None };
    let Work::Collective { collective, group: placement::Group::Everyone, size } = operation.work else { return None };
    let ranks = placement.spans(placement::Group::Everyone).iter().map(|span| u64::from(span.members)).product::<u64>();
    let bytes = if collective == Collective::AllGather { size.get() / ranks.max(1) } else { size.get() };
    Some(trace::Work::Collective { collective, bytes, group: None, dimensions: u32::MAX })
}

/// A trace in which every rank does one thing.
fn everyone(machine: &Machine, work: trace::Work) -> Option<Trace> {
    let mut draft = trace::graph::Draft::default();
    draft.push(Node { id: 0, work, recorded: 0, on_host: false }, "", []);
    Some(Trace::same(draft.finish().ok()?, machine.npus()))
}

/// The report of one collective among all ranks; none if its time does not fit.
fn collective(machine: &Machine, system: &System, work: trace::Work) -> Result<Option<Report>, Refused> {
    let Some(trace) = everyone(machine, work) else { return Ok(None) };
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
    fn of(machine: &Machine, placement: &Placement, network: &Network, stages: u32) -> Self {
        let pipeline = Members::of(placement.spans(placement::Group::Pipeline), network);
        let representatives: Vec<u32> = (0..stages).map(|stage| pipeline.at(0, stage)).collect();
        let mut groups = Vec::new();
        let mut all_spans = Vec::new();
        for &first in &representatives {
            for group in placement::Group::ALL {
                let spans = placement.spans(group);
                let members = Members::of(spans, network);
                // Only rings that are laid out flat look at ranks one by one.
                let is_flat = !shares_bandwidth(machine);
                let ranks =
                    (0..if is_flat { members.count() } else { 0 }).map(|place| members.at(first, place)).collect();
                groups.push(trace::Group { id: groups.len() as u64 + 1, ranks });
                all_spans.push(spans.clone());
            }
        }
        // Messages name stages, and a stage is simulated in the place of its number.
        let of_rank = (0..stages).collect();
        let trace = Trace { groups, ..Trace::default() };
        Self { trace, spans: all_spans, classes: Classes { of_rank, representatives } }
    }

    /// A simulation of stages, one rank of each.
    fn simulation<'a>(&'a self, machine: &'a Machine, classes: Classes, stages: &'a [Stage]) -> Simulation<'a> {
        let mut simulation = Simulation::new(machine, &self.trace, classes, stages.iter().map(|stage| &stage.graph));
        simulation.is_folded = true;
        simulation.fabric = shares_bandwidth(machine).then(|| Fabric::new(machine, &self.trace, Some(&self.spans)));
        simulation.account(stages.iter().map(|stage| stage.accounts.as_slice()));
        // Under the reference's rules a step stands alone.
        if machine.rules == Rules::OURS {
            for (run, stage) in simulation.runs.iter_mut().zip(stages) {
                run.first = stage.first;
            }
        }
        simulation.limit = LIMIT;
        simulation
    }
}

impl Simulation<'_> {
    /// What one graph took; none if something waits for ever.
    fn sum(&self) -> Option<Sum> {
        let run = self.runs.first()?;
        let sent = self.wire.sent(0).to_vec();
        Some(Sum { time: run.finish?, exposed: run.exposed, data_busy: run.data_busy.total, sent })
    }

    /// The stage that is busiest and its report, once all has happened; none if something waits for ever or does not fit.
    fn report(&self, stages: &[Stage], system: &System) -> Option<(u64, Report)> {
        let lasts = |run: &Run<'_>| run.finish.map(|finish| finish - run.waited.total);
        let finish = self.runs.iter().take(stages.len()).map(lasts).collect::<Option<Vec<u64>>>()?;
        let end = finish.into_iter().max()?;
        let total = self.machine.time(end);
        // The first of equals.
        let runs = self.runs.iter().take(stages.len()).enumerate();
        let (stage, run) = runs.rev().max_by_key(|(_, run)| run.account_sum())?;
        let exposed = run.exposed.map(|ticks| self.machine.time(ticks));
        let bubble = total.saturating_sub(exposed.iter().copied().sum());
        let data_busy = self.machine.time(run.data_busy.total);
        let mut report = Report { total, exposed, bubble, data_busy, ..Report::default() };
        wires(&mut report, self.wire.sent(run.npu as usize), system);
        (total != Time::MAX).then_some((stage as u64, report))
    }
}
