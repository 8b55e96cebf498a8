//! Words, numbers with their units, texts and signs of an expression.
//!
//! The lexer knows the names of the sweep, as a unit ends where a name begins: `600 M$ / npus`.

use super::program::Binary;
use super::{ExpressionError, Scope, Span, quote};
use crate::units::{Quantity, QuantityError, Unit, parse_unit, split_number, unit_words};

/// The longest unit, in bytes: keeps the powers of a unit far from where they stop.
const LONGEST_UNIT: usize = 64;

/// Signs, the longer first where one begins with another.
const SIGNS: &[(&str, TokenKind<'static>)] = &[
    ("==", TokenKind::Binary(Binary::Equal)),
    ("!=", TokenKind::Binary(Binary::NotEqual)),
    ("<=", TokenKind::Binary(Binary::LessEqual)),
    (">=", TokenKind::Binary(Binary::GreaterEqual)),
    ("<", TokenKind::Binary(Binary::Less)),
    (">", TokenKind::Binary(Binary::Greater)),
    ("+", TokenKind::Binary(Binary::Add)),
    ("-", TokenKind::Binary(Binary::Subtract)),
    ("*", TokenKind::Binary(Binary::Multiply)),
    ("/", TokenKind::Binary(Binary::Divide)),
    ("%", TokenKind::Binary(Binary::Remainder)),
    ("(", TokenKind::Open),
    (")", TokenKind::Close),
    (",", TokenKind::Comma),
];

/// Signs of other languages, and what is written here instead.
const FOREIGN_SIGNS: &[(&str, &str)] = &[
    ("===", "write `==`"),
    ("=<", "write `<=`"),
    ("=>", "write `>=`"),
    ("<>", "write `!=`"),
    ("≤", "write `<=`"),
    ("≥", "write `>=`"),
    ("≠", "write `!=`"),
    ("&&", "write `and`"),
    ("||", "write `or`"),
    ("**", "there are no powers: multiply"),
    ("^", "there are no powers: multiply"),
    ("//", "write `/`; a remainder is `%`"),
    ("×", "write `*`"),
    ("·", "write `*`"),
];

/// Words that are no names.
pub(super) const KEYWORDS: &[(&str, TokenKind<'static>)] = &[
    ("or", TokenKind::Binary(Binary::Or)),
    ("and", TokenKind::Binary(Binary::And)),
    ("not", TokenKind::Not),
    ("true", TokenKind::Truth(true)),
    ("false", TokenKind::Truth(false)),
    ("none", TokenKind::None),
    ("min", TokenKind::Function(Function::Min)),
    ("max", TokenKind::Function(Function::Max)),
    ("sum", TokenKind::Function(Function::Sum)),
];

/// A function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Min,
    Max,
    Sum,
}

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum TokenKind<'a> {
    Number(Quantity),
    Name(&'a str),
    Text(&'a str),
    Truth(bool),
    None,
    Function(Function),
    Binary(Binary),
    Not,
    Open,
    Close,
    Comma,
    End,
}

/// A token and its place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Token<'a> {
    pub(super) kind: TokenKind<'a>,
    pub(super) span: Span,
}

/// Reads tokens one by one.
pub(super) struct Lexer<'a> {
    text: &'a str,
    scope: &'a dyn Scope,
    /// Where the next token is looked for.
    at: usize,
}

impl<'a> Lexer<'a> {
    pub(super) const fn new(text: &'a str, scope: &'a dyn Scope) -> Self {
        Self { text, scope, at: 0 }
    }

