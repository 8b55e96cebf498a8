//! A step of a DLRM: look-ups, an all-to-all of their sums beside the bottom MLP, the interaction, the top MLP, and back
//! [Naumov19, Mudigere22].

use super::memory::{INDEX, dense_state, row_state};
use super::share::Share;
use super::{Interaction, Layers, Training, Widths};
use crate::system::collective::Collective;
use crate::system::kernel::{Kernel, Product};
use crate::units::{Bytes, real};
use crate::workload::layers;
use crate::workload::matrix::Matrix;
use crate::workload::placement::Group;
use crate::workload::program::{Account, Beside, Phase, Program, Work};
use crate::workload::strategy::Pass;

/// Bytes of an element that a layer's bias and activation function move, forward and backward, over those of an element.
const ACTIVATED: [f64; 2] = [2.0, 3.0];
/// Kernels that bring vectors together beside their products, forward and backward: concatenation, selection, concatenation.
const GATHERING: [f64; 2] = [3.0, 4.0];
/// Operations that the host sends for a layer of an MLP, forward (product, activation) and backward (its two products, the sum
/// for the bias, that of the activation).
const OF_LAYER: [f64; 2] = [2.0, 4.0];
/// Operations that the host sends for the interaction, forward and backward.
const OF_INTERACTION: [f64; 2] = [4.0, 6.0];
/// Operations that the host sends for all tables, whose look-ups are one kernel, and for an all-to-all [Mudigere22].
const OF_TABLES: f64 = 2.0;
/// The loss, forward and backward.
const OF_LOSS: f64 = 2.0;

/// Writes the step.
///
/// ```text
/// forward    look-ups | all-to-all beside the bottom MLP | interaction, top MLP
/// backward   top MLP, interaction | all-to-all beside the bottom MLP, gradients of the top MLP go out |
///            rows are updated, gradients of the bottom MLP go out
/// step       without `overlap_dp` the gradients of both go out; update of the MLPs
/// ```
///
/// The whole batch is one pass. Numbers of rows are taken to be with the NPUs that have the tables, as they come with the batch, ahead
/// of the step; that is not modelled here.
pub fn write(training: &Training, share: &Share, program: &mut Program) {
    program.overlap = training.plan.overlap_dp;
    let mut writer = Writer { training, share, program };
    writer.forward();
    writer.backward();
    writer.update();
    writer.program.close_class(0, 1);
}

/// Layers of an MLP.
fn count(widths: &Widths) -> f64 {
    real(widths.len() as u64)
}

/// Writes blocks of a step.
struct Writer<'a> {
    training: &'a Training,
    share: &'a Share,
    program: &'a mut Program,
}

