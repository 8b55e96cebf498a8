//! A graph under way on one rank: what may start, what goes on, what follows.
//!
//! An NPU runs one computation, one communication and one operation of its host at a time; receives wait beside them. Of several
//! operations that may start the smallest number goes first, and each end of an operation is followed by one look at all that
//! may start [ASTRA2].

use std::collections::BTreeSet;

use super::clock::Local;
use super::outcome::{Activity, Span, Stuck, Wait};
use super::wire::{Address, Then};
use super::{Simulation, TAGS};
use crate::system::machine::{Machine, Pace};
use crate::system::rules::{Quirk, Rules};
use crate::units::real;
use crate::workload::program::Account;
use crate::workload::trace::{Graph, Node, Work};
use crate::workload::unfold::On;

/// A graph under way.
#[derive(Debug)]
pub struct Run<'a> {
    /// The NPU.
    pub npu: u32,
    pub graph: &'a Graph,
    /// The collective that the graph is, if it is one: its operations wait for no slot.
    pub of: Option<Of>,
    /// For how many others each operation still waits.
    waits: Vec<u32>,
    stages: Vec<Stage>,
    /// Operations that could start, by what they take.
    ready: [BTreeSet<u32>; Slot::COUNT],
    /// Operations that could start since the last look began, kept for the next one.
    fresh: Vec<u32>,
    is_looking: bool,
    rules: Rules,
    under_way: u32,
    taken: [bool; Slot::COUNT],
    /// When each operation started, if that is kept.
    starts: Vec<u64>,
    /// On whose account each operation is, if that is asked.
    pub accounts: &'a [On],
    /// Operations of each account under way, and the time in which only that account's go on.
    active: [u32; Account::COUNT],
    pub exposed: [u64; Account::COUNT],
    since: u64,
    pub data_busy: Busy,
    /// How busy the rank was with each kind of thing.
    pub busy: [Busy; Activity::ALL.len()],
    /// How busy it was with anything.
    pub engaged: Busy,
    /// Computations of the NPU, added up.
    pub computed: u64,
    pub finish: Option<u64>,
    /// The operation with whose end a step begins, if not with the first, when it started and how long it lasted.
    pub first: Option<u32>,
    pub waited: Busy,
}

/// A part of a graph whose time is known, in ticks.
#[derive(Debug, Clone, Default)]
pub struct Sum {
    /// From its start to its end.
    pub time: u64,
    /// The time of each account alone.
    pub exposed: [u64; Account::COUNT],
    /// Time in which data-parallel traffic goes on.
    pub data_busy: u64,
    /// Bytes sent in each dimension.
    pub sent: Vec<u64>,
}

impl Sum {
    /// Adds another, so many times.
    pub fn add(&mut self, other: &Self, times: u64) {
        let add = |mine: &mut u64, theirs: u64| *mine = mine.saturating_add(theirs.saturating_mul(times));
        add(&mut self.time, other.time);
        for (mine, theirs) in self.exposed.iter_mut().zip(other.exposed) {
            add(mine, theirs);
        }
        add(&mut self.data_busy, other.data_busy);
        self.sent.resize(other.sent.len(), 0);
        for (mine, theirs) in self.sent.iter_mut().zip(&other.sent) {
            add(mine, *theirs);
        }
    }
}

/// A collective that is a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Of {
    /// Its chunk.
    pub chunk: u32,
    /// The group among whom it runs; all if there is none.
    pub group: Option<u32>,
}

/// Where an operation stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Waiting,
    UnderWay,
    Over,
}

/// Time in which at least one operation of a kind goes on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Busy {
    under_way: u32,
    since: u64,
    /// So far.
    pub total: u64,
}

impl Busy {
    const fn starts(&mut self, now: u64) {
        if self.under_way == 0 {
            self.since = now;
        }
        self.under_way += 1;
    }

    const fn ends(&mut self, now: u64) {
        self.under_way -= 1;
        if self.under_way == 0 {
            self.total += now - self.since;
        }
    }
}

/// What a kind of operation takes, one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    Compute,
    Communication,
    Host,
    Memory,
    None,
}

impl Slot {
    const COUNT: usize = 5;

