//! The program: what one NPU of each rank class does in a step, folded: blocks of operations with repeat counts.

use super::layers::Layers;
use super::placement::Group;
use super::schedule::{Schedule, Shape};
use crate::system::Kernel;
use crate::system::collective::Collective;
use crate::units::Bytes;

/// When a block runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// In the forward pass of every microbatch.
    Forward,
    /// In the backward pass of every microbatch.
    Backward,
    /// In the pass of every microbatch that makes the gradients of weights, where a schedule has it apart.
    Weights,
    /// Once a step, after the last microbatch.
    Step,
}

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Work {
    /// Arithmetic, or the local memory traffic of it.
    Compute(Kernel),
    /// A collective of the whole buffer `size` over a group.
    Collective {
        /// Which one.
        collective: Collective,
        /// Among whom.
        group: Group,
        /// The whole buffer.
        size: Bytes,
    },
    /// A message to the next pipeline stage.
    Send {
        /// Its size.
        size: Bytes,
    },
    /// Bytes in from a tier, and others out, both ways at once.
    Transfer {
        /// The tier's place in the machine's list.
        tier: u8,
        /// Bytes in.
        read: Bytes,
        /// Bytes out.
        written: Bytes,
    },
}

/// On whose account an operation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Account {
    /// The model's own arithmetic.
    Compute,
    /// Arithmetic done again.
    Recompute,
    /// Tensor parallelism.
    Tensor,
    /// Context parallelism.
    Context,
    /// Expert parallelism.
    Expert,
    /// Pipeline parallelism.
    Pipeline,
    /// Data parallelism.
    Data,
    /// Weights that are gathered where they are needed, and not ahead.
    Gather,
    /// The optimizer.
    Optimizer,
    /// Tiers beyond the local memory.
    Offload,
    /// The host, which sends operations later than the NPU could take them.
    Host,
    /// Embedding tables that are spread over NPUs.
    Tables,
}

impl Account {
    /// Every account.
    pub const ALL: [Self; 12] = [
        Self::Compute,
        Self::Recompute,
        Self::Tensor,
        Self::Context,
        Self::Expert,
        Self::Pipeline,
        Self::Data,
        Self::Gather,
        Self::Optimizer,
        Self::Offload,
        Self::Host,
        Self::Tables,
    ];
    /// How many there are.
    pub const COUNT: usize = Self::ALL.len();

    /// Whether it is data parallelism's, beside the rest or not.
    #[must_use]
    pub const fn is_data_parallel(self) -> bool {
        matches!(self, Self::Data | Self::Gather)
    }
}

/// One operation of a block. Operations of a block run one after the other; those of the data stream beside them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Operation {
    /// What it does.
    pub work: Work,
    /// On whose account it is.
    pub account: Account,
    /// What it runs beside, if it is communication or a transfer.
    pub beside: Beside,
}

/// What communication, or a transfer, runs beside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beside {
    /// Nothing: what follows waits for it.
    Nothing,
    /// The computations that follow it, until the next communication.
    Next,
    /// All computations of its block; a transfer, all that goes on there.
    Block,
}

impl Operation {
    /// Whether it may run beside the others: data-parallel traffic has a stream of its own.
    #[must_use]
    pub fn is_data_stream(&self) -> bool {
        self.account == Account::Data
    }

    /// What a byte that it sends moves in the local memory, beside a byte of a ring's all-reduce, in whose terms a framework's overlap
    /// traffic is fitted: that is read, added to another that is read, and written. Sums of rows are read and sent, and written where
    /// they come in: two thirds. Traffic of transformers has its fit as a whole, experts' all-to-alls and permutations included.
    #[must_use]
    pub fn local_traffic(&self) -> f64 {
        /// How often a byte of an all-reduce is read or written.
        const SUMMED: f64 = 3.0;
        /// How often one that is only moved is.
        const MOVED: f64 = 2.0;
        if self.account == Account::Tables { MOVED / SUMMED } else { 1.0 }
    }
}

/// Operations that are repeated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Block {
    /// When.
    pub phase: Phase,
    /// How many times in a row.
    pub repeat: u64,
    /// Operations that the host sends to the NPU in one repeat: more than there are here, where one stands for many.
    pub dispatches: f64,
    /// The first of its operations. Blocks of several stages may share them.
    pub start: usize,
    /// Behind its last operation.
    pub end: usize,
    /// For a block of layers: in which chunks of its stage they lie.
    pub layers: Option<Layers>,
    /// For a block of the step: the pass of the last microbatch that its traffic may hide beneath.
    pub hidden_beneath: Option<Phase>,
}

