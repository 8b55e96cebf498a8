//! Models: families of neural networks, each of which says what a step of its training computes, moves and keeps.

use super::Training;
use super::footprint::Footprint;
use super::infeasible::Infeasible;
use super::program::Program;
use crate::system::System;

/// What a family of models says of itself. Its shape is data; what a plan makes of it is a function of the whole training step.
pub trait Family: Copy {
    /// What makes a step fill less of an NPU, in the words of a sweep.
    const LEVERS: &'static [&'static str];

    /// Whether a sample is a sequence of tokens, and a replica's samples go through in microbatches; else it is one token, and all of a
    /// replica's go through in one pass.
    const HAS_SEQUENCES: bool;

    /// Whether there can be such a model.
    ///
    /// # Errors
    /// The first rule of its shape that does not hold.
    fn check(&self) -> Result<(), Infeasible>;

    /// All weights, if a sample is so many tokens.
    fn parameters(&self, seq_len: u64) -> f64;

    /// Arithmetic of one training step a token, without recomputation: the model FLOPs of MFU.
    fn flops_per_token(&self, seq_len: u64) -> f64;

    /// Whether tokens are sent to routed experts, so that these have groups of their own.
    fn has_experts(&self) -> bool {
        false
    }

    /// What a step fills of a machine's memories, if its plan can run there.
    ///
    /// # Errors
    /// The first rule of the plan that does not hold; then a memory that is too small, with the account.
    fn fits(training: &Training<Self>, system: &System) -> Result<Footprint, Infeasible>;

    /// Arithmetic of a step that the backward pass does again, by the convention of model FLOPs.
    fn flops_again(_training: &Training<Self>) -> f64 {
        0.0
    }

    /// Writes a step into a program that holds nothing yet.
    fn build(training: &Training<Self>, program: &mut Program);
}

/// Declares the families: `module::Family` lines become public modules, an enum of the models of all families, the names that people
/// write (the modules' names), and the way from a training step of any model to what its family says.
macro_rules! families {
    (
        $(#[$doc:meta])*
        pub enum $name:ident {
            $($module:ident::$family:ident,)+
        }
    ) => {
        $(pub mod $module;)+
        $(pub use $module::$family;)+

        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub enum $name {
            $(
                #[doc = concat!("See [`", stringify!($module), "`].")]
                $family($family),
            )+
        }

        impl $name {
            /// The names of the families, in the order of the list.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($module),)+];

            /// See [`Family::LEVERS`]; in the order of the list.
            pub const LEVERS: &'static [&'static [&'static str]] = &[$(<$family as Family>::LEVERS,)+];

            /// See [`Family::HAS_SEQUENCES`]; in the order of the list.
            pub const HAS_SEQUENCES: &'static [bool] = &[$(<$family as Family>::HAS_SEQUENCES,)+];

            /// See [`Family::check`].
            ///
            /// # Errors
            /// The first rule of its shape that does not hold.
            pub fn check(&self) -> Result<(), Infeasible> {
                match self {
                    $(Self::$family(model) => Family::check(model),)+
                }
            }

            /// See [`Family::parameters`].
            #[must_use]
            pub fn parameters(&self, seq_len: u64) -> f64 {
                match self {
                    $(Self::$family(model) => Family::parameters(model, seq_len),)+
                }
            }

            /// See [`Family::flops_per_token`].
            #[must_use]
            pub fn flops_per_token(&self, seq_len: u64) -> f64 {
                match self {
                    $(Self::$family(model) => Family::flops_per_token(model, seq_len),)+
                }
            }

            /// See [`Family::has_experts`].
            #[must_use]
            pub fn has_experts(&self) -> bool {
                match self {
                    $(Self::$family(model) => Family::has_experts(model),)+
                }
            }
        }

        impl Training {
            /// See [`Family::fits`].
            ///
            /// # Errors
            /// The first rule of the plan that does not hold; then a memory that is too small, with the account.
            pub fn fits(&self, system: &System) -> Result<Footprint, Infeasible> {
                match self.model {
                    $($name::$family(model) => Family::fits(&self.of(model), system),)+
                }
            }

            /// See [`Family::flops_again`].
            #[must_use]
            pub fn flops_again(&self) -> f64 {
                match self.model {
                    $($name::$family(model) => Family::flops_again(&self.of(model)),)+
                }
            }

            /// See [`Family::build`].
            pub fn build(&self, program: &mut Program) {
                match self.model {
                    $($name::$family(model) => Family::build(&self.of(model), program),)+
                }
            }
        }
    };
}

families! {
    /// The model of a job, of whichever family; the first is in force where nothing is said.
    pub enum Model {
        transformer::Transformer,
        dlrm::Dlrm,
    }
}
