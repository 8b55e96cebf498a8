//! What the backward pass computes again: parts of a layer, under Megatron's names for its modules.

/// A part of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Scores, softmax and weighted sum.
    CoreAttention,
    /// The whole layer, from its input.
    Layer,
    /// Every second linear layer and what is element-wise: torchtitan's selective activation checkpoint.
    Alternate,
    /// The norms before attention and before the MLP.
    Norms,
    /// What makes queries, keys and values of latent vectors.
    LatentUp,
    /// A dense MLP.
    Mlp,
    /// The activation function of a dense MLP.
    MlpActivation,
    /// Routed and shared experts, with their all-to-alls.
    Moe,
    /// The activation function of routed experts.
    MoeActivation,
    /// Shared experts.
    SharedExperts,
}

impl Part {
    /// Every part, in the order of their bits.
    pub const ALL: [Self; 10] = [
        Self::CoreAttention,
        Self::Layer,
        Self::Alternate,
        Self::Norms,
        Self::LatentUp,
        Self::Mlp,
        Self::MlpActivation,
        Self::Moe,
        Self::MoeActivation,
        Self::SharedExperts,
    ];
    /// The names that people write: Megatron's of its modules, `mlp_act` by the pattern of `moe_act`.
    pub const NAMES: [&'static str; 10] = [
        "core_attn",
        "full",
        "alternate",
        "layernorm",
        "mla_up_proj",
        "mlp",
        "mlp_act",
        "moe",
        "moe_act",
        "shared_experts",
    ];

    /// Parts that are done with another: what is within it.
    const WITHIN: [(Self, Self); 3] =
        [(Self::MlpActivation, Self::Mlp), (Self::MoeActivation, Self::Moe), (Self::SharedExperts, Self::Moe)];

    /// Whether it stands alone: it says what happens to all of a layer.
    #[must_use]
    pub const fn is_level(self) -> bool {
        matches!(self, Self::Layer | Self::Alternate)
    }
}

/// The parts that the backward pass computes again, a bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Recompute(u16);

impl Recompute {
    /// Nothing.
    pub const NONE: Self = Self(0);
    /// The core of attention [Korthikanti22].
    pub const SELECTIVE: Self = Self::of(Part::CoreAttention);
    /// Every layer from its input.
    pub const FULL: Self = Self::of(Part::Layer);
    /// Every second linear layer.
    pub const ALTERNATE: Self = Self::of(Part::Alternate);
    /// What not every model has.
    pub const MODULES: Self = Self::of(Part::LatentUp)
        .with(Part::Mlp)
        .with(Part::MlpActivation)
        .with(Part::Moe)
        .with(Part::MoeActivation)
        .with(Part::SharedExperts);
    /// Sets with a name of their own, beside those of single parts.
    pub const SETS: [(&'static str, Self); 2] = [("none", Self::NONE), ("selective", Self::SELECTIVE)];
    /// How many sets there are, with those that make no sense.
    pub const COUNT: u16 = 1 << Part::ALL.len();

    /// One part.
    #[must_use]
    pub const fn of(part: Part) -> Self {
        Self(1 << part as u16)
    }

    /// The set of these bits; beyond the last part they say nothing.
    #[must_use]
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits % Self::COUNT)
    }

    /// Its bits.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// With a part.
    #[must_use]
    pub const fn with(self, part: Part) -> Self {
        Self(self.0 | 1 << part as u16)
    }

    /// Whether a part is in it.
    #[must_use]
    pub const fn has(self, part: Part) -> bool {
        self.0 >> part as u16 & 1 == 1
    }

    /// What of it is done in a layer that lacks some parts: without these, and without what is done with another part.
    #[must_use]
    pub const fn done(self, lacking: Self) -> Self {
        let mut done = Self(self.0 & !lacking.0);
        let mut k = 0;
        while k < Part::WITHIN.len() {
            let (part, whole) = Part::WITHIN[k];
            if done.has(whole) {
                done.0 &= !Self::of(part).0;
            }
            k += 1;
        }
        done
    }

    /// Its parts.
    pub fn parts(self) -> impl Iterator<Item = Part> {
        Part::ALL.into_iter().filter(move |&part| self.has(part))
    }

    /// Whether it can be: what says what happens to all of a layer stands alone.
    #[must_use]
    pub fn is_sound(self) -> bool {
        self.0.count_ones() < 2 || !self.parts().any(Part::is_level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_layer_lacks_is_not_done_and_what_is_within_another_part_is_done_once() {
        let moe = Recompute::of(Part::Moe);
        let experts = moe.with(Part::MoeActivation).with(Part::SharedExperts);
        assert_eq!(experts.with(Part::Norms).done(experts), Recompute::of(Part::Norms));
        assert_eq!(experts.done(Recompute::NONE), moe);
        assert_eq!(experts.done(moe), Recompute::of(Part::MoeActivation).with(Part::SharedExperts));
        assert_eq!(Recompute::FULL.done(experts), Recompute::FULL);
    }
}