impl Block {
    /// How many of its repeats fall to a chunk of its stage, which has these blocks: what is before the layers to the first, what is
    /// behind them to the last.
    #[must_use]
    pub fn of_chunk(&self, blocks: &[Self], chunk: u64, chunks: u64) -> u64 {
        if let Some(layers) = self.layers {
            return layers.of_chunk(chunk, chunks);
        }
        let mut of_pass = blocks.iter().filter(|other| other.phase == self.phase);
        let is_before = of_pass.find(|other| other.layers.is_some() || *other == self) == Some(self);
        if chunk == if is_before { 0 } else { chunks - 1 } { self.repeat } else { 0 }
    }
}

/// Ranks that do the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankClass {
    /// The first pipeline stage of the class.
    pub stage: u64,
    /// How many stages it has.
    pub stages: u64,
    /// The first of its blocks.
    pub start: usize,
    /// Behind its last block.
    pub end: usize,
}

/// A step of a job. Folded, never unfolded by the closed form; cleared and filled again from point to point.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Program {
    /// Operations of all blocks.
    pub operations: Vec<Operation>,
    /// Blocks of all rank classes.
    pub blocks: Vec<Block>,
    /// How many operations are in blocks.
    written: usize,
    /// Rank classes, by stage.
    pub classes: Vec<RankClass>,
    /// Microbatches in a step.
    pub microbatches: u64,
    /// Pipeline stages.
    pub stages: u64,
    /// Model chunks of a stage.
    pub chunks: u64,
    /// In which order a stage runs its passes.
    pub schedule: Schedule,
    /// Whether the data stream runs beside the others.
    pub overlap: bool,
    /// Whether messages between stages run beside the computation.
    pub overlap_sends: bool,
}

impl Program {
    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.operations.clear();
        self.written = 0;
        self.blocks.clear();
        self.classes.clear();
        (self.microbatches, self.stages, self.chunks) = (1, 1, 1);
        (self.overlap, self.overlap_sends) = (false, false);
        self.schedule = Schedule::default();
    }

    /// Adds an operation to the block that is being written.
    pub fn push(&mut self, work: Work, account: Account) {
        self.operations.push(Operation { work, account, beside: Beside::Nothing });
    }

    /// Adds communication that runs beside computations.
    pub fn push_beside(&mut self, work: Work, account: Account, beside: Beside) {
        self.operations.push(Operation { work, account, beside });
    }

    /// The tier of the first transfer, if there is one.
    #[must_use]
    pub fn tier(&self) -> Option<u8> {
        self.operations.iter().find_map(|operation| match operation.work {
            Work::Transfer { tier, .. } => Some(tier),
            _ => None,
        })
    }

    /// In which pass the gradients of weights are made.
    #[must_use]
    pub fn gradients(&self) -> Phase {
        if self.schedule.part().splits() { Phase::Weights } else { Phase::Backward }
    }

    /// What the pipeline is made of.
    #[must_use]
    pub const fn shape(&self) -> Shape {
        Shape { stages: self.stages, chunks: self.chunks, microbatches: self.microbatches }
    }

    /// Ends the block that is being written; an empty one is left out.
    pub fn close_block(&mut self, phase: Phase, repeat: u64, hidden_beneath: Option<Phase>) {
        self.close(phase, repeat, hidden_beneath);
    }

    /// Ends the block that is being written, which is one of these layers that the host sends in so many operations; what it is,
    /// to be used again.
    pub fn close_layers(&mut self, phase: Phase, layers: Layers, dispatches: f64) -> Block {
        let start = self.written;
        self.written = self.operations.len();
        let end = self.written;
        let block =
            Block { phase, repeat: layers.all, layers: Some(layers), dispatches, start, end, hidden_beneath: None };
        self.repeat_block(block);
        block
    }

    fn close(&mut self, phase: Phase, repeat: u64, hidden_beneath: Option<Phase>) {
        let start = self.written;
        self.written = self.operations.len();
        let end = self.written;
        self.repeat_block(Block { phase, repeat, layers: None, dispatches: 0.0, start, end, hidden_beneath });
    }

    /// Adds a block whose operations are there already; an empty one is left out.
    pub fn repeat_block(&mut self, block: Block) {
        if block.repeat > 0 && block.end > block.start {
            self.blocks.push(block);
        }
    }

    /// Ends the rank class that is being written.
    pub fn close_class(&mut self, stage: u64, stages: u64) {
        let start = self.classes.last().map_or(0, |class| class.end);
        self.classes.push(RankClass { stage, stages, start, end: self.blocks.len() });
    }

    /// Whether a block is the message of a pass to the next stage.
    #[must_use]
    pub fn is_message(&self, block: &Block) -> bool {
        let is_send = |operation: &Operation| matches!(operation.work, Work::Send { .. });
        block.phase != Phase::Step && self.operations_of(block).iter().all(is_send)
    }

    /// The operations of a block.
    #[must_use]
    pub fn operations_of(&self, block: &Block) -> &[Operation] {
        &self.operations[block.start..block.end]
    }

    /// The blocks of a rank class.
    #[must_use]
    pub fn blocks_of(&self, class: &RankClass) -> &[Block] {
        &self.blocks[class.start..class.end]
    }
}
