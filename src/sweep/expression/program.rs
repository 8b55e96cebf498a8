//! A compiled expression as a flat list of instructions, and the small stack machine that runs it.
//!
//! The machine keeps the value on top of its stack apart, and the rest in an array of fixed size: nothing is allocated.
//! [`Program`] counts the depth while it is written, so that no program can leave the array.

use std::cmp::Ordering;

use super::Environment;
use crate::units::whole;

/// How many values may be waiting at once. A person's expression needs a handful; the array is cleared at each run.
pub(super) const STACK: usize = 32;

/// An operation on two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binary {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Min,
    Max,
}

impl Binary {
    /// The text that people write.
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Or => "or",
            Self::And => "and",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessEqual => "<=",
            Self::Greater => ">",
            Self::GreaterEqual => ">=",
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
            Self::Min => "min",
            Self::Max => "max",
        }
    }

    /// How tightly it binds. `not` stands at 3; `min` and `max` are calls and never compete.
    pub(super) const fn precedence(self) -> u8 {
        match self {
            Self::Or => 1,
            Self::And => 2,
            Self::Equal | Self::NotEqual | Self::Less | Self::LessEqual | Self::Greater | Self::GreaterEqual => 4,
            Self::Add | Self::Subtract => 5,
            Self::Multiply | Self::Divide | Self::Remainder | Self::Min | Self::Max => 6,
        }
    }

    pub(super) const fn is_comparison(self) -> bool {
        self.precedence() == Self::Equal.precedence()
    }

    pub(super) const fn is_equality(self) -> bool {
        matches!(self, Self::Equal | Self::NotEqual)
    }

    /// The two values joined. Each comparison with NaN is false, `!=` too: a value that is unknown meets no condition.
    #[inline]
    #[expect(clippy::float_cmp, reason = "`==` is exact: counts, names and whole base units are")]
    fn apply(self, left: f64, right: f64) -> f64 {
        match self {
            Self::Or => truth(is_true(left) | is_true(right)),
            Self::And => truth(is_true(left) & is_true(right)),
            Self::Equal => truth(left == right),
            Self::NotEqual => truth(left.partial_cmp(&right).is_some_and(Ordering::is_ne)),
            Self::Less => truth(left < right),
            Self::LessEqual => truth(left <= right),
            Self::Greater => truth(left > right),
            Self::GreaterEqual => truth(left >= right),
            Self::Add => left + right,
            Self::Subtract => left - right,
            Self::Multiply => left * right,
            Self::Divide => left / right,
            Self::Remainder => left % right,
            // `f64::min` would drop a NaN.
            Self::Min => {
                if left < right || left.is_nan() {
                    left
                } else {
                    right
                }
            }
            Self::Max => {
                if left > right || left.is_nan() {
                    left
                } else {
                    right
                }
            }
        }
    }
}

/// What the machine does next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Instruction {
    /// Puts a number on the stack.
    Constant(f64),
    /// Puts a value of the environment on the stack.
    Slot(u32),
    /// Puts a value of the dimension whose turn it is on the stack.
    DimSlot(u32),
    /// Changes the sign of the top.
    Negate,
    /// Turns the top from true to false and back.
    Not,
    /// Turns the top, a number of bits, into whether it has this one.
    Has(u8),
    /// Takes two values, puts one.
    Binary(Binary),
    /// Puts a total of 0 on the stack and turns to the first dimension; without any, goes on at `end`.
    SumBegin { end: usize },
    /// Adds the top to the total; if there is one more dimension, turns to it and goes back to `body`.
    SumNext { body: usize },
}

/// A program that is being written.
#[derive(Debug, Default)]
pub(super) struct Program {
    code: Vec<Instruction>,
    /// Values on the stack after the last instruction.
    depth: usize,
    /// The most that there ever are.
    deepest: usize,
}

impl Program {
    /// Writes a [`Instruction::Constant`], [`Instruction::Slot`] or [`Instruction::DimSlot`].
    pub(super) fn push(&mut self, value: Instruction) {
        self.code.push(value);
        self.depth += 1;
        self.deepest = self.deepest.max(self.depth);
    }

    /// Writes an operation on the top; on a constant it is done at once.
    pub(super) fn unary(&mut self, operation: Instruction) {
        match (self.code.last_mut(), operation) {
            (Some(Instruction::Constant(value)), Instruction::Negate) => *value = -*value,
            (Some(Instruction::Constant(value)), Instruction::Not) => *value = truth(!is_true(*value)),
            _ => self.code.push(operation),
        }
    }

    /// Writes an operation on the two values on top; on two constants it is done at once.
    pub(super) fn binary(&mut self, operation: Binary) {
        self.depth -= 1;
        if let [.., Instruction::Constant(left), Instruction::Constant(right)] = *self.code {
            self.code.truncate(self.code.len() - 2);
            self.code.push(Instruction::Constant(operation.apply(left, right)));
        } else {
            self.code.push(Instruction::Binary(operation));
        }
    }

    /// Opens a sum over the dimensions; gives what [`Program::end_sum`] wants to know.
    pub(super) fn begin_sum(&mut self) -> usize {
        self.push(Instruction::SumBegin { end: 0 });
        self.code.len() - 1
    }

    /// Closes the sum that was opened at `begin`; whether anything in it is a dimension's.
    pub(super) fn end_sum(&mut self, begin: usize) -> bool {
        self.code.push(Instruction::SumNext { body: begin + 1 });
        self.code[begin] = Instruction::SumBegin { end: self.code.len() };
        self.depth -= 1;
        self.code[begin..].iter().any(|instruction| matches!(instruction, Instruction::DimSlot(_)))
    }

