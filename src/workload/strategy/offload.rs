//! Offload: weights, activations and optimizer states live in tiers beyond the local memory and stream through it [Ren21].

use super::{ParallelStrategy, Pass, Place};
use crate::system::memory::MAX_TIERS;
use crate::units::{Bytes, real};
use crate::workload::transformer::Training;
use crate::workload::infeasible::{Infeasible, Reason};
use crate::workload::plan::Plan;
use crate::workload::program::{Account, Beside, Phase, Program, Work};
use crate::workload::share::{Share, Split, Stage};

/// Layers whose weights and activations are in the local memory: the one in use, and the one that comes or goes [Rajbhandari21].
const LOCAL_LAYERS: f64 = 2.0;

/// Bytes of weights, of activations and of optimizer states.
pub type Parts = [f64; 3];

impl Plan {
    /// The tiers of [`Parts`].
    #[must_use]
    pub const fn tiers(&self) -> [Option<u8>; 3] {
        [self.offload_weights, self.offload_activations, self.offload_optimizer]
    }
}

/// See the module.
pub struct Offload;

impl ParallelStrategy for Offload {
    /// A stage of no more layers than stay in the local memory has no weights to stream.
    fn check(&self, training: &Training) -> Result<(), Infeasible> {
        let Training { model, plan, .. } = training;
        let layers = real(model.layers.div_ceil(plan.pp * plan.vpp) * plan.vpp);
        if plan.offload_weights.is_some() && layers <= LOCAL_LAYERS {
            return Err(Infeasible::new(Reason::LayersToOffload, layers, LOCAL_LAYERS + 1.0));
        }
        // Inputs would have to stay, or come back once more, until their weights' gradients are made.
        if plan.offload_activations.is_some() && plan.schedule.part().splits() {
            return Err(Infeasible::new(Reason::RecomputedInputs, 1.0, 0.0));
        }
        Ok(())
    }

    /// Beside each layer the weights of the next come in, and what it keeps for its backward pass goes out; back, weights come in
    /// again, and what was kept:
    ///
    /// ```text
    /// exposed = max(0, t - layer),  t = l + max(in, out) k / B                   [Rajbhandari21]
    /// ```
    ///
    /// of a tier with latency l and bandwidth B each way, which k NPUs share. Transfers to several tiers follow each other, as they use
    /// one port of the NPU. What is hidden takes bandwidth of the local memory. The first layer of a pass comes in beneath the end of
    /// the pass before; embedding and head stay.
    ///
    /// Worked: 436 million weights of 2 B at 64 GB/s each way need 13.6 ms; beside a layer of 10 ms 3.6 ms are exposed.
    fn emit(&self, place: Place, pass: Pass, training: &Training, share: &Share, program: &mut Program) {
        let Place::Layer { moe } = place else { return };
        if training.plan.tiers() == [None; 3] {
            return;
        }
        let weights = training.precision.weight * layer(share, moe);
        let kept = if moe { share.kept.moe } else { share.kept.dense };
        let ways = match pass {
            Pass::Forward => [[weights, 0.0, 0.0], [0.0, kept, 0.0]],
            Pass::Backward => [[weights, kept, 0.0], [0.0; 3]],
            // Inputs stay since the backward pass, and weights are not needed.
            Pass::Weights => return,
        };
        transfers(&training.plan, ways, |work| program.push_beside(work, Account::Offload, Beside::Block));
    }

    /// All optimizer states in and out; the NPU updates them, after the gradients are known and before the next step, so nothing
    /// hides it; and the new weights out. An update by the host's processor is not modelled here.
    fn emit_step(&self, stage: &Stage, training: &Training, share: &Share, program: &mut Program) {
        if training.plan.tiers() == [None; 3] {
            return;
        }
        let states = training.optimizer.state(training, share, stage);
        let layers = |moe: bool, count: u64| real(count) * layer(share, moe);
        let weights = training.precision.weight * (layers(false, stage.dense.all) + layers(true, stage.moe.all));
        let ways = [[0.0, 0.0, states], [weights, 0.0, states]];
        transfers(&training.plan, ways, |work| program.push(work, Account::Offload));
        program.close_block(Phase::Step, 1, None);
    }

    fn summary(&self) -> &'static str {
        "offload_weights, offload_activations: in a tier, streamed beside each layer [Rajbhandari21]; offload_optimizer: states in a tier, streamed in and out once a step [Ren21]"
    }

    fn example(&self) -> &'static str {
        "436 million weights of 2 B at 64 GB/s beside a layer of 10 ms: 3.6 ms exposed; 12 B of states for each of a billion parameters: 0.19 s a step"
    }
}

/// Weights of a layer that an NPU holds.
fn layer(share: &Share, moe: bool) -> f64 {
    let Split { dense, expert } = share.weight_shards;
    if moe { share.moe_layer() / dense + share.experts / expert } else { share.dense_layer() / dense }
}

/// One transfer for each tier that has any of what comes in and goes out.
fn transfers(plan: &Plan, ways: [Parts; 2], mut push: impl FnMut(Work)) {
    for (tier, [read, written]) in (0..).zip(by_tier(plan, ways)) {
        let [read, written] = [read, written].map(Bytes::from_real);
        if read + written > Bytes::ZERO {
            push(Work::Transfer { tier, read, written });
        }
    }
}

/// Bytes of parts, tier by tier.
fn by_tier<const N: usize>(plan: &Plan, all: [Parts; N]) -> [[f64; N]; MAX_TIERS] {
    let mut found = [[0.0; N]; MAX_TIERS];
    for (part, tier) in plan.tiers().into_iter().enumerate() {
        if let Some(sums) = tier.and_then(|tier| found.get_mut(usize::from(tier))) {
            for (sum, parts) in sums.iter_mut().zip(&all) {
                *sum += parts[part];
            }
        }
    }
    found
}

/// What stays in the local memory of what a stage holds: two layers' weights, with embedding and head, and two layers'
/// activations; no optimizer states.
#[must_use]
pub fn local(training: &Training, share: &Share, stage: &Stage, held: Parts) -> Parts {
    let tiers = training.plan.tiers();
    if tiers == [None; 3] {
        return held;
    }
    let kinds = [(stage.dense.all, false), (stage.moe.all, true)].into_iter().filter(|kind| kind.0 > 0);
    let largest = kinds.clone().map(|kind| layer(share, kind.1)).fold(0.0, f64::max);
    let kept = kinds.map(|kind| if kind.1 { share.kept.moe } else { share.kept.dense }).fold(0.0, f64::max);
    let ends = share.tables(training, stage) / share.weight_shards.dense;
    let stays = [training.precision.weight * (ends + LOCAL_LAYERS * largest), LOCAL_LAYERS * kept, 0.0];
    std::array::from_fn(|part| if tiers[part].is_some() { held[part].min(stays[part]) } else { held[part] })
}

/// What lives in each tier of what a stage holds and what stays of it.
#[must_use]
pub fn beyond(plan: &Plan, held: Parts, local: Parts) -> [Bytes; MAX_TIERS] {
    let away = std::array::from_fn(|part| held[part] - local[part]);
    by_tier(plan, [away]).map(|[sum]| Bytes::from_real(sum))
}
