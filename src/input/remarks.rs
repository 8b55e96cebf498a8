//! Remarks on several files that are read together: what is to be said, and the texts that it is about.

use super::diagnostic::{Diagnostic, Place, Severity, Source};

/// A file that was read as a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// Its name, as the user gave it.
    pub name: String,
    /// What stands in it.
    pub content: String,
}

/// What is to be said of several files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remarks {
    /// The files: [`Source::Input`] is a place in this list.
    pub texts: Vec<Text>,
    /// What is to be said, in the order in which it was found.
    pub found: Vec<Diagnostic>,
}

impl Remarks {
    /// Adds a text, and says under which number places name it.
    pub fn add(&mut self, name: String, content: String) -> Source {
        let source = Source::Input(u16::try_from(self.texts.len()).unwrap_or(u16::MAX));
        self.texts.push(Text { name, content });
        source
    }

    /// Adds a remark.
    pub fn say(&mut self, diagnostic: Diagnostic) {
        self.found.push(diagnostic);
    }

    /// How many errors there are.
    #[must_use]
    pub fn errors(&self) -> usize {
        self.found.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count()
    }

    /// The text in which a place is, if it is in one of these.
    #[must_use]
    pub fn text(&self, place: Place) -> Option<&Text> {
        match place.source {
            Source::Input(k) => self.texts.get(usize::from(k)),
            Source::File | Source::Override(_) | Source::Preset => None,
        }
    }

    /// Adds the remarks on other files behind these.
    pub fn append(&mut self, other: Self) {
        let before = u16::try_from(self.texts.len()).unwrap_or(u16::MAX);
        self.texts.extend(other.texts);
        self.found.extend(other.found.into_iter().map(|mut diagnostic| {
            if let Some(Place { source: Source::Input(k), .. }) = &mut diagnostic.place {
                *k = k.saturating_add(before);
            }
            diagnostic
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appended_remarks_keep_their_texts() {
        let remark = |name: &str| {
            let mut remarks = Remarks::default();
            let source = remarks.add(name.to_owned(), "text".to_owned());
            remarks.say(Diagnostic::error(name).at(Place { source, line: 1, column: 1, length: 1 }));
            remarks
        };
        let mut all = remark("a");
        all.append(remark("b"));
        let names = all.found.iter().map(|it| all.text(it.place.expect("a place")).expect("a text").name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(all.errors(), 2);
    }
}
