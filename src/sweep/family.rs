//! Families of models: which keys only one of them has, and where such a key is missing or has no use.

use super::Sweep;
use super::axis::{Alternative, Axis};
use super::bits::Bits;
use super::key::{Id, KEYS};
use super::resolve::Resolver;
use super::walk::Frame;
use crate::input::diagnostic::{Diagnostic, Place, Source};
use crate::units::{index, narrow, real, whole};
use crate::workload::Model;

/// What transformers alone have.
const OF_TRANSFORMERS: [Id; 27] = [
    Id::Layers,
    Id::Hidden,
    Id::Heads,
    Id::KvHeads,
    Id::HeadDim,
    Id::ValueDim,
    Id::KvRank,
    Id::QRank,
    Id::RopeDim,
    Id::AttentionWindow,
    Id::FullEvery,
    Id::ParallelBlock,
    Id::Ffn,
    Id::Mlp,
    Id::Vocab,
    Id::Tied,
    Id::Learned,
    Id::Dropout,
    Id::Experts,
    Id::Topk,
    Id::Shared,
    Id::MoeFfn,
    Id::MoeEvery,
    Id::DenseLayers,
    Id::CapacityFactor,
    Id::SeqLen,
    Id::FlashAttention,
];

/// What DLRMs alone have.
const OF_DLRMS: [Id; 11] = [
    Id::Tables,
    Id::Rows,
    Id::EmbeddingDim,
    Id::Pooling,
    Id::DenseFeatures,
    Id::BottomMlp,
    Id::TopMlp,
    Id::Interaction,
    Id::TableBytes,
    Id::TableShards,
    Id::OverlapEmbeddings,
];

/// The keys that one family alone has, family by family.
pub const KEYS_OF: [&[Id]; Model::NAMES.len()] = [&OF_TRANSFORMERS, &OF_DLRMS];

/// What each family has no use for: the keys of all others.
pub const IDLE: [Bits; Model::NAMES.len()] = {
    let mut idle = [Bits::NONE; Model::NAMES.len()];
    let mut family = 0;
    while family < KEYS_OF.len() {
        let mut other = 0;
        while other < KEYS_OF.len() {
            let mut k = 0;
            while other != family && k < KEYS_OF[other].len() {
                idle[family] = idle[family].with(KEYS_OF[other][k] as usize);
                k += 1;
            }
            other += 1;
        }
        family += 1;
    }
    idle
};

/// The keys that have no use in some family, and what says which it is.
pub const ALL: [Id; OF_TRANSFORMERS.len() + OF_DLRMS.len() + 2] = {
    let mut all = [Id::Family; OF_TRANSFORMERS.len() + OF_DLRMS.len() + 2];
    let mut k = 0;
    while k < OF_TRANSFORMERS.len() {
        all[k] = OF_TRANSFORMERS[k];
        k += 1;
    }
    while k < OF_TRANSFORMERS.len() + OF_DLRMS.len() {
        all[k] = OF_DLRMS[k - OF_TRANSFORMERS.len()];
        k += 1;
    }
    all[k] = Id::MicroBatch;
    all
};

/// Keys of a plan that a family does not heed, and what it lacks for them. What it refuses it heeds.
type Unheeded = (&'static [Id], &'static str);

/// What each family does not heed besides the keys that others alone have.
const UNHEEDED: [&[Unheeded]; Model::NAMES.len()] = [&[], &UNHEEDED_BY_DLRMS];

const UNHEEDED_BY_DLRMS: [Unheeded; 6] = [
    (&[Id::Ep, Id::Etp, Id::OverlapEp, Id::Dispatcher, Id::ExpertImbalance], "has no experts"),
    (&[Id::Vpp, Id::Schedule, Id::LayerSplit, Id::OverlapPp, Id::ScatterGather], "has no pipeline"),
    (&[Id::CpKind, Id::SequenceParallel, Id::OverlapTp, Id::OverlapTpBackward], "has no sequences that are split"),
    (&[Id::MicroBatch], "takes all samples of a replica at once"),
    (&[Id::Prefetch, Id::ScatterGradients], "has no weights of layers that are sharded"),
    (&[Id::Order], "has `dp` alone"),
];

/// Why a family does not heed a key; nothing if it does.
#[must_use]
pub fn why_unheeded(family: usize, slot: usize) -> Option<&'static str> {
    let other = IDLE[family].has(slot).then_some("has no use for it");
    let has = |unheeded: &&Unheeded| unheeded.0.iter().any(|&id| id as usize == slot);
    other.or_else(|| UNHEEDED[family].iter().find(has).map(|unheeded| unheeded.1))
}

/// The family that alone has a key.
#[must_use]
pub fn of(slot: usize) -> Option<usize> {
    KEYS_OF.iter().position(|keys| keys.iter().any(|&id| id as usize == slot))
}

/// The family of models where nothing is said.
const USUAL: usize = 0;

