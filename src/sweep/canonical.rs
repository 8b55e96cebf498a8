//! Ids: the canonical form of a point, of which its id is a hash: what counts of its inputs, whatever they are called.
//!
//! Values that are the default of their key do not enter, so a key that a later version adds leaves ids as they are. Of the tiers of a
//! sweep those enter that are there at the point, by their place among these.

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64;

use super::algorithm::{BY_DIMENSION, Written, is_algorithm};
use super::inputs::Inputs;
use super::key::{
    DIM_KEYS, DIMS_FROM, Default, Id, KEYS, Key, Kind, NAMES_FROM, OFFLOADS, TIER_KEYS, TIERS_FROM, TierId, tier_slot,
};
use super::sizes::is_sizes;
use crate::system::MAX_DIMS;
use crate::system::memory::MAX_TIERS;
use crate::units::{index, real, whole};

/// Version of the canonical form that ids are made from.
const ID_VERSION: u64 = 1;

/// Keys whose default is the value of another: then they do not enter ids, as when there were none of them.
const FOLLOWERS: [(Id, Id); 2] = [(Id::ValueDim, Id::HeadDim), (Id::PortedAttention, Id::AttentionEfficiency)];

/// What optimizer states are made of: see [`is_of_states`].
const OF_STATES: [Id; 3] = [Id::OptimizerBytes, Id::MasterBytes, Id::MomentBytes];

/// Whether a value says something of an optimizer's states. Those of Adam are one number, 12 B a parameter by default, and its
/// parts say nothing more: ids are as when there was no other optimizer.
fn is_of_states(inputs: &Inputs, slot: usize, value: f64) -> bool {
    const USUAL: f64 = 12.0;
    let is_adam = inputs.key(Id::Optimizer) == 0.0;
    match slot {
        _ if slot == Id::OptimizerBytes as usize => {
            if is_adam {
                value != USUAL
            } else {
                inputs.is_written(Id::OptimizerBytes)
            }
        }
        _ if OF_STATES.iter().any(|&id| slot == id as usize) => !is_adam,
        _ => true,
    }
}

/// The keys that name a tier.
const USERS: [Id; OFFLOADS.len() + 1] = [Id::RemoteMemory, OFFLOADS[0], OFFLOADS[1], OFFLOADS[2]];

/// Whether a tier is named in a slot.
fn names_tier(slot: usize) -> bool {
    KEYS.get(slot).is_some_and(|key| key.kind == Kind::Tier)
}

/// Whether a point has a tier of the sweep.
fn is_there(inputs: &Inputs, tier: usize) -> bool {
    !inputs.tier(tier, TierId::Capacity).is_nan()
}

/// What a key says that names a tier: its place among those that the point has.
fn named(inputs: &Inputs, tier: f64) -> f64 {
    if tier >= 0.0 { real(own_place(inputs, index(whole(tier))) as u64) } else { tier }
}

/// The slots of a tier of the sweep.
fn tier_slots(tier: usize) -> Range<usize> {
    let first = TIERS_FROM + tier * TIER_KEYS.len();
    first..first + TIER_KEYS.len()
}

/// The place of a tier among those that the point has.
fn own_place(inputs: &Inputs, tier: usize) -> usize {
    (0..tier).filter(|&other| is_there(inputs, other)).count()
}

/// Adds what a slot says of a tier.
fn say_of_tier(inputs: &Inputs, slot: usize, form: &mut Vec<u8>) {
    let tier = (slot - TIERS_FROM) / TIER_KEYS.len();
    say_tier(inputs, tier, slot..slot + 1, form);
}

/// Adds what some slots say of a tier that the point has. Of one that holds nothing of the job it counts that it is there, its price,
/// and what an expression reads: another of its values would have been tried in place of this one.
fn say_tier(inputs: &Inputs, tier: usize, slots: Range<usize>, form: &mut Vec<u8>) {
    if !is_there(inputs, tier) {
        return;
    }
    let (tags, moved) = (tags(), (tier - own_place(inputs, tier)) * TIER_KEYS.len());
    let is_used = USERS.iter().any(|&user| inputs.key(user) == real(tier as u64));
    for slot in slots.filter(|&slot| tags[slot].0 != 0) {
        let tagged = tags[slot - moved];
        if is_used || slot == tier_slot(tier, TierId::Price) || inputs.is_read(slot) {
            put(tagged, inputs.get(slot), form);
        } else if slot == tier_slot(tier, TierId::Capacity) {
            put(tagged, 0.0, form);
        }
    }
}

