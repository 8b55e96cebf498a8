//! `unfold`: a folded program as one graph for each pipeline stage, every operation of every microbatch.
//!
//! An operation's number is its place among all of its stage, where nothing is summed up, so it is the same whether sums are or not.
//! Operations of a block run one after the other, those of the data stream beside them; a repeat begins when both are done. A
//! pass beneath which nothing else goes on takes the sum of its blocks, which is worked out once and stands in the graph.
//! Stages run them in the order of the plan's schedule.

mod block;
mod message;
mod step;
mod strand;

use std::collections::BTreeMap;

use self::strand::After;
use super::placement::Group;
use super::program::{Account, Block, Operation, Phase, Program, RankClass, Work};
use super::schedule::Unit;
use super::trace::graph::Draft;
use super::trace::{self, Broken, Graph, Node};
use crate::system::System;
use crate::units::{Bytes, Time};

/// A stage's graph, and on whose account each of its operations is.
#[derive(Debug, Clone, Default)]
pub struct Stage {
    /// The graph. A collective's group is the place of its [`Group`] behind those of the stages before; a send's and a receive's
    /// rank is a stage.
    pub graph: Graph,
    /// By the operation's place.
    pub accounts: Vec<On>,
    /// The place of what its first pass waits for, where steps of a stage follow each other whatever other stages do.
    pub first: Option<u32>,
}

/// On whose account an operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    /// This one's.
    Account(Account),
    /// This one's, of which nothing goes on: what it hid beneath, it has slowed down.
    Slowed(Account),
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

/// The tag of what stages as far from both ends send each other once a step: gradients of a tied embedding, or of two copies.
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
        let mut writer = Writer::new(Source { program, stage, prices, message, passes });
        writer.step(class, &mut known, &mut unfolded)?;
        unfolded.stages.push(writer.finish()?);
    }
    Ok(unfolded)
}

/// Sums and how many operations each stands for, by their first block, pass and chunk.
type Known = BTreeMap<(usize, Phase, u64), (u32, u64)>;

/// What the graph of a stage is written from.
#[derive(Clone, Copy)]
struct Source<'a> {
    program: &'a Program,
    stage: u64,
    prices: &'a dyn Prices,
    /// Bytes of a message between stages.
    message: Bytes,
    passes: Passes,
}

/// Writes the graph of one stage.
struct Writer<'a> {
    source: Source<'a>,
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
    /// See [`Stage::first`].
    first: Option<u32>,
}

impl<'a> Writer<'a> {
    /// Nothing is written yet.
    fn new(source: Source<'a>) -> Self {
        Self {
            source,
            doing: String::new(),
            draft: Draft::default(),
            accounts: Vec::new(),
            next: 0,
            last: None,
            beside: None,
            whole: None,
            data: None,
            first: None,
        }
    }

    fn finish(self) -> Result<Stage, Broken> {
        Ok(Stage { graph: self.draft.finish()?, accounts: self.accounts, first: self.first })
    }

    /// Where what comes next begins: behind all streams.
    const fn base(&self) -> After {
        [self.last, self.beside, self.whole, self.data]
    }

    /// What comes next begins behind one operation.
    const fn join(&mut self, id: u64) {
        (self.last, self.beside, self.whole, self.data) = (Some(id), None, None, None);
    }

    /// A unit begins.
    fn begin(&mut self, Unit { pass, chunk, microbatch, .. }: Unit) {
        if self.source.passes == Passes::Whole {
            let pass = match pass {
                Phase::Forward => "forward",
                Phase::Backward => "backward",
                Phase::Weights => "weights",
                Phase::Step => "step",
            };
            let chunk = if self.source.program.chunks > 1 { format!(" of chunk {chunk}") } else { String::new() };
            self.doing = format!(", {pass}{chunk}, microbatch {microbatch}");
        }
    }

    /// Adds an operation; its number.
    fn push(&mut self, work: trace::Work, account: On, after: After) -> u64 {
        let id = self.next;
        let name = match (self.source.passes, account) {
            (Passes::Summed, _) => String::new(),
            (Passes::Whole, On::Account(account) | On::Slowed(account)) => {
                format!("{account:?}{}", self.doing).to_lowercase()
            }
            (Passes::Whole, _) if matches!(work, trace::Work::Send { .. }) => format!("pipeline{}", self.doing),
            (Passes::Whole, _) => format!("wait{}", self.doing),
        };
        self.draft.push(Node { id, work, recorded: 0, on_host: false }, &name, after.into_iter().flatten());
        self.accounts.push(account);
        self.next = id + 1;
        id
    }
}