impl Frame {
    /// Whether a key of a family is given wherever a model is of that family.
    pub(super) fn surely_sets_of_family(&self, slot: usize, family: usize) -> bool {
        let fixed = self.settings.iter().find(|setting| setting.0 as usize == Id::Family as usize);
        let fixed = fixed.map(|setting| setting.1);
        if fixed.is_some_and(|fixed| fixed != real(family as u64)) || self.surely_sets(slot) {
            return true;
        }
        let varies = self.axes.iter().filter(|axis| touches(axis, Id::Family));
        let mut varies = varies.peekable();
        if varies.peek().is_none() {
            return fixed.is_none() && family != USUAL;
        }
        varies.any(|axis| axis.alternatives.iter().all(|alternative| is_done(alternative, slot, family)))
    }
}

/// Whether an axis gives a key any value.
pub(super) fn touches(axis: &Axis, id: Id) -> bool {
    axis.touched.contains(&narrow(id as u64))
}

/// Whether an alternative gives a key, or is of another family.
fn is_done(alternative: &Alternative, slot: usize, family: usize) -> bool {
    let own = alternative.value(Id::Family as usize);
    let inner = || alternative.axes.iter().filter(|axis| touches(axis, Id::Family));
    let is_other = match own {
        Some(own) => own != real(family as u64),
        None => family != USUAL && inner().next().is_none(),
    };
    is_other
        || alternative.settings.iter().any(|setting| setting.slot as usize == slot)
        || alternative.axes.iter().any(|axis| axis.alternatives.iter().all(|inner| sets(inner, slot)))
        || inner().any(|axis| axis.alternatives.iter().all(|alternative| is_done(alternative, slot, family)))
}

fn sets(alternative: &Alternative, slot: usize) -> bool {
    alternative.settings.iter().any(|setting| setting.slot as usize == slot)
        || alternative.axes.iter().any(|axis| axis.alternatives.iter().all(|inner| sets(inner, slot)))
}

impl Resolver<'_> {
    /// Keys of a model that is of another family than all models of the sweep are; then nothing is said of what it lacks.
    pub(super) fn keys_of_another_family(&mut self, frame: &Frame) {
        if frame.axes.iter().any(|axis| touches(axis, Id::Family)) {
            return;
        }
        if self.walker.has_failed(Id::Family as usize, frame, 0) {
            self.walker.unread.push("model".to_owned());
            return;
        }
        let said = frame.settings.iter().find(|setting| setting.0 as usize == Id::Family as usize);
        let family = said.map_or(USUAL, |setting| index(whole(setting.1)));
        let fixed = frame.settings.iter().map(|&(slot, _, place)| (slot, place));
        let swept = frame.axes.iter().flat_map(|axis| axis.touched.iter().map(|&slot| (slot, axis.place)));
        let written = fixed.chain(swept).filter(|(_, place)| place.source != Source::Preset);
        let mut found: Vec<(&str, usize, Place)> = Vec::new();
        for (slot, place) in written {
            let Some(key) = KEYS.get(slot as usize).filter(|key| key.path.starts_with("model.")) else { continue };
            found.extend(of(slot as usize).filter(|&other| other != family).map(|other| (key.name(), other, place)));
        }
        for &(name, other, place) in &found {
            let (is, other) = (Model::NAMES[family], Model::NAMES[other]);
            let message = format!("`{name}` is a key of a `{other}`, and the model is a `{is}`");
            let help = format!("remove it, or write `family: {other}` and what else a `{other}` has");
            self.complain(Diagnostic::error(message).at(place).help(help));
        }
        if !found.is_empty() {
            self.walker.unread.push("model".to_owned());
        }
    }
}

impl Sweep {
    /// Whether any point's model may be of a family that is not the usual one.
    #[must_use]
    pub fn has_family(&self, family: &str) -> bool {
        let wanted = Model::NAMES.iter().position(|name| *name == family).map(|place| real(place as u64));
        let slot = Id::Family as usize;
        let is_wanted = |value: f64| Some(value) == wanted;
        let mut found = !self.is_collective && is_wanted(self.space.base[slot]);
        for axis in &self.space.axes {
            axis.visit(&mut |_, alternative| found |= alternative.value(slot).is_some_and(is_wanted));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::super::key::Default;
    use super::*;

    #[test]
    fn every_key_of_a_model_belongs_to_one_family_or_to_all() {
        for (slot, key) in KEYS.iter().enumerate().filter(|(_, key)| key.path.starts_with("model.")) {
            let is_of_all = matches!(key.name(), "family" | "parameters");
            assert_eq!(of(slot).is_none(), is_of_all, "{}", key.path);
            assert!(!is_of_all || key.default != Default::Required);
        }
        assert!(IDLE[0].has(Id::Tables as usize) && !IDLE[0].has(Id::Layers as usize));
        assert!(IDLE[1].has(Id::SeqLen as usize) && !IDLE[1].has(Id::Tables as usize));
    }
}