    /// The next token; at the end, [`TokenKind::End`] again and again.
    pub(super) fn next(&mut self) -> Result<Token<'a>, ExpressionError> {
        self.at = self.skip_blanks(self.at);
        let rest = &self.text[self.at..];
        let mut characters = rest.chars();
        match (characters.next(), characters.next()) {
            (None, _) => Ok(self.take(TokenKind::End, 0)),
            (Some('0'..='9'), _) | (Some('.'), Some('0'..='9')) => self.number(),
            (Some('a'..='z' | 'A'..='Z' | '_'), _) => Ok(self.word()),
            (Some(quote @ ('"' | '\'')), _) => self.quoted(quote),
            (Some(first), _) => self.sign(first),
        }
    }

    /// A text without quotes, if one begins here: letters, digits, `_`, `.` and `-`, up to anything else.
    pub(super) fn bare_text(&mut self) -> Option<Token<'a>> {
        self.at = self.skip_blanks(self.at);
        let text = bare_run(&self.text[self.at..]);
        text.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '_')
            .then(|| self.take(TokenKind::Text(text), text.len()))
    }

    fn take(&mut self, kind: TokenKind<'a>, length: usize) -> Token<'a> {
        let start = self.at;
        self.at += length;
        Token { kind, span: Span { start, end: self.at } }
    }

    fn skip_blanks(&self, from: usize) -> usize {
        self.text.len() - self.text[from..].trim_start().len()
    }

    fn sign(&mut self, first: char) -> Result<Token<'a>, ExpressionError> {
        let rest = &self.text[self.at..];
        let span = |length| Span { start: self.at, end: self.at + length };
        if let Some((sign, help)) = FOREIGN_SIGNS.iter().find(|sign| rest.starts_with(sign.0)) {
            return Err(ExpressionError::new(span(sign.len()), format!("`{sign}` is not known here")).help(*help));
        }
        if let Some((sign, kind)) = SIGNS.iter().find(|sign| rest.starts_with(sign.0)) {
            return Ok(self.take(*kind, sign.len()));
        }
        let span = span(first.len_utf8());
        Err(match first {
            '=' => ExpressionError::new(span, "`=` does not compare").help("write `==`"),
            '!' => ExpressionError::new(span, "`!` is not known here").help("write `not`"),
            _ => ExpressionError::new(span, format!("`{}` is not known here", first.escape_debug())).help(
                "an expression has names, numbers with units, texts in quotes and `+ - * / % ( ) , == != < <= > >=`",
            ),
        })
    }

    /// A keyword or a name. A name has a `-` inside only if all up to the next blank or sign is a name of the sweep.
    fn word(&mut self) -> Token<'a> {
        let rest = &self.text[self.at..];
        let run = bare_run(rest);
        if run.contains('-') && self.scope.name(run).is_some() {
            return self.take(TokenKind::Name(run), run.len());
        }
        let name = dotted_name(rest);
        let keyword = KEYWORDS.iter().find(|keyword| keyword.0 == name);
        self.take(keyword.map_or(TokenKind::Name(name), |keyword| keyword.1), name.len())
    }

    fn quoted(&mut self, quote: char) -> Result<Token<'a>, ExpressionError> {
        let inner = &self.text[self.at + 1..];
        let Some(length) = inner.find(quote) else {
            let span = Span { start: self.at, end: self.text.len() };
            return Err(ExpressionError::new(span, "the text has no end").help(format!("close it with `{quote}`")));
        };
        Ok(self.take(TokenKind::Text(&inner[..length]), length + 2))
    }

    fn number(&mut self) -> Result<Token<'a>, ExpressionError> {
        let start = self.at;
        // A digit is there, so that the number is not empty.
        let number = split_number(&self.text[start..]).map_or("", |parts| parts.0);
        let (unit, end) = self.unit(number)?;
        let span = Span { start, end };
        let quantity = Quantity::parse(&format!("{number} {unit}")).map_err(|error| match error {
            QuantityError::NotFinite => {
                ExpressionError::new(span, format!("{} is too large", quote(&self.text[start..end])))
                    .help("write less than 1e300")
            }
            _ => ExpressionError::new(span, format!("{} is no number", quote(number)))
                .help("write e.g. `8`, `0.5` or `1e9`"),
        })?;
        Ok(self.take(TokenKind::Number(quantity), end - start))
    }

    /// The unit behind a number, without its blanks, and where it ends: the longest text that is one.
    fn unit(&self, number: &str) -> Result<(String, usize), ExpressionError> {
        let number_end = self.at + number.len();
        let start = self.skip_blanks(number_end);
        let rest = &self.text[start..];
        let first = unit_word(rest);
        if first.is_empty() || (first == "%" && !ends_per_cent(&rest[1..])) {
            return Ok((String::new(), number_end));
        }
        if parse_unit(first).is_err() {
            let joins = matches!(first, "or" | "and");
            return if joins { Ok((String::new(), number_end)) } else { Err(self.no_unit(start, first)) };
        }
        let mut unit = first.to_owned();
        let mut end = start + first.len();
        while let Some((part, part_end)) = self.unit_part(end)? {
            if part_end - start > LONGEST_UNIT {
                break;
            }
            unit.push_str(part);
            end = part_end;
        }
        Ok((unit, end))
    }

    /// One more part of a unit, `/s` or `*(GB/s)`, and where it ends; none if what follows is something else.
    fn unit_part(&self, end: usize) -> Result<Option<(&'a str, usize)>, ExpressionError> {
        let sign = self.skip_blanks(end);
        if !self.text[sign..].starts_with(['/', '*']) {
            return Ok(None);
        }
        let start = self.skip_blanks(sign + 1);
        let rest = &self.text[start..];
        let part =
            if rest.starts_with('(') { rest.find(')').map_or("", |close| &rest[..=close]) } else { unit_word(rest) };
        let part_end = start + part.len();
        let is_call = part.starts_with(char::is_alphabetic) && self.text[part_end..].trim_start().starts_with('(');
        let is_empty = matches!(part, "" | "%" | "()");
        if is_empty || is_call || part.len() > LONGEST_UNIT || parse_unit(part).is_err() {
            return Ok(None);
        }
        let mut words = part.split(['/', '*', '(', ')', ' ']).filter(|word| !word.is_empty());
        let has_blanks = sign > end || start > sign + 1;
        match (words.all(|word| self.scope.name(word).is_some()), has_blanks) {
            (false, _) => Ok(Some((&self.text[sign..part_end], part_end))),
            (true, true) => Ok(None),
            (true, false) => Err(ambiguous(part, Span { start, end: part_end }, &self.text[sign..=sign])),
        }
    }

    /// The error for a word behind a number that is no unit.
    fn no_unit(&self, start: usize, word: &str) -> ExpressionError {
        let name = dotted_name(&self.text[start..]);
        if self.scope.name(name).is_some() || KEYWORDS.iter().any(|keyword| keyword.0.eq_ignore_ascii_case(name)) {
            return missing_operator(name, Span { start, end: start + name.len() });
        }
        let span = Span { start, end: start + word.len() };
        let known = |word: &str| unit_words().find(|known| known.eq_ignore_ascii_case(word));
        let rate = || ["ps", "s"].iter().find_map(|end| known(strip_end(word, end)?));
        let help = match (known(word), rate()) {
            (Some(unit), _) => format!("did you mean `{unit}`?"),
            (_, Some(unit)) => format!("did you mean `{unit}/s`?"),
            _ => "units are e.g. `GB`, `GB/s`, `us`, `TFLOP/s`, `MW`, `M$`, `seq`, `%`".to_owned(),
        };
        ExpressionError::new(span, format!("{} is no unit", quote(word))).help(help)
    }
}

