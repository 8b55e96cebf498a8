//! Kinds and units: what an operand is, and what operators make of two of them.

use super::super::program::{Binary, Instruction};
use super::super::{ExpressionError, Kind, Span, quote};
use super::Parser;
use super::complaint::{did_you_mean, listed};
use crate::units::Unit;

/// A number while it is compiled.
#[derive(Debug, Clone, Copy)]
pub(super) struct Number {
    pub(super) unit: Unit,
    /// Its value if it has one without any names.
    pub(super) constant: Option<f64>,
}

impl Number {
    /// Whether it can be taken for a value of the unit: a 0 for any, a bare number for sequences and tokens.
    fn fits(self, unit: Unit) -> bool {
        self.unit == unit
            || self.unit == Unit::NONE
                && self.constant.is_some_and(|value| value == 0.0 || unit == Unit::SEQUENCE || unit == Unit::TOKEN)
    }

    /// The unit that both can be taken for.
    fn common(self, other: Self) -> Option<Unit> {
        if self.fits(other.unit) { Some(other.unit) } else { other.fits(self.unit).then_some(self.unit) }
    }
}

/// What an operand is.
#[derive(Debug, Clone, Copy)]
pub(super) enum What<'a> {
    Number(Number),
    Bool,
    /// A name that has texts; its slot.
    Text(u32),
    /// A text as it is written; it becomes a number, and an instruction, when it meets its name.
    Quoted(&'a str),
}

/// A value that was read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operand<'a> {
    pub(super) span: Span,
    pub(super) what: What<'a>,
}

impl Operand<'_> {
    pub(super) const fn kind(&self) -> Kind {
        match self.what {
            What::Number(number) => Kind::Number(number.unit),
            What::Bool => Kind::Bool,
            What::Text(_) | What::Quoted(_) => Kind::Text,
        }
    }
}

impl<'a> Parser<'a> {
    /// Joins two values, the instructions of which have been written.
    pub(super) fn combine(
        &mut self,
        operator: Binary,
        left: Operand<'a>,
        right: Operand<'a>,
    ) -> Result<Operand<'a>, ExpressionError> {
        let span = left.span.to(right.span);
        match operator {
            Binary::Or | Binary::And => {
                self.need_condition(operator.text(), left)?;
                self.need_condition(operator.text(), right)?;
            }
            Binary::Equal | Binary::NotEqual => self.equate(left, right)?,
            _ => {
                let first = self.need_number(operator.text(), left)?;
                let second = self.need_number(operator.text(), right)?;
                let unit = match operator {
                    Binary::Multiply | Binary::Divide => self.product(operator, span, first.unit, second.unit)?,
                    Binary::Remainder if counts(first.unit) && second.unit == Unit::NONE => first.unit,
                    _ => first.common(second).ok_or_else(|| self.mismatch(operator, left, right))?,
                };
                self.program.binary(operator);
                let operand = self.number(span, unit);
                return Ok(if operator.is_comparison() { Operand { span, what: What::Bool } } else { operand });
            }
        }
        self.program.binary(operator);
        Ok(Operand { span, what: What::Bool })
    }

    /// Checks the two sides of `==` and `!=`, and writes the number of a text.
    fn equate(&mut self, left: Operand<'a>, right: Operand<'a>) -> Result<(), ExpressionError> {
        match (left.what, right.what) {
            (What::Bool, What::Bool) => Ok(()),
            (What::Number(first), What::Number(second)) if first.common(second).is_some() => Ok(()),
            (What::Text(slot), What::Quoted(text)) => self.symbol(slot, left.span, text, right.span),
            (What::Quoted(text), What::Text(slot)) => self.symbol(slot, right.span, text, left.span),
            (What::Quoted(_), What::Quoted(_)) => {
                let span = left.span.to(right.span);
                Err(ExpressionError::new(span, "both sides are texts").help("write a name on one side, without quotes"))
            }
            (What::Text(_), What::Text(_)) => {
                let (first, second) = (self.shown(left.span), self.shown(right.span));
                let message = format!("{first} and {second} are both names of texts and cannot be compared");
                Err(ExpressionError::new(left.span.to(right.span), message).help("compare each with a text"))
            }
            _ => Err(self.mismatch(Binary::Equal, left, right)),
        }
    }

    fn symbol(&mut self, slot: u32, name: Span, text: &str, span: Span) -> Result<(), ExpressionError> {
        if let Some(symbol) = self.scope.symbol(slot, text) {
            self.program.push(Instruction::Constant(symbol));
            return Ok(());
        }
        let texts = self.scope.texts(slot);
        let message = format!("{} is never {}", self.shown(name), quote(text));
        let help = did_you_mean(text, &texts).unwrap_or_else(|| listed(&texts));
        Err(ExpressionError::new(span, message).help(help))
    }

    pub(super) fn need_condition(&self, operator: &str, operand: Operand<'a>) -> Result<(), ExpressionError> {
        if let What::Bool = operand.what {
            return Ok(());
        }
        let shown = self.shown(operand.span);
        let message = format!("{shown} is {}, and `{operator}` needs conditions", operand.kind().describe());
        let bare = shown.trim_matches('`');
        Err(ExpressionError::new(operand.span, message).help(match operand.what {
            What::Number(_) => format!("compare it: `{bare} > 0`"),
            _ => format!("compare it: `{bare} == ...`"),
        }))
    }

    pub(super) fn need_number(&self, operator: &str, operand: Operand<'a>) -> Result<Number, ExpressionError> {
        if let What::Number(number) = operand.what {
            return Ok(number);
        }
        let kind = operand.kind();
        let message = format!("{} is {}, and `{operator}` needs numbers", self.shown(operand.span), kind.describe());
        Err(ExpressionError::new(operand.span, message).help(match kind {
            Kind::Text => "a text can be compared, with `==` and `!=`",
            _ => "a condition can be joined, with `and`, `or` and `not`, and compared, with `==` and `!=`",
        }))
    }

    /// The unit of a product or quotient. The powers of a unit stop at the ends of `i8`: one that got there cannot be
    /// undone or turned round, and is refused.
    fn product(&self, operator: Binary, span: Span, left: Unit, right: Unit) -> Result<Unit, ExpressionError> {
        let (unit, undone) = match operator {
            Binary::Divide => (left.over(right), left.over(right).times(right)),
            _ => (left.times(right), left.times(right).over(right)),
        };
        if undone == left && Unit::NONE.over(Unit::NONE.over(unit)) == unit {
            return Ok(unit);
        }
        Err(ExpressionError::new(span, format!("the unit of {} has too high a power", self.shown(span)))
            .help("divide by a value of the same unit first"))
    }
}

