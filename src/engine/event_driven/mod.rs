//! The event-driven engine: every message of every rank, in the order in which the reference simulator takes them.
//!
//! One rank's part of a collective is cut into chunks; a chunk goes through phases, one in each dimension; a phase is a small
//! machine (`token`, `tree`) that sends and receives over the `wire`. The `clock` says what comes next, `run` what a rank starts.

mod bus;
mod chunk;
mod clock;
mod evaluate;
mod fabric;
mod gang;
pub mod outcome;
mod phase;
mod queue;
mod remote;
mod run;
mod steps;
mod symmetry;
mod token;
mod tree;
mod wire;

use std::collections::BTreeMap;

use chunk::{Chunks, Npu};
use clock::{Clock, Event, Local};
pub use evaluate::{Alone, LIMIT, asymmetry, evaluate, machine, record, whole};
use fabric::Fabric;
pub use outcome::{Activity, Outcome, Rank, Refused, Stuck, Wait};
use remote::Server;
pub use run::computation;
use run::{Run, Sum};
use symmetry::Classes;
use wire::{Address, Then, Waiting, Wire};

use crate::system::dimension_order::themis::Loads;
use crate::system::machine::{Congestion, Machine, Way};
use crate::system::network::Spans;
use crate::system::rules::Quirk;
use crate::units::narrow;
use crate::workload::trace::{Graph, Trace};
use crate::workload::unfold::On;

/// Tags of collectives, and of questions before a rendezvous, begin here.
pub const TAGS: u64 = 500_000_000;
/// How many bytes a receiver's question has.
const QUESTION: u64 = 8192;

/// A simulation under way.
#[derive(Debug)]
struct Simulation<'a> {
    machine: &'a Machine,
    trace: &'a Trace,
    /// Whose NPUs are simulated: one of each class.
    classes: Classes,
    /// Whether one member of a class stands for all.
    is_folded: bool,
    /// Where bandwidth is shared, unless links share it themselves.
    fabric: Option<Fabric>,
    /// Parts of graphs whose time is known.
    sums: &'a [Sum],
    /// Where messages from stage to stage go, if that is given.
    pipeline: Option<&'a Spans>,
    clock: Clock,
    wire: Wire,
    npus: Vec<Npu>,
    chunks: Chunks,
    /// Chunks that wait for the others of their phase.
    gangs: BTreeMap<gang::Key, Vec<u32>>,
    loads: Loads,
    servers: Vec<Server>,
    /// The graph of each rank, and behind them those of collectives that are graphs.
    runs: Vec<Run<'a>>,
    /// Whether something was over as it started.
    releases: bool,
    spans: Option<Vec<outcome::Span>>,
    /// Whether some traffic gives way to other.
    has_streams: bool,
    /// Events and chunks so far, and how many there may be.
    spent: u64,
    limit: u64,
    refused: Option<Refused>,
}

/// How a simulation is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ask {
    /// By symmetry, message by message, or as can be.
    pub path: Path,
    /// Whether every operation's start and end are kept.
    pub keeps_spans: bool,
    /// How many events there may be; any number if there is none.
    pub limit: Option<u64>,
}

/// The way to the outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Path {
    /// By symmetry where ranks stand for each other, else message by message.
    #[default]
    Automatic,
    /// One rank of each class: refused where ranks cannot stand for each other.
    Symmetric,
    /// Every message of every rank.
    Messages,
}

/// Simulates what all ranks do on a machine, by symmetry where that can be; if asked, every operation's start and end are kept.
///
/// # Errors
/// If it cannot be done at all. A deadlock is no error: the ranks that wait for ever have no finish.
pub fn simulate(machine: &Machine, trace: &Trace, keeps_spans: bool) -> Result<Outcome, Refused> {
    simulate_by(machine, trace, Ask { keeps_spans, ..Ask::default() })
}

/// Simulates what all ranks do on a machine, in a way that is asked for.
///
/// # Errors
/// If it cannot be done at all, or not in this way. A deadlock is no error: the ranks that wait for ever have no finish.
pub fn simulate_by(machine: &Machine, trace: &Trace, ask: Ask) -> Result<Outcome, Refused> {
    let npus = machine.npus();
    machine.check()?;
    if trace.ranks() != npus {
        return Err(Refused::Trace("there is not one graph for each rank"));
    }
    if trace.broken_group().is_some() {
        return Err(Refused::Trace("a group names a rank twice, or one that is not there"));
    }
    if let Some(stranger) = trace.stranger() {
        return Err(Refused::Stranger(stranger));
    }
    let (classes, asymmetry) = match ask.path {
        Path::Messages => (None, Some("every message was asked for")),
        Path::Automatic | Path::Symmetric => match Classes::of(machine, trace) {
            Ok(classes) => (Some(classes), None),
            Err(why) if ask.path == Path::Symmetric => return Err(Refused::Asymmetric(why)),
            Err(why) => (None, Some(why)),
        },
    };
    let is_folded = classes.is_some();
    let classes = classes.unwrap_or_else(|| Classes::single(npus));
    let representatives = classes.representatives.clone();
    let graphs = representatives.iter().map(|&rank| trace.graph(rank));
    let mut simulation = Simulation::new(machine, trace, classes, graphs);
    simulation.is_folded = is_folded;
    simulation.limit = ask.limit.unwrap_or(u64::MAX);
    simulation.fabric = shares_bandwidth(machine).then(|| Fabric::new(machine, trace, None));
    if ask.keeps_spans {
        simulation.keep_spans();
    }
    simulation.go();
    match simulation.refused {
        Some(refused) => Err(refused),
        None => Ok(simulation.outcome(asymmetry)),
    }
}

