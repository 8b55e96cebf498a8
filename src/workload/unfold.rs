//! `unfold`: a folded program as one graph for each pipeline stage, every operation of every microbatch.
//!
//! An operation's number is its place among all of its stage, where nothing is summed up, so it is the same whether sums are or not.
//! Operations of a block run one after the other, those of the data stream beside them; a repeat begins when both are done. A
//! pass beneath which nothing else goes on takes the sum of its blocks, which is worked out once and stands in the graph.
//! Stages run them in the order of the plan's schedule.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::placement::Group;
use super::program::{Account, Beside, Block, Operation, Phase, Program, RankClass, Work};
use super::schedule::Unit;
use super::strand::{After, Strand, only};
use super::trace::graph::Draft;
use super::trace::{self, Broken, Graph, Node};
use crate::system::System;
use crate::system::collective::Collective;
use crate::units::{Bytes, Time, index, narrow, real};

/// A stage's graph, and on whose account each of its operations is.
#[derive(Debug, Clone, Default)]
pub struct Stage {
    /// The graph. A collective's group is the place of its [`Group`] behind those of the stages before; a send's and a receive's
    /// rank is a stage.
    pub graph: Graph,
    /// By the operation's place.
    pub accounts: Vec<On>,
}

/// On whose account an operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// This one's.
    Account(Account),
    /// Those of the blocks that it is the sum of, by the sum's place.
    Sum(u32),
    /// Nobody's: it waits.
    Nobody,
}

/// A program as graphs.
#[derive(Debug, Clone, Default)]
pub struct Unfolded {
    /// Of each pipeline stage.
    pub stages: Vec<Stage>,
    /// Of each block that is part of a sum: one repeat.
    pub blocks: BTreeMap<usize, Stage>,
    /// The sums: blocks by their places in the program, and how often each is repeated.
    pub sums: Vec<Vec<(usize, u64)>>,
}

/// The tag of what the first stage and the last send each other once a step: the gradients of a tied embedding.
const TIED: u64 = u64::MAX;

/// What a program's operations cost where it is placed.
pub trait Prices {
    /// How many ranks a group has.
    fn members(&self, group: Group) -> u64;
    /// How long an operation takes if nothing else goes on.
    fn time(&self, operation: &Operation) -> Time;
    /// Bytes that an NPU sends in an operation.
    fn sent(&self, operation: &Operation) -> f64;
    /// The machine.
    fn system(&self) -> &System;
}

/// What becomes of a pass beneath which nothing else goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passes {
    /// It is one operation, the sum of its blocks.
    Summed,
    /// All of its operations, each with a name.
    Whole,
}

/// Unfolds a program.
///
/// # Errors
/// Never for a program that was built; a graph is checked as any other.
pub fn unfold(program: &Program, prices: &dyn Prices, passes: Passes) -> Result<Unfolded, Broken> {
    let is_pass = |block: &&Block| block.phase != Phase::Step;
    let mut operations = program.blocks.iter().filter(is_pass).flat_map(|block| program.operations_of(block));
    let message = operations.find_map(|operation| match operation.work {
        Work::Send { size } => Some(size),
        _ => None,
    });
    let message = message.unwrap_or(Bytes::ZERO);
    let mut unfolded = Unfolded::default();
    let mut known = BTreeMap::new();
    for stage in 0..program.stages {
        let holds = |class: &&RankClass| (class.stage..class.stage + class.stages).contains(&stage);
        let Some(class) = program.classes.iter().find(holds) else { continue };
        let mut writer = Writer {
            program,
            stage,
            prices,
            message,
            passes,
            doing: String::new(),
            draft: Draft::default(),
            accounts: Vec::new(),
            next: 0,
            last: None,
            beside: None,
            whole: None,
            data: None,
        };
        writer.step(class, &mut known, &mut unfolded)?;
        unfolded.stages.push(writer.finish()?);
    }
    Ok(unfolded)
}

