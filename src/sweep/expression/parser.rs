//! The grammar: from tokens to a program, kinds and units checked on the way.
//!
//! Precedence climbing in one pass: an operand's instructions are written when it is read, an operator's when both its
//! operands are known.

mod complaint;
mod kinds;

use super::lexer::{Function, Lexer, Token, TokenKind};
use super::program::{Binary, Instruction, Program};
use super::{ExpressionError, Kind, LONGEST, Meaning, Scope, Span};
use crate::units::Unit;
use kinds::{Number, Operand, What};

/// How deep parentheses, functions and signs may be nested: the parser calls itself for each.
const DEEPEST: usize = 64;
/// How loosely `not` binds, among [`Binary::precedence`].
const NOT: u8 = 3;
/// How tightly a sign binds: more than any operator.
const SIGN: u8 = 7;

/// Reads a whole expression.
pub(super) fn parse(text: &str, scope: &dyn Scope) -> Result<(Vec<Instruction>, Kind), ExpressionError> {
    let whole = Span { start: 0, end: text.len() };
    if text.len() > LONGEST {
        let message = format!("the expression has {} bytes, and {LONGEST} are allowed", text.len());
        return Err(ExpressionError::new(whole, message).help("give its parts names in `derive:`"));
    }
    if text.trim().is_empty() {
        return Err(ExpressionError::new(whole, "the expression is empty").help("write e.g. `tp <= 8`"));
    }
    let lexer = Lexer::new(text, scope);
    let mut parser =
        Parser { text, scope, lexer, peeked: None, program: Program::default(), nesting: 0, in_sum: false };
    let operand = parser.expression(0)?;
    let next = parser.peek()?;
    if next.kind != TokenKind::End {
        return Err(parser.unexpected_behind_value(next));
    }
    if let What::Quoted(_) = operand.what {
        return Err(ExpressionError::new(operand.span, "a text is no expression of its own")
            .help("compare it with a name: `network == 'ring'`"));
    }
    let code = parser.program.finish().ok_or_else(|| too_deep(whole))?;
    Ok((code, operand.kind()))
}

fn too_deep(span: Span) -> ExpressionError {
    ExpressionError::new(span, "the expression is nested too deeply").help("give its parts names in `derive:`")
}

struct Parser<'a> {
    text: &'a str,
    scope: &'a dyn Scope,
    lexer: Lexer<'a>,
    /// The next token, if it has been looked at.
    peeked: Option<Token<'a>>,
    program: Program,
    nesting: usize,
    in_sum: bool,
}

