//! Recomputation: keep less of the forward pass and compute it again in the backward pass [Korthikanti22].

use super::ParallelStrategy;
use crate::workload::activation;
use crate::workload::share::Share;
use crate::workload::Training;

/// See the module. What is computed again is added by `build`, which writes each layer's passes.
pub struct Recomputation;

impl ParallelStrategy for Recomputation {
    fn divide(&self, training: &Training, share: &mut Share) {
        share.kept = activation::kept(training, share);
    }

    fn summary(&self) -> &'static str {
        "recompute: none, selective (the core of attention) or full (every layer from its input) [Korthikanti22]"
    }

    fn example(&self) -> &'static str {
        "4 sequences of 2,048 at a width of 6,144, 64 heads, dropout, `tp: 8`: a layer keeps 885 MB; 214 MB without the core, 13 MB from its input"
    }
}
