//! Constants that a fit moves: a key of the presets that are named, or of every run.

use itertools::Itertools as _;

use crate::input::diagnostic::{nearest, quoted};
use crate::input::tree::{Node, Value, parse};
use crate::input::{Diagnostic, Remarks};
use crate::run::validate::question::Question;
use crate::sweep::key::{DIM_KEYS, DIMS_FROM, KEYS, Key, Kind};
use crate::sweep::{leaf, preset};
use crate::system::MAX_DIMS;

/// How far a value may go before the fit weighs it, where nothing is said: the standard deviation of its logarithm.
const SPREAD: f64 = 0.35;
/// The kinds of presets whose keys may be constants, and the section of a sweep that takes each.
const KINDS: [(&str, &str); 4] =
    [("npu", "cluster.npu"), ("link", "cluster.network."), ("precision", "precision"), ("software", "software")];

/// One constant: one value for all runs that use one of its presets.
#[derive(Debug, Clone, PartialEq)]
pub struct Constant {
    /// The kind of its presets; none for a key of every run.
    pub kind: Option<&'static str>,
    /// Its presets.
    pub presets: Vec<String>,
    /// The key: the last part of its path for a preset's, else the whole path.
    pub key: String,
    /// What it is taken to be before anything is measured; none for the value in force.
    pub prior: Option<f64>,
    /// The standard deviation of its logarithm before anything is measured.
    pub spread: f64,
}

/// The constants of a fit.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Constants {
    /// The constants, in the order of the file.
    pub list: Vec<Constant>,
    /// Groups that never take part.
    pub leave_out: Vec<String>,
}

impl Constant {
    /// What it is called: its key, and of what.
    #[must_use]
    pub fn name(&self) -> String {
        if self.presets.is_empty() { self.key.clone() } else { format!("{} of {}", self.key, self.presets.join(", ")) }
    }

    /// Its key in the language; none if the language has no such key.
    #[must_use]
    pub fn meaning(&self) -> Option<&'static Key> {
        match self.section() {
            None => KEYS.iter().find(|key| key.path == self.key),
            Some(section) if section.ends_with('.') => DIM_KEYS.iter().find(|key| key.path == self.key),
            Some(section) => KEYS.iter().find(|key| key.path == format!("{section}.{}", self.key)),
        }
    }

    fn section(&self) -> Option<&'static str> {
        let kind = self.kind?;
        KINDS.iter().find(|known| known.0 == kind).map(|known| known.1)
    }

    /// The slots of its value at a point; none if the point does not have it.
    #[must_use]
    pub fn slots(&self, question: &Question) -> Vec<usize> {
        let of_key = |path: &str| KEYS.iter().position(|key| key.path == path);
        let Some(section) = self.section() else { return of_key(&self.key).into_iter().collect() };
        let is_ours = |used: &&(String, String)| used.0.starts_with(section) && self.presets.contains(&used.1);
        let used = question.presets.iter().filter(is_ours);
        used.filter_map(|(path, _)| match path.strip_prefix(section).filter(|_| section.ends_with('.')) {
            Some(dim) => {
                let dim = dim.parse().ok().filter(|&dim: &usize| dim < MAX_DIMS)?;
                let field = DIM_KEYS.iter().position(|key| key.path == self.key)?;
                Some(DIMS_FROM + dim * DIM_KEYS.len() + field)
            }
            None => of_key(&format!("{section}.{}", self.key)),
        })
        .collect()
    }

    /// The value of a logarithm: a share is at most 1.
    #[must_use]
    pub fn value(&self, logarithm: f64) -> f64 {
        let is_share = self.meaning().is_some_and(|key| key.kind == Kind::Share);
        if is_share { logarithm.exp().min(1.0) } else { logarithm.exp() }
    }
}

/// What a user's own fit may move, the first first: of each kind every preset that the runs use.
const USUAL: [(&str, &str); 4] =
    [("npu", "gemm_efficiency"), ("software", "step_factor"), ("link", "efficiency"), ("software", "host_time")];
/// How many runs one constant takes.
const RUNS_OF_ONE: usize = 3;

/// The constants of some runs where no file names any: the efficiency of matrix products of their NPUs, what their software
/// does to a whole step, the efficiency of their links, its time on the host; one for every three runs or part of three.
#[must_use]
pub fn usual(questions: &[&Question]) -> Constants {
    let most = questions.len().div_ceil(RUNS_OF_ONE);
    let of_kind = |(kind, key): (&'static str, &'static str)| {
        let section = KINDS.iter().find(|known| known.0 == kind).map_or("", |known| known.1);
        let used = questions.iter().flat_map(|question| &question.presets);
        let names: Vec<String> =
            used.filter(|used| used.0.starts_with(section)).map(|used| used.1.clone()).unique().collect();
        names.into_iter().map(move |name| Constant {
            kind: Some(kind),
            presets: vec![name],
            key: key.to_owned(),
            prior: None,
            spread: SPREAD,
        })
    };
    let all = USUAL.into_iter().flat_map(of_kind).filter(|constant| constant.meaning().is_some());
    Constants { list: all.take(most).collect(), leave_out: Vec::new() }
}

