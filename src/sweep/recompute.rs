//! Recomputation as people write it: a level, a module of Megatron's, or several with `+` between them.

use std::sync::{Arc, OnceLock};

use super::axis::Axis;
use super::inputs::Inputs;
use super::key::{Id, Key};
use crate::input::diagnostic::{Diagnostic, quoted, suggest};
use crate::input::tree::Node;
use crate::units::{index, narrow, whole};
use crate::workload::recompute::{Part, Recompute};

/// What stands between the parts of a set.
const AND: char = '+';

/// Every word that may be written.
pub fn words() -> impl Iterator<Item = &'static str> {
    Recompute::SETS.into_iter().map(|set| set.0).chain(Part::NAMES)
}

/// The set that a text means.
///
/// # Errors
/// The words that are none.
pub fn read(text: &str) -> Result<Recompute, Vec<&str>> {
    if let Some(set) = Recompute::SETS.iter().find(|set| set.0 == text) {
        return Ok(set.1);
    }
    let named = |word: &str| {
        let part = Part::NAMES.iter().position(|name| *name == word).map(|k| Recompute::of(Part::ALL[k]));
        let set = || Recompute::SETS.iter().find(|set| set.0 == word && set.1 != Recompute::NONE);
        part.or_else(|| set().map(|set| set.1))
    };
    let mut bits = 0;
    let mut unknown = Vec::new();
    for word in text.split(AND).map(str::trim) {
        match named(word) {
            Some(set) => bits |= set.bits(),
            None => unknown.push(word),
        }
    }
    if unknown.is_empty() { Ok(Recompute::from_bits(bits)) } else { Err(unknown) }
}

/// Words with other signs between them, as they should be.
fn otherwise_apart(text: &str) -> Option<String> {
    let is_apart = |sign: char| matches!(sign, ',' | ';' | '/' | '|' | '&') || sign.is_whitespace();
    let meant: Vec<&str> = text.split(is_apart).filter(|part| !part.is_empty() && *part != "+").collect();
    let meant = meant.join(&AND.to_string());
    read(&meant).is_ok().then_some(meant)
}

/// The value of the key in a node.
///
/// # Errors
/// A word that is none, or one that stands alone and does not.
pub fn value(key: &Key, node: &Node) -> Result<f64, Diagnostic> {
    let Some(text) = node.scalar() else { return Err(super::leaf::expected(key, node)) };
    let name = key.name();
    let set = read(&text).map_err(|unknown| {
        let help = match otherwise_apart(&text) {
            Some(meant) => Some(format!("several words have `{AND}` between them: `{name}: {meant}`")),
            None if unknown[0].is_empty() => Some(format!("a word is missing beside `{AND}`")),
            None => suggest(unknown[0], words()),
        };
        let known =
            || format!("the words are {}; several with `{AND}` between them", quoted(&words().collect::<Vec<_>>()));
        Diagnostic::error(format!("`{name}` has no choice `{}`", unknown[0]))
            .at(node.place)
            .help(help.unwrap_or_else(known))
    })?;
    if !set.is_sound() {
        let alone = Part::ALL.into_iter().filter(|part| part.is_level()).map(|part| Part::NAMES[part as usize]);
        return Err(Diagnostic::error(format!("`{name}: {text}`: {} stand alone", quoted(&alone.collect::<Vec<_>>())))
            .at(node.place)
            .help("they say what happens to all of a layer: leave the other words out"));
    }
    Ok(number(set))
}

/// A set as the value of the key.
#[must_use]
pub fn number(set: Recompute) -> f64 {
    f64::from(set.bits())
}

/// The set of a value of the key.
#[must_use]
pub fn of(number: f64) -> Recompute {
    Recompute::from_bits(u16::try_from(whole(number)).unwrap_or_default())
}

/// The sets of an axis of the key alone, beside which a point may be tried: see [`super::Removal::ModulesOfAnotherModel`].
#[must_use]
pub fn tried(axes: &[Axis]) -> Arc<[Recompute]> {
    let is_alone = |axis: &&Axis| axis.touched == [narrow(Id::Recompute as u64)];
    let values = axes.iter().filter(is_alone).flat_map(|axis| &axis.alternatives);
    values.filter_map(|alternative| alternative.value(Id::Recompute as usize)).map(of).collect()
}

/// Parts that no layer of a model has: of a mixture of experts with a dense layer now and then, none of a dense MLP.
#[must_use]
pub fn lacking(inputs: &Inputs) -> Recompute {
    let key = |id: Id| inputs.key(id);
    let has_experts = key(Id::Experts) > 0.0;
    let has_dense = !has_experts || key(Id::MoeEvery) > 1.0 || key(Id::DenseLayers) > 0.0;
    let lacks = [
        (has_experts, Part::Moe),
        (has_experts, Part::MoeActivation),
        (has_experts && key(Id::Shared) > 0.0, Part::SharedExperts),
        (has_dense, Part::Mlp),
        (has_dense, Part::MlpActivation),
        (key(Id::KvRank) > 0.0, Part::LatentUp),
    ];
    lacks.into_iter().filter(|lacks| !lacks.0).fold(Recompute::NONE, |lacking, lacks| lacking.with(lacks.1))
}

/// A value of the key as people write it.
#[must_use]
pub fn text(number: f64) -> Option<&'static str> {
    texts().get(index(whole(number))).map(String::as_str)
}

/// The text of every set, by its bits.
pub fn texts() -> &'static [String] {
    static TEXTS: OnceLock<Vec<String>> = OnceLock::new();
    TEXTS.get_or_init(|| {
        let text = |bits| {
            let set = Recompute::from_bits(bits);
            let named = Recompute::SETS.iter().find(|named| named.1 == set).map(|named| named.0.to_owned());
            let joined = || set.parts().map(|part| Part::NAMES[part as usize]).collect::<Vec<_>>();
            named.unwrap_or_else(|| joined().join(&AND.to_string()))
        };
        (0..Recompute::COUNT).map(text).collect()
    })
}

/// What `all` stands for: every level; modules are written.
pub fn all() -> impl Iterator<Item = (f64, String)> {
    let levels = Part::ALL.into_iter().filter(|part| part.is_level()).map(Recompute::of);
    let sets = Recompute::SETS.into_iter().map(|set| set.1).chain(levels);
    sets.map(|set| (number(set), texts()[usize::from(set.bits())].clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let sound = (0..Recompute::COUNT).map(Recompute::from_bits).filter(|set| set.is_sound());
        for set in sound {
            assert_eq!(read(text(number(set)).expect("a text")), Ok(set));
        }
        assert_eq!(read("core_attn"), Ok(Recompute::SELECTIVE));
        assert_eq!(read("moe_act + selective"), Ok(Recompute::SELECTIVE.with(Part::MoeActivation)));
        assert_eq!(read("moe_act+moe_akt"), Err(vec!["moe_akt"]));
        assert_eq!(otherwise_apart("layernorm, moe_act").as_deref(), Some("layernorm+moe_act"));
        assert_eq!(otherwise_apart("layernorm, moe_akt"), None);
    }

    #[test]
    fn levels_stand_alone() {
        assert!(!Recompute::FULL.with(Part::Norms).is_sound());
        // Nothing, eight modules in any combination, and two levels.
        assert_eq!((0..Recompute::COUNT).filter(|&bits| Recompute::from_bits(bits).is_sound()).count(), 256 + 2);
    }
}
