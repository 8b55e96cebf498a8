//! The algorithm of collectives: a word, `direct(4)` with its window, one for each dimension, or a trace of its own.

use super::axis::{Alternative, Axis, Setting};
use super::key::{ALGORITHMS, DIM_KEYS, DIMS_FROM, DimId, EACH, Id, Key, Kind, Slot, TIERS_FROM, dim_slot};
use super::leaf;
use super::walk::{Frame, Walker, twice};
use crate::input::diagnostic::{Diagnostic, Place, quoted};
use crate::input::tree::{Node, Value};
use crate::system::MAX_DIMS;
use crate::system::collective::Algorithm;
use crate::units::{index, narrow, real, whole};

/// The key of the mapping of a list with an algorithm for each dimension.
pub const BY_DIMENSION: &str = "by_dimension";

/// The key of the path of a collective that is a trace of its own.
pub const CHAKRA: &str = "chakra";

/// What stands in the slot of an algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Written {
    /// The place of a word of [`ALGORITHMS`].
    Word(usize),
    /// One for each dimension, in whose slots they stand; the number of the name of all of them together.
    ByDimension(usize),
    /// A trace of its own; the number of the name that is its path.
    Chakra(usize),
}

impl Written {
    /// What a number stands for; none if there is no number.
    #[must_use]
    pub fn of(number: f64) -> Option<Self> {
        let place = index(whole(number));
        match place.checked_sub(ALGORITHMS.len()) {
            _ if number.is_nan() => None,
            _ if number < 0.0 => Some(Self::Chakra(index(whole(-number)) - 1)),
            None => Some(Self::Word(place)),
            Some(name) => Some(Self::ByDimension(name)),
        }
    }

    /// Its number.
    #[must_use]
    pub fn number(self) -> f64 {
        match self {
            Self::Word(_) | Self::ByDimension(_) => real(self.place() as u64),
            Self::Chakra(name) => -real(name as u64 + 1),
        }
    }

    /// What a name stands for that an algorithm has.
    #[must_use]
    pub fn of_name(name: &str, number: usize) -> Self {
        let is_word = |part: &str| with_window(part).is_some() || ALGORITHMS.contains(&part);
        if name.split('-').all(is_word) { Self::ByDimension(number) } else { Self::Chakra(number) }
    }

    /// Its place in a list of all words and, behind them, all names.
    #[must_use]
    pub const fn place(self) -> usize {
        match self {
            Self::Word(word) => word,
            Self::ByDimension(name) | Self::Chakra(name) => ALGORITHMS.len() + name,
        }
    }

    /// The number of its name, if it has one.
    #[must_use]
    pub const fn name(self) -> Option<usize> {
        match self {
            Self::Word(_) => None,
            Self::ByDimension(name) | Self::Chakra(name) => Some(name),
        }
    }

    /// As people read it.
    #[must_use]
    pub fn text(self, names: &[String]) -> Option<&str> {
        match self {
            Self::Word(word) => ALGORITHMS.get(word).copied(),
            Self::ByDimension(name) | Self::Chakra(name) => names.get(name).map(String::as_str),
        }
    }
}

/// Every text that an algorithm may be, in the order of [`Written::place`].
#[must_use]
pub fn texts(names: &[String]) -> Vec<String> {
    ALGORITHMS.iter().map(|&word| word.to_owned()).chain(names.iter().cloned()).collect()
}

/// The name of the path of a trace, if that stands in a slot.
#[must_use]
pub fn trace_of(slot: usize, value: f64) -> Option<usize> {
    match Written::of(value)? {
        Written::Chakra(name) if is_algorithm(slot) => Some(name),
        _ => None,
    }
}

/// The key as an example of a list.
#[must_use]
pub fn example() -> String {
    format!("`{{{BY_DIMENSION}: [ring, direct(4)]}}`")
}

/// One value as it is read: its label, and what it sets.
type Read = (String, Vec<(Slot, f64)>);

/// The slot of the window that holds where an algorithm does, if one holds there alone.
fn window_slot(slot: Slot) -> Option<Slot> {
    let slot = slot as usize;
    let found = if slot == Id::Algorithm as usize {
        Id::Window as usize
    } else if (DIMS_FROM..TIERS_FROM).contains(&slot) {
        slot - DimId::Algorithm as usize + DimId::Window as usize
    } else {
        return None;
    };
    Some(narrow(found as u64))
}

/// An algorithm with its window, `direct(4)`: none if the text has no such form.
fn with_window(text: &str) -> Option<(&str, Option<u32>)> {
    let (name, window) = text.strip_suffix(')')?.split_once('(')?;
    Some((name.trim(), window.trim().parse().ok().filter(|&window| window > 0)))
}