impl<'a> Parser<'a> {
    fn peek(&mut self) -> Result<Token<'a>, ExpressionError> {
        match self.peeked {
            Some(token) => Ok(token),
            None => Ok(*self.peeked.insert(self.lexer.next()?)),
        }
    }

    fn take(&mut self) -> Result<Token<'a>, ExpressionError> {
        let token = self.peek()?;
        self.peeked = None;
        Ok(token)
    }

    /// Reads operands and the operators between them, as long as these bind at least as tightly as `loosest`.
    fn expression(&mut self, loosest: u8) -> Result<Operand<'a>, ExpressionError> {
        let mut left = self.prefix(loosest)?;
        let mut compared = None;
        loop {
            let token = self.peek()?;
            let TokenKind::Binary(operator) = token.kind else { break };
            if operator.precedence() < loosest {
                break;
            }
            self.take()?;
            if operator.is_comparison()
                && let Some(middle) = compared
            {
                return Err(self.chained(left.span, middle, operator, token.span));
            }
            let right = self.right(operator, left)?;
            compared = operator.is_comparison().then_some(right.span);
            left = self.combine(operator, left, right)?;
        }
        Ok(left)
    }

    /// Reads what stands right of an operator; behind `==` and `!=`, a text has a text without quotes. The left side is
    /// judged first, so that `network < ring` is not about an unknown `ring`.
    fn right(&mut self, operator: Binary, left: Operand<'a>) -> Result<Operand<'a>, ExpressionError> {
        match operator {
            Binary::Or | Binary::And => self.need_condition(operator.text(), left)?,
            _ if operator.is_equality() => {}
            _ => self.need_number(operator.text(), left).map(|_| ())?,
        }
        if operator.is_equality()
            && let What::Text(_) = left.what
            && let Some(Token { kind: TokenKind::Text(text), span }) = self.lexer.bare_text()
        {
            return Ok(Operand { span, what: What::Quoted(text) });
        }
        self.expression(operator.precedence() + 1)
    }

    /// Reads a value with the `not` and the signs before it.
    fn prefix(&mut self, loosest: u8) -> Result<Operand<'a>, ExpressionError> {
        let token = self.take()?;
        match token.kind {
            TokenKind::Not if loosest > NOT => {
                Err(ExpressionError::new(token.span, "`not` needs parentheses here").help("write `(not ...)`"))
            }
            TokenKind::Not => {
                let operand = self.nested(token.span, |parser| parser.expression(NOT))?;
                self.need_condition("not", operand)?;
                self.program.unary(Instruction::Not);
                Ok(Operand { span: token.span.to(operand.span), what: What::Bool })
            }
            TokenKind::Binary(Binary::Subtract) => {
                let operand = self.nested(token.span, |parser| parser.expression(SIGN))?;
                let unit = self.need_number("-", operand)?.unit;
                self.program.unary(Instruction::Negate);
                Ok(self.number(token.span.to(operand.span), unit))
            }
            _ => self.primary(token),
        }
    }

    fn primary(&mut self, token: Token<'a>) -> Result<Operand<'a>, ExpressionError> {
        let span = token.span;
        match token.kind {
            TokenKind::Number(quantity) => Ok(self.constant(span, quantity.value, quantity.unit)),
            TokenKind::None => Ok(self.constant(span, 0.0, Unit::NONE)),
            TokenKind::Truth(truth) => {
                self.program.push(Instruction::Constant(f64::from(truth)));
                Ok(Operand { span, what: What::Bool })
            }
            TokenKind::Text(text) => Ok(Operand { span, what: What::Quoted(text) }),
            TokenKind::Name(name) => self.name(name, span),
            TokenKind::Open => {
                let inner = self.nested(span, |parser| parser.expression(0))?;
                let close = self.close(span)?;
                Ok(Operand { span: span.to(close), ..inner })
            }
            TokenKind::Function(function) => self.call(function, span),
            _ => Err(self.no_value(token)),
        }
    }

    fn call(&mut self, function: Function, name: Span) -> Result<Operand<'a>, ExpressionError> {
        let open = self.peek()?;
        if open.kind != TokenKind::Open {
            return Err(ExpressionError::new(name, format!("{} is a function", self.shown(name)))
                .help("write `min(a, b)`, `max(a, b)` or `sum(dim.bandwidth)`"));
        }
        self.take()?;
        self.nested(name, |parser| match function {
            Function::Sum => parser.sum(name, open.span),
            Function::Min => parser.extreme(Binary::Min, name, open.span),
            Function::Max => parser.extreme(Binary::Max, name, open.span),
        })
    }

    /// Reads the values of `min` and `max`.
    fn extreme(&mut self, operator: Binary, name: Span, open: Span) -> Result<Operand<'a>, ExpressionError> {
        let mut result = self.expression(0)?;
        self.need_number(operator.text(), result)?;
        let mut alone = true;
        while self.peek()?.kind == TokenKind::Comma {
            self.take()?;
            let next = self.expression(0)?;
            result = self.combine(operator, result, next)?;
            alone = false;
        }
        let span = name.to(self.close(open)?);
        if alone {
            let name = operator.text();
            return Err(ExpressionError::new(span, format!("`{name}` needs two values or more"))
                .help(format!("write `{name}(a, b)`; it does not range over dimensions, `sum` does")));
        }
        Ok(Operand { span, ..result })
    }

    /// Reads what `sum` adds up.
    fn sum(&mut self, name: Span, open: Span) -> Result<Operand<'a>, ExpressionError> {
        if self.in_sum {
            return Err(ExpressionError::new(name, "a `sum` cannot stand inside a `sum`")
                .help("give the inner one a name in `derive:`"));
        }
        let begin = self.program.begin_sum();
        self.in_sum = true;
        let operand = self.expression(0)?;
        self.in_sum = false;
        let unit = self.need_number("sum", operand)?.unit;
        let span = name.to(self.close(open)?);
        if !self.program.end_sum(begin) {
            return Err(ExpressionError::new(span, format!("{} has nothing of a dimension in it", self.shown(span)))
                .help("write e.g. `sum(dim.bandwidth)`"));
        }
        Ok(self.number(span, unit))
    }

    fn close(&mut self, open: Span) -> Result<Span, ExpressionError> {
        let token = self.take()?;
        match token.kind {
            TokenKind::Close => Ok(token.span),
            TokenKind::End => Err(ExpressionError::new(open, "`(` is not closed")
                .help("add a `)`; in braces a comma ends the text: put the expression in quotes")),
            _ => Err(self.unexpected_behind_value(token)),
        }
    }

    fn nested<T>(
        &mut self,
        span: Span,
        read: impl FnOnce(&mut Self) -> Result<T, ExpressionError>,
    ) -> Result<T, ExpressionError> {
        if self.nesting == DEEPEST {
            return Err(too_deep(span));
        }
        self.nesting += 1;
        let result = read(self);
        self.nesting -= 1;
        result
    }

    fn constant(&mut self, span: Span, value: f64, unit: Unit) -> Operand<'a> {
        self.program.push(Instruction::Constant(value));
        self.number(span, unit)
    }

    /// The number whose instructions were just written.
    fn number(&self, span: Span, unit: Unit) -> Operand<'a> {
        Operand { span, what: What::Number(Number { unit, constant: self.program.constant() }) }
    }

    fn name(&mut self, name: &str, span: Span) -> Result<Operand<'a>, ExpressionError> {
        if let Some((slot, bit)) = self.scope.word(name) {
            self.program.push(Instruction::Slot(slot));
            self.program.unary(Instruction::Has(bit));
            return Ok(Operand { span, what: What::Bool });
        }
        let (slot, kind, instruction) = match self.meaning(name, span)? {
            Meaning::Slot { slot, kind } => (slot, kind, Instruction::Slot(slot)),
            Meaning::Dimension { slot, kind } => (slot, kind, Instruction::DimSlot(slot)),
        };
        self.program.push(instruction);
        Ok(match kind {
            Kind::Number(unit) => self.number(span, unit),
            Kind::Bool => Operand { span, what: What::Bool },
            Kind::Text => Operand { span, what: What::Text(slot) },
        })
    }

    fn meaning(&self, name: &str, span: Span) -> Result<Meaning, ExpressionError> {
        if let Some(field) = name.strip_prefix("dim.")
            && let Some((slot, kind)) = self.scope.dim_field(field)
        {
            return if self.in_sum {
                Ok(Meaning::Dimension { slot, kind })
            } else {
                Err(ExpressionError::new(span, format!("`{name}` is each dimension's and stands in `sum` only"))
                    .help(format!("write `sum({name})`, or one dimension's: `dim0.{field}`")))
            };
        }
        let (slot, kind) = self.scope.name(name).ok_or_else(|| self.unknown_name(name, span))?;
        Ok(Meaning::Slot { slot, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Names, Point};
    use super::super::{ExpressionError, Kind, LONGEST, compile};
    use crate::units::Unit;

    /// The value at tp = 8, pp = 4, dp = 2, a batch of 64 sequences of 8192 tokens; the condition as 1 or 0.
    fn value(text: &str) -> f64 {
        let point = [("tp", 8.0), ("pp", 4.0), ("dp", 2.0), ("global_batch", 64.0), ("seq_len", 8192.0)];
        let expression = compile(text, &Names).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        expression.evaluate(&Point(&point, &[]))
    }

    pub(super) fn gives(text: &str, expected: f64) {
        let found = value(text);
        assert!((found - expected).abs() <= 1e-12 * expected.abs(), "{text} is {found}, not {expected}");
    }

    pub(super) fn unit(text: &str) -> Unit {
        match compile(text, &Names).unwrap_or_else(|error| panic!("{text}: {error:?}")).kind() {
            Kind::Number(unit) => unit,
            other => panic!("{text} is {}", other.describe()),
        }
    }

    pub(super) fn error(text: &str) -> ExpressionError {
        compile(text, &Names).map_or_else(|error| error, |_| panic!("{text} is accepted"))
    }

    /// The text is refused: the place in it, the message, and the help.
    pub(super) fn refused(text: &str, place: &str, message: &str, help: &str) {
        let error = error(text);
        assert_eq!(&text[error.start..error.end], place, "{text}: {error:?}");
        assert_eq!((error.message.as_str(), error.help.as_deref().unwrap_or_default()), (message, help), "{text}");
    }

    #[test]
    fn products_bind_tighter_than_sums_and_a_sign_tighter_than_both() {
        gives("2 + 3 * 4", 14.0);
        gives("(2 + 3) * 4", 20.0);
        gives("-2 + 3", 1.0);
        gives("-tp * 2", -16.0);
        gives("2 * -tp", -16.0);
        gives("tp - -pp", 12.0);
        gives("- - tp", 8.0);
        gives("-7 % 4", -3.0);
    }

    #[test]
    fn equal_operators_are_taken_from_the_left() {
        gives("tp - pp - dp", 2.0);
        gives("tp / pp / dp", 1.0);
        gives("tp / pp * dp", 4.0);
        gives("dp * 2 / pp", 1.0);
        gives("100 % 7 * 3", 6.0);
        gives("2 * 7 % 4", 2.0);
    }

    #[test]
    fn or_is_looser_than_and_which_is_looser_than_not_which_is_looser_than_comparisons() {
        gives("true or false and false", 1.0);
        gives("(true or false) and false", 0.0);
        gives("not true or true", 1.0);
        gives("not (true or true)", 0.0);
        gives("not tp == 4", 1.0);
        gives("not not tp == 8", 1.0);
        gives("tp == 8 and not pp == 8 and dp < 3", 1.0);
        gives("tp + 1 < pp * 3 and true", 1.0);
    }

    #[test]
    fn comparisons_include_their_bound_or_not_as_written() {
        for (text, expected) in [
            ("tp < 8", 0.0),
            ("tp <= 8", 1.0),
            ("tp > 8", 0.0),
            ("tp >= 8", 1.0),
            ("tp == 8", 1.0),
            ("tp != 8", 0.0),
            ("(tp < 9) == true", 1.0),
            ("(tp < 9) != (pp < 9)", 0.0),
        ] {
            gives(text, expected);
        }
    }

    #[test]
    fn min_and_max_take_two_values_or_more() {
        gives("min(tp, pp)", 4.0);
        gives("max(tp, pp, dp, 9)", 9.0);
        gives("max(tp, pp) - min(pp, max(dp, 3), 5)", 5.0);
        gives("min(global_batch, 16)", 16.0);
        gives("max(0, memory_margin - 4 GB)", 0.0);
    }

    #[test]
    fn each_dimension_stands_in_one_sum_only() {
        refused(
            "dim.bandwidth > 0",
            "dim.bandwidth",
            "`dim.bandwidth` is each dimension's and stands in `sum` only",
            "write `sum(dim.bandwidth)`, or one dimension's: `dim0.bandwidth`",
        );
        refused(
            "sum(dim.size * sum(dim.size))",
            "sum",
            "a `sum` cannot stand inside a `sum`",
            "give the inner one a name in `derive:`",
        );
        refused(
            "sum(tp) > 1",
            "sum(tp)",
            "`sum(tp)` has nothing of a dimension in it",
            "write e.g. `sum(dim.bandwidth)`",
        );
    }

    #[test]
    fn depth_and_length_are_bounded_within_half_the_stack_of_a_thread() {
        let check = || {
            let nested =
                |depth: usize, open: &str, close: &str| format!("{}true{}", open.repeat(depth), close.repeat(depth));
            assert!(compile(&nested(64, "(", ")"), &Names).is_ok());
            for text in [
                nested(65, "(", ")"),
                nested(2000, "not ", ""),
                nested(300, "(true or true and true == ", ")"),
                "-".repeat(LONGEST),
                "min(tp, ".repeat(1000),
            ] {
                assert_eq!(error(&text).message, "the expression is nested too deeply");
            }
            // On each level, a value waits for the levels below.
            let waiting = |depth: usize| format!("{}tp{}", "tp + (".repeat(depth), ")".repeat(depth));
            assert!(compile(&waiting(31), &Names).is_ok());
            assert_eq!(error(&waiting(32)).message, "the expression is nested too deeply");
            assert!(compile(&format!("tp{}", "+1".repeat((LONGEST - 2) / 2)), &Names).is_ok());
            assert_eq!(
                error(&" ".repeat(LONGEST + 1)).message,
                "the expression has 10001 bytes, and 10000 are allowed"
            );
        };
        let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(check).expect("a thread");
        thread.join().expect("the checks hold");
    }
}