/// The error for a part of a unit that is also a name, and stands where both would do.
fn ambiguous(part: &str, span: Span, sign: &str) -> ExpressionError {
    let if_unit = match parse_unit(part) {
        Ok((_, Unit::NONE)) => format!("leave out `{sign}{part}`"),
        _ => "give the name another name".to_owned(),
    };
    ExpressionError::new(span, format!("`{part}` is both a unit and a name of the sweep"))
        .help(format!("if the name is meant, write ` {sign} {part}` with blanks; if the unit is, {if_unit}"))
}

/// The error for a value, here a word, directly behind a value.
pub(super) fn missing_operator(word: &str, span: Span) -> ExpressionError {
    let error = ExpressionError::new(span, format!("an operator is missing before {}", quote(word)));
    match KEYWORDS.iter().find(|keyword| keyword.0.eq_ignore_ascii_case(word) && keyword.0 != word) {
        Some((keyword, _)) => error.help(format!("did you mean `{keyword}`?")),
        None => error.help("write one of `+ - * / % == != < <= > >= and or` there"),
    }
}

/// A word without its end, whatever the case.
fn strip_end<'a>(word: &'a str, end: &str) -> Option<&'a str> {
    let (start, rest) = word.split_at_checked(word.len().checked_sub(end.len())?)?;
    rest.eq_ignore_ascii_case(end).then_some(start)
}