impl Writer<'_> {
    fn forward(&mut self) {
        let model = self.training.model;
        self.look_ups();
        self.exchange(Phase::Forward);
        self.mlp(model.bottom());
        self.close(Phase::Forward, OF_TABLES + OF_LAYER[0] * count(&model.bottom_mlp));
        self.interaction(Pass::Forward);
        self.mlp(model.top());
        self.close(Phase::Forward, OF_INTERACTION[0] + OF_LAYER[0] * count(&model.top_mlp) + OF_LOSS);
    }

    fn backward(&mut self) {
        let model = self.training.model;
        self.back(model.top(), 0);
        self.interaction(Pass::Backward);
        self.close(Phase::Backward, OF_INTERACTION[1] + OF_LAYER[1] * count(&model.top_mlp) + OF_LOSS);
        let overlaps = self.training.plan.overlap_dp;
        self.exchange(Phase::Backward);
        if overlaps {
            self.reduce(model.top());
        }
        self.back(model.bottom(), 1);
        self.close(Phase::Backward, OF_TABLES + OF_LAYER[1] * count(&model.bottom_mlp));
        if overlaps {
            self.reduce(model.bottom());
        }
        self.update_rows();
        self.close(Phase::Backward, OF_TABLES);
        if !overlaps {
            self.reduce(model.bottom().chain(model.top()));
            self.program.close_block(Phase::Step, 1, None);
        }
    }

    /// Rows are read and summed up: of B samples and T_r tables P rows of d / s elements, and their numbers, for one sum.
    ///
    /// ```text
    /// B T_r (P (e d / s + 8) + a d / s)
    /// ```
    ///
    /// Worked: 65,536 samples, 4 tables, P = 1, d = 128, e = 4, a = 2: 65,536 * 4 * (520 + 256) = 203 MB.
    fn look_ups(&mut self) {
        let Training { model, precision, .. } = self.training;
        let Share { all_samples, tables, columns, .. } = *self.share;
        let row = precision.table * columns + INDEX;
        let moved = all_samples * tables * (model.pooling * row + precision.activation * columns);
        self.kernel(Kernel::Stream { moved: Bytes::from_real(moved) });
        self.close(Phase::Forward, OF_TABLES);
    }

    /// Sums of rows go to the NPUs of their samples, or their gradients back: an all-to-all of a B T_r d / s bytes on each of n NPUs,
    /// which sends (n - 1) / n of them. The bottom MLP waits for nothing of it, and runs beside it, in both passes [Naumov19].
    ///
    /// Worked: 65,536 samples, 8 NPUs, 4 tables each, d = 128, a = 2: 67 MB, of which 58.7 MB are sent. At 300 GB/s that takes 196 us;
    /// hidden, it takes as much of the bottom MLP as two thirds of 5.3 B for each byte take of the memory, 127 us at 1,631 GB/s
    /// ([`Operation::local_traffic`], [`System::paid`]): who hides it gains a third, and more over slower links.
    fn exchange(&mut self, phase: Phase) {
        let Training { precision, plan, .. } = self.training;
        let Share { all_samples, tables, columns, ranks, .. } = *self.share;
        if ranks == 1 {
            return;
        }
        let size = Bytes::from_real(precision.activation * all_samples * tables * columns);
        let work = Work::Collective { collective: Collective::AllToAll, group: Group::Data, size };
        if plan.overlap_embeddings {
            self.program.push_beside(work, Account::Tables, Beside::Block);
        } else {
            self.program.push(work, Account::Tables);
            self.close(phase, 0.0);
        }
    }

    /// The layers of an MLP forward: b x i by i x o.
    fn mlp(&mut self, layers: impl Layers) {
        for layer in layers {
            self.product(self.share.samples, layer.columns, layer.rows, 1.0);
            self.activation(Pass::Forward, layer);
        }
    }

    /// Back, the last layer first: b x o by o x i and i x b by b x o, but for the first of these in layers whose inputs are `leaves`:
    /// dense features have no gradient.
    fn back(&mut self, layers: impl Layers, leaves: usize) {
        for (place, layer) in layers.enumerate().rev() {
            self.activation(Pass::Backward, layer);
            if place >= leaves {
                self.product(self.share.samples, layer.rows, layer.columns, 1.0);
            }
            self.product(layer.rows, layer.columns, self.share.samples, 1.0);
        }
    }

    /// Bias and activation function of a layer.
    fn activation(&mut self, pass: Pass, layer: Matrix) {
        let elements = self.share.samples * layer.columns;
        let moved = ACTIVATED[pass as usize] * self.training.precision.activation * elements;
        self.kernel(Kernel::ElementWise { moved: Bytes::from_real(moved), launches: 1.0 });
    }

    /// Vectors come together: F x d by d x F for each sample, of which one triangle is taken.
    ///
    /// Backward each of both factors, the same vectors, has a gradient: twice F x F by F x d.
    fn interaction(&mut self, pass: Pass) {
        let Training { model, precision, .. } = self.training;
        let samples = self.share.samples;
        let vectors = model.vectors();
        let dim = real(model.embedding_dim);
        let mut moved = 2.0 * model.gathered();
        if model.interaction == Interaction::Dot {
            moved += vectors * vectors + real(model.interacted());
            if pass == Pass::Backward {
                self.product(vectors, dim, vectors, 2.0 * samples);
            } else {
                self.product(vectors, vectors, dim, samples);
            }
        }
        let moved = Bytes::from_real(precision.activation * samples * moved);
        self.kernel(Kernel::ElementWise { moved, launches: GATHERING[pass as usize] });
    }

    /// Rows are updated where their gradients are made, in one kernel: a row that a sample names is read and written with its states,
    /// by the gradient of the sum [Mudigere22]. A row that is named twice counts twice.
    ///
    /// ```text
    /// B T_r (P (2 e d / s + 2 m + 8) + a d / s)              m bytes of states a row
    /// ```
    fn update_rows(&mut self) {
        let Training { model, precision, .. } = self.training;
        let Share { all_samples, tables, columns, .. } = *self.share;
        let row = 2.0 * (precision.table * columns + row_state(self.training, self.share)) + INDEX;
        let moved = all_samples * tables * (model.pooling * row + precision.activation * columns);
        let kernel = Kernel::Stream { moved: Bytes::from_real(moved) };
        self.program.push(Work::Compute(kernel), Account::Optimizer);
    }

    /// Gradients of an MLP are summed over all NPUs, beside what is left of the backward pass, or without overlap behind it; with ZeRO each
    /// gets its shard.
    fn reduce(&mut self, layers: impl Iterator<Item = Matrix>) {
        let Training { plan, precision, .. } = self.training;
        if self.share.ranks == 1 {
            return;
        }
        let collective = if plan.zero == 0 { Collective::AllReduce } else { Collective::ReduceScatter };
        let parameters: f64 = layers.map(|layer| layer.parameters() + layer.columns).sum();
        let size = Bytes::from_real(precision.gradient * parameters);
        self.program.push(Work::Collective { collective, group: Group::Data, size }, Account::Data);
    }

    /// Once a step: the update of the MLPs, as of any weights; with ZeRO each NPU updates its shard, and all gather the new weights.
    fn update(&mut self) {
        let Training { model, plan, precision, optimizer, .. } = self.training;
        let shards = if plan.zero >= 1 { real(self.share.ranks) } else { 1.0 };
        let part = optimizer.part();
        if let Some(products) = part.products() {
            for layer in model.bottom().chain(model.top()) {
                for product in products(&layer) {
                    let count = (product.count / shards).ceil();
                    self.program.push(Work::Compute(Kernel::Product(Product { count, ..product })), Account::Optimizer);
                }
            }
        }
        let dense = model.dense_parameters();
        let gradients = part.gradient_reads() * precision.gradient;
        let moved = 2.0 * dense_state(self.training) + (gradients + precision.weight) * dense;
        let kernel = Kernel::Stream { moved: Bytes::from_real(moved / shards) };
        self.program.push(Work::Compute(kernel), Account::Optimizer);
        self.program.close_block(Phase::Step, 1, None);
        if plan.zero >= 1 && self.share.ranks > 1 {
            let size = Bytes::from_real(precision.weight * dense);
            let work = Work::Collective { collective: Collective::AllGather, group: Group::Data, size };
            self.program.push(work, Account::Data);
        }
        self.program.close_block(Phase::Step, 1, None);
    }

    /// `count` products of rows x depth by depth x columns in the format of the job.
    fn product(&mut self, rows: f64, columns: f64, depth: f64, count: f64) {
        let is_cast = self.training.precision.compute.is_cast();
        let efficiency = if is_cast { self.training.precision.product_efficiency } else { 1.0 };
        self.kernel(Kernel::Product(Product { rows, columns, depth, count, is_cast, efficiency }));
    }

    fn kernel(&mut self, kernel: Kernel) {
        self.program.push(Work::Compute(kernel), Account::Compute);
    }

    /// Ends a block for which the host sends so many operations.
    fn close(&mut self, phase: Phase, dispatches: f64) {
        let once = layers::Layers { all: 1, first: 1, last: 1 };
        self.program.close_layers(phase, once, dispatches);
    }
}
