//! A named expression of the file: a `where`, a `require`, a `derive`.

use super::diagnostic::Place;
use super::expression::Expression;

/// A named expression.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Its name.
    pub name: String,
    /// As written, with single blanks.
    pub text: String,
    /// Where it stands.
    pub place: Place,
    /// Compiled.
    pub expression: Expression,
}