/// The letters, digits, `_`, `.` and `-` at the start of a text.
pub(super) fn bare_run(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')));
    &text[..end.unwrap_or(text.len())]
}

/// The name at the start of a text that begins with a letter: words joined by dots.
fn dotted_name(text: &str) -> &str {
    let bytes = text.as_bytes();
    let mut end = 0;
    while let Some(byte) = bytes.get(end) {
        let begins_word = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
        let goes_on = begins_word(*byte) || byte.is_ascii_digit();
        let joins = *byte == b'.' && bytes.get(end + 1).is_some_and(|next| begins_word(*next));
        if !(goes_on || joins) {
            break;
        }
        end += 1;
    }
    &text[..end]
}

/// The unit word at the start of a text, such as `GB`, `k$`, `µs`, `%`; empty if there is none. It takes all that could
/// belong to a word, so that `GB.x` is no unit.
fn unit_word(text: &str) -> &str {
    if text.starts_with('%') {
        return &text[..1];
    }
    if !text.starts_with(|c: char| c.is_alphabetic() || matches!(c, '$' | '_')) {
        return "";
    }
    let end = text.find(|c: char| !(c.is_alphanumeric() || matches!(c, '$' | '_' | '.')));
    &text[..end.unwrap_or(text.len())]
}

/// Whether a `%` with this behind it closes a number as per cent: no value follows that it could divide by.
fn ends_per_cent(after: &str) -> bool {
    let after = after.trim_start();
    let word = dotted_name(after);
    word == "or"
        || word == "and"
        || after.starts_with([')', ',', '+', '-', '*', '/', '%', '<', '>', '=', '!'])
        || after.is_empty()
}

#[cfg(test)]
mod tests {
    use super::super::tests::Names;
    use super::*;

