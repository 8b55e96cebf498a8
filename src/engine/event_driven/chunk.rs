//! Chunks: a collective cut into pieces that go through phases, one in each dimension, and queue for it [ASTRA2].

use std::collections::{BTreeMap, VecDeque};

use super::bus::{Port, Ports, Prepared, Scene, Trip};
use super::clock::{Event, Local};
use super::phase::{Course, Members, Phase};
use super::run::{self, Run};
use super::token::Token;
use super::tree::{Deed, Happening, Tree};
use super::wire::{Address, Then};
use super::{Refused, Simulation, TAGS};
use crate::system::collective::{Algorithm, Collective};
use crate::system::machine::{Machine, Way};
use crate::system::rules::Quirk;
use crate::system::topology::Topology;
use crate::units::narrow;

/// Nanoseconds of an endpoint in a group of some of the ranks, whatever the machine says.
const GROUP_DELAY: f64 = 10.0;
/// Tags of a group begin at its number times this.
const GROUP_TAGS: u64 = 1_000_000;

/// Chunks under way at most, on all NPUs together: some gigabytes.
pub const MOST_CHUNKS: usize = 1 << 24;

/// What one NPU keeps of its communication.
#[derive(Debug)]
pub struct Npu {
    /// Chunks in each queue, those under way first.
    pub queued: Vec<VecDeque<u32>>,
    /// How many of each queue are under way.
    pub running: Vec<u32>,
    /// Which queue comes next, by dimension: for whole collectives, for the way in of an all-reduce, for its way back.
    pub turns: Vec<[u32; 3]>,
    /// Its memory bus, if messages share one.
    ports: Ports,
    /// Chunks made, and for each group chunks made in it.
    pub made: u64,
    made_in: BTreeMap<u32, u64>,
    /// At which dimension the next chunk begins, where they take turns: of all, or under our rules of each group.
    pub turns_of: BTreeMap<Option<u32>, usize>,
    /// Trees made, by group under our rules, dimension and collective.
    pub trees: BTreeMap<(Option<u32>, usize, Collective), u32>,
}

/// What a chunk is doing.
#[derive(Debug)]
pub enum Machinery {
    Waiting,
    Token(Token),
    Tree(Tree),
    /// A graph of its own, under way.
    Own,
    /// A time that is known.
    Held,
    /// Step by step: the step, how often it has been done, how many messages it waits for, and how long what comes in is added to
    /// what is there.
    Steps {
        leg: u32,
        times: u32,
        awaited: u32,
        reduction: u64,
    },
}

/// What a chunk is a chunk of.
#[derive(Debug, Clone, Copy)]
pub enum Of {
    Collective(u32),
    Message { address: Address, then: Then },
}

/// One chunk of one rank.
#[derive(Debug)]
pub struct Chunk {
    pub npu: u32,
    pub tag: u64,
    pub of: Of,
    /// The phases that it goes through.
    plan: u32,
    /// The phase that it is in or waits for.
    pub at: usize,
    pub is_queued: bool,
    pub machinery: Machinery,
    /// Whether it gives way to those that do not.
    pub gives_way: bool,
    /// Where it is held: until when, what was left when it gave way, and how often it has been held.
    pub until: u64,
    /// See `until`.
    pub left: Option<u64>,
    /// See `until`.
    pub held: u32,
}

/// A collective under way on one rank.
#[derive(Debug, Clone, Copy)]
pub struct Open {
    pub run: u32,
    pub operation: u32,
    pub chunks: u64,
    pub done: u64,
}

/// Phases that chunks go through: those of one collective on one NPU mostly have the same.
#[derive(Debug, Default)]
struct Plan {
    phases: Vec<Phase>,
    /// How many chunks go by it.
    chunks: u32,
}

/// All chunks under way.
#[derive(Debug, Default)]
pub struct Chunks {
    pub all: Vec<Chunk>,
    plans: Vec<Plan>,
    free_plans: Vec<u32>,
    /// The phases of the chunk that is being made.
    pub made: Vec<Phase>,
    /// Whether there are more than can be kept.
    pub are_too_many: bool,
    /// Chunks that are done, to be used again.
    free: Vec<u32>,
    pub collectives: Vec<Open>,
    free_collectives: Vec<u32>,
}

