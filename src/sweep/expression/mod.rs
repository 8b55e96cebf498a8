//! The expressions of a sweep: `where:`, `require:` and `derive:` are each `name: expression`.
//!
//! # What may be written, loosest first
//!
//! | written | of what | gives |
//! | --- | --- | --- |
//! | `a or b` | conditions | a condition |
//! | `a and b` | conditions | a condition |
//! | `not a` | a condition | a condition |
//! | `== != < <= > >=` | two values of one unit; conditions and texts with `==` and `!=` only | a condition |
//! | `+ -` | two values of one unit | the same unit |
//! | `* / %` | numbers; `%` is the remainder, of two values of one unit | the unit worked out |
//! | `-a` | a number | the same unit |
//! | `min(a, b, ..)`, `max(a, b, ..)` | values of one unit | the same unit |
//! | `sum(a)` | a number with `dim.bandwidth` or the like in it: each network dimension's in turn | the same unit |
//! | `tp`, `dim0.size`, `npu.price` | a name of the sweep | what it measures |
//! | `recompute.moe` | a word of a text that may have several | a condition: whether it is among them |
//! | `8`, `600 M$`, `60 $/(GB/s)`, `5 %` | a number, with a unit or without | what it measures |
//! | `true`, `false`, `none` | | a condition; `none` is 0 |
//!
//! # The rules behind it
//!
//! - **Units** are checked before anything runs. A 0 goes with every unit, and any number written without one goes with
//!   sequences and tokens, as people write those counts bare.
//! - **A unit** follows its number and goes as far as it can be read: `600 GB / s` is a bandwidth, `2 / pp` is not. A
//!   unit word that is also a name of the sweep ends the unit if there is a blank (`600 M$ / npus` divides by the name)
//!   and is refused if there is none (`600 M$/npus`).
//! - **`%` behind a number** is per cent if the text, an operator, `)` or `,` follows it, and else the remainder: `5 %`
//!   and `5 % - x` are per cent, `8 % x` is a remainder.
//! - **A text** stands in quotes, or bare behind `==` and `!=` if a text is on the left: `network != W-1D-350`. A name
//!   may have a `-` inside if the whole run without blanks is a name of the sweep: elsewhere it subtracts.
//! - **What is not a number** goes on: `1 / 0` is infinite, `0 / 0` no number. Every comparison with no number is false,
//!   `!=` too; `min` and `max` keep it. A remainder has the sign of the left side. `==` compares to the last bit.

mod lexer;
mod parser;
mod program;

use std::fmt;

use crate::units::Unit;
use program::Instruction;

/// The longest expression, in bytes: far beyond what a person writes, and a bound on the work for what nobody wrote.
pub const LONGEST: usize = 10_000;

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A number of a unit.
    Number(Unit),
    /// A condition: 1.0 if it is true, 0.0 if it is false.
    Bool,
    /// One of the texts that a slot can have, as the number that [`Scope::symbol`] gives it.
    Text,
}

impl Kind {
    /// The kind in words, for an error: `a bandwidth`, `a condition`, `a text`.
    #[must_use]
    pub fn describe(self) -> String {
        match self {
            Self::Number(unit) => unit.describe(),
            Self::Bool => "a condition".into(),
            Self::Text => "a text".into(),
        }
    }
}

/// What a name means where the expression stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// A value of the environment.
    Slot {
        /// Its number, for [`Environment::value`].
        slot: u32,
        /// What it is.
        kind: Kind,
    },
    /// A value of each dimension: a name inside `sum`.
    Dimension {
        /// Its number, for [`Environment::dim_value`].
        slot: u32,
        /// What it is.
        kind: Kind,
    },
}

/// The names that an expression may use, when it is compiled.
pub trait Scope {
    /// The slot and kind of a name outside `sum`, e.g. `tp`, `dim0.size`, `nvlink.bandwidth`, `iteration_time`.
    fn name(&self, name: &str) -> Option<(u32, Kind)>;
    /// The slot and kind of a field of each dimension, for `dim.<field>` inside `sum`.
    fn dim_field(&self, field: &str) -> Option<(u32, Kind)>;
    /// The number that stands for a text when compared with the given slot (interned name); none if the slot can never
    /// have this value. Where a slot may be `none`, that is a text like the others, and its number is 0.0.
    fn symbol(&self, slot: u32, text: &str) -> Option<f64>;
    /// The slot of a text that may have several words and the bit of one of them, by a name such as `recompute.moe`.
    fn word(&self, _name: &str) -> Option<(u32, u8)> {
        None
    }
    /// All names, for suggestions ("did you mean").
    fn names(&self) -> Vec<String>;
    /// The texts that a text slot can have, for suggestions.
    fn texts(&self, slot: u32) -> Vec<String>;
    /// What to say of a name that there is not, if there is more to say than which name is near.
    fn advice(&self, _name: &str) -> Option<String> {
        None
    }
}