/// The canonical form of the points of a sweep: what counts of each slot, in the order of slots.
#[derive(Debug, Clone)]
pub struct Canonical(Vec<Part>);

/// A part of the canonical form.
#[derive(Debug, Clone)]
enum Part {
    /// What is the same at all points.
    Same(Vec<u8>),
    /// What a slot says, by the hash of its key and its default.
    Slot(usize, u64, f64),
    /// The same of a slot in whose saying no other has a part.
    Free(usize, u64, f64),
    /// What a slot says that names a tier.
    Names(usize, u64, f64),
    /// All slots of a tier that comes and goes, or is used and is not.
    Tier(usize),
}

impl Canonical {
    /// That of a sweep of which this is one point, and where these slots vary from point to point.
    pub fn of(inputs: &Inputs, varies: impl Fn(usize) -> bool) -> Self {
        let mut parts = Vec::new();
        let mut same = Vec::new();
        // Which tiers a point has, and which of them it uses, decides what any of them says.
        let is_in_turn = |tier: usize| varies(tier_slot(tier, TierId::Capacity));
        let in_turn = (0..MAX_TIERS).any(is_in_turn) || USERS.iter().any(|&user| varies(user as usize));
        for (slot, (tag, default)) in tags().iter().copied().enumerate().filter(|&(_, (tag, _))| tag != 0) {
            let judge = judge(slot);
            let of_tier = slot.checked_sub(TIERS_FROM).map(|of_tiers| of_tiers / TIER_KEYS.len());
            let moves = of_tier.is_some_and(|tier| in_turn && (is_there(inputs, tier) || is_in_turn(tier)));
            if let Some(tier) = of_tier.filter(|_| moves) {
                // All slots of a tier at once, with its first.
                let slots = tier_slots(tier);
                if slot == slots.start {
                    parts.extend([Part::Same(std::mem::take(&mut same)), Part::Tier(tier)]);
                }
            } else if varies(slot) || judge.is_some_and(|judge| varies(judge as usize)) {
                let is_plain = !is_algorithm(slot) && !is_sizes(slot) && !names_tier(slot) && slot < DIMS_FROM;
                let is_free = judge.is_none() && is_plain;
                let said = match is_free {
                    true => Part::Free(slot, tag, default),
                    false if names_tier(slot) && judge.is_none() => Part::Names(slot, tag, default),
                    false => Part::Slot(slot, tag, default),
                };
                parts.extend([Part::Same(std::mem::take(&mut same)), said]);
            } else {
                say(inputs, (slot, tag, default), &mut same);
            }
        }
        parts.push(Part::Same(same));
        Self(parts)
    }

    /// The id of a point: see [`id`].
    pub fn id(&self, inputs: &Inputs, form: &mut Vec<u8>) -> u64 {
        form.clear();
        form.extend_from_slice(&ID_VERSION.to_le_bytes());
        for part in &self.0 {
            match part {
                Part::Same(bytes) => form.extend_from_slice(bytes),
                Part::Slot(slot, tag, default) => say(inputs, (*slot, *tag, *default), form),
                Part::Names(slot, tag, default) => put((*tag, *default), named(inputs, inputs.get(*slot)), form),
                Part::Tier(tier) => say_tier(inputs, *tier, tier_slots(*tier), form),
                Part::Free(slot, tag, default) => put((*tag, *default), inputs.get(*slot), form),
            }
        }
        // Of a list that does not fit it counts how long it is.
        if let Some(count) = inputs.by_dimension().filter(|&count| count != inputs.dim_count()) {
            form.extend_from_slice(BY_DIMENSION.as_bytes());
            form.extend_from_slice(&(count as u64).to_le_bytes());
        }
        xxh3_64(form)
    }
}