/// Reads the constants of a file.
///
/// # Errors
/// Every mistake with its place.
pub fn read(name: &str, text: &str) -> Result<Constants, Remarks> {
    let mut remarks = Remarks::default();
    let source = remarks.add(name.to_owned(), text.to_owned());
    let mut found = Constants::default();
    match parse(text, source) {
        Ok(root) => found.of_file(&root, &mut remarks),
        Err(error) => remarks.say(error),
    }
    if remarks.errors() == 0 { Ok(found) } else { Err(remarks) }
}

const SHAPE: &str = "write `constants: [{key: gemm_efficiency, npu: [A100-SXM-80GB]}]`";

impl Constants {
    fn of_file(&mut self, root: &Node, remarks: &mut Remarks) {
        let words = ["leave_out", "constants"];
        if let Value::Map(entries) = &root.value {
            for entry in entries.iter().filter(|entry| !words.contains(&entry.key.as_str())) {
                let message = format!("a file of constants has no `{}`", entry.key);
                remarks.say(Diagnostic::error(message).at(entry.place).help(SHAPE));
            }
        }
        self.leave_out = root.get("leave_out").map_or_else(Vec::new, |entry| names(&entry.node, remarks));
        match root.get("constants").map(|entry| &entry.node.value) {
            Some(Value::List(items)) => {
                self.list = items.iter().filter_map(|item| constant(item, remarks)).collect();
            }
            _ => remarks.say(Diagnostic::error("the file names no constants").at(root.place).help(SHAPE)),
        }
    }
}

/// One constant of a file.
fn constant(node: &Node, remarks: &mut Remarks) -> Option<Constant> {
    let mut error = |place, message: String, help: &str| {
        remarks.say(Diagnostic::error(message).at(place).help(help));
        None
    };
    let Value::Map(entries) = &node.value else {
        return error(node.place, format!("a constant is a mapping, not {}", node.kind()), SHAPE);
    };
    let known: Vec<&str> = KINDS.iter().map(|kind| kind.0).chain(["key", "prior", "spread"]).collect();
    if let Some(entry) = entries.iter().find(|entry| !known.contains(&entry.key.as_str())) {
        let help = format!("one of {}", quoted(&known));
        return error(entry.place, format!("a constant has no `{}`", entry.key), &help);
    }
    let Some(key) = node.get("key").and_then(|entry| entry.node.scalar()) else {
        return error(node.place, "a constant has no `key`".to_owned(), SHAPE);
    };
    let spread = match node.get("spread") {
        None => SPREAD,
        Some(entry) => match leaf::scalar(&SPREAD_KEY, &entry.node, &[]) {
            Ok((spread, _)) => spread,
            Err(diagnostic) => {
                remarks.say(diagnostic);
                return None;
            }
        },
    };
    let of_kind = KINDS.iter().find_map(|kind| Some((kind.0, kind.1, node.get(kind.0)?)));
    let presets = of_kind.map_or_else(Vec::new, |(.., entry)| names(&entry.node, remarks));
    if let Some((kind, section, entry)) = of_kind {
        let known = preset::at(&format!("{section}{}", if section.ends_with('.') { "0" } else { "" }));
        for name in &presets {
            if known.is_none_or(|known| known.get(name).is_none()) {
                let all = known.into_iter().flat_map(|known| &known.presets).map(|preset| preset.key.as_str());
                let near = nearest(name, all).map(|near| format!("did you mean `{near}`?"));
                let help = near.unwrap_or_else(|| format!("`starsweep list {kind}s` has all"));
                let message = format!("`{kind}` knows no `{name}`");
                remarks.say(Diagnostic::error(message).at(entry.node.place).help(help));
            }
        }
    }
    let mut constant = Constant { kind: of_kind.map(|kind| kind.0), presets, key, prior: None, spread };
    let Some(meaning) = constant.meaning().filter(|key| is_continuous(key)) else {
        let place = node.get("key").map_or(node.place, |entry| entry.node.place);
        let help = "a constant is a key with a continuous value, by its path where no preset is named";
        remarks.say(Diagnostic::error(format!("`{}` is no constant", constant.key)).at(place).help(help));
        return None;
    };
    if let Some(entry) = node.get("prior") {
        match leaf::scalar(meaning, &entry.node, &[]) {
            Ok((value, _)) if value > 0.0 => constant.prior = Some(value),
            Ok(_) => {
                let message = "no factor moves a prior of 0";
                remarks.say(Diagnostic::error(message).at(entry.node.place).help("write a value above 0"));
                return None;
            }
            Err(diagnostic) => {
                remarks.say(diagnostic);
                return None;
            }
        }
    }
    Some(constant)
}

/// How a spread is written.
const SPREAD_KEY: Key = Key {
    path: "spread",
    kind: Kind::Share,
    default: crate::sweep::key::Default::Is(SPREAD),
    column: None,
    doc: "how far a constant may go from its value in force",
};

const fn is_continuous(key: &Key) -> bool {
    matches!(key.kind, Kind::Quantity { .. } | Kind::Share)
}

/// A name, or a list of names.
fn names(node: &Node, remarks: &mut Remarks) -> Vec<String> {
    let items = match &node.value {
        Value::List(items) => items.as_slice(),
        _ => std::slice::from_ref(node),
    };
    let mut found = Vec::new();
    for item in items {
        match &item.value {
            Value::Text(name) => found.push(name.clone()),
            _ => remarks.say(Diagnostic::error(format!("{} is no name", item.kind())).at(item.place).help(SHAPE)),
        }
    }
    found
}