    fn of(node: &Node, rules: Rules) -> Self {
        let is_one = rules.has(Quirk::OneCommunication);
        match node.work {
            _ if node.on_host => Self::Host,
            Work::Compute { .. } | Work::Lasts { .. } | Work::Sum { .. } => Self::Compute,
            Work::Receive { .. } => Self::None,
            Work::Send { .. } if !is_one => Self::None,
            Work::Load { .. } | Work::Store { .. } if !is_one => Self::Memory,
            _ => Self::Communication,
        }
    }
}

impl<'a> Run<'a> {
    /// A graph that has not begun.
    #[must_use]
    pub fn new(npu: u32, graph: &'a Graph, of: Option<Of>, rules: Rules) -> Self {
        let waits = graph.waits().to_vec();
        let mut run = Self {
            npu,
            graph,
            of,
            stages: vec![Stage::Waiting; waits.len()],
            starts: Vec::new(),
            accounts: &[],
            active: [0; Account::COUNT],
            exposed: [0; Account::COUNT],
            since: 0,
            data_busy: Busy::default(),
            waits,
            ready: std::array::from_fn(|_| BTreeSet::new()),
            fresh: Vec::new(),
            is_looking: false,
            rules,
            under_way: 0,
            taken: [false; Slot::COUNT],
            busy: [Busy::default(); Activity::ALL.len()],
            engaged: Busy::default(),
            computed: 0,
            finish: None,
            first: None,
            waited: Busy::default(),
        };
        (0..).zip(graph.waits()).filter(|(_, waits)| **waits == 0).for_each(|(k, _)| run.may_start(k));
        run
    }

    fn node(&self, operation: u32) -> &'a Node {
        &self.graph.nodes()[operation as usize]
    }

    /// Whether an operation gives way to others: data-parallel traffic takes what the others leave.
    pub fn gives_way(&self, operation: u32) -> bool {
        self.accounts.get(operation as usize) == Some(&On::Account(Account::Data))
    }

    /// Whether an operation is data-parallel communication.
    pub fn is_data_parallel(&self, operation: u32) -> bool {
        matches!(self.accounts.get(operation as usize), Some(On::Account(account)) if account.is_data_parallel())
    }

    /// Starts of operations are to be kept.
    pub fn keep_starts(&mut self) {
        self.starts = vec![0; self.waits.len()];
    }

    /// An operation starts or ends: the time until now is on the account of what went on; data-parallel traffic has only what
    /// it has alone.
    fn count(&mut self, operation: u32, now: u64, starts: bool) {
        let Some(&on) = self.accounts.get(operation as usize) else { return };
        let is_going = |account: &Account| self.active[*account as usize] > 0 && *account != Account::Data;
        let going = Account::ALL.into_iter().find(is_going);
        let going = going.or((self.active[Account::Data as usize] > 0).then_some(Account::Data));
        if let Some(going) = going {
            self.exposed[going as usize] += now - self.since;
        }
        self.since = now;
        let (On::Account(account) | On::Slowed(account)) = on else { return };
        let active = &mut self.active[account as usize];
        *active = if starts { *active + 1 } else { *active - 1 };
        // A collective goes on while one of its chunks does.
        let is_collective = matches!(self.node(operation).work, Work::Collective { .. });
        if self.is_data_parallel(operation) && !is_collective {
            self.data(now, starts);
        }
    }

    /// Data-parallel communication goes on, or rests: it waits, or is over.
    pub const fn data(&mut self, now: u64, starts: bool) {
        if starts { self.data_busy.starts(now) } else { self.data_busy.ends(now) }
    }

    /// A part of the graph whose time is known goes on: all of its accounts.
    fn add(&mut self, sum: &Sum) {
        for (mine, theirs) in self.exposed.iter_mut().zip(sum.exposed) {
            *mine = mine.saturating_add(theirs);
        }
        self.data_busy.total = self.data_busy.total.saturating_add(sum.data_busy);
    }

    /// Time in which anything goes on.
    pub fn account_sum(&self) -> u64 {
        self.exposed.iter().copied().fold(0, u64::saturating_add)
    }

    /// Whether operations take slots: not those of a collective that is a graph, nor of an unfolded program, whose streams are in
    /// its graph.
    fn has_slots(&self) -> bool {
        let is_free = !self.accounts.is_empty() && !self.rules.has(Quirk::OneCommunication);
        self.of.is_none() && !is_free
    }

    /// An operation is over: what follows it waits for one less.
    fn release(&mut self, operation: u32) {
        for &follower in self.graph.followers(operation as usize) {
            self.waits[follower as usize] -= 1;
            if self.waits[follower as usize] == 0 {
                self.may_start(follower);
            }
        }
    }

    /// Whether something could start and does not: the last look at what may start was before.
    pub fn stalls(&self) -> bool {
        self.next(0).is_some()
    }

    /// An operation waits for nothing any more.
    fn may_start(&mut self, operation: u32) {
        if self.is_looking {
            self.fresh.push(operation);
        } else {
            let slot = Slot::of(self.node(operation), self.rules);
            self.ready[slot as usize].insert(operation);
        }
    }

    /// The first operation from a place on that could start and whose slot is free.
    fn next(&self, from: u32) -> Option<u32> {
        let is_free = |slot: &usize| !self.has_slots() || !self.taken[*slot];
        let first = |slot: usize| self.ready[slot].range(from..).next().copied();
        (0..Slot::COUNT).filter(is_free).filter_map(first).min()
    }

    /// The operations that wait for ever, once nothing happens any more.
    pub fn stuck(&self, rank: u32) -> impl Iterator<Item = Stuck> {
        let wait = |k: u32| match self.waits[k as usize] {
            _ if self.stages[k as usize] == Stage::UnderWay => Some(Wait::Others),
            _ if self.ready.iter().any(|ready| ready.contains(&k)) => Some(Wait::Slot),
            0 => None,
            open => Some(Wait::Operations(open)),
        };
        let operations = self.graph.nodes().iter().zip(0..);
        operations.filter_map(move |(node, k)| Some(Stuck { rank, operation: node.id, wait: wait(k)? }))
    }
}