/// Sums and how many operations each stands for, by their first block, pass and chunk.
type Known = BTreeMap<(usize, bool, u64), (u32, u64)>;

/// Writes the graph of one stage.
struct Writer<'a> {
    program: &'a Program,
    stage: u64,
    prices: &'a dyn Prices,
    /// Bytes of a message between stages.
    message: Bytes,
    passes: Passes,
    /// The pass that is being written, in words; only where operations have names.
    doing: String,
    draft: Draft,
    accounts: Vec<On>,
    /// The number of the next operation.
    next: u64,
    /// The last operation of the main stream, and of communication beside its end, beside its whole last block, and of the data
    /// stream, where it has not met them.
    last: Option<u64>,
    beside: Option<u64>,
    whole: Option<u64>,
    data: Option<u64>,
}

impl Writer<'_> {
    /// All units, and what is done once a step before, beneath and behind them.
    fn step(&mut self, class: &RankClass, known: &mut Known, unfolded: &mut Unfolded) -> Result<(), Broken> {
        let program = self.program;
        let blocks = program.blocks_of(class);
        let Program { microbatches, chunks, overlap, .. } = *program;
        let layers = blocks.iter().filter(|block| block.phase == Phase::Forward).map(|block| block.repeat).max();
        let layers = layers.unwrap_or(1);
        let of_step = |beneath: Option<Phase>| {
            blocks.iter().filter(move |block| block.phase == Phase::Step && block.hidden_beneath == beneath)
        };
        // Weights of the first layer, before anything, then those of the others, chunk by chunk, beneath the first microbatch.
        let alone = if overlap { 1 } else { layers };
        let rest = |chunk: u64| {
            let own = layers * (chunk + 1) / chunks - layers * chunk / chunks;
            own.saturating_sub(if chunk == 0 { alone } else { 0 })
        };
        for block in of_step(Some(Phase::Forward)) {
            self.states(block, (alone, layers), true);
        }
        let mut weights = Vec::new();
        for chunk in 0..if overlap { chunks } else { 0 } {
            for block in of_step(Some(Phase::Forward)) {
                self.states(block, (rest(chunk), layers), false);
            }
            weights.push(self.data);
        }
        let has_weights = self.data.take().is_some();
        let mut sent = None;
        for unit in program.schedule.part().units(self.stage, program.shape()) {
            let of_pass = || blocks.iter().filter(|block| block.phase == unit.pass);
            if of_pass().next().is_none() {
                continue;
            }
            let is_last = unit.pass == Phase::Backward && unit.microbatch + 1 == microbatches;
            let mut gradients = is_last && unit.chunk == 0 && overlap;
            let is_first = unit.pass == Phase::Forward && unit.microbatch == 0 && has_weights;
            if is_first && unit.chunk > 0 {
                self.data = weights[index(unit.chunk)].take();
            }
            self.begin(unit);
            self.receive(unit);
            let is_beneath = weights.iter().any(Option::is_some) || sent.is_some();
            let is_alone = !(is_beneath || gradients && of_step(Some(Phase::Backward)).next().is_some());
            if is_alone && self.passes == Passes::Summed {
                let key = (class.start, unit.pass == Phase::Forward, unit.chunk);
                let sum = match known.entry(key) {
                    Entry::Occupied(sum) => *sum.get(),
                    Entry::Vacant(place) => *place.insert(self.sum(class, unit, unfolded)?),
                };
                self.summed(sum);
            } else {
                for block in of_pass().filter(|block| !program.is_message(block)) {
                    for _ in 0..share(block, blocks, unit.chunk, chunks) {
                        self.repeat(block);
                        // Gradients of all layers but the one that is ready last go out beneath the pass.
                        if block.repeat == layers && std::mem::take(&mut gradients) {
                            sent = self.gradients(true, rest(0), layers, of_step(Some(Phase::Backward)), sent);
                        }
                    }
                }
            }
            self.send(unit);
            if is_first && unit.chunk == 0 {
                self.data = weights[0].take();
            }
            sent = self.gradients(
                is_last && unit.chunk > 0,
                rest(unit.chunk),
                layers,
                of_step(Some(Phase::Backward)),
                sent,
            );
        }
        self.doing.clear();
        self.data = sent.or(self.data);
        for block in of_step(Some(Phase::Backward)) {
            self.states(block, (alone, layers), true);
        }
        self.paid(blocks, layers, [Phase::Forward, Phase::Backward]);
        for block in of_step(None) {
            self.repeat(block);
        }
        Ok(())
    }

    /// Adds the sum that a pass is: its place, and how many operations it stands for.
    fn sum(&self, class: &RankClass, unit: Unit, unfolded: &mut Unfolded) -> Result<(u32, u64), Broken> {
        let program = self.program;
        let blocks = program.blocks_of(class);
        let is_part = |(_, block): &(usize, &Block)| block.phase == unit.pass && !program.is_message(block);
        let mut parts = Vec::new();
        let mut operations = 0;
        for (place, block) in (class.start..).zip(blocks).filter(is_part) {
            let times = share(block, blocks, unit.chunk, program.chunks);
            let once = match unfolded.blocks.entry(place) {
                Entry::Occupied(once) => once.into_mut(),
                Entry::Vacant(place) => place.insert(self.once(block)?),
            };
            operations += times * once.accounts.len() as u64;
            parts.push((place, times));
        }
        unfolded.sums.push(parts);
        Ok((narrow(unfolded.sums.len() as u64 - 1), operations))
    }

    /// A repeat of a block, by itself.
    fn once(&self, block: &Block) -> Result<Stage, Broken> {
        let (draft, accounts, doing) = (Draft::default(), Vec::new(), String::new());
        let mut writer =
            Writer { draft, accounts, doing, next: 0, last: None, beside: None, whole: None, data: None, ..*self };
        writer.repeat(block);
        writer.finish()
    }

    /// A pass that is a sum, which has the numbers of the operations that it stands for.
    fn summed(&mut self, (place, operations): (u32, u64)) {
        if operations > 0 {
            let id = self.push(trace::Work::Sum { place }, On::Sum(place), self.base());
            self.next = id + operations;
            self.join(id);
        }
    }

    /// What data-parallel traffic costs the passes that hide it.
    fn paid(&mut self, blocks: &[Block], layers: u64, passes: [Phase; 2]) {
        let program = self.program;
        for pass in passes.into_iter().filter(|_| program.overlap) {
            let time = |block: &Block| self.alone(program.operations_of(block)) * block.repeat;
            let data: Time = blocks.iter().filter(|block| block.hidden_beneath == Some(pass)).map(time).sum();
            let window: Time = blocks.iter().filter(|block| block.phase == pass).map(time).sum();
            let sent = blocks.iter().filter(|block| block.hidden_beneath == Some(pass)).map(|block| {
                real(block.repeat) * program.operations_of(block).iter().map(|it| self.prices.sent(it)).sum::<f64>()
            });
            let sent = sent.sum();
            let [most, window] = [data, window].map(|time| time.saturating_sub(time / layers));
            self.lasts(self.prices.system().paid(most.min(window), data, sent), Account::Data);
        }
    }

    /// Operations one after the other.
    fn alone(&self, operations: &[Operation]) -> Time {
        operations.iter().map(|operation| self.prices.time(operation)).sum()
    }

    /// Time that goes by, behind both streams.
    fn lasts(&mut self, time: Time, account: Account) {
        if time > Time::ZERO {
            let id = self.push(trace::Work::Lasts { time }, On::Account(account), self.base());
            self.join(id);
        }
    }

    /// Gradients of some layers go out, behind those that went before and beside what follows; the last of them.
    fn gradients<'b>(
        &mut self,
        are_ready: bool,
        layers: u64,
        all: u64,
        blocks: impl Iterator<Item = &'b Block>,
        before: Option<u64>,
    ) -> Option<u64> {
        if !are_ready || !self.program.overlap {
            return before;
        }
        let data = std::mem::replace(&mut self.data, before);
        for block in blocks {
            self.states(block, (layers, all), false);
        }
        std::mem::replace(&mut self.data, data)
    }

    fn finish(self) -> Result<Stage, Broken> {
        Ok(Stage { graph: self.draft.finish()?, accounts: self.accounts })
    }

    /// Where what comes next begins: behind all streams.
    const fn base(&self) -> After {
        [self.last, self.beside, self.whole, self.data]
    }

    /// What comes next begins behind one operation.
    const fn join(&mut self, id: u64) {
        (self.last, self.beside, self.whole, self.data) = (Some(id), None, None, None);
    }

    /// A block, once: its streams side by side if they may be.
    fn repeat(&mut self, block: &Block) {
        let base = self.base();
        let program = self.program;
        let mut main = Strand { begin: base, ..Strand::default() };
        // What runs beside the whole block.
        let mut whole = Strand { begin: base, ..Strand::default() };
        let (mut data, mut data_time, mut data_sent) = (None, Time::ZERO, 0.0);
        for operation in operations_of(program, block, self.prices) {
            let time = self.prices.time(operation);
            if program.overlap && operation.is_data_stream() {
                data = Some(self.operation(operation, (1, 1), data.map_or(base, only)));
                data_time += time;
                data_sent += self.prices.sent(operation);
            } else if operation.beside == Beside::Block {
                let after = whole.last.map_or(base, only);
                whole.last = Some(self.operation(operation, (1, 1), after));
                whole.communicating += time;
                whole.sent += self.prices.sent(operation);
                whole.account = Some(operation.account);
            } else if operation.beside == Beside::Next {
                if main.computing > Time::ZERO {
                    self.meet(&mut main);
                }
                let after = main.beside.map_or(main.begin, only);
                main.beside = Some(self.operation(operation, (1, 1), after));
                main.communicating += time;
                main.sent += self.prices.sent(operation);
                main.account = Some(operation.account);
            } else {
                let computes = matches!(operation.work, Work::Compute(_));
                if !computes {
                    self.meet(&mut main);
                }
                let after = main.last.map_or(main.begin, only);
                main.last = Some(self.operation(operation, (1, 1), after));
                if let Work::Send { size } = operation.work {
                    // What a stage sends once a step the other sends it too.
                    let receive = trace::Work::Receive { from: self.other_end(), bytes: size.get(), tag: TIED };
                    main.beside = Some(self.push(receive, On::Nobody, after));
                }
                if computes {
                    main.computing += time;
                    whole.computing += time;
                } else if operation.is_data_stream() {
                    self.meet(&mut main);
                } else {
                    main.busy += time;
                    self.meet(&mut main);
                }
            }
        }
        self.meet(&mut main);
        if whole.last.is_some() {
            let Strand { last, communicating, computing, account, sent, .. } = whole;
            main.begin[2] = last;
            main.busy += communicating.saturating_sub(computing);
            let paid = self.prices.system().paid(communicating.min(computing), communicating, sent);
            if let Some(account) = account.filter(|_| paid > Time::ZERO) {
                main.begin = only(self.push(trace::Work::Lasts { time: paid }, On::Account(account), main.begin));
                main.busy += paid;
            }
        }
        let system = self.prices.system();
        let wait = system.software.host_wait(main.busy.as_delay(), block.dispatches).round();
        let did = main.begin != base;
        if did {
            [self.last, self.beside, self.whole, self.data] = main.begin;
        }
        if wait > Time::ZERO {
            let id = self.push(trace::Work::Lasts { time: wait }, On::Account(Account::Host), self.base());
            self.join(id);
        }
        // A data stream that did nothing here is met by the next operation of the main one.
        self.data = data.or(self.data);
        if block.phase != Phase::Step {
            self.lasts(system.paid(data_time.min(main.busy + wait), data_time, data_sent), Account::Data);
        }
    }

    /// Communication that ran beside computations is over, and so are they: what comes next waits for both.
    fn meet(&mut self, main: &mut Strand) {
        let Strand { last, beside, communicating, computing, account, sent, .. } = *main;
        main.busy += communicating.max(computing);
        if last.is_some() || beside.is_some() {
            main.begin = [last, beside, None, None];
        }
        let paid = self.prices.system().paid(communicating.min(computing), communicating, sent);
        if let Some(account) = account.filter(|_| paid > Time::ZERO) {
            let id = self.push(trace::Work::Lasts { time: paid }, On::Account(account), main.begin);
            main.begin = only(id);
            main.busy += paid;
        }
        (main.last, main.beside, main.account) = (None, None, None);
        (main.communicating, main.computing, main.sent) = (Time::ZERO, Time::ZERO, 0.0);
    }

    /// An operation, and what it costs before it begins.
    fn operation(&mut self, operation: &Operation, share: (u64, u64), after: After) -> u64 {
        let on = On::Account(operation.account);
        let latency = self.prices.system().software.collective_latency.round();
        let after = match operation.work {
            Work::Collective { group, .. }
                if latency > Time::ZERO && group != Group::Everyone && self.prices.members(group) > 1 =>
            {
                only(self.push(trace::Work::Lasts { time: latency }, on, after))
            }
            _ => after,
        };
        let work = self.work(operation, share);
        self.push(work, on, after)
    }

    /// A share of a block of data-parallel traffic: before what follows, or beside it.
    fn states(&mut self, block: &Block, share: (u64, u64), waits: bool) {
        if share.0 == 0 {
            return;
        }
        let program = self.program;
        for operation in operations_of(program, block, self.prices) {
            let id = self.operation(operation, share, self.base());
            if waits {
                self.join(id);
            } else {
                self.data = Some(id);
            }
        }
    }

    /// The stage and chunk from which a unit receives; none at the model's end.
    fn before(&self, unit: Unit) -> Option<(u64, u64)> {
        let Program { stages, chunks, .. } = *self.program;
        match unit.pass {
            Phase::Forward if self.stage > 0 => Some((self.stage - 1, unit.chunk)),
            Phase::Forward => unit.chunk.checked_sub(1).map(|chunk| (stages - 1, chunk)),
            _ if self.stage + 1 < stages => Some((self.stage + 1, unit.chunk)),
            _ => (unit.chunk + 1 < chunks).then_some((0, unit.chunk + 1)),
        }
    }

    /// The stage to which a unit sends; none at the model's end.
    fn behind(&self, unit: Unit) -> Option<u64> {
        let Program { stages, chunks, .. } = *self.program;
        match unit.pass {
            Phase::Forward if self.stage + 1 < stages => Some(self.stage + 1),
            Phase::Forward => (unit.chunk + 1 < chunks).then_some(0),
            _ if self.stage > 0 => Some(self.stage - 1),
            _ => (unit.chunk > 0).then_some(stages - 1),
        }
    }

    /// The tag of the message of a unit of a chunk.
    const fn tag(&self, unit: Unit, chunk: u64) -> u64 {
        2 * (unit.microbatch * self.program.chunks + chunk) + matches!(unit.pass, Phase::Backward) as u64
    }

    fn receive(&mut self, unit: Unit) {
        if let Some((stage, chunk)) = self.before(unit).filter(|_| self.program.stages > 1) {
            let tag = self.tag(unit, chunk);
            let receive = trace::Work::Receive { from: narrow(stage), bytes: self.message.get(), tag };
            self.message(receive, On::Nobody);
        }
    }

    fn send(&mut self, unit: Unit) {
        if let Some(stage) = self.behind(unit).filter(|_| self.program.stages > 1) {
            let tag = self.tag(unit, unit.chunk);
            let send = trace::Work::Send { to: narrow(stage), bytes: self.message.get(), tag };
            if !self.program.overlap_sends {
                self.lasts(self.prices.system().software.collective_latency.round(), Account::Pipeline);
            }
            if self.program.overlap_sends {
                self.push(send, On::Nobody, self.base());
            } else {
                self.message(send, On::Account(Account::Pipeline));
            }
        }
    }

    fn message(&mut self, work: trace::Work, on: On) {
        let id = self.push(work, on, self.base());
        self.join(id);
    }

    /// A unit begins.
    fn begin(&mut self, Unit { pass, chunk, microbatch }: Unit) {
        if self.passes == Passes::Whole {
            let pass = if pass == Phase::Backward { "backward" } else { "forward" };
            let chunk = if self.program.chunks > 1 { format!(" of chunk {chunk}") } else { String::new() };
            self.doing = format!(", {pass}{chunk}, microbatch {microbatch}");
        }
    }

    /// Adds an operation; its number.
    fn push(&mut self, work: trace::Work, account: On, after: After) -> u64 {
        let id = self.next;
        let name = match (self.passes, account) {
            (Passes::Summed, _) => String::new(),
            (Passes::Whole, On::Account(account)) => format!("{account:?}{}", self.doing).to_lowercase(),
            (Passes::Whole, _) if matches!(work, trace::Work::Send { .. }) => format!("pipeline{}", self.doing),
            (Passes::Whole, _) => format!("wait{}", self.doing),
        };
        self.draft.push(Node { id, work, recorded: 0, on_host: false }, &name, after.into_iter().flatten());
        self.accounts.push(account);
        self.next = id + 1;
        id
    }

    /// The other stage that holds the tied embedding: the last, or the first.
    fn other_end(&self) -> u32 {
        narrow(if self.stage == 0 { self.program.stages - 1 } else { 0 })
    }

    /// A share of an operation as a trace has it.
    fn work(&self, operation: &Operation, share: (u64, u64)) -> trace::Work {
        let part = |bytes: Bytes| real(bytes.get()) * real(share.0) / real(share.1);
        match operation.work {
            Work::Compute(_) => trace::Work::Lasts { time: self.prices.time(operation) },
            Work::Collective { collective, group, size } => {
                let ranks = if collective == Collective::AllGather { real(self.prices.members(group)) } else { 1.0 };
                let bytes = Bytes::from_real(part(size) / ranks).get();
                let group = Some(narrow(self.stage * Group::COUNT) + group as u32);
                trace::Work::Collective { collective, bytes, group, dimensions: u32::MAX }
            }
            Work::Send { size } => trace::Work::Send { to: self.other_end(), bytes: size.get(), tag: TIED },
            Work::Transfer { size, .. } => trace::Work::Load { bytes: size.get() },
        }
    }
}

/// The operations of a block that do anything: a collective of one rank does not, and would wait for the slot of others under
/// the reference's rules.
fn operations_of<'a>(
    program: &'a Program,
    block: &Block,
    prices: &'a dyn Prices,
) -> impl Iterator<Item = &'a Operation> {
    let is_done = move |operation: &&Operation| match operation.work {
        Work::Collective { group, .. } => prices.members(group) > 1,
        _ => true,
    };
    program.operations_of(block).iter().filter(is_done)
}

/// How many repeats of a block fall to a chunk: what is before the layers to the first, what is behind them to the last.
fn share(block: &Block, blocks: &[Block], chunk: u64, chunks: u64) -> u64 {
    if let Some(layers) = block.layers {
        return layers.of_chunk(chunk, chunks);
    }
    let of_pass = || blocks.iter().filter(|other| other.phase == block.phase);
    let is_before = of_pass().find(|other| other.layers.is_some() || *other == block) == Some(block);
    if chunk == if is_before { 0 } else { chunks - 1 } { block.repeat } else { 0 }
}