impl<'a> Simulation<'a> {
    /// A simulation in which nothing has happened: of each class one rank does what its graph says.
    fn new(machine: &'a Machine, trace: &'a Trace, classes: Classes, graphs: impl Iterator<Item = &'a Graph>) -> Self {
        let simulated = classes.representatives.len();
        Self {
            machine,
            trace,
            is_folded: false,
            fabric: None,
            sums: &[],
            pipeline: None,
            clock: Clock::new(narrow(simulated as u64)),
            wire: Wire::new(machine, simulated),
            npus: (0..simulated).map(|_| Npu::new(machine)).collect(),
            chunks: Chunks::default(),
            gangs: BTreeMap::new(),
            loads: Loads::new(simulated),
            servers: Vec::new(),
            runs: graphs.zip(0..).map(|(graph, npu)| Run::new(npu, graph, None, machine.rules)).collect(),
            classes,
            releases: false,
            spans: None,
            has_streams: false,
            spent: 0,
            limit: u64::MAX,
            refused: None,
        }
    }

    /// Every operation's start and end are to be kept.
    fn keep_spans(&mut self) {
        self.spans = Some(Vec::new());
        self.runs.iter_mut().for_each(Run::keep_starts);
    }

    /// The operations of each graph are on accounts.
    fn account(&mut self, accounts: impl Iterator<Item = &'a [On]>) {
        self.has_streams = true;
        for (run, accounts) in self.runs.iter_mut().zip(accounts) {
            run.accounts = accounts;
        }
    }
}

