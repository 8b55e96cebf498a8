//! Chunks: a collective cut into pieces that go through phases, one in each dimension, and queue for it [ASTRA2].

use super::bus::{Port, Ports, Prepared, Scene, Trip};
use super::clock::Local;
use super::machine::{Entry, Hierarchy, Machine, Recipe, reduction};
use super::order::{self, Ask, DimensionOrder, QueueOrder, Queued};
use super::token::{Token, outcome};
use super::tree::{Deed, Happening, Tree};
use super::wire::{Address, Then};
use super::{Refused, Simulation, TAGS};
use crate::system::collective::Collective;
use crate::units::narrow;

/// Nanoseconds of an endpoint in a group of some of the ranks, whatever the machine says.
const GROUP_DELAY: u64 = 10;
/// Tags of a group begin at its number times this.
const GROUP_TAGS: u64 = 1_000_000;

/// What one NPU keeps of its communication.
#[derive(Debug)]
pub struct Npu {
    /// Chunks in each queue, those under way first.
    queued: Vec<Vec<u32>>,
    /// How many of each queue are under way.
    running: Vec<u32>,
    /// Which queue comes next, by dimension: for whole collectives, for the way in of an all-reduce, for its way back.
    turns: Vec<[u32; 3]>,
    /// Its memory bus, if messages share one.
    ports: Ports,
    /// Chunks made, and for each group chunks made in it.
    made: u64,
    made_in: Vec<u64>,
    /// At which dimension the next chunk begins, where they take turns.
    turn: usize,
    /// Trees made, by collective and dimension.
    trees: Vec<[u32; Collective::ALL.len()]>,
}

/// Which of a dimension's queues a phase takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Any,
    Inward,
    Back,
}

/// The members of a phase, in the order of their ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Members {
    /// Ranks so far apart, from the first.
    Every { first: u32, stride: u32 },
    /// The ranks of a group.
    Group(u32),
}

/// A chunk's way through one dimension.
#[derive(Debug, Clone, Copy)]
struct Phase {
    queue: u32,
    recipe: Recipe,
    collective: Collective,
    bytes: u64,
    clockwise: bool,
    members: Members,
    count: u32,
    me: u32,
    root_is_last: bool,
}

/// What a chunk is doing.
#[derive(Debug)]
enum Machinery {
    Waiting,
    Token(Box<Token>),
    Tree(Tree),
}

/// One chunk of one rank.
#[derive(Debug)]
struct Chunk {
    npu: u32,
    tag: u64,
    collective: u32,
    phases: Vec<Phase>,
    /// The phase that it is in or waits for.
    at: usize,
    is_queued: bool,
    machinery: Machinery,
}

/// A collective under way on one rank.
#[derive(Debug, Clone, Copy)]
struct Open {
    operation: u32,
    chunks: u64,
    done: u64,
}

/// All chunks under way.
#[derive(Debug, Default)]
pub struct Chunks {
    chunks: Vec<Chunk>,
    collectives: Vec<Open>,
}

impl Npu {
    /// An NPU that has not communicated yet.
    #[must_use]
    pub fn new(machine: &Machine) -> Self {
        let dimensions = machine.dimensions.len();
        let queues = dimensions * machine.queues as usize;
        Self {
            queued: vec![Vec::new(); queues],
            running: vec![0; queues],
            turns: vec![[0, 0, machine.queues / 2]; dimensions],
            ports: Ports::default(),
            made: 0,
            made_in: vec![0; machine.groups.len()],
            turn: 0,
            trees: vec![[0; Collective::ALL.len()]; dimensions],
        }
    }

    /// The queue of a phase in a dimension, and whether it goes clockwise.
    fn queue(&mut self, dimension: usize, turn: Turn, queues: u32) -> (u32, bool) {
        let [any, inward, back] = &mut self.turns[dimension];
        let half = queues / 2;
        let (queue, clockwise) = match turn {
            Turn::Any => {
                let queue = *any;
                *any = (*any + 1) % queues;
                (queue, queues == 1 || queue < half)
            }
            Turn::Inward => {
                let queue = *inward;
                *inward = if queue + 1 >= half { 0 } else { queue + 1 };
                (queue, true)
            }
            Turn::Back => {
                let queue = *back;
                *back = if queue + 1 >= queues { half } else { queue + 1 };
                (queue, false)
            }
        };
        (narrow(dimension as u64) * queues + queue, clockwise)
    }
}