/// The values of the names at one design point, when an expression is evaluated.
pub trait Environment {
    /// The value of a slot, in base units; what is `none` is 0.0.
    fn value(&self, slot: u32) -> f64;
    /// How many network dimensions this point has.
    fn dims(&self) -> u32;
    /// The value of a slot of one dimension, 0 the innermost; what is `none` is 0.0.
    fn dim_value(&self, dim: u32, slot: u32) -> f64;
}

/// A compiled expression, to be evaluated at every design point.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    code: Vec<Instruction>,
    kind: Kind,
    slots: Vec<u32>,
    dim_slots: Vec<u32>,
}

/// Compiles an expression: reads it, looks its names up and checks its kinds and units.
///
/// # Errors
/// The first thing that is wrong, with its place in the text.
pub fn compile(text: &str, scope: &dyn Scope) -> Result<Expression, ExpressionError> {
    let (code, kind) = parser::parse(text, scope)?;
    let (slots, dim_slots) = program::slots(&code);
    Ok(Expression { code, kind, slots, dim_slots })
}

/// The expression as it is worked out, whatever its notation: operands before operators, units gone, slots for names.
impl fmt::Display for Expression {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.code.iter().try_for_each(|instruction| write!(out, "{instruction:?} "))
    }
}

impl Expression {
    /// What the expression gives. `where:` and `require:` need a [`Kind::Bool`]; that is the caller's to check.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// The value in base units; a condition is 1.0 or 0.0, a text its symbol. Allocates nothing.
    #[must_use]
    pub fn evaluate(&self, environment: &impl Environment) -> f64 {
        program::run(&self.code, environment)
    }

    /// Whether a condition holds. What is no number is not true.
    #[must_use]
    pub fn is_true(&self, environment: &impl Environment) -> bool {
        program::is_true(self.evaluate(environment))
    }

    /// The slots that are read with [`Environment::value`], also inside `sum`; each once, in the order of the text.
    pub fn slots(&self) -> impl Iterator<Item = u32> {
        self.slots.iter().copied()
    }

    /// The slots that are read with [`Environment::dim_value`], each once, in the order of the text. Without any, the
    /// expression does not ask for [`Environment::dims`] either: a `sum` has something of a dimension in it.
    pub fn dim_slots(&self) -> impl Iterator<Item = u32> {
        self.dim_slots.iter().copied()
    }
}

/// What is wrong in an expression: where in its text (byte range), what, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpressionError {
    /// The first byte of the place.
    pub start: usize,
    /// The byte behind the place; equal to `start` at the end of the text.
    pub end: usize,
    /// What is wrong: a lower-case fragment, values in backticks.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
}

impl ExpressionError {
    fn new(span: Span, message: impl Into<String>) -> Self {
        Self { start: span.start, end: span.end, message: message.into(), help: None }
    }

    fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl std::error::Error for ExpressionError {}

/// A part of the text, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    start: usize,
    end: usize,
}

impl Span {
    /// From the start of one to the end of another.
    const fn to(self, other: Self) -> Self {
        Self { start: self.start, end: other.end }
    }
}

