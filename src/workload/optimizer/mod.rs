//! Optimizers: what each keeps of a parameter, what an update moves, and what it multiplies.

use super::matrix::{self, Matrix};
use super::program::{Account, Phase, Program, Work};
use super::share::{Share, Split, Stage};
use super::transformer::Training;
use crate::registry::registry;
use crate::system::Kernel;
use crate::system::kernel::Product;
use crate::units::{Bytes, real};

/// What a parameter is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A matrix of a layer.
    Matrix,
    /// The embedding, the head, learned positions: a vector a word.
    Table,
    /// A norm, a bias.
    Vector,
}

/// Bytes of state beside the master copy.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    /// For each parameter.
    pub parameter: f64,
    /// For each row and each column of a matrix, or of a table.
    pub side: f64,
}

impl Moments {
    /// As many for each parameter.
    #[must_use]
    pub const fn each(parameter: f64) -> Self {
        Self { parameter, side: 0.0 }
    }
}

/// The products of an update of matrices of one shape.
pub type Products = fn(&Matrix) -> [Product; 3];

/// How weights follow from gradients.
pub trait UpdateRule {
    /// What it keeps of a parameter, if an element of a moment has so many bytes.
    fn moments(&self, part: Part, moment: f64) -> Moments;

    /// How often an update reads a gradient.
    fn gradient_reads(&self) -> f64 {
        1.0
    }

    /// The products of an update of matrices of one shape, if it multiplies.
    fn products(&self) -> Option<Products> {
        None
    }

    /// One line on what it is, with its source.
    fn summary(&self) -> &'static str;

    /// What it comes to in a small case, worked out by hand.
    fn example(&self) -> &'static str;
}

registry! {
    /// The optimizers; the first is in force where nothing is said.
    pub enum Optimizer: UpdateRule {
        adam::Adam,
        sgd_momentum::SgdMomentum,
        lion::Lion,
        adafactor::Adafactor,
        adam_8bit::Adam8bit,
        muon::Muon,
        sgd::Sgd,
        rowwise_adagrad::RowwiseAdagrad,
    }
}

impl Optimizer {
    /// Bytes of state of a parameter of a matrix, its row's and column's aside: a master copy and moments.
    #[must_use]
    pub fn of_parameter(self, master: f64, moment: f64) -> f64 {
        master + self.part().moments(Part::Matrix, moment).parameter
    }

    /// Bytes of state a parameter, if they are as many for each.
    fn even(self, training: &Training) -> Option<f64> {
        let super::Precision { master, moment, optimizer, .. } = training.precision;
        if optimizer.is_some() {
            return optimizer;
        }
        let of = |part| self.part().moments(part, moment);
        let matrix = of(Part::Matrix);
        let is_even = matrix.side == 0.0 && matrix == of(Part::Table) && matrix == of(Part::Vector);
        is_even.then_some(master + matrix.parameter)
    }

    /// Bytes of state on an NPU of a stage, which has its share of them where they are sharded.
    #[must_use]
    pub fn state(self, training: &Training, share: &Share, stage: &Stage) -> f64 {
        let held = share.parameters(training, stage);
        let Some(bytes) = self.even(training) else {
            let all = self.uneven(training, share, stage, held);
            return sharded(all, share.optimizer_shards);
        };
        bytes * sharded(held, share.optimizer_shards)
    }

    /// Bytes that an update on an NPU of a stage moves: states both ways, gradients in, weights out.
    ///
    /// ```text
    /// 2 o + r g + w a parameter                                                  [Rajbhandari20]
    /// ```
    ///
    /// o bytes of state, g of a gradient that is read r times, w of a weight. Adam, 12, 4 and 2 B: 30 B.
    #[must_use]
    pub fn traffic(self, training: &Training, share: &Share, stage: &Stage) -> f64 {
        let updated = sharded(share.parameters(training, stage), share.optimizer_shards);
        let super::Precision { gradient, weight, .. } = training.precision;
        let gradient = self.part().gradient_reads() * gradient;
        match self.even(training) {
            Some(bytes) => (2.0 * bytes + gradient + weight) * updated,
            None => 2.0 * self.state(training, share, stage) + (gradient + weight) * updated,
        }
    }

    /// Bytes of state of a stage where parts of the model differ.
    fn uneven(self, training: &Training, share: &Share, stage: &Stage, held: Split) -> Split {
        let Training { model, precision, .. } = training;
        let of = |part| self.part().moments(part, precision.moment);
        let [matrix, table, vector] = [Part::Matrix, Part::Table, Part::Vector].map(of);
        let norms = real(stage.dense.all + stage.moe.all) * share.norms;
        let tables = share.tables(training, stage);
        let layers = |moe: bool, experts: bool, count: u64| {
            if count == 0 {
                return 0.0;
            }
            real(count)
                * matrix::of_layer(training, share, moe)[usize::from(experts)].iter().map(Matrix::sides).sum::<f64>()
        };
        let (hidden, words) = (real(model.hidden), tables / real(model.hidden));
        let table_sides = if words > 0.0 { hidden + words } else { 0.0 };
        let sides = |experts: bool| {
            let moe = layers(true, experts, stage.moe.all);
            if matrix.side > 0.0 { moe + layers(false, experts, stage.dense.all) } else { 0.0 }
        };
        Split {
            dense: precision.master * held.dense
                + matrix.parameter * (held.dense - tables - norms)
                + matrix.side * sides(false)
                + table.parameter * tables
                + table.side * table_sides
                + vector.parameter * norms,
            expert: (precision.master + matrix.parameter) * held.expert + matrix.side * sides(true),
        }
    }
}

/// What is left of both once they are cut.
fn sharded(held: Split, shards: Split) -> f64 {
    held.dense / shards.dense + held.expert / shards.expert
}

/// Adds the update of a stage, once a step: what is multiplied, then what is moved.
pub fn emit(stage: &Stage, training: &Training, share: &Share, program: &mut Program) {
    if let Some(products) = training.optimizer.part().products() {
        multiply(products, stage, training, share, program);
    }
    let moved = Bytes::from_real(training.optimizer.traffic(training, share, stage));
    program.push(Work::Compute(Kernel::Stream { moved }), Account::Optimizer);
    program.close_block(Phase::Step, 1, None);
}

/// The products of an update of a stage's layers. Ranks that share states share whole matrices, shape by shape, so the busiest has
/// the next whole number; of a matrix that tensor parallelism splits each rank takes its own part.
fn multiply(products: Products, stage: &Stage, training: &Training, share: &Share, program: &mut Program) {
    let shards = share.optimizer_shards;
    for (moe, layers) in [(false, stage.dense.all), (true, stage.moe.all)].into_iter().filter(|kind| kind.1 > 0) {
        for (matrices, shards) in matrix::of_layer(training, share, moe).iter().zip([shards.dense, shards.expert]) {
            for matrix in matrix::by_shape(matrices) {
                let count = (matrix.count * real(layers) / shards).ceil();
                for product in products(&Matrix { count, ..matrix }) {
                    program.push(Work::Compute(Kernel::Product(product)), Account::Optimizer);
                }
            }
        }
    }
}