impl Npu {
    /// An NPU that has not communicated yet.
    #[must_use]
    pub fn new(machine: &Machine) -> Self {
        let dimensions = machine.dimensions.len();
        // Behind those of the dimensions, one for each of them: see `Machine::line`.
        let queues = dimensions * (machine.queues as usize + 1);
        Self {
            queued: vec![VecDeque::new(); queues],
            running: vec![0; queues],
            turns: vec![[0, 0, machine.queues / 2]; dimensions],
            ports: Ports::default(),
            made: 0,
            made_in: BTreeMap::new(),
            turns_of: BTreeMap::new(),
            trees: BTreeMap::new(),
        }
    }
}

impl Chunks {
    /// A new chunk that goes through the phases in `made`, by the plan of another one if that has the same.
    pub fn chunk(&mut self, other: Option<u32>) -> u32 {
        let is_same = |&plan: &u32| {
            let plan = &self.plans[plan as usize];
            plan.chunks > 0 && plan.phases == self.made
        };
        let plan = other.map(|k| self.all[k as usize].plan).filter(is_same).unwrap_or_else(|| {
            let free = self.free_plans.pop().unwrap_or_else(|| {
                self.plans.push(Plan::default());
                narrow(self.plans.len() as u64 - 1)
            });
            self.plans[free as usize].phases.clone_from(&self.made);
            free
        });
        self.plans[plan as usize].chunks += 1;
        self.made.clear();
        if let Some(k) = self.free.pop() {
            self.all[k as usize].plan = plan;
            return k;
        }
        self.are_too_many |= self.all.len() == MOST_CHUNKS;
        self.all.push(Chunk {
            npu: 0,
            tag: 0,
            of: Of::Collective(0),
            plan,
            at: 0,
            is_queued: false,
            machinery: Machinery::Waiting,
            gives_way: false,
            until: 0,
            left: None,
            held: 0,
        });
        narrow(self.all.len() as u64 - 1)
    }

    /// A chunk is through.
    pub fn free(&mut self, k: u32) {
        self.free.push(k);
        let plan = self.all[k as usize].plan;
        self.plans[plan as usize].chunks -= 1;
        if self.plans[plan as usize].chunks == 0 {
            self.free_plans.push(plan);
        }
    }

    /// All phases of a chunk.
    pub fn phases(&self, k: u32) -> &[Phase] {
        &self.plans[self.all[k as usize].plan as usize].phases
    }

    /// A chunk and all its phases.
    pub fn both(&mut self, k: u32) -> (&mut Chunk, &[Phase]) {
        let chunk = &mut self.all[k as usize];
        let plan = chunk.plan as usize;
        (chunk, &self.plans[plan].phases)
    }

    /// The phase that a chunk is in.
    pub fn phase(&self, k: u32) -> &Phase {
        &self.phases(k)[self.all[k as usize].at]
    }

    /// A collective is over on one rank.
    pub fn close(&mut self, collective: u32) {
        self.free_collectives.push(collective);
    }

    /// A collective begins.
    pub fn open(&mut self, collective: Open) -> u32 {
        if let Some(k) = self.free_collectives.pop() {
            self.collectives[k as usize] = collective;
            return k;
        }
        self.collectives.push(collective);
        narrow(self.collectives.len() as u64 - 1)
    }
}

