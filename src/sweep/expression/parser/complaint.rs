//! Complaints: what is said of a text that is no expression, and what to write instead.

use super::super::lexer::{KEYWORDS, Token, TokenKind, bare_run, missing_operator};
use super::super::program::Binary;
use super::super::{ExpressionError, Kind, Span, quote};
use super::Parser;
use super::kinds::{Number, Operand, What};
use crate::units::Unit;

impl<'a> Parser<'a> {
    /// A part of the text in backticks, on one line, cut if it is long.
    pub(super) fn shown(&self, span: Span) -> String {
        quote(&self.text[span.start..span.end])
    }

    pub(super) fn mismatch(&self, operator: Binary, left: Operand<'a>, right: Operand<'a>) -> ExpressionError {
        let (first, second) = (left.kind().describe(), right.kind().describe());
        let verdict = match operator {
            Binary::Add => format!("and {second} cannot be added to it"),
            Binary::Subtract => format!("and {second} cannot be subtracted from it"),
            Binary::Remainder => format!("and has no remainder by {second}"),
            _ => format!("and cannot be compared with {second}"),
        };
        let message = format!("{} is {first} {verdict}", self.shown(left.span));
        let help = self.missing_unit(left, right).or_else(|| self.missing_unit(right, left));
        ExpressionError::new(left.span.to(right.span), message).help(help.unwrap_or_else(|| {
            match (left.what, right.what) {
                (What::Bool, _) | (_, What::Bool) => "a condition is compared with `true`, `false` or a condition",
                (What::Quoted(_) | What::Text(_), _) | (_, What::Quoted(_) | What::Text(_)) => {
                    "a text is compared with a text: write it in quotes"
                }
                _ => "both sides must measure the same: multiply or divide until they do",
            }
            .to_owned()
        }))
    }

    /// The help for a bare number that is joined with a value that has a unit.
    fn missing_unit(&self, bare: Operand<'a>, other: Operand<'a>) -> Option<String> {
        match (bare.what, other.what) {
            (What::Number(Number { unit: Unit::NONE, constant: Some(_) }), What::Number(Number { unit, .. }))
                if unit.example() != Unit::NONE.example() =>
            {
                Some(format!("give {} a unit, e.g. `{}`", self.shown(bare.span), unit.example()))
            }
            _ => None,
        }
    }

    pub(super) fn chained(&self, left: Span, middle: Span, operator: Binary, at: Span) -> ExpressionError {
        let (left, middle) = (&self.text[left.start..left.end], &self.text[middle.start..middle.end]);
        ExpressionError::new(at, "comparisons cannot be chained")
            .help(format!("write {}", quote(&format!("{left} and {middle} {} ...", operator.text()))))
    }

    pub(super) fn no_value(&self, token: Token<'a>) -> ExpressionError {
        let message = match token.kind {
            TokenKind::End => "a value is missing at the end".to_owned(),
            _ => format!("a value is missing before {}", self.shown(token.span)),
        };
        let help = match token.kind {
            TokenKind::Binary(Binary::Add) => "leave out the `+`",
            _ => "a value is a name, a number with its unit, or an expression in parentheses",
        };
        ExpressionError::new(token.span, message).help(help)
    }

    /// The error for a token that cannot follow a value.
    pub(super) fn unexpected_behind_value(&self, token: Token<'a>) -> ExpressionError {
        let error = |message: &str| ExpressionError::new(token.span, message);
        match token.kind {
            TokenKind::Close => error("`)` closes nothing").help("leave it out, or add a `(`"),
            TokenKind::Comma => {
                error("`,` separates the values of `min` and `max` only").help("join with `and` or `or`")
            }
            _ => missing_operator(self.shown(token.span).trim_matches('`'), token.span),
        }
    }

    pub(super) fn unknown_name(&self, name: &str, span: Span) -> ExpressionError {
        let error = ExpressionError::new(span, format!("unknown name {}", quote(name)));
        if let Some(advice) = self.scope.advice(name) {
            return error.help(advice);
        }
        let mut names = self.scope.names();
        let run = bare_run(&self.text[span.start..]);
        let owned = names.iter().find_map(|owner| match self.scope.name(owner) {
            Some((slot, Kind::Text)) => {
                self.scope.texts(slot).into_iter().find(|text| text == run || text == name).map(|text| (owner, text))
            }
            _ => None,
        });
        if let Some((owner, text)) = owned {
            return error.help(format!("it is a value of `{owner}`: write `{owner} == {text}`"));
        }
        if let Some(known) = names.iter().find(|known| known.contains('-') && run.starts_with(*known)) {
            return error.help(format!("did you mean `{known}`? put a blank before the `-` that follows it"));
        }
        if name.starts_with("dim.") {
            let fields: Vec<_> = names.iter().filter_map(|name| name.split_once('.')).map(|parts| parts.1).collect();
            names = fields
                .iter()
                .filter(|field| self.scope.dim_field(field).is_some())
                .map(|field| format!("dim.{field}"))
                .collect();
        }
        names.extend(KEYWORDS.iter().map(|keyword| keyword.0.to_owned()));
        error.help(did_you_mean(name, &names).unwrap_or_else(|| {
            "names are the keys, columns and derived values of the sweep; a text needs quotes or a `==` before it"
                .to_owned()
        }))
    }
}