/// Whether a unit counts things, which people write bare.
fn counts(unit: Unit) -> bool {
    unit == Unit::SEQUENCE || unit == Unit::TOKEN
}

#[cfg(test)]
mod tests {
    use super::super::super::compile;
    use super::super::super::tests::{Names, Point};
    use super::super::tests::{error, gives, refused, unit};
    use crate::units::Unit;

    #[test]
    fn units_are_worked_out() {
        assert_eq!(unit("dim0.bandwidth * iteration_time"), Unit::BYTE);
        assert_eq!(unit("memory_margin / iteration_time"), Unit::BANDWIDTH);
        assert_eq!(unit("capex / npus"), Unit::DOLLAR);
        assert_eq!(unit("capex / npu.price"), Unit::NONE);
        assert_eq!(unit("2 * 60 $/(GB/s) * dim0.bandwidth"), Unit::DOLLAR);
        assert_eq!(unit("global_batch * seq_len / iteration_time / 1 seq"), Unit::TOKEN_RATE);
        assert_eq!(unit("memory_margin % 2 GB"), Unit::BYTE);
        assert_eq!(unit("-capex"), Unit::DOLLAR);
        assert_eq!(unit("sum(dim.bandwidth)"), Unit::BANDWIDTH);
        assert_eq!(unit("scale-out.bandwidth - 1 GB/s"), Unit::BANDWIDTH);
    }

    #[test]
    fn zero_goes_with_every_unit_and_gives_way_to_it() {
        for text in ["0 + capex", "capex + 0", "capex - none", "max(0, capex)", "-0 + capex", "(8 - 8) + capex"] {
            assert_eq!(unit(text), Unit::DOLLAR, "{text}");
        }
        gives("memory_margin >= 0", 1.0);
        refused(
            "0 W < capex",
            "0 W < capex",
            "`0 W` is a power and cannot be compared with an amount of money",
            "both sides must measure the same: multiply or divide until they do",
        );
    }

    #[test]
    fn sequences_and_tokens_are_counted_bare() {
        gives("global_batch == 64 and 64 == global_batch", 1.0);
        gives("seq_len >= 2 * 4096", 1.0);
        gives("micro_batch_size <= 4", 1.0);
        gives("global_batch % (dp * 2)", 0.0);
        assert_eq!(unit("global_batch + 4"), Unit::SEQUENCE);
        assert_eq!(unit("8 - seq_len"), Unit::TOKEN);
        assert_eq!(unit("global_batch % dp"), Unit::SEQUENCE);
        refused(
            "micro_batch_size <= dp",
            "micro_batch_size <= dp",
            "`micro_batch_size` is a number of sequences and cannot be compared with a plain number",
            "both sides must measure the same: multiply or divide until they do",
        );
        refused(
            "seq_len < global_batch",
            "seq_len < global_batch",
            "`seq_len` is a number of tokens and cannot be compared with a number of sequences",
            "both sides must measure the same: multiply or divide until they do",
        );
    }

