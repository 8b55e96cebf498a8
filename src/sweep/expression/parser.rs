//! The grammar: from tokens to a program, kinds and units checked on the way.
//!
//! Precedence climbing in one pass: an operand's instructions are written when it is read, an operator's when both its
//! operands are known.

use super::lexer::{Function, KEYWORDS, Lexer, Token, TokenKind, bare_run, missing_operator};
use super::program::{Binary, Instruction, Program};
use super::{ExpressionError, Kind, LONGEST, Meaning, Scope, Span, quote};
use crate::units::Unit;

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

/// A number while it is compiled.
#[derive(Debug, Clone, Copy)]
struct Number {
    unit: Unit,
    /// Its value if it has one without any names.
    constant: Option<f64>,
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
enum What<'a> {
    Number(Number),
    Bool,
    /// A name that has texts; its slot.
    Text(u32),
    /// A text as it is written; it becomes a number, and an instruction, when it meets its name.
    Quoted(&'a str),
}

/// A value that was read.
#[derive(Debug, Clone, Copy)]
struct Operand<'a> {
    span: Span,
    what: What<'a>,
}

impl Operand<'_> {
    const fn kind(&self) -> Kind {
        match self.what {
            What::Number(number) => Kind::Number(number.unit),
            What::Bool => Kind::Bool,
            What::Text(_) | What::Quoted(_) => Kind::Text,
        }
    }
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

/// Reading.
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

/// Kinds and units.
impl<'a> Parser<'a> {
    /// Joins two values, the instructions of which have been written.
    fn combine(
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

    fn need_condition(&self, operator: &str, operand: Operand<'a>) -> Result<(), ExpressionError> {
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

    fn need_number(&self, operator: &str, operand: Operand<'a>) -> Result<Number, ExpressionError> {
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

/// What went wrong.
impl<'a> Parser<'a> {
    /// A part of the text in backticks, on one line, cut if it is long.
    fn shown(&self, span: Span) -> String {
        quote(&self.text[span.start..span.end])
    }

    fn mismatch(&self, operator: Binary, left: Operand<'a>, right: Operand<'a>) -> ExpressionError {
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

    fn chained(&self, left: Span, middle: Span, operator: Binary, at: Span) -> ExpressionError {
        let (left, middle) = (&self.text[left.start..left.end], &self.text[middle.start..middle.end]);
        ExpressionError::new(at, "comparisons cannot be chained")
            .help(format!("write {}", quote(&format!("{left} and {middle} {} ...", operator.text()))))
    }

    fn no_value(&self, token: Token<'a>) -> ExpressionError {
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
    fn unexpected_behind_value(&self, token: Token<'a>) -> ExpressionError {
        let error = |message: &str| ExpressionError::new(token.span, message);
        match token.kind {
            TokenKind::Close => error("`)` closes nothing").help("leave it out, or add a `(`"),
            TokenKind::Comma => {
                error("`,` separates the values of `min` and `max` only").help("join with `and` or `or`")
            }
            _ => missing_operator(self.shown(token.span).trim_matches('`'), token.span),
        }
    }

    fn unknown_name(&self, name: &str, span: Span) -> ExpressionError {
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

/// Whether a unit counts things, which people write bare.
fn counts(unit: Unit) -> bool {
    unit == Unit::SEQUENCE || unit == Unit::TOKEN
}

/// The help that lists what a text can be.
fn listed(texts: &[String]) -> String {
    const MOST: usize = 8;
    if texts.is_empty() {
        return "it has no texts in this sweep".to_owned();
    }
    let shown: Vec<_> = texts.iter().take(MOST).map(|text| format!("`{text}`")).collect();
    let more = if texts.len() > MOST { ", ..." } else { "" };
    format!("it can be {}{more}", shown.join(", "))
}

/// The help that names what was probably meant: the same but for case, the end of a dotted name, or a slip or two.
fn did_you_mean(word: &str, known: &[String]) -> Option<String> {
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
    use super::super::tests::{Names, Point};
    use super::super::{ExpressionError, Kind, LONGEST, compile};
    use crate::units::Unit;

    /// The value at tp = 8, pp = 4, dp = 2, a batch of 64 sequences of 8192 tokens; the condition as 1 or 0.
    fn value(text: &str) -> f64 {
        let point = [("tp", 8.0), ("pp", 4.0), ("dp", 2.0), ("global_batch", 64.0), ("seq_len", 8192.0)];
        let expression = compile(text, &Names).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        expression.evaluate(&Point(&point, &[]))
    }

    fn gives(text: &str, expected: f64) {
        let found = value(text);
        assert!((found - expected).abs() <= 1e-12 * expected.abs(), "{text} is {found}, not {expected}");
    }

    fn unit(text: &str) -> Unit {
        match compile(text, &Names).unwrap_or_else(|error| panic!("{text}: {error:?}")).kind() {
            Kind::Number(unit) => unit,
            other => panic!("{text} is {}", other.describe()),
        }
    }

    fn error(text: &str) -> ExpressionError {
        compile(text, &Names).map_or_else(|error| error, |_| panic!("{text} is accepted"))
    }

    /// The text is refused: the place in it, the message, and the help.
    fn refused(text: &str, place: &str, message: &str, help: &str) {
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

    #[test]
    fn a_unit_s_power_does_not_run_over() {
        let bytes = |sign: &str, count: usize| format!("1{}", format!(" {sign} memory_margin").repeat(count));
        assert!(compile(&bytes("*", 100), &Names).is_ok());
        for sign in ["*", "/"] {
            assert!(error(&bytes(sign, 200)).message.ends_with("has too high a power"));
            let _ = compile(&bytes(sign, 127), &Names).map(|expression| expression.kind().describe());
        }
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