impl Simulation<'_> {
    /// Starts what can start, in the order of numbers.
    pub(super) fn issue(&mut self, run: usize) {
        self.runs[run].is_looking = true;
        let mut from = 0;
        while let Some(operation) = self.runs[run].next(from) {
            self.start(run, operation);
            from = operation + 1;
        }
        let state = &mut self.runs[run];
        state.is_looking = false;
        for operation in std::mem::take(&mut state.fresh) {
            state.may_start(operation);
        }
        if std::mem::take(&mut self.releases) && !self.machine.rules.has(Quirk::UnawakenedFollowers) {
            self.issue(run);
        }
    }

    fn start(&mut self, run: usize, operation: u32) {
        let now = self.clock.now();
        let node = self.runs[run].node(operation);
        let is_nothing = self.is_nothing(node);
        let state = &mut self.runs[run];
        state.ready[Slot::of(node, state.rules) as usize].remove(&operation);
        if is_nothing {
            state.stages[operation as usize] = Stage::Over;
            // Its followers are free, and nobody looks whether they could start until something else ends.
            state.release(operation);
            self.releases = true;
            return;
        }
        state.stages[operation as usize] = Stage::UnderWay;
        state.under_way += 1;
        let slot = Slot::of(node, self.machine.rules);
        state.taken[slot as usize] = slot != Slot::None;
        if let Some(start) = state.starts.get_mut(operation as usize) {
            *start = now;
        }
        state.busy[Activity::of(node) as usize].starts(now);
        state.engaged.starts(now);
        if state.first == Some(operation) {
            state.waited.starts(now);
        }
        state.count(operation, now, true);
        let npu = state.npu;
        let then = Then::Done { run: crate::units::narrow(run as u64), operation };
        let is_own = state.of.is_some();
        match node.work {
            Work::Compute { .. } | Work::Lasts { .. } => {
                let time = computation(self.machine, node);
                if !node.on_host {
                    self.runs[run].computed = self.runs[run].computed.saturating_add(time);
                }
                self.last(run, operation, time);
            }
            _ if self.machine.pace == Pace::Replayed && !is_own => {
                self.last(run, operation, recorded(self.machine, node));
            }
            Work::Collective { collective, .. } if self.machine.is_delay(collective) => {
                self.last(run, operation, recorded(self.machine, node));
            }
            Work::Nothing => self.last(run, operation, 0),
            Work::Sum { place } => {
                let Some(sum) = self.sums.get(place as usize) else { return };
                self.runs[run].add(sum);
                self.wire.add_all(npu, &sum.sent);
                self.last(run, operation, sum.time);
            }
            Work::Load { bytes } | Work::Store { bytes } => self.remote(npu, (run, operation), bytes),
            Work::Collective { collective, bytes, group, dimensions } => {
                self.collective(run, operation, (collective, bytes, group, dimensions));
            }
            Work::Send { to, bytes, tag } => {
                let to = self.peer(run, to);
                let slot = self.classes.of_rank[to as usize];
                let address = Address { tag: tag % TAGS, from: npu, to: slot, bytes };
                if self.fabric.is_some() {
                    self.send_on_fabric(npu, to, address, then);
                } else {
                    self.send(address, self.way(self.rank_of(npu), self.rank_of(slot), bytes), then);
                }
            }
            Work::Receive { from, bytes, tag } => {
                let from = self.classes.of_rank[self.peer(run, from) as usize];
                self.receive(Address { tag: tag % TAGS, from, to: npu, bytes }, then);
            }
        }
    }

    /// Whether an operation is over as it starts.
    fn is_nothing(&self, node: &Node) -> bool {
        match node.work {
            _ if self.machine.pace == Pace::Replayed => false,
            Work::Nothing => true,
            Work::Compute { bytes: Some(0), .. } => !node.on_host && matches!(self.machine.pace, Pace::Roofline { .. }),
            _ => false,
        }
    }

    /// An operation takes so long.
    pub(super) fn last(&mut self, run: usize, operation: u32, time: u64) {
        let npu = self.runs[run].npu;
        self.clock.local(npu, time, Local::Done { run: crate::units::narrow(run as u64), operation });
    }

    /// The rank that a graph means by a number: a member of the group of its collective, if it is one.
    fn peer(&self, run: usize, number: u32) -> u32 {
        match self.runs[run] {
            Run { of: Some(Of { group: Some(group), .. }), .. } => {
                self.trace.groups[group as usize].ranks[number as usize]
            }
            _ => number,
        }
    }

    /// An operation is done: its slot is free, its followers wait for one less, and what can start starts.
    pub(super) fn done(&mut self, run: usize, operation: u32) {
        let now = self.clock.now();
        let state = &mut self.runs[run];
        let node = state.node(operation);
        state.stages[operation as usize] = Stage::Over;
        state.under_way -= 1;
        state.taken[Slot::of(node, self.machine.rules) as usize] = false;
        state.busy[Activity::of(node) as usize].ends(now);
        state.engaged.ends(now);
        if state.first == Some(operation) {
            state.waited.ends(now);
        }
        state.count(operation, now, false);
        state.release(operation);
        let rank = self.classes.representatives[state.npu as usize];
        if let (Some(spans), None) = (&mut self.spans, state.of) {
            let [start, end] = [state.starts[operation as usize], now].map(|ticks| self.machine.time(ticks));
            spans.push(Span { rank, operation, start, end });
        }
        self.issue(run);
        self.look_for_end(run);
    }

    pub(super) fn look_for_end(&mut self, run: usize) {
        let now = self.clock.now();
        let state = &mut self.runs[run];
        if state.finish.is_none() && state.ready.iter().all(BTreeSet::is_empty) && state.under_way == 0 {
            state.finish = Some(now);
            if let Some(of) = state.of {
                // Of a collective that is over nothing is asked any more.
                (state.waits, state.stages, state.starts) = (Vec::new(), Vec::new(), Vec::new());
                self.enter(of.chunk);
            }
        }
    }
}

/// Ticks that a computation takes.
///
/// ```text
/// T = F / min(B * F / S, P) * 1e9      1e9 operations on 1e6 B at 1,600 GB/s and 100 TFLOP/s: 10,000 ns
/// ```
///
/// F operations, S bytes, B the memory's bandwidth, P the peak [ASTRA2].
#[must_use]
pub fn computation(machine: &Machine, node: &Node) -> u64 {
    match (machine.pace, node.work) {
        (Pace::Roofline { peak, memory }, Work::Compute { operations: Some(operations), bytes: Some(bytes) })
            if !node.on_host =>
        {
            if operations == 0 {
                // The reference divides nothing by nothing here.
                return machine.ticks(real(bytes) / memory * 1e9);
            }
            let operations = real(operations);
            let rate = (memory * (operations / real(bytes))).min(peak);
            machine.ticks(operations / rate * 1e9)
        }
        (_, Work::Lasts { time }) => machine.ticks(time.as_delay().as_nanoseconds()),
        _ => recorded(machine, node),
    }
}

/// Ticks that an operation was recorded to take; a nanosecond if it was not.
fn recorded(machine: &Machine, node: &Node) -> u64 {
    machine.whole_ticks(node.recorded.max(1))
}