impl Simulation<'_> {
    /// Everything happens, one thing after the other.
    fn go(&mut self) {
        for rank in 0..self.npus.len() {
            self.issue(rank);
            self.look_for_end(rank);
        }
        loop {
            while let (Some(event), None) = (self.clock.next(), &self.refused) {
                self.happen(event);
                self.spend(1);
                if self.clock.latest() > self.machine.last_tick() {
                    self.refused.get_or_insert(Refused::TimeRange);
                }
            }
            // The reference stops here when what is over as it starts was the last to end: we look again.
            let stalled: Vec<usize> = (0..self.npus.len()).filter(|&rank| self.runs[rank].stalls()).collect();
            if stalled.is_empty() || self.refused.is_some() {
                break;
            }
            for rank in stalled {
                self.issue(rank);
                self.look_for_end(rank);
            }
        }
    }

    fn outcome(self, asymmetry: Option<&'static str>) -> Outcome {
        let simulated = self.npus.len();
        let class = |(npu, run): (usize, &Run<'_>)| Rank {
            finish: run.finish.map(|ticks| self.machine.time(ticks)),
            computed: self.machine.time(run.computed),
            busy: run.busy.map(|busy| self.machine.time(busy.total)),
            engaged: self.machine.time(run.engaged.total),
            sent: self.wire.sent(npu).to_vec(),
        };
        let classes: Vec<Rank> = self.runs.iter().take(simulated).enumerate().map(class).collect();
        let rank = |class: &u32| classes[*class as usize].clone();
        Outcome {
            ranks: self.classes.of_rank.iter().map(rank).collect(),
            messages: self.wire.messages(),
            asymmetry,
            stuck: self.runs.iter().take(simulated).flat_map(|run| run.stuck(self.rank_of(run.npu))).collect(),
            spans: self.spans.unwrap_or_default(),
            classes: self.classes.of_rank,
        }
    }

    /// Counts events, or chunks that are to be made; whether there are too many.
    fn spend(&mut self, count: u64) -> bool {
        self.spent = self.spent.saturating_add(count);
        if self.spent > self.limit {
            self.refused.get_or_insert(Refused::Limit(self.limit));
        }
        self.refused.is_some()
    }

    /// The way of a message between ranks, and how long it takes unless links decide that.
    fn way(&self, from: u32, to: u32, bytes: u64) -> (Way, Option<u64>) {
        let way = self.machine.way(from, to);
        (way, self.delay(way, (from, to), bytes))
    }

    /// How long a message between ranks takes on its way, unless links decide that.
    fn delay(&self, way: Way, ends: (u32, u32), bytes: u64) -> Option<u64> {
        let is_known = self.machine.congestion == Congestion::Unaware;
        is_known.then(|| self.machine.delay_on(way, ends, bytes))
    }

    /// The NPU on which a graph is under way.
    fn npu_of(&self, run: u32) -> u32 {
        self.runs[run as usize].npu
    }

    /// The rank of an NPU that is simulated.
    fn rank_of(&self, npu: u32) -> u32 {
        self.classes.representatives[npu as usize]
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive { message } => {
                if let Some((sent, received)) = self.wire.arrive(self.machine, &mut self.clock, message) {
                    self.then(sent);
                    if let Some(received) = received {
                        self.then(received);
                    }
                }
            }
            Event::Late { message } => {
                if let Some(then) = self.wire.late(message) {
                    self.then(then);
                }
            }
            Event::Look { npu, queue } => self.look(npu as usize, queue as usize),
            Event::Twin { chunk } => self.received(chunk),
            Event::Free { link } => self.wire.link_is_free(self.machine, &mut self.clock, link),
            Event::Block { npu, block } => {
                let mut k = 0;
                while let Some(local) = self.clock.of_block(npu, block, k) {
                    k += 1;
                    match local {
                        Local::Prepared { chunk, reduction: Some(delay) } => {
                            self.clock.local(npu, delay, Local::Reduced { chunk });
                        }
                        Local::Prepared { chunk, reduction: None } | Local::Reduced { chunk } => self.prepared(chunk),
                        Local::Done { run, operation } => self.done(run as usize, operation),
                        Local::Served => self.served(npu),
                        Local::Held { chunk, held } => self.held(chunk, held),
                        Local::Ready { chunk } => self.step_ready(chunk),
                        Local::Stepped { chunk } => self.stepped(chunk),
                        happened @ (Local::BusSent { .. } | Local::BusReceived { .. } | Local::BusProcessed { .. }) => {
                            self.bus(npu, happened);
                        }
                    }
                }
            }
        }
    }

    fn then(&mut self, then: Then) {
        match then {
            Then::Nothing => {}
            Then::Received { chunk } => self.received(chunk),
            Then::Done { run, operation } => self.done(run as usize, operation),
            Then::Send { waiting } => {
                let Waiting { address, then } = self.wire.waited(waiting);
                if self.fabric.is_some() {
                    self.go_on_fabric(address.from, address.to, address, then);
                } else {
                    let way = self.way(address.from, address.to, address.bytes);
                    self.go_out(address, way, then);
                }
            }
            Then::Receive { waiting } => {
                let Waiting { address, then } = self.wire.waited(waiting);
                self.wire.receive(&mut self.clock, address, then);
            }
        }
    }

    /// Sends a message, after its receiver has asked for it if there is a rendezvous.
    fn send(&mut self, address: Address, way: (Way, Option<u64>), then: Then) {
        if self.machine.rendezvous {
            self.await_question(address, then);
        } else {
            self.go_out(address, way, then);
        }
    }

    /// A message waits until its receiver asks for it.
    fn await_question(&mut self, address: Address, then: Then) {
        let waiting = self.wait(address, then);
        self.wire.receive(&mut self.clock, question(address), Then::Send { waiting });
    }

    /// A message goes out on its way.
    fn go_out(&mut self, address: Address, (way, delay): (Way, Option<u64>), then: Then) {
        self.wire.add(address.from, way.dimension as usize, address.bytes);
        self.wire.send(self.machine, &mut self.clock, address, delay, then);
    }

    /// Posts a receive, asking the sender first if there is a rendezvous.
    fn receive(&mut self, address: Address, then: Then) {
        if self.machine.rendezvous {
            let waiting = self.wait(address, then);
            let question = question(address);
            let then = Then::Receive { waiting };
            if self.fabric.is_some() {
                self.go_on_fabric(question.from, question.to, question, then);
            } else {
                let way = self.way(question.from, question.to, question.bytes);
                self.go_out(question, way, then);
            }
        } else {
            self.wire.receive(&mut self.clock, address, then);
        }
    }

    fn wait(&mut self, address: Address, then: Then) -> u32 {
        self.wire.keep(Waiting { address, then })
    }
}

/// Whether an NPU's bandwidth in a dimension is shared by what it sends there at once.
fn shares_bandwidth(machine: &Machine) -> bool {
    machine.congestion == Congestion::Unaware && !machine.rules.has(Quirk::UnsharedBandwidth)
}

/// The question that a receiver sends before a message.
const fn question(address: Address) -> Address {
    Address { tag: address.tag + 2 * TAGS, from: address.to, to: address.from, bytes: QUESTION }
}