/// Adds what a slot says of a point, if it says anything.
fn say(inputs: &Inputs, (slot, tag, default): (usize, u64, f64), form: &mut Vec<u8>) {
    if slot >= TIERS_FROM {
        return say_of_tier(inputs, slot, form);
    }
    let value = inputs.get(slot);
    let value = if names_tier(slot) { named(inputs, value) } else { value };
    // A dimension that another alternative has.
    let is_there = slot < DIMS_FROM + inputs.dim_count() * DIM_KEYS.len();
    // What follows another key and says nothing else.
    let follows = || FOLLOWERS.iter().any(|&(id, first)| slot == id as usize && value == inputs.key(first));
    // What a list sets stands in its dimensions.
    let is_list = || is_algorithm(slot) && Written::of(value).and_then(Written::name).is_some();
    let counts = || !is_list() && !follows() && is_of_states(inputs, slot, value);
    if !is_there || !counts() {
        return;
    }
    if !is_sizes(slot) {
        put((tag, default), value, form);
    } else if !value.is_nan() && value.to_bits() != default.to_bits() {
        // Of sizes it counts what they are, not by which number they go.
        form.extend_from_slice(&tag.to_le_bytes());
        form.extend(inputs.sizes(slot).iter().flat_map(|size| size.to_le_bytes()));
    }
}

/// Adds a value that counts, if there is one and it is not the default.
fn put((tag, default): (u64, f64), value: f64, form: &mut Vec<u8>) {
    if !value.is_nan() && value.to_bits() != default.to_bits() {
        let both = u128::from(tag) | u128::from(value.to_bits()) << u64::BITS;
        form.extend_from_slice(&both.to_le_bytes());
    }
}

/// The key by which it is judged whether another counts.
fn judge(slot: usize) -> Option<Id> {
    let leader = FOLLOWERS.into_iter().find(|follower| slot == follower.0 as usize).map(|follower| follower.1);
    leader.or_else(|| OF_STATES.iter().any(|&id| slot == id as usize).then_some(Id::Optimizer))
}

/// The id of a point: a hash of its inputs as they count, whatever they are called and whichever of them are axes.
///
/// `form` is room for the canonical form, to be used again from point to point.
#[must_use]
pub fn id(inputs: &Inputs, form: &mut Vec<u8>) -> u64 {
    Canonical::of(inputs, |_| false).id(inputs, form)
}

/// For every slot the hash of its key, 0 if it does not enter, and its default.
fn tags() -> &'static [(u64, f64); NAMES_FROM] {
    static TAGS: std::sync::OnceLock<[(u64, f64); NAMES_FROM]> = std::sync::OnceLock::new();
    TAGS.get_or_init(|| {
        let default = |key: &Key| match key.default {
            Default::Is(value) => value,
            _ => f64::NAN,
        };
        // Paths do not enter: what stands there does.
        let of = |prefix: &str, key: &Key| match key.kind {
            Kind::Path => (0, f64::NAN),
            _ => (xxh3_64(format!("{prefix}{}", key.path).as_bytes()), default(key)),
        };
        let mut tags = [(0, f64::NAN); NAMES_FROM];
        let keys = KEYS.iter().map(|key| of("", key)).enumerate();
        let dims = (0..MAX_DIMS).flat_map(|k| DIM_KEYS.iter().map(move |key| of(&format!("dim{k}."), key)));
        let tiers = (0..MAX_TIERS).flat_map(|k| TIER_KEYS.iter().map(move |key| of(&format!("tier{k}."), key)));
        for (slot, tag) in keys.chain((DIMS_FROM..).zip(dims)).chain((TIERS_FROM..).zip(tiers)) {
            tags[slot] = tag;
        }
        tags
    })
}

/// How many characters an id has.
pub const ID_LEN: usize = 13;
/// Digits without the ones that are read as others: 0 and O, 1 and I and L.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// An id as text: 13 characters, of which any unique prefix names the point.
#[must_use]
pub fn id_text(id: u64) -> [u8; ID_LEN] {
    let mut text = [b'0'; ID_LEN];
    let mut rest = id;
    for place in text.iter_mut().rev() {
        *place = DIGITS[index(rest % 32)];
        rest /= 32;
    }
    text
}
