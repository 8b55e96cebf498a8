//! Diagnostics: what is wrong in a file, where, and what to write instead. All are gathered before anything runs.

/// Which text a place is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub enum Source {
    /// The sweep file.
    #[default]
    File,
    /// The n-th `-s key=value` of the command line.
    Override(u16),
    /// The n-th of several files that are read together.
    Input(u16),
    /// A preset of ours; an error there is our mistake.
    Preset,
}

/// A place in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Place {
    /// Which text.
    pub source: Source,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// How many characters it covers.
    pub length: u32,
}

/// Whether something stops the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing runs.
    Error,
    /// Worth knowing.
    Caution,
}

/// One remark on a file. Messages are lower case, without a full stop, the value in backticks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Whether it stops the run.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// Where; none if it concerns the whole.
    pub place: Option<Place>,
    /// What to do about it.
    pub help: Option<String>,
}

impl Diagnostic {
    /// An error without a place.
    #[must_use]
    pub fn error(message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, message: message.into(), place: None, help: None }
    }

    /// A caution without a place.
    #[must_use]
    pub fn caution(message: impl Into<String>) -> Self {
        Self { severity: Severity::Caution, ..Self::error(message) }
    }

    /// With its place.
    #[must_use]
    pub const fn at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    /// With what to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// The known word that is nearest to an unknown one, if one is near.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const NEAR: f64 = 0.8;
    let lower = word.to_lowercase();
    let scored = known.into_iter().map(|other| (strsim::jaro_winkler(&lower, &other.to_lowercase()), other));
    let best = scored.fold(None, |best: Option<(f64, &str)>, next| match best {
        Some(best) if best.0 >= next.0 => Some(best),
        _ => Some(next),
    });
    best.filter(|best| best.0 >= NEAR).map(|best| best.1)
}

/// Help for an unknown word: the nearest known one, else all of them if they are few.
#[must_use]
pub fn suggest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    const FEW: usize = 12;
    let known: Vec<_> = known.into_iter().collect();
    if let Some(near) = nearest(word, known.iter().copied()) {
        return Some(format!("did you mean `{near}`?"));
    }
    match known.len() {
        0 => None,
        1..=FEW => Some(format!("one of {}", quoted(&known))),
        _ => Some(format!("one of {}, ... (`starsweep list` says where all are)", quoted(&known[..FEW]))),
    }
}

/// Words in backticks, with commas.
#[must_use]
pub fn quoted(words: &[&str]) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    words.join(", ")
}
