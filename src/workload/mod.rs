//! The job: what must be computed, moved and kept, whatever machine it runs on.

pub mod activation;
pub mod build;
pub mod check;
pub mod footprint;
pub mod infeasible;
pub mod layer;
pub mod layers;
pub mod matrix;
pub mod members;
pub mod model;
pub mod optimizer;
pub mod placement;
pub mod plan;
pub mod precision;
pub mod program;
pub mod recompute;
pub mod schedule;
pub mod share;
pub mod sizes;
pub mod strategy;
pub mod trace;
pub mod unfold;

pub use build::build;
pub use check::check;
pub use footprint::Footprint;
pub use infeasible::{Infeasible, Reason};
pub use layers::Layers;
pub use model::{Dlrm, Model, dlrm, transformer};
pub use optimizer::Optimizer;
pub use placement::{Group, Placement, place};
pub use plan::{ContextKind, Dispatcher, LayerSplit, Order, Plan};
pub use precision::Precision;
pub use program::Program;
pub use recompute::Recompute;
pub use schedule::Schedule;
pub use share::Share;
pub use sizes::Sizes;
pub use transformer::{Latent, Mlp, Transformer};

use crate::system::collective::Collective;
use crate::units::Bytes;

/// What a design point runs.
#[expect(clippy::large_enum_variant, reason = "training is the usual job; a box would be an allocation a point")]
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Job {
    /// One step of training a model.
    Training(Training),
    /// What was recorded: a trace of every rank, which is not made of the point's inputs.
    Recorded,
    /// One collective over all NPUs.
    Collective {
        /// Which one.
        collective: Collective,
        /// The whole buffer: see [`Collective`].
        size: Bytes,
    },
}

impl Job {
    /// What its program is made of: all of it but which NPUs are neighbours, which the placement says.
    #[must_use]
    pub const fn unplaced(self) -> Self {
        match self {
            Self::Training(training) => {
                Self::Training(Training { plan: Plan { order: Order::ALL[0], ..training.plan }, ..training })
            }
            Self::Recorded | Self::Collective { .. } => self,
        }
    }
}

/// One step of training: forward and backward over a global batch, then the optimizer. Of a model of any family, or of one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Training<M = Model> {
    /// The model.
    pub model: M,
    /// Tokens in a sequence.
    pub seq_len: u64,
    /// Sequences in a step.
    pub global_batch: u64,
    /// Bytes of each kind of number.
    pub precision: Precision,
    /// How weights follow from gradients.
    pub optimizer: Optimizer,
    /// How the job is spread over NPUs.
    pub plan: Plan,
}

impl<M> Training<M> {
    /// The same step of a model whose family is known.
    #[must_use]
    pub const fn of<N: Copy>(&self, model: N) -> Training<N> {
        let Self { seq_len, global_batch, precision, optimizer, plan, .. } = *self;
        Training { model, seq_len, global_batch, precision, optimizer, plan }
    }

    /// Microbatches in a step, per data-parallel replica.
    #[must_use]
    pub const fn num_microbatches(&self) -> u64 {
        self.global_batch / (self.plan.dp * self.plan.micro_batch_size)
    }

    /// What its pipeline is made of.
    #[must_use]
    pub fn shape(&self) -> schedule::Shape {
        let Plan { pp, vpp, schedule, .. } = self.plan;
        let shape = schedule::Shape { stages: pp, chunks: vpp, microbatches: self.num_microbatches() };
        schedule.part().route().shape(shape)
    }

    /// Tokens in a step.
    #[must_use]
    pub const fn tokens(&self) -> u64 {
        self.global_batch * self.seq_len
    }
}