    /// All tokens, or the first error.
    fn tokens(text: &str) -> Result<Vec<Token<'_>>, ExpressionError> {
        let mut lexer = Lexer::new(text, &Names);
        let mut tokens = Vec::new();
        loop {
            let token = lexer.next()?;
            if token.kind == TokenKind::End {
                return Ok(tokens);
            }
            tokens.push(token);
        }
    }

    /// The parts of the text that its tokens are made of.
    fn parts(text: &str) -> Vec<&str> {
        let tokens = tokens(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        tokens.iter().map(|token| &text[token.span.start..token.span.end]).collect()
    }

    fn first_number(text: &str) -> Quantity {
        match tokens(text).unwrap_or_else(|error| panic!("{text}: {error:?}"))[0].kind {
            TokenKind::Number(quantity) => quantity,
            other => panic!("{text} begins with {other:?}"),
        }
    }

    fn refused(text: &str, place: &str, message: &str, help: &str) {
        let error = tokens(text).expect_err(text);
        assert_eq!(&text[error.start..error.end], place, "{text}");
        assert_eq!((error.message.as_str(), error.help.as_deref().unwrap_or_default()), (message, help), "{text}");
    }

    #[test]
    fn a_number_has_the_value_and_unit_that_a_quantity_of_the_file_has() {
        for text in [
            "600 M$",
            "600 GiB/s",
            "20 MW",
            "4 GB",
            "5 %",
            "8",
            "60 $/(GB/s)",
            "1.35",
            "1_000 GB",
            "2.5e3 us",
            ".5 h",
            "64 npus",
            "3µs",
            "8192 tok",
            "312 TFLOP/s",
            "2 GB * s",
            "1 $ / (GB / s) / h",
        ] {
            let known = Quantity::parse(text).expect(text);
            let found = first_number(text);
            assert_eq!((found.value.to_bits(), found.unit), (known.value.to_bits(), known.unit), "{text}");
            assert_eq!(parts(text), [text]);
        }
    }

    #[test]
    fn a_unit_ends_where_it_can_no_longer_be_read() {
        assert_eq!(parts("2 / pp"), ["2", "/", "pp"]);
        assert_eq!(parts("8 GB/s/pp"), ["8 GB/s", "/", "pp"]);
        assert_eq!(parts("8 GB / 2 s"), ["8 GB", "/", "2 s"]);
        assert_eq!(parts("20 MW-5 MW"), ["20 MW", "-", "5 MW"]);
        assert_eq!(parts("600 M$<=capex"), ["600 M$", "<=", "capex"]);
        assert_eq!(parts("8and tp"), ["8", "and", "tp"]);
        assert_eq!(parts("8 or tp"), ["8", "or", "tp"]);
        assert_eq!(parts("2 GB * min(1, 2)"), ["2 GB", "*", "min", "(", "1", ",", "2", ")"]);
        assert_eq!(parts("60 $ / (1 + 2)"), ["60 $", "/", "(", "1", "+", "2", ")"]);
        assert_eq!(parts("(4 GB)/s"), ["(", "4 GB", ")", "/", "s"]);
        assert_eq!(parts("4 GB / ()"), ["4 GB", "/", "(", ")"]);
        assert_eq!(parts("4 GB /"), ["4 GB", "/"]);
    }

    #[test]
    fn a_unit_ends_before_a_name_and_is_refused_where_either_would_do() {
        assert_eq!(parts("600 M$ / npus"), ["600 M$", "/", "npus"]);
        assert_eq!(parts("600 M$/ npus"), ["600 M$", "/", "npus"]);
        assert_eq!(parts("600 M$ / (npus)"), ["600 M$", "/", "(", "npus", ")"]);
        assert_eq!(parts("64 npus / npus"), ["64 npus", "/", "npus"]);
        refused(
            "600 M$/npus",
            "npus",
            "`npus` is both a unit and a name of the sweep",
            "if the name is meant, write ` / npus` with blanks; if the unit is, leave out `/npus`",
        );
    }

    #[test]
    fn a_long_unit_is_cut_so_that_its_powers_stay_small() {
        let text = format!("1 s{}", "*s".repeat(200));
        assert_eq!(parts(&text)[0].len(), "1 ".len() + LONGEST_UNIT - 1);
    }

    #[test]
    fn a_percent_sign_is_per_cent_unless_a_value_follows() {
        for text in
            ["5 %", "5 % ", "5%) ", "5 % <= tp", "5 % == 1", "5 % != 1", "5 % and true", "5 % or true", "5 % * 2"]
        {
            assert!((first_number(text).value - 0.05).abs() < 1e-15, "{text}");
        }
        for text in ["5 %, 1", "5 % - tp", "5 % + 1", "5 % / 2", "5 % % 3", "5%>tp"] {
            assert!((first_number(text).value - 0.05).abs() < 1e-15, "{text}");
        }
        for text in ["5 % tp", "5%3", "5 % (tp)", "5 % order", "5 % min(1, 2)", "5 % .5", "5 GB % 2 GB"] {
            assert!((first_number(text).value - 0.05).abs() > 1.0, "{text}");
            assert_eq!(parts(text)[1], "%", "{text}");
        }
        assert_eq!(parts("tp % 8"), ["tp", "%", "8"]);
        assert_eq!(parts("(tp) % 8 %"), ["(", "tp", ")", "%", "8 %"]);
    }

    #[test]
    fn names_have_dots_and_a_minus_only_if_the_sweep_knows_the_whole() {
        assert_eq!(parts("cluster.npu.price"), ["cluster.npu.price"]);
        assert_eq!(parts("_a1.b_2*x"), ["_a1.b_2", "*", "x"]);
        assert_eq!(parts("tp-pp"), ["tp", "-", "pp"]);
        assert_eq!(parts("scale-out.bandwidth*2"), ["scale-out.bandwidth", "*", "2"]);
        assert_eq!(parts("scale-in"), ["scale", "-", "in"]);
        assert_eq!(parts("tp.5"), ["tp", ".5"]);
    }

    #[test]
    fn a_bare_text_takes_letters_digits_underscores_dots_and_minus() {
        let bare = |text| Lexer::new(text, &Names).bare_text().map(|token| &text[token.span.start..token.span.end]);
        assert_eq!(bare(" W-1D-350 or"), Some("W-1D-350"));
        assert_eq!(bare("0.14)"), Some("0.14"));
        assert_eq!(bare("none"), Some("none"));
        assert_eq!(bare("'split'"), None);
        assert_eq!(bare("-1"), None);
        assert_eq!(bare(""), None);
    }

    #[test]
    fn texts_in_quotes_hold_the_other_quote() {
        let text = "\"it's\" 'é'";
        let kinds: Vec<_> = tokens(text).expect(text).iter().map(|token| token.kind).collect();
        assert_eq!(kinds, [TokenKind::Text("it's"), TokenKind::Text("é")]);
        refused("tp == 'spl", "'spl", "the text has no end", "close it with `'`");
    }

    #[test]
    fn what_is_no_unit_gets_the_unit_that_is_meant() {
        let units = "units are e.g. `GB`, `GB/s`, `us`, `TFLOP/s`, `MW`, `M$`, `seq`, `%`";
        refused("400 GBps", "GBps", "`GBps` is no unit", "did you mean `GB/s`?");
        refused("312 TFLOPS", "TFLOPS", "`TFLOPS` is no unit", "did you mean `TFLOP/s`?");
        refused("4 gb", "gb", "`gb` is no unit", "did you mean `GB`?");
        refused("4 furlongs", "furlongs", "`furlongs` is no unit", units);
        refused("4 é", "é", "`é` is no unit", units);
        let operator = "write one of `+ - * / % == != < <= > >= and or` there";
        refused("2 tp", "tp", "an operator is missing before `tp`", operator);
        refused("2 max(1, 2)", "max", "an operator is missing before `max`", operator);
        refused("2 AND true", "AND", "an operator is missing before `AND`", "did you mean `and`?");
    }

    #[test]
    fn what_is_no_number_is_refused() {
        refused("tp < 1.2.3", "1.2.3", "`1.2.3` is no number", "write e.g. `8`, `0.5` or `1e9`");
        refused("1e400 GB", "1e400 GB", "`1e400 GB` is too large", "write less than 1e300");
        refused("1e300 G$", "1e300 G$", "`1e300 G$` is too large", "write less than 1e300");
    }

    #[test]
    fn signs_of_other_languages_are_translated() {
        refused("tp = 8", "=", "`=` does not compare", "write `==`");
        refused("tp === 8", "===", "`===` is not known here", "write `==`");
        refused("!true", "!", "`!` is not known here", "write `not`");
        refused("tp ≤ 8", "≤", "`≤` is not known here", "write `<=`");
        for (sign, help) in FOREIGN_SIGNS {
            refused(&format!("tp {sign} 8"), sign, &format!("`{sign}` is not known here"), help);
        }
        let error = tokens("finish_time[Conv-3D]").expect_err("brackets");
        assert_eq!((error.start, error.message.as_str()), (11, "`[` is not known here"));
    }
}