    /// The value on top, if it is a constant.
    pub(super) fn constant(&self) -> Option<f64> {
        match self.code.last() {
            Some(Instruction::Constant(value)) => Some(*value),
            _ => None,
        }
    }

    /// The instructions; none if they need a deeper stack than [`STACK`].
    pub(super) fn finish(self) -> Option<Vec<Instruction>> {
        (self.deepest <= STACK).then_some(self.code)
    }
}

/// The slots that a program reads, outside the dimensions and of them; each once, in order of appearance.
pub(super) fn slots(code: &[Instruction]) -> (Vec<u32>, Vec<u32>) {
    let (mut slots, mut dim_slots) = (Vec::new(), Vec::new());
    for instruction in code {
        match instruction {
            Instruction::Slot(slot) if !slots.contains(slot) => slots.push(*slot),
            Instruction::DimSlot(slot) if !dim_slots.contains(slot) => dim_slots.push(*slot),
            _ => {}
        }
    }
    (slots, dim_slots)
}

/// Runs a finished program.
pub(super) fn run(code: &[Instruction], environment: &impl Environment) -> f64 {
    let mut stack = [0.0; STACK];
    let mut below = 0;
    let mut top = 0.0;
    let (mut dim, mut dims) = (0, 0);
    let mut at = 0;
    while let Some(instruction) = code.get(at) {
        at += 1;
        let value = match *instruction {
            Instruction::Constant(value) => value,
            Instruction::Slot(slot) => environment.value(slot),
            Instruction::DimSlot(slot) => environment.dim_value(dim, slot),
            Instruction::SumBegin { end } => {
                (dim, dims) = (0, environment.dims());
                if dims == 0 {
                    at = end;
                }
                0.0
            }
            Instruction::SumNext { body } => {
                below -= 1;
                top += stack[below];
                dim += 1;
                if dim < dims {
                    at = body;
                }
                continue;
            }
            Instruction::Negate => {
                top = -top;
                continue;
            }
            Instruction::Not => {
                top = truth(!is_true(top));
                continue;
            }
            Instruction::Has(bit) => {
                top = truth(whole(top) >> bit & 1 == 1);
                continue;
            }
            Instruction::Binary(operation) => {
                below -= 1;
                top = operation.apply(stack[below], top);
                continue;
            }
        };
        stack[below] = top;
        below += 1;
        top = value;
    }
    top
}

/// A condition as a value.
const fn truth(condition: bool) -> f64 {
    if condition { 1.0 } else { 0.0 }
}

/// A value as a condition; NaN is false.
pub(super) const fn is_true(value: f64) -> bool {
    value.abs() > 0.0
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Names, Point};
    use super::super::{Expression, compile};
    use super::*;

    fn code(text: &str) -> Vec<Instruction> {
        let Expression { code, .. } = compile(text, &Names).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        code
    }

    #[test]
    fn an_expression_without_names_is_one_constant() {
        for (text, value) in [("2 * (3 + 4) - 10 % 4", 12.0), ("not 1 < 2 or 1 == 1", 1.0), ("-min(3, 5 %, 2)", -0.05)]
        {
            let [Instruction::Constant(found)] = *code(text) else { panic!("{text} has more than a constant") };
            assert!((found - value).abs() < 1e-12, "{text} is {found}");
        }
    }

    #[test]
    fn operands_come_before_their_operator() {
        use Instruction::{Binary as Join, Constant, Slot};
        assert_eq!(
            code("tp * pp <= 4 + 4 and overlap_tp"),
            [
                Slot(0),
                Slot(1),
                Join(Binary::Multiply),
                Constant(8.0),
                Join(Binary::LessEqual),
                Slot(19),
                Join(Binary::And),
            ]
        );
    }

    #[test]
    fn a_sum_goes_back_to_its_body_once_a_dimension() {
        use Instruction::{DimSlot, SumBegin, SumNext};
        assert_eq!(code("sum(dim.bandwidth)"), [SumBegin { end: 3 }, DimSlot(1), SumNext { body: 1 }]);
        let dims = [(1.0, 0.0), (2.0, 0.0), (4.0, 0.0)];
        for (count, total) in [(0, 0.0), (1, 1.0), (2, 3.0), (3, 7.0)] {
            let found = run(&code("sum(dim.bandwidth)"), &Point(&[], &dims[..count]));
            assert!((found - total).abs() < 1e-12, "{count} dimensions give {found}");
        }
    }

    #[test]
    fn the_stack_holds_as_much_as_it_says() {
        let program = |depth: usize| {
            let mut program = Program::default();
            (0..depth).for_each(|_| program.push(Instruction::Slot(0)));
            (1..depth).for_each(|_| program.binary(Binary::Add));
            program.finish()
        };
        let full = program(STACK).expect("a program that fits");
        assert!((run(&full, &Point(&[("tp", 1.0)], &[])) - 32.0).abs() < 1e-12);
        assert_eq!(program(STACK + 1), None);
    }

    #[test]
    fn nan_is_neither_true_nor_comparable() {
        assert!(!is_true(f64::NAN));
        assert!(is_true(f64::INFINITY) && is_true(-0.5) && !is_true(-0.0));
        let joined = |operation: Binary| operation.apply(f64::NAN, f64::NAN);
        for operation in [Binary::Equal, Binary::NotEqual, Binary::Less, Binary::GreaterEqual, Binary::Or, Binary::And]
        {
            assert!(joined(operation).abs() < 0.5, "{operation:?}");
        }
        assert!(joined(Binary::Min).is_nan() && joined(Binary::Max).is_nan());
        assert!(is_true(Binary::NotEqual.apply(f64::INFINITY, f64::NEG_INFINITY)));
        assert!(!is_true(Binary::NotEqual.apply(f64::INFINITY, f64::INFINITY)));
    }
}