/// The help that lists what a text can be.
pub(super) fn listed(texts: &[String]) -> String {
    const MOST: usize = 8;
    if texts.is_empty() {
        return "it has no texts in this sweep".to_owned();
    }
    let shown: Vec<_> = texts.iter().take(MOST).map(|text| format!("`{text}`")).collect();
    let more = if texts.len() > MOST { ", ..." } else { "" };
    format!("it can be {}{more}", shown.join(", "))
}

/// The help that names what was probably meant: the same but for case, the end of a dotted name, or a slip or two.
pub(super) fn did_you_mean(word: &str, known: &[String]) -> Option<String> {
    const LONGEST_COMPARED: usize = 64;
    if word.len() > LONGEST_COMPARED {
        return None;
    }
    let slips = 1 + word.chars().count() / 5;
    let alike = known.iter().filter(|candidate| {
        candidate.eq_ignore_ascii_case(word)
            || candidate.strip_suffix(word).is_some_and(|rest| rest.ends_with('.'))
            || word.len() > 1 && strsim::damerau_levenshtein(word, candidate) <= slips
    });
    let likeness = |candidate: &str| strsim::jaro_winkler(&word.to_lowercase(), &candidate.to_lowercase());
    alike
        .max_by(|one, other| likeness(one).total_cmp(&likeness(other)).then_with(|| other.cmp(one)))
        .map(|best| format!("did you mean `{best}`?"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{error, refused};

    #[test]
    fn a_text_that_never_is_gets_the_nearest_or_all() {
        refused("recompute == selectiv", "selectiv", "`recompute` is never `selectiv`", "did you mean `selective`?");
        refused("'W-1D-35' != network", "'W-1D-35'", "`network` is never `W-1D-35`", "did you mean `W-1D-350`?");
        refused("recompute == 8", "8", "`recompute` is never `8`", "it can be `none`, `selective`, `full`");
    }

    #[test]
    fn an_unknown_name_gets_the_nearest() {
        for (text, name, help) in [
            ("tpp <= 8", "tpp", "did you mean `tp`?"),
            ("1 + gpus", "gpus", "did you mean `npus`?"),
            ("price > 0", "price", "did you mean `npu.price`?"),
            ("TP == 8", "TP", "did you mean `tp`?"),
            ("overlap_tp == True", "True", "did you mean `true`?"),
            ("iteration_tme < 1 s", "iteration_tme", "did you mean `iteration_time`?"),
            ("sum(dim.bandwith)", "dim.bandwith", "did you mean `dim.bandwidth`?"),
            (
                "scale-out.bandwidth-1 GB/s",
                "scale",
                "did you mean `scale-out.bandwidth`? put a blank before the `-` that follows it",
            ),
            ("split == network", "split", "it is a value of `network`: write `network == split`"),
            ("W-1D-350 == network", "W", "it is a value of `network`: write `network == W-1D-350`"),
        ] {
            refused(text, name, &format!("unknown name `{name}`"), help);
        }
        refused(
            "zebra",
            "zebra",
            "unknown name `zebra`",
            "names are the keys, columns and derived values of the sweep; a text needs quotes or a `==` before it",
        );
    }

    #[test]
    fn comparisons_are_not_chained() {
        refused("1 < tp < 3", "<", "comparisons cannot be chained", "write `1 < tp and tp < ...`");
        refused("1 < tp + 1 == 3", "==", "comparisons cannot be chained", "write `1 < tp + 1 and tp + 1 == ...`");
        let error = error("1 < tp < 3");
        assert_eq!((error.start, error.end), (7, 8));
    }

    #[test]
    fn what_is_missing_is_named() {
        let value = "a value is a name, a number with its unit, or an expression in parentheses";
        let operator = "write one of `+ - * / % == != < <= > >= and or` there";
        refused("", "", "the expression is empty", "write e.g. `tp <= 8`");
        refused(" \n", " \n", "the expression is empty", "write e.g. `tp <= 8`");
        refused("tp <= ", "", "a value is missing at the end", value);
        refused("tp * ) + 1", ")", "a value is missing before `)`", value);
        refused("tp == +1", "+", "a value is missing before `+`", "leave out the `+`");
        refused("min()", ")", "a value is missing before `)`", value);
        refused("tp pp", "pp", "an operator is missing before `pp`", operator);
        refused("tp > 1 AND pp > 1", "AND", "an operator is missing before `AND`", "did you mean `and`?");
        refused("(tp (8))", "(", "an operator is missing before `(`", operator);
        refused(
            "tp * (pp + 1",
            "(",
            "`(` is not closed",
            "add a `)`; in braces a comma ends the text: put the expression in quotes",
        );
        refused("tp > 1)", ")", "`)` closes nothing", "leave it out, or add a `(`");
        refused("tp > 1, pp > 1", ",", "`,` separates the values of `min` and `max` only", "join with `and` or `or`");
        refused("tp + not true", "not", "`not` needs parentheses here", "write `(not ...)`");
        refused("min > 1", "min", "`min` is a function", "write `min(a, b)`, `max(a, b)` or `sum(dim.bandwidth)`");
        refused(
            "max(tp)",
            "max(tp)",
            "`max` needs two values or more",
            "write `max(a, b)`; it does not range over dimensions, `sum` does",
        );
    }

    #[test]
    fn a_long_part_is_shown_cut_and_on_one_line() {
        let error = error("capex\n + npu.price * 1 + npu.price * 2 + npu.price * 3 < 20 MW");
        assert_eq!(
            error.message,
            "`capex + npu.price * 1 + npu.price * 2 + npu.pric...` is an amount of money and cannot be compared with a power"
        );
    }
}