/// A logical dimension of a collective.
#[derive(Debug, Clone, Copy)]
struct Logical {
    entry: Entry,
    dimension: usize,
    members: Members,
    count: u32,
    me: u32,
    takes_part: bool,
}

impl Simulation<'_> {
    /// A rank enters a collective: its chunks are made and queued at once.
    pub(super) fn collective(
        &mut self,
        npu: u32,
        operation: u32,
        collective: Collective,
        bytes: u64,
        group: Option<u32>,
        dimensions: u32,
    ) -> Result<(), Refused> {
        let machine = self.machine;
        let all = u64::from(machine.npus());
        let mut size = bytes;
        let mut chunk = bytes / machine.chunks;
        if collective != Collective::AllGather && chunk < all {
            chunk = all;
            size = machine.chunks * all;
        }
        if chunk == 0 {
            return Err(Refused::TooSmall { bytes, chunks: machine.chunks });
        }
        let logical = self.logical(npu, collective, group, dimensions);
        if !logical.iter().any(|logical| logical.takes_part) {
            return Ok(());
        }
        let open = narrow(self.chunks.collectives.len() as u64);
        // How many chunks there are is known when the last is made; none can end before.
        self.chunks.collectives.push(Open { operation, chunks: u64::MAX, done: 0 });
        let mut chunks = 0;
        if npu == 0 {
            self.themis.begin(self.clock.now(), logical.len());
        }
        while size > 0 {
            chunks += 1;
            let (order, bytes) = self.order(npu, collective, &logical, size, chunk);
            size = size.saturating_sub(bytes);
            let phases = self.phases(npu, collective, bytes, &logical, &order)?;
            let made = &mut self.npus[npu as usize];
            let tag = match group {
                Some(group) => {
                    let tag = machine.groups[group as usize].id * GROUP_TAGS + made.made_in[group as usize];
                    made.made_in[group as usize] += 1;
                    tag
                }
                None => made.made,
            };
            made.made += 1;
            let new = narrow(self.chunks.chunks.len() as u64);
            self.chunks.chunks.push(Chunk {
                npu,
                tag: tag % TAGS + TAGS,
                collective: open,
                phases,
                at: 0,
                is_queued: false,
                machinery: Machinery::Waiting,
            });
            self.enter(new);
        }
        self.chunks.collectives[open as usize].chunks = chunks;
        Ok(())
    }

    /// The order in which the next chunk takes its dimensions, and its bytes.
    fn order(
        &mut self,
        npu: u32,
        collective: Collective,
        logical: &[Logical],
        left: u64,
        bytes: u64,
    ) -> (Vec<usize>, u64) {
        let machine = self.machine;
        if machine.dimension_order.is_by_load() && collective != Collective::AllToAll {
            let takes_part: Vec<bool> = logical.iter().map(|logical| logical.takes_part).collect();
            let is_flex = machine.dimension_order == DimensionOrder::ThemisFlex;
            let chunk = self.npus[npu as usize].made;
            let ask = Ask { chunk, left, bytes, takes_part: &takes_part, collective, is_flex };
            return self.themis.order(machine, ask);
        }
        let mut order: Vec<usize> = (0..logical.len()).collect();
        if collective == Collective::AllGather {
            order.reverse();
        }
        if machine.dimension_order == DimensionOrder::RoundRobin {
            let turn = &mut self.npus[npu as usize].turn;
            order.rotate_left(*turn);
            *turn = (*turn + 1) % order.len();
        }
        (order, bytes)
    }

    /// The logical dimensions of a collective, innermost first.
    fn logical(&self, npu: u32, collective: Collective, group: Option<u32>, involved: u32) -> Vec<Logical> {
        let machine = self.machine;
        let entries = &machine.algorithms[collective as usize];
        if let Some(group) = group {
            let ranks = &machine.groups[group as usize].ranks;
            if ranks.len() < machine.npus() as usize {
                let only = if let [only] = entries.as_slice() { only.recipe } else { Recipe::Ring };
                let me = ranks.iter().position(|&rank| rank == npu).unwrap_or(0);
                return vec![Logical {
                    entry: Entry { recipe: only, whole: false },
                    dimension: 0,
                    members: Members::Group(group),
                    count: narrow(ranks.len() as u64),
                    me: narrow(me as u64),
                    takes_part: ranks.len() > 1,
                }];
            }
        }
        let mut found = Vec::new();
        let mut stride = 1;
        for (k, (&entry, dimension)) in entries.iter().zip(&machine.dimensions).enumerate() {
            let is_involved = group.is_some() || involved & (1 << k) != 0;
            let (count, first, me) = if entry.whole {
                (machine.npus(), 0, npu)
            } else {
                let me = npu / stride % dimension.size;
                (dimension.size, npu - me * stride, me)
            };
            let members = Members::Every { first, stride: if entry.whole { 1 } else { stride } };
            found.push(Logical { entry, dimension: k, members, count, me, takes_part: count > 1 && is_involved });
            if entry.whole {
                break;
            }
            stride *= dimension.size;
        }
        found
    }

    /// The phases of the next chunk.
    fn phases(
        &mut self,
        npu: u32,
        collective: Collective,
        bytes: u64,
        logical: &[Logical],
        order: &[usize],
    ) -> Result<Vec<Phase>, Refused> {
        use Collective::{AllGather, AllReduce, ReduceScatter};
        let taking: Vec<&Logical> =
            order.iter().take(logical.len()).map(|&k| &logical[k]).filter(|logical| logical.takes_part).collect();
        let is_split = collective == AllReduce && self.machine.hierarchy == Hierarchy::ScatterGather;
        let mut plan: Vec<(Collective, &Logical, Turn)> = Vec::new();
        match (collective, taking.split_last()) {
            (AllReduce, _) if is_split && self.machine.dimension_order.is_by_load() => {
                plan.extend(taking.iter().map(|&logical| (ReduceScatter, logical, Turn::Inward)));
                plan.extend(taking.iter().rev().map(|&logical| (AllGather, logical, Turn::Back)));
            }
            (AllReduce, Some((last, inner))) if is_split => {
                plan.extend(inner.iter().map(|&logical| (ReduceScatter, logical, Turn::Inward)));
                plan.push((AllReduce, last, Turn::Inward));
                plan.extend(inner.iter().rev().map(|&logical| (AllGather, logical, Turn::Back)));
            }
            _ => plan.extend(taking.iter().map(|&logical| (collective, logical, Turn::Any))),
        }
        let mut bytes = bytes;
        let mut phases = Vec::with_capacity(plan.len());
        for (part, logical, turn) in plan {
            let state = &mut self.npus[npu as usize];
            let (queue, clockwise) = state.queue(logical.dimension, turn, self.machine.queues);
            let recipe = logical.entry.recipe;
            let mut root_is_last = false;
            if recipe == Recipe::DoubleBinaryTree {
                if !logical.count.is_power_of_two() {
                    return Err(Refused::NoPower { members: logical.count });
                }
                let trees = &mut state.trees[logical.dimension][collective as usize];
                root_is_last = trees.is_multiple_of(2);
                *trees += 1;
            }
            phases.push(Phase {
                queue,
                recipe,
                collective: part,
                bytes,
                clockwise,
                members: logical.members,
                count: logical.count,
                me: logical.me,
                root_is_last,
            });
            bytes = outcome(recipe, part, bytes, logical.count);
        }
        Ok(phases)
    }

    /// A chunk leaves its phase, if it is in one, and queues for the next.
    fn enter(&mut self, k: u32) {
        let chunk = &mut self.chunks.chunks[k as usize];
        let npu = chunk.npu as usize;
        let left = chunk.is_queued.then(|| chunk.phases[chunk.at].queue);
        if left.is_some() {
            chunk.at += 1;
            chunk.machinery = Machinery::Waiting;
        }
        let next = chunk.phases.get(chunk.at).map(|phase| phase.queue);
        chunk.is_queued = next.is_some();
        if next.is_none() {
            let open = &mut self.chunks.collectives[chunk.collective as usize];
            open.done += 1;
            if open.done == open.chunks {
                let operation = open.operation;
                self.done(narrow(npu as u64), operation);
            }
        }
        if let Some(left) = left {
            self.npus[npu].queued[left as usize].retain(|&queued| queued != k);
        }
        if let Some(next) = next {
            let place = self.place(npu, next as usize, k);
            self.npus[npu].queued[next as usize].insert(place, k);
        }
        if let Some(left) = left {
            self.npus[npu].running[left as usize] -= 1;
            self.kick(npu, left as usize);
        }
        if let Some(next) = next {
            self.kick(npu, next as usize);
        }
    }

    /// The place of a chunk in a queue.
    fn place(&self, npu: usize, queue: usize, k: u32) -> usize {
        let queued = &self.npus[npu].queued[queue];
        if self.machine.queue_order == QueueOrder::Fifo {
            return queued.len();
        }
        let seen = |&chunk: &u32| {
            let chunk = &self.chunks.chunks[chunk as usize];
            let is_running = !matches!(chunk.machinery, Machinery::Waiting);
            let phase = &chunk.phases[chunk.at];
            let leaves = outcome(phase.recipe, phase.collective, phase.bytes, phase.count);
            let to_go = chunk.phases.len() - chunk.at - 1;
            Queued { is_running, collective: phase.collective, bytes: phase.bytes.max(leaves), to_go }
        };
        order::place(self.machine.queue_order, queued.iter().map(seen), seen(&k))
    }

    /// Starts what a queue has room for.
    fn kick(&mut self, npu: usize, queue: usize) {
        let most = self.machine.active_chunks.div_ceil(self.machine.queues);
        loop {
            let state = &mut self.npus[npu];
            let running = state.running[queue];
            let Some(&chunk) = state.queued[queue].get(running as usize).filter(|_| running < most) else { return };
            state.running[queue] += 1;
            self.begin(chunk);
        }
    }

    /// A chunk begins its phase.
    fn begin(&mut self, k: u32) {
        let chunk = &mut self.chunks.chunks[k as usize];
        let phase = chunk.phases[chunk.at];
        if phase.recipe == Recipe::DoubleBinaryTree {
            chunk.machinery = Machinery::Tree(Tree::new(phase.me, phase.count, phase.root_is_last));
            self.tree(k, Happening::Begins);
            return;
        }
        let is_group = matches!(phase.members, Members::Group(_));
        let at = (phase.me, phase.count);
        let token = Token::new(phase.recipe, phase.collective, phase.bytes, at, phase.clockwise, is_group);
        let window = token.window();
        chunk.machinery = Machinery::Token(Box::new(token));
        for _ in 0..window {
            self.prepare(k);
        }
    }

    /// The next message of a chunk is prepared.
    fn prepare(&mut self, k: u32) {
        let chunk = &mut self.chunks.chunks[k as usize];
        let Machinery::Token(token) = &mut chunk.machinery else { return };
        let (bytes, reduces, trip) = token.prepare();
        let is_group = matches!(chunk.phases[chunk.at].members, Members::Group(_));
        self.bundle(k, bytes, reduces, is_group, trip);
    }

    /// A message takes its endpoint delay or its trip over the bus, and a reduction where one is due.
    fn bundle(&mut self, chunk: u32, bytes: u64, reduces: bool, is_group: bool, trip: Trip) {
        let npu = self.chunks.chunks[chunk as usize].npu;
        let delay = if is_group { GROUP_DELAY } else { self.machine.endpoint_delay };
        let reduction = reduces.then(|| reduction(bytes, self.machine.memory_bandwidth));
        match self.machine.bus.filter(|_| !is_group) {
            Some(bus) => {
                let mut scene = Scene { clock: &mut self.clock, npu, bus };
                self.npus[npu as usize].ports.prepare(&mut scene, bytes, chunk, reduction, trip);
            }
            None => self.clock.local(npu, delay, Local::Prepared { chunk, reduction }),
        }
    }

    /// Something has happened at a port of an NPU's memory bus.
    pub(super) fn bus(&mut self, npu: u32, happened: Local) {
        let Some(bus) = self.machine.bus else { return };
        let mut scene = Scene { clock: &mut self.clock, npu, bus };
        let ports = &mut self.npus[npu as usize].ports;
        let (port, prepared) = match happened {
            Local::BusReceived { port } => (port, ports.received(&mut scene, port)),
            Local::BusProcessed { port } => (port, ports.processed(&mut scene, port)),
            Local::BusSent { port } => return ports.sent(&mut scene, port),
            _ => return,
        };
        if let Some(Prepared { chunk, reduction, is_stored }) = prepared {
            match reduction {
                Some(delay) => self.clock.local(npu, delay, Local::Reduced { chunk }),
                None => self.prepared(chunk),
            }
            if is_stored {
                let mut scene = Scene { clock: &mut self.clock, npu, bus };
                self.npus[npu as usize].ports.go_on(&mut scene, Port::Npu);
            }
        }
        let mut scene = Scene { clock: &mut self.clock, npu, bus };
        self.npus[npu as usize].ports.go_on(&mut scene, port);
    }

    /// A message of a chunk is prepared.
    pub(super) fn prepared(&mut self, k: u32) {
        let tries = match &mut self.chunks.chunks[k as usize].machinery {
            Machinery::Token(token) => token.token(),
            Machinery::Tree(_) => return self.tree(k, Happening::Prepared),
            Machinery::Waiting => return,
        };
        for _ in 0..tries {
            let chunk = &mut self.chunks.chunks[k as usize];
            let Machinery::Token(token) = &mut chunk.machinery else { return };
            let Some(message) = token.send() else { break };
            let (to, from) = (self.rank(k, message.to), self.rank(k, message.from));
            self.exchange(k, Some(to), Some(from), message.bytes);
        }
        if let Machinery::Token(token) = &self.chunks.chunks[k as usize].machinery
            && tries > 0
            && token.is_done()
        {
            self.enter(k);
        }
    }

    /// A chunk has received a message.
    pub(super) fn received(&mut self, k: u32) {
        match &mut self.chunks.chunks[k as usize].machinery {
            Machinery::Token(token) => {
                token.receive();
                self.prepare(k);
            }
            Machinery::Tree(_) => self.tree(k, Happening::Received),
            Machinery::Waiting => {}
        }
    }

    /// What a tree's member does next.
    fn tree(&mut self, k: u32, happening: Happening) {
        let chunk = &mut self.chunks.chunks[k as usize];
        let bytes = chunk.phases[chunk.at].bytes;
        let Machinery::Tree(tree) = &mut chunk.machinery else { return };
        let mut deeds: arrayvec::ArrayVec<Deed, 4> = arrayvec::ArrayVec::new();
        tree.next(happening, &mut |deed| deeds.push(deed));
        for deed in deeds {
            match deed {
                Deed::Prepare { reduces, trip } => self.bundle(k, bytes, reduces, false, trip),
                Deed::Send(to) => self.exchange(k, Some(self.rank(k, to)), None, bytes),
                Deed::Receive(from) => self.exchange(k, None, Some(self.rank(k, from)), bytes),
                Deed::End => self.enter(k),
            }
        }
    }

    /// The rank at a position of a chunk's phase.
    fn rank(&self, k: u32, position: u32) -> u32 {
        let chunk = &self.chunks.chunks[k as usize];
        match chunk.phases[chunk.at].members {
            Members::Every { first, stride } => first + position * stride,
            Members::Group(group) => self.machine.groups[group as usize].ranks[position as usize],
        }
    }

    /// Sends a chunk's message, and posts the receive of one of the same size.
    fn exchange(&mut self, k: u32, to: Option<u32>, from: Option<u32>, bytes: u64) {
        let Chunk { npu, tag, .. } = self.chunks.chunks[k as usize];
        if let Some(to) = to {
            self.send(Address { tag, from: npu, to, bytes }, Then::Nothing);
        }
        if let Some(from) = from {
            self.receive(Address { tag, from, to: npu, bytes }, Then::Received { chunk: k });
        }
    }
}