/// A text in backticks for a message, on one line, cut if it is long.
fn quote(text: &str) -> String {
    const LONGEST_SHOWN: usize = 48;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST_SHOWN) {
        Some((cut, _)) => format!("`{}...`", &line[..cut]),
        None => format!("`{line}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The names of the tests, at the slot of their place.
    const NAMES: &[(&str, Kind)] = &[
        ("tp", Kind::Number(Unit::NONE)),
        ("pp", Kind::Number(Unit::NONE)),
        ("dp", Kind::Number(Unit::NONE)),
        ("vpp", Kind::Number(Unit::NONE)),
        ("layers", Kind::Number(Unit::NONE)),
        ("npus", Kind::Number(Unit::NONE)),
        ("dim0.size", Kind::Number(Unit::NONE)),
        ("dim0.bandwidth", Kind::Number(Unit::BANDWIDTH)),
        ("scale-out.bandwidth", Kind::Number(Unit::BANDWIDTH)),
        ("npu.price", Kind::Number(Unit::DOLLAR)),
        ("npu.power", Kind::Number(Unit::WATT)),
        ("pool.price", Kind::Number(Unit::DOLLAR)),
        ("capex", Kind::Number(Unit::DOLLAR)),
        ("site_power", Kind::Number(Unit::WATT)),
        ("memory_margin", Kind::Number(Unit::BYTE)),
        ("iteration_time", Kind::Number(Unit::SECOND)),
        ("global_batch", Kind::Number(Unit::SEQUENCE)),
        ("micro_batch_size", Kind::Number(Unit::SEQUENCE)),
        ("seq_len", Kind::Number(Unit::TOKEN)),
        ("overlap_tp", Kind::Bool),
        ("overlap_ep", Kind::Bool),
        ("network", Kind::Text),
        ("recompute", Kind::Text),
    ];
    /// The fields of a dimension, at the slot of their place.
    const FIELDS: &[(&str, Kind)] = &[
        ("size", Kind::Number(Unit::NONE)),
        ("bandwidth", Kind::Number(Unit::BANDWIDTH)),
        ("price", Kind::Number(Unit::DOLLAR_PER_BANDWIDTH)),
        ("block", Kind::Text),
    ];
    /// What a text can be; its symbol is its place.
    const TEXTS: &[(&str, &[&str])] = &[
        ("network", &["", "W-1D-350", "split", "Conv-3D", "megatron-core 0.14"]),
        ("recompute", &["none", "selective", "full"]),
    ];

    fn place(table: &[(&str, Kind)], name: &str) -> Option<(u32, Kind)> {
        let place = table.iter().position(|row| row.0 == name)?;
        Some((u32::try_from(place).expect("a short table"), table[place].1))
    }

    fn texts_of(slot: u32) -> &'static [&'static str] {
        let name = NAMES[usize::try_from(slot).expect("small")].0;
        TEXTS.iter().find(|row| row.0 == name).map_or(&[], |row| row.1)
    }

    pub(super) struct Names;

    impl Scope for Names {
        fn name(&self, name: &str) -> Option<(u32, Kind)> {
            place(NAMES, name)
        }
        fn dim_field(&self, field: &str) -> Option<(u32, Kind)> {
            place(FIELDS, field)
        }
        fn symbol(&self, slot: u32, text: &str) -> Option<f64> {
            let place = texts_of(slot).iter().position(|known| *known == text && !text.is_empty())?;
            u32::try_from(place).ok().map(f64::from)
        }
        fn names(&self) -> Vec<String> {
            NAMES.iter().map(|row| row.0.to_owned()).collect()
        }
        fn texts(&self, slot: u32) -> Vec<String> {
            texts_of(slot).iter().filter(|text| !text.is_empty()).map(|text| (*text).to_owned()).collect()
        }
    }

    /// A design point: names with values, the rest `none`; and of each dimension bandwidth and price.
    #[derive(Default)]
    pub(super) struct Point<'a>(pub(super) &'a [(&'a str, f64)], pub(super) &'a [(f64, f64)]);

    impl Environment for Point<'_> {
        fn value(&self, slot: u32) -> f64 {
            let name = NAMES[usize::try_from(slot).expect("small")].0;
            self.0.iter().find(|value| value.0 == name).map_or(0.0, |value| value.1)
        }
        fn dims(&self) -> u32 {
            u32::try_from(self.1.len()).expect("few")
        }
        fn dim_value(&self, dim: u32, slot: u32) -> f64 {
            let (bandwidth, price) = self.1[usize::try_from(dim).expect("small")];
            [0.0, bandwidth, price, 0.0][usize::try_from(slot).expect("small")]
        }
    }

    fn compiled(text: &str) -> Expression {
        compile(text, &Names).unwrap_or_else(|error| panic!("{text}: {error:?}"))
    }

    fn holds(text: &str, point: &Point<'_>) -> bool {
        let expression = compiled(text);
        assert_eq!(expression.kind(), Kind::Bool, "{text}");
        expression.is_true(point)
    }

    /// The value is within a part in 10^12, and the unit is the one.
    fn gives(text: &str, point: &Point<'_>, value: f64, unit: Unit) {
        let expression = compiled(text);
        let found = expression.evaluate(point);
        assert!((found - value).abs() <= 1e-12 * value.abs(), "{text} is {found}, not {value}");
        assert_eq!(expression.kind(), Kind::Number(unit), "{text}");
    }

    #[test]
    fn the_architect_s_cluster_costs_135_million_and_draws_3_87_megawatts() {
        // 4096 NPUs at 30 k$; no pool, so 0; each has 50 GB/s of the leaf at 60 $ a GB/s, 3 k$; the other two dimensions
        // have no price. 4096 * 33 k$ = 135.168 M$. And 4096 * 700 W * 1.35 = 3.87072 MW.
        let dims = [(450e9, 0.0), (50e9, 60e-9), (50e9, 0.0)];
        let point = Point(&[("npus", 4096.0), ("npu.price", 30e3), ("npu.power", 700.0)], &dims);
        let capex = "npus * (npu.price + pool.price + sum(dim.price * dim.bandwidth))";
        gives(capex, &point, 135.168e6, Unit::DOLLAR);
        gives("npus * npu.power * 1.35", &point, 3.870_72e6, Unit::WATT);
        // Four times as many NPUs and a half: 20480 * 33 k$ = 675.84 M$.
        let point = Point(&[("npus", 20480.0), ("npu.price", 30e3)], &dims);
        gives(capex, &point, 675.84e6, Unit::DOLLAR);
    }

    #[test]
    fn the_architect_s_requirements_include_their_bounds() {
        let at = |capex: f64, power: f64| {
            let values = [("capex", capex), ("site_power", power)];
            let point = Point(&values, &[]);
            (holds("capex <= 600 M$", &point), holds("site_power <= 20 MW", &point))
        };
        assert_eq!(at(600e6, 20e6), (true, true));
        assert_eq!(at(600e6 + 1.0, 20e6 + 1.0), (false, false));
        assert!(holds("tp <= dim0.size", &Point(&[("tp", 8.0), ("dim0.size", 8.0)], &[])));
    }

    #[test]
    fn the_engineer_keeps_tensor_parallelism_in_the_node_and_four_gigabytes_free() {
        assert!(holds("tp <= 8", &Point(&[("tp", 8.0)], &[])));
        assert!(!holds("tp <= 8", &Point(&[("tp", 16.0)], &[])));
        assert!(holds("memory_margin >= 4 GB", &Point(&[("memory_margin", 4e9)], &[])));
        assert!(!holds("memory_margin >= 4 GB", &Point(&[("memory_margin", 3.999e9)], &[])));
    }

    #[test]
    fn the_researcher_s_split_adds_up_to_600_gibibytes_a_second() {
        const GIB: f64 = 1_073_741_824.0;
        let text = "network != split or sum(dim.bandwidth) == 600 GiB/s";
        let at = |network: f64, bandwidths: [f64; 3]| {
            holds(text, &Point(&[("network", network)], &bandwidths.map(|bandwidth| (bandwidth * GIB, 0.0))))
        };
        assert!(at(2.0, [500.0, 50.0, 50.0]));
        assert!(!at(2.0, [500.0, 100.0, 50.0]));
        assert!(at(1.0, [350.0, 0.0, 0.0]));
    }

    #[test]
    fn a_sum_without_dimensions_is_zero_and_names_in_it_stay_the_same() {
        gives("1 + sum(dim.size)", &Point(&[], &[]), 1.0, Unit::NONE);
        // 10 + 2 * 3 * (1 + 2 + 4) GB/s = 52 GB/s.
        let point = Point(&[("tp", 2.0), ("pp", 3.0)], &[(1e9, 0.0), (2e9, 0.0), (4e9, 0.0)]);
        gives("10 GB/s + tp * sum(pp * dim.bandwidth)", &point, 52e9, Unit::BANDWIDTH);
        gives("sum(dim.bandwidth) / sum(dim.bandwidth - 1 GB/s)", &point, 1.75, Unit::NONE);
    }

    #[test]
    fn what_is_none_counts_as_zero() {
        gives("npu.price + pool.price", &Point(&[("npu.price", 5.0)], &[]), 5.0, Unit::DOLLAR);
        assert!(holds("pool.price == none and pool.price == 0", &Point::default()));
    }

    #[test]
    fn what_is_no_number_meets_no_comparison() {
        let point = Point::default();
        for operator in ["==", "!=", "<", "<=", ">", ">="] {
            assert!(!holds(&format!("tp / pp {operator} 1"), &point), "{operator}");
            assert!(!holds(&format!("1 {operator} 0 / 0"), &point), "{operator}");
        }
        assert!(holds("not tp / pp == 1", &point));
        assert!(holds("8 / pp > 1e300", &point));
        assert!(compiled("min(tp / pp, 1)").evaluate(&point).is_nan());
        assert!(compiled("max(1, tp / pp)").evaluate(&point).is_nan());
        assert!(compiled("tp % pp").evaluate(&point).is_nan());
        assert!(!compiled("tp / pp").is_true(&point));
    }

    #[test]
    fn slots_are_named_once_in_the_order_of_the_text_also_those_inside_sum() {
        let expression = compiled("dp + tp * sum(pp * dim.size * (dim.size + dim.bandwidth / dim.bandwidth)) + dp > 0");
        assert_eq!(expression.slots().collect::<Vec<_>>(), [2, 0, 1]);
        assert_eq!(expression.dim_slots().collect::<Vec<_>>(), [0, 1]);
        assert_eq!(compiled("1 < 2").slots().count(), 0);
    }

    #[test]
    fn a_text_alone_is_its_symbol() {
        let expression = compiled("network");
        assert_eq!(expression.kind(), Kind::Text);
        assert!((expression.evaluate(&Point(&[("network", 3.0)], &[])) - 3.0).abs() < f64::EPSILON);
    }

    /// Whatever the text: no panic, an error with a place inside it and a remedy, or a program that runs anywhere.
    fn survives(text: &str) {
        match compile(text, &Names) {
            Ok(expression) => {
                for value in [0.0, 1.0, -3.5, f64::NAN, f64::INFINITY] {
                    let values: Vec<_> = NAMES.iter().map(|name| (name.0, value)).collect();
                    let _ = expression.evaluate(&Point(&values, &[]));
                    let _ = expression.is_true(&Point(&values, &[(value, value), (1.0, 2.0)]));
                }
                let _ = expression.kind().describe();
            }
            Err(error) => {
                assert!(text.get(error.start..error.end).is_some(), "{text:?}: {error:?}");
                assert!(!error.message.is_empty() && !error.message.ends_with('.'), "{text:?}: {error:?}");
                assert!(error.help.is_some(), "{text:?}: {error:?}");
            }
        }
    }

    const WORDS: &[&str] = &[
        "tp",
        "npus",
        "dim0.size",
        "capex",
        "network",
        "recompute",
        "overlap_tp",
        "dim.bandwidth",
        "dim.block",
        "dim.",
        "split",
        "W-1D-350",
        "'split'",
        "\"",
        "8",
        "0",
        "1e400",
        "600 M$",
        "60 $/(GB/s)",
        "5 %",
        "2.5",
        "1.2.3",
        ".5",
        "s",
        "GB",
        "h",
        "µs",
        "$",
        "npus",
        "seq",
        "+",
        "-",
        "*",
        "/",
        "%",
        "(",
        ")",
        ",",
        "==",
        "!=",
        "<",
        "<=",
        ">",
        ">=",
        "=",
        "and",
        "or",
        "not",
        "true",
        "none",
        "min(",
        "max(",
        "sum(",
        "min",
        "sum",
        "é",
        "\u{a0}",
        "\n",
        "&&",
        "≤",
        "[",
    ];

    const OPERANDS: &[&str] = &["tp", "pp", "8", "(dp)", "-1", "50 %", "sum(dim.size)", "min(tp, 3)", "0 / 0"];
    const OPERATORS: &[&str] = &["+", "-", "*", "/", "%", "< 3 and", "== 2 or", "> 1 and not 2 !="];

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_text_makes_the_compiler_panic(text in ".{0,60}", bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            survives(&text);
            survives(&String::from_utf8_lossy(&bytes));
        }

        #[test]
        fn no_order_of_words_makes_the_compiler_panic(
            words in prop::collection::vec((prop::sample::select(WORDS), any::<bool>()), 0..14),
        ) {
            let text: String = words.iter().flat_map(|(word, blank)| [*word, if *blank { " " } else { "" }]).collect();
            survives(&text);
        }

        #[test]
        fn no_chain_of_operators_makes_the_compiler_panic(
            words in prop::collection::vec((prop::sample::select(OPERANDS), prop::sample::select(OPERATORS)), 1..10),
        ) {
            let text: String = words.iter().flat_map(|(operand, operator)| [*operand, " ", *operator, " "]).collect();
            survives(&format!("{text} 2"));
        }
    }
}