    #[test]
    fn values_of_different_units_are_not_joined() {
        let help = "both sides must measure the same: multiply or divide until they do";
        refused(
            "tp > 1 and capex <= 20 MW",
            "capex <= 20 MW",
            "`capex` is an amount of money and cannot be compared with a power",
            help,
        );
        refused("capex+20 MW", "capex+20 MW", "`capex` is an amount of money and a power cannot be added to it", help);
        refused(
            "capex - site_power",
            "capex - site_power",
            "`capex` is an amount of money and a power cannot be subtracted from it",
            help,
        );
        refused(
            "capex % site_power",
            "capex % site_power",
            "`capex` is an amount of money and has no remainder by a power",
            help,
        );
        refused(
            "max(capex, site_power)",
            "capex, site_power",
            "`capex` is an amount of money and cannot be compared with a power",
            help,
        );
        refused(
            "capex * capex == 1 $",
            "capex * capex == 1 $",
            "`capex * capex` is a value in `usd2` and cannot be compared with an amount of money",
            help,
        );
    }

    #[test]
    fn a_bare_number_is_told_its_unit() {
        refused(
            "capex <= 600",
            "capex <= 600",
            "`capex` is an amount of money and cannot be compared with a plain number",
            "give `600` a unit, e.g. `30 k$`",
        );
        refused(
            "4 + memory_margin",
            "4 + memory_margin",
            "`4` is a plain number and an amount of data cannot be added to it",
            "give `4` a unit, e.g. `80 GB`",
        );
    }

    #[test]
    fn conditions_and_numbers_are_not_mixed() {
        refused("tp and pp > 1", "tp", "`tp` is a plain number, and `and` needs conditions", "compare it: `tp > 0`");
        refused("not tp", "tp", "`tp` is a plain number, and `not` needs conditions", "compare it: `tp > 0`");
        refused(
            "true or network",
            "network",
            "`network` is a text, and `or` needs conditions",
            "compare it: `network == ...`",
        );
        let help = "a condition can be joined, with `and`, `or` and `not`, and compared, with `==` and `!=`";
        for (text, operator) in
            [("overlap_tp + 1", "+"), ("overlap_tp < true", "<"), ("-overlap_tp", "-"), ("min(overlap_tp, 1)", "min")]
        {
            let message = format!("`overlap_tp` is a condition, and `{operator}` needs numbers");
            refused(text, "overlap_tp", &message, help);
        }
        refused("sum(dim.size > 8)", "dim.size > 8", "`dim.size > 8` is a condition, and `sum` needs numbers", help);
        refused(
            "overlap_tp == 1",
            "overlap_tp == 1",
            "`overlap_tp` is a condition and cannot be compared with a plain number",
            "a condition is compared with `true`, `false` or a condition",
        );
    }

    #[test]
    fn a_text_is_compared_bare_or_in_quotes_on_either_side() {
        let at =
            |text: &str, network: f64| compile(text, &Names).expect(text).is_true(&Point(&[("network", network)], &[]));
        for text in
            ["network == W-1D-350", "network==W-1D-350", "'W-1D-350' == network", "(network) == \"W-1D-350\" and true"]
        {
            assert!(at(text, 1.0) && !at(text, 2.0), "{text}");
        }
        assert!(at("network != split and (network != Conv-3D)", 1.0));
        assert!(at("network == 'megatron-core 0.14'", 4.0));
        gives("recompute == none", 1.0);
    }

    #[test]
    fn texts_are_compared_for_being_equal_only_and_with_texts_only() {
        let help = "a text can be compared, with `==` and `!=`";
        refused("network < split", "network", "`network` is a text, and `<` needs numbers", help);
        refused("tp + 'split'", "'split'", "`'split'` is a text, and `+` needs numbers", help);
        refused(
            "8 == network",
            "8 == network",
            "`8` is a plain number and cannot be compared with a text",
            "a text is compared with a text: write it in quotes",
        );
        refused("'a' == 'b'", "'a' == 'b'", "both sides are texts", "write a name on one side, without quotes");
        refused(
            "network == (recompute)",
            "network == (recompute)",
            "`network` and `(recompute)` are both names of texts and cannot be compared",
            "compare each with a text",
        );
        refused(
            "'ring'",
            "'ring'",
            "a text is no expression of its own",
            "compare it with a name: `network == 'ring'`",
        );
    }

    #[test]
    fn a_unit_s_power_does_not_run_over() {
        let bytes = |sign: &str, count: usize| format!("1{}", format!(" {sign} memory_margin").repeat(count));
        assert!(compile(&bytes("*", 100), &Names).is_ok());
        for sign in ["*", "/"] {
            assert!(error(&bytes(sign, 200)).message.ends_with("has too high a power"));
            let _ = compile(&bytes(sign, 127), &Names).map(|expression| expression.kind().describe());
        }
    }
}