/// A word, or an algorithm with its window: what it sets in two slots.
fn word(key: &Key, slot: Slot, node: &Node) -> Result<Vec<(Slot, f64)>, Diagnostic> {
    let direct = Algorithm::Direct.name();
    let text = node.scalar().unwrap_or_default();
    let Some((name, window)) = with_window(&text) else {
        let digits = |rest: &str| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit());
        return match leaf::scalar(key, node, &[]) {
            Ok((word, _)) => Ok(vec![(slot, word)]),
            // The reference's notation.
            Err(error) => Err(match text.strip_prefix(direct).filter(|rest| digits(rest)) {
                Some(window) => error.help(format!("write `{direct}({window})`")),
                None => error,
            }),
        };
    };
    let refuse = |message: String, help: String| Err(Diagnostic::error(message).at(node.place).help(help));
    match (window, window_slot(slot)) {
        _ if name != direct => {
            refuse(format!("`{text}` is no algorithm: only `{direct}` has a window"), format!("write `{name}`"))
        }
        (None, _) => refuse(
            format!("`{text}` has no window"),
            format!("write how many messages are under way at once: `{direct}(4)`"),
        ),
        (Some(window), None) => refuse(
            format!("`{}: {text}` has a window for one collective, and it holds for all", key.name()),
            format!("write `{}: {direct}` and `window: {window}`", key.name()),
        ),
        (Some(window), Some(place)) => {
            let word = Algorithm::Direct as usize + 1;
            Ok(vec![(slot, Written::Word(word).number()), (place, f64::from(window))])
        }
    }
}

impl Walker {
    /// One algorithm, or a list of them.
    pub(super) fn algorithms(&mut self, name: &str, slot: Slot, key: &'static Key, node: &Node, frame: &mut Frame) {
        let items = match &node.value {
            Value::List(items) if items.is_empty() => return self.complain(super::walk::empty(name, node.place)),
            Value::List(items) => items.as_slice(),
            _ => std::slice::from_ref(node),
        };
        let complaints = self.diagnostics.len();
        let mut found: Vec<Read> = Vec::new();
        for item in items {
            match self.algorithm_of(slot, key, item) {
                Ok((label, _)) if found.iter().any(|known| known.0 == label) => {
                    self.complain(twice(name, &label, item.place));
                }
                Ok(read) => {
                    self.written.extend(read.1.iter().map(|setting| setting.0));
                    found.push(read);
                }
                Err(diagnostic) => self.complain(diagnostic),
            }
        }
        if complaints < self.diagnostics.len() {
            return;
        }
        if matches!(node.value, Value::List(_)) {
            let alternative = |(label, settings): Read| Alternative {
                label,
                settings: settings.into_iter().map(|(slot, value)| Setting { slot, value }).collect(),
                ..Alternative::default()
            };
            frame.axes.push(Axis::new(name, node.place, found.into_iter().map(alternative).collect()));
        } else {
            let settings = found.into_iter().flat_map(|read| read.1);
            frame.settings.extend(settings.map(|(slot, value)| (slot, value, node.place)));
        }
    }

    /// One algorithm: what it is called, and what it sets.
    fn algorithm_of(&mut self, slot: Slot, key: &Key, node: &Node) -> Result<Read, Diagnostic> {
        let Value::Map(entries) = &node.value else {
            if matches!(node.value, Value::List(_)) {
                let message = format!("a list in a list of `{}`", key.name());
                let help = format!("write {} for an algorithm in each dimension", example());
                return Err(Diagnostic::error(message).at(node.place).help(help));
            }
            return Ok((node.scalar().unwrap_or_default(), word(key, slot, node)?));
        };
        let name = key.name();
        match entries.as_slice() {
            [entry] if entry.key == BY_DIMENSION && slot as usize == Id::Algorithm as usize => {
                self.by_dimension(key, &entry.node)
            }
            [entry] if entry.key == BY_DIMENSION => {
                let message = format!("`{name}` takes no `{BY_DIMENSION}`: that stands in `algorithm`");
                let help = format!("write `algorithm: {{{BY_DIMENSION}: [ring, direct]}}`, or one of {}", words());
                Err(Diagnostic::error(message).at(entry.place).help(help))
            }
            [entry] if entry.key == CHAKRA && is_algorithm(slot as usize) => {
                let Value::Text(path) = &entry.node.value else {
                    let message = format!("`{CHAKRA}` takes the path of a trace, not {}", entry.node.kind());
                    let help = format!("write `{name}: {{{CHAKRA}: mine/allreduce}}` for `mine/allreduce.0.et`, ...");
                    return Err(Diagnostic::error(message).at(entry.node.place).help(help));
                };
                let number = Written::Chakra(index(whole(self.intern(path)))).number();
                Ok((path.clone(), vec![(slot, number)]))
            }
            _ => {
                let message = format!("`{name}` takes a word, {} or `{{{CHAKRA}: PATH}}`", example());
                Err(Diagnostic::error(message).at(node.place).help(format!("the words are {}", words())))
            }
        }
    }