impl Simulation<'_> {
    /// A rank enters a collective: its chunks are made and queued at once.
    pub(super) fn collective(
        &mut self,
        run: usize,
        operation: u32,
        (collective, bytes, group, dimensions): (Collective, u64, Option<u32>, u32),
    ) {
        let machine = self.machine;
        let npu = self.runs[run].npu;
        let all = u64::from(machine.npus());
        let mut size = bytes;
        let mut chunk = bytes / machine.chunks;
        if collective != Collective::AllGather && chunk < all && machine.rules.has(Quirk::SmallestChunk) {
            chunk = all;
            size = machine.chunks * all;
        }
        // How many chunks there are is known when the last is made; none can end before.
        let state = Open { run: narrow(run as u64), operation, chunks: u64::MAX, done: 0 };
        let id = self.runs[run].graph.nodes()[operation as usize].id;
        let own = machine.own.of_operation.get(&id).copied().or(machine.own.of_collective[collective as usize]);
        if let Some(own) = own {
            let open = self.chunks.open(Open { chunks: 1, ..state });
            let phase = self.own_phase(npu, collective, group, own);
            self.chunks.made.push(phase);
            let chunk = self.chunks.chunk(None);
            self.chunk(npu, open, group, chunk);
            return;
        }
        if self.fabric.is_some() {
            self.on_fabric(state, (collective, bytes, group, dimensions));
            return;
        }
        let logical = self.logical(npu, collective, group, dimensions);
        if size == 0 || !logical.iter().any(|logical| logical.takes_part) {
            // The reference never ends here.
            self.last(run, operation, 0);
            return;
        }
        chunk = chunk.max(1);
        if self.spend(size.div_ceil(chunk)) {
            return;
        }
        let open = self.chunks.open(state);
        let mut chunks = 0;
        let mut last = None;
        if self.rank_of(npu) == 0 && self.is_by_load(group, &logical) {
            self.loads.begin(self.clock.now(), logical.len());
        }
        while size > 0 {
            chunks += 1;
            let (order, bytes) = self.order(npu, (collective, group), &logical, size, chunk);
            let bytes = if machine.rules.has(Quirk::FullLastChunk) { bytes } else { bytes.min(size) };
            size = size.saturating_sub(bytes);
            if let Err(refused) = self.phases(npu, collective, bytes, (&logical, &order)) {
                self.refused.get_or_insert(refused);
                return;
            }
            let chunk = self.chunks.chunk(last);
            last = Some(chunk);
            self.chunk(npu, open, group, chunk);
            if self.crowds() {
                return;
            }
        }
        self.chunks.collectives[open as usize].chunks = chunks;
    }

    /// Whether there are more chunks than can be kept: then nothing goes on.
    pub(super) fn crowds(&mut self) -> bool {
        if self.chunks.are_too_many {
            self.refused.get_or_insert(Refused::Crowded(MOST_CHUNKS));
        }
        self.chunks.are_too_many
    }

    /// A chunk is made and queued.
    pub(super) fn chunk(&mut self, npu: u32, collective: u32, group: Option<u32>, k: u32) {
        let counts = group.is_none() || self.machine.rules.has(Quirk::SharedCounter);
        let made = &mut self.npus[npu as usize];
        let tag = match group {
            Some(group) => {
                let made_in = made.made_in.entry(group).or_default();
                let tag = self.trace.groups[group as usize].id * GROUP_TAGS + *made_in;
                *made_in += 1;
                tag
            }
            None => made.made,
        };
        made.made += u64::from(counts);
        let chunk = &mut self.chunks.all[k as usize];
        (chunk.npu, chunk.tag, chunk.of) = (npu, tag % TAGS + TAGS, Of::Collective(collective));
        (chunk.at, chunk.is_queued, chunk.machinery) = (0, false, Machinery::Waiting);
        self.enter(k);
    }

    /// A chunk goes on, or rests: of a data-parallel collective that is told, as time in which it waits is not its own.
    pub(super) fn goes_on(&mut self, k: u32, starts: bool) {
        let Of::Collective(collective) = self.chunks.all[k as usize].of else { return };
        let Open { run, operation, .. } = self.chunks.collectives[collective as usize];
        let run = &mut self.runs[run as usize];
        if run.is_data_parallel(operation) {
            run.data(self.clock.now(), starts);
        }
    }

    /// A chunk begins its phase.
    pub(super) fn begin(&mut self, k: u32) {
        self.goes_on(k, true);
        let phase = *self.chunks.phase(k);
        let chunk = &mut self.chunks.all[k as usize];
        if let Course::Steps(steps) = phase.course {
            if self.is_folded || matches!(chunk.of, Of::Message { .. }) {
                chunk.machinery = Machinery::Held;
                let npu = chunk.npu;
                let time = chunk.left.take().unwrap_or(steps.total);
                chunk.held += 1;
                chunk.until = self.clock.now().saturating_add(time);
                self.clock.local(npu, time, Local::Held { chunk: k, held: chunk.held });
            } else {
                chunk.machinery = Machinery::Steps { leg: steps.first, times: 0, awaited: 0, reduction: 0 };
                self.step(k);
            }
            return;
        }
        if let Course::Own(own) = phase.course {
            let npu = chunk.npu;
            chunk.machinery = Machinery::Own;
            let Some(graph) = self.trace.own.get(own as usize).and_then(|own| own.get(phase.me as usize)) else {
                self.refused.get_or_insert(Refused::Trace("a collective has no graph for one of its ranks"));
                return;
            };
            let group = if let Members::Group(group) = phase.members { Some(group) } else { None };
            self.runs.push(Run::new(npu, graph, Some(run::Of { chunk: k, group }), self.machine.rules));
            let run = self.runs.len() - 1;
            self.issue(run);
            self.look_for_end(run);
            return;
        }
        let misplaces = self.machine.rules.has(Quirk::MisplacedReductions);
        if self.machine.goes_by_tree(phase.algorithm, phase.collective)
            && let Some(branch) = phase.algorithm.part().branch(phase.me, phase.count, phase.is_odd)
        {
            let goes_down = phase.collective == Collective::Broadcast;
            chunk.machinery = Machinery::Tree(Tree::new(branch, goes_down, misplaces));
            self.tree(k, Happening::Begins);
            return;
        }
        let token = Token::new(phase.algorithm, phase.part(), misplaces);
        chunk.machinery = Machinery::Token(token);
        for _ in 0..token.window() {
            self.prepare(k);
        }
    }

    /// The next message of a chunk is prepared.
    fn prepare(&mut self, k: u32) {
        let Some(token) = self.token(k) else { return };
        let (bytes, reduced, trip) = token.prepare();
        let is_group = token.is_group();
        self.bundle(k, bytes, reduced, is_group, trip);
    }

    /// A message takes its endpoint delay or its trip over the bus, and a reduction where one is due.
    fn bundle(&mut self, chunk: u32, bytes: u64, reduced: Option<u64>, is_group: bool, trip: Trip) {
        let npu = self.chunks.all[chunk as usize].npu;
        let machine = self.machine;
        let is_fixed = is_group && machine.rules.has(Quirk::GroupDelay);
        // On the fabric it is a part of the message.
        let nanoseconds = if is_fixed { GROUP_DELAY } else { machine.endpoint_delay };
        let delay = if self.fabric.is_some() { 0 } else { machine.ticks(nanoseconds) };
        let reduction = reduced.map(|bytes| machine.reduction(bytes));
        match self.machine.bus.filter(|_| !is_group) {
            Some(bus) => {
                let mut scene = Scene { clock: &mut self.clock, npu, bus, tick: self.machine.whole_ticks(1) };
                self.npus[npu as usize].ports.prepare(&mut scene, bytes, chunk, reduction, trip);
            }
            None => self.clock.local(npu, delay, Local::Prepared { chunk, reduction }),
        }
    }

    /// Something has happened at a port of an NPU's memory bus.
    pub(super) fn bus(&mut self, npu: u32, happened: Local) {
        let Some(bus) = self.machine.bus else { return };
        let mut scene = Scene { clock: &mut self.clock, npu, bus, tick: self.machine.whole_ticks(1) };
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
                let mut scene = Scene { clock: &mut self.clock, npu, bus, tick: self.machine.whole_ticks(1) };
                self.npus[npu as usize].ports.go_on(&mut scene, Port::Npu);
            }
        }
        let mut scene = Scene { clock: &mut self.clock, npu, bus, tick: self.machine.whole_ticks(1) };
        self.npus[npu as usize].ports.go_on(&mut scene, port);
    }

    /// A message of a chunk is prepared.
    pub(super) fn prepared(&mut self, k: u32) {
        let chunk = &mut self.chunks.all[k as usize];
        let tries = match &mut chunk.machinery {
            Machinery::Token(token) => token.token(),
            Machinery::Tree(_) => return self.tree(k, Happening::Prepared),
            Machinery::Waiting | Machinery::Own | Machinery::Held | Machinery::Steps { .. } => return,
        };
        for _ in 0..tries {
            let Some(message) = self.token(k).and_then(Token::send) else { break };
            self.exchange(k, Some(message.to), Some(message.from), message.bytes);
        }
        if tries > 0 && self.token(k).is_some_and(|token| token.is_done()) {
            self.enter(k);
        }
    }

    /// The token machine of a chunk, if it has one.
    fn token(&mut self, k: u32) -> Option<&mut Token> {
        match &mut self.chunks.all[k as usize].machinery {
            Machinery::Token(token) => Some(token),
            _ => None,
        }
    }

    /// A chunk has received a message.
    pub(super) fn received(&mut self, k: u32) {
        let chunk = &mut self.chunks.all[k as usize];
        match &mut chunk.machinery {
            Machinery::Token(token) => {
                token.receive();
                self.prepare(k);
            }
            Machinery::Tree(_) => self.tree(k, Happening::Received),
            Machinery::Steps { .. } => self.step_received(k),
            Machinery::Waiting | Machinery::Own | Machinery::Held => {}
        }
    }

    /// What a tree's member does next.
    fn tree(&mut self, k: u32, happening: Happening) {
        let bytes = self.chunks.phase(k).bytes;
        let chunk = &mut self.chunks.all[k as usize];
        let Machinery::Tree(tree) = &mut chunk.machinery else { return };
        let mut deeds: arrayvec::ArrayVec<Deed, 4> = arrayvec::ArrayVec::new();
        tree.next(happening, &mut |deed| deeds.push(deed));
        for deed in deeds {
            match deed {
                Deed::Prepare { reduces, trip } => self.bundle(k, bytes, reduces.then_some(bytes), false, trip),
                Deed::Send(to) => self.exchange(k, Some(to), None, bytes),
                Deed::Receive(from) => self.exchange(k, None, Some(from), bytes),
                Deed::End => self.enter(k),
            }
        }
    }

    /// The rank at a position of a chunk's phase.
    pub(super) fn rank(&self, k: u32, position: u32) -> u32 {
        match self.chunks.phase(k).members {
            Members::Every { first, stride } => first + position * stride,
            Members::Group(group) => self.trace.groups[group as usize].ranks[position as usize],
        }
    }

    /// The way to the member at a position, and whether half of a message goes each way round: a whole ring's, under our rules.
    fn way_to(&self, k: u32, to: u32) -> (Way, bool) {
        let machine = self.machine;
        let chunk = &self.chunks.all[k as usize];
        let phase = self.chunks.phase(k);
        let dimension = &machine.dimensions[phase.dimension as usize];
        // All of a dimension: positions are places in it.
        if matches!(phase.members, Members::Every { .. }) && phase.count == dimension.size {
            let is_ring = dimension.block == Topology::Ring && phase.algorithm == Algorithm::Ring;
            let way = Way { dimension: phase.dimension, hops: dimension.hops(phase.me, to) };
            return (way, is_ring && phase.count > 2 && !machine.rules.has(Quirk::OneWayRings));
        }
        (machine.way(self.rank_of(chunk.npu), self.rank(k, to)), false)
    }

    /// Sends a chunk's message to a position, and posts the receive of one of the same size from a position.
    fn exchange(&mut self, k: u32, to: Option<u32>, from: Option<u32>, bytes: u64) {
        let Chunk { npu, tag, .. } = self.chunks.all[k as usize];
        if let Some(to) = to {
            let address = Address { tag, from: npu, to: self.rank(k, to), bytes };
            if self.fabric.is_some() {
                self.send_on_fabric(npu, address.to, address, Then::Nothing);
            } else {
                let (way, is_halved) = self.way_to(k, to);
                let ends = (self.rank_of(npu), address.to);
                let delay = self.delay(way, ends, if is_halved { bytes.div_ceil(2) } else { bytes });
                if let (true, Some(delay)) = (self.is_folded, delay) {
                    self.wire.twin();
                    self.wire.add(npu, way.dimension as usize, bytes);
                    self.clock.after(delay, Event::Twin { chunk: k });
                    return;
                }
                self.send(address, (way, delay), Then::Nothing);
            }
        }
        if let Some(from) = from {
            self.receive(Address { tag, from: self.rank(k, from), to: npu, bytes }, Then::Received { chunk: k });
        }
    }
}