    /// An algorithm for each dimension, innermost first.
    fn by_dimension(&mut self, key: &Key, node: &Node) -> Result<Read, Diagnostic> {
        let Value::List(items) = &node.value else {
            let message = format!("`{BY_DIMENSION}` takes a list, not {}", node.kind());
            let help = format!("write one algorithm for each dimension, innermost first: {}", example());
            return Err(Diagnostic::error(message).at(node.place).help(help));
        };
        if items.is_empty() || items.len() > MAX_DIMS {
            let message = format!("`{BY_DIMENSION}` has {} algorithms", items.len());
            let help = format!("a network has 1 to {MAX_DIMS} dimensions, and each one algorithm");
            return Err(Diagnostic::error(message).at(node.place).help(help));
        }
        let (mut labels, mut settings) = (Vec::new(), Vec::new());
        for (dim, item) in items.iter().enumerate() {
            settings.extend(word(key, narrow(dim_slot(dim, DimId::Algorithm) as u64), item)?);
            labels.push(item.scalar().unwrap_or_default().replace(' ', ""));
        }
        let label = labels.join("-");
        let name = index(whole(self.intern(&label)));
        settings.insert(0, (narrow(Id::Algorithm as u64), Written::ByDimension(name).number()));
        self.by_dimension.push((items.len(), node.place));
        Ok((label, settings))
    }

    /// Lists by dimension that fit no network, or stand beside what sets the same in all dimensions.
    pub(super) fn lists_that_fit_nothing(&mut self) {
        let each = DIMS_FROM + EACH * DIM_KEYS.len();
        let of_each = [DimId::Algorithm, DimId::Window].map(|id| (each + id as usize, DIM_KEYS[id as usize].path));
        let written = |slot: usize| self.written.contains(&narrow(slot as u64));
        let beside = of_each.into_iter().find(|of_each| written(of_each.0)).map(|of_each| of_each.1);
        let dims: Vec<usize> = self.shapes.iter().map(Vec::len).collect();
        let mut complaints: Vec<Diagnostic> = Vec::new();
        for &(count, place) in &self.by_dimension {
            if let Some(name) = beside {
                let message = format!("`{BY_DIMENSION}` stands beside `each_dimension.{name}`");
                complaints.push(Diagnostic::error(message).at(place).help("remove one of the two"));
            } else if !dims.is_empty() && !dims.contains(&count) && !self.is_unread("cluster.network") {
                complaints.push(no_such_network(count, &dims, place));
            }
        }
        self.diagnostics.append(&mut complaints);
    }
}

/// A list that is longer or shorter than any network.
fn no_such_network(count: usize, dims: &[usize], place: Place) -> Diagnostic {
    let plural = |count: usize, one: &str| if count == 1 { one.to_owned() } else { format!("{one}s") };
    let (least, most) = (dims.iter().min().copied().unwrap_or(0), dims.iter().max().copied().unwrap_or(0));
    let found = if least == most { least.to_string() } else { format!("{least} to {most}") };
    let (algorithms, dimensions) = (plural(count, "algorithm"), plural(most, "dimension"));
    let every = if dims.len() == 1 { "the network has" } else { "the networks have" };
    let message = format!("`{BY_DIMENSION}` has {count} {algorithms}, and {every} {found} {dimensions}");
    Diagnostic::error(message).at(place).help("write one algorithm for each dimension, innermost first")
}

/// The words of an algorithm, quoted.
fn words() -> String {
    quoted(&ALGORITHMS)
}

/// Whether a slot holds an algorithm that may be more than a word.
#[must_use]
pub fn is_algorithm(slot: usize) -> bool {
    super::key::key_of(slot).is_some_and(|key| matches!(key.kind, Kind::Algorithm))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_a_word_or_a_name() {
        for written in [
            Written::Word(0),
            Written::Word(ALGORITHMS.len() - 1),
            Written::ByDimension(0),
            Written::Chakra(0),
            Written::Chakra(7),
        ] {
            assert_eq!(Written::of(written.number()), Some(written));
        }
        assert_eq!(Written::of(f64::NAN), None);
        assert_eq!(Written::of_name("ring-direct(4)", 3), Written::ByDimension(3));
        assert_eq!(Written::of_name("mine/all-reduce", 3), Written::Chakra(3));
        let names = ["ring-ring".to_owned()];
        assert_eq!(Written::ByDimension(0).text(&names), Some("ring-ring"));
        assert_eq!(texts(&names)[Written::ByDimension(0).place()], "ring-ring");
    }

    #[test]
    fn a_window_stands_in_parentheses() {
        assert_eq!(with_window("direct(4)"), Some(("direct", Some(4))));
        assert_eq!(with_window("direct(0)"), Some(("direct", None)));
        assert_eq!(with_window("direct"), None);
    }
}
