//! Units and quantities as text: what people write, and what they read.

/// What a number means, as powers of base units: second, byte, FLOP, watt, dollar, sequence, token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Unit {
    /// Powers in the order second, byte, FLOP, watt, dollar, sequence, token.
    powers: [i8; 7],
}

impl Unit {
    /// A plain number: a count, a ratio, a name.
    pub const NONE: Self = Self::of([0; 7]);
    /// Seconds.
    pub const SECOND: Self = Self::of([1, 0, 0, 0, 0, 0, 0]);
    /// Bytes.
    pub const BYTE: Self = Self::of([0, 1, 0, 0, 0, 0, 0]);
    /// Bytes a second.
    pub const BANDWIDTH: Self = Self::of([-1, 1, 0, 0, 0, 0, 0]);
    /// Floating-point operations.
    pub const FLOP: Self = Self::of([0, 0, 1, 0, 0, 0, 0]);
    /// Floating-point operations a second.
    pub const FLOP_RATE: Self = Self::of([-1, 0, 1, 0, 0, 0, 0]);
    /// Watts.
    pub const WATT: Self = Self::of([0, 0, 0, 1, 0, 0, 0]);
    /// Joules: watts for seconds.
    pub const JOULE: Self = Self::of([1, 0, 0, 1, 0, 0, 0]);
    /// US dollars.
    pub const DOLLAR: Self = Self::of([0, 0, 0, 0, 1, 0, 0]);
    /// US dollars for a byte a second of bandwidth.
    pub const DOLLAR_PER_BANDWIDTH: Self = Self::of([1, -1, 0, 0, 1, 0, 0]);
    /// US dollars a second.
    pub const DOLLAR_RATE: Self = Self::of([-1, 0, 0, 0, 1, 0, 0]);
    /// US dollars for a joule.
    pub const DOLLAR_PER_JOULE: Self = Self::of([-1, 0, 0, -1, 1, 0, 0]);
    /// Sequences.
    pub const SEQUENCE: Self = Self::of([0, 0, 0, 0, 0, 1, 0]);
    /// Tokens.
    pub const TOKEN: Self = Self::of([0, 0, 0, 0, 0, 0, 1]);

    /// Sequences a second.
    pub const SEQUENCE_RATE: Self = Self::of([-1, 0, 0, 0, 0, 1, 0]);
    /// Tokens a second.
    pub const TOKEN_RATE: Self = Self::of([-1, 0, 0, 0, 0, 0, 1]);
    /// Joules a token.
    pub const JOULE_PER_TOKEN: Self = Self::of([1, 0, 0, 1, 0, 0, -1]);
    /// US dollars a token.
    pub const DOLLAR_PER_TOKEN: Self = Self::of([0, 0, 0, 0, 1, 0, -1]);

    const fn of(powers: [i8; 7]) -> Self {
        Self { powers }
    }

    /// The unit of a product.
    #[must_use]
    pub fn times(self, other: Self) -> Self {
        Self { powers: std::array::from_fn(|k| self.powers[k].saturating_add(other.powers[k])) }
    }

    /// The unit of a quotient.
    #[must_use]
    pub fn over(self, other: Self) -> Self {
        Self { powers: std::array::from_fn(|k| self.powers[k].saturating_sub(other.powers[k])) }
    }

    /// Units that columns end in, the longer ending first where one ends in another.
    pub const NAMED: [Self; 16] = [
        Self::SEQUENCE_RATE,
        Self::TOKEN_RATE,
        Self::BANDWIDTH,
        Self::FLOP_RATE,
        Self::DOLLAR_RATE,
        Self::DOLLAR_PER_JOULE,
        Self::DOLLAR_PER_TOKEN,
        Self::JOULE_PER_TOKEN,
        Self::JOULE,
        Self::BYTE,
        Self::FLOP,
        Self::WATT,
        Self::DOLLAR,
        Self::SECOND,
        Self::SEQUENCE,
        Self::TOKEN,
    ];

    /// What a column of this unit ends in, with its underscore: `_s`, `_bytes`, `_bytes_per_s`; nothing for a plain number.
    #[must_use]
    pub fn suffix(self) -> String {
        const NAMES: [(&str, &str); 7] = [
            ("s", "s"),
            ("bytes", "byte"),
            ("flops", "flop"),
            ("watts", "watt"),
            ("usd", "usd"),
            ("seq", "seq"),
            ("tok", "tok"),
        ];
        // Seconds times watts are joules.
        if let energy @ (1 | -1) = self.powers[0]
            && self.powers[3] == energy
        {
            let rest = Self { powers: std::array::from_fn(|k| if k == 0 || k == 3 { 0 } else { self.powers[k] }) };
            return if energy == 1 {
                format!("_joules{}", rest.suffix())
            } else {
                format!("{}_per_joule", rest.suffix())
            };
        }
        // What is paid for a rate is `usd_per_bytes_per_s`, and not `s_usd_per_byte`.
        let rate = (1..7).find(|&k| self.powers[0] == 1 && self.powers[k] == -1);
        if let Some(k) = rate.filter(|_| self.powers[1..].iter().any(|&power| power > 0)) {
            let paid = Self { powers: std::array::from_fn(|j| if j == 0 || j == k { 0 } else { self.powers[j] }) };
            return format!("{}_per_{}_per_s", paid.suffix(), NAMES[k].0);
        }
        let mut suffix = String::new();
        for (over, k) in (0..7).map(|k| (false, k)).chain((0..7).map(|k| (true, k))) {
            let power = if over { self.powers[k].saturating_neg() } else { self.powers[k] };
            if power > 0 {
                suffix.push_str(if over { "_per_" } else { "_" });
                suffix.push_str(if over { NAMES[k].1 } else { NAMES[k].0 });
                if power > 1 {
                    suffix.push_str(&power.to_string());
                }
            }
        }
        suffix
    }

    /// How a person would write a value of this unit, for an error's help: ``` `400 GB/s` ```.
    #[must_use]
    pub fn example(self) -> &'static str {
        match self {
            Self::SECOND => "500 ns",
            Self::BYTE => "80 GB",
            Self::BANDWIDTH => "400 GB/s",
            Self::FLOP => "1 TFLOP",
            Self::FLOP_RATE => "312 TFLOP/s",
            Self::WATT => "700 W",
            Self::DOLLAR => "30 k$",
            Self::JOULE => "1 MWh",
            Self::DOLLAR_RATE => "2.5 $/h",
            Self::DOLLAR_PER_JOULE => "80 $/MWh",
            Self::DOLLAR_PER_BANDWIDTH => "60 $/(GB/s)",
            Self::SEQUENCE => "2048 seq",
            Self::TOKEN => "8192 tok",
            _ => "8",
        }
    }

    /// What the unit measures, in words, for an error: `a bandwidth`.
    #[must_use]
    pub fn describe(self) -> String {
        match self {
            Self::NONE => "a plain number".into(),
            Self::SECOND => "a time".into(),
            Self::BYTE => "an amount of data".into(),
            Self::BANDWIDTH => "a bandwidth".into(),
            Self::FLOP => "an amount of arithmetic".into(),
            Self::FLOP_RATE => "a rate of arithmetic".into(),
            Self::WATT => "a power".into(),
            Self::DOLLAR => "an amount of money".into(),
            Self::JOULE => "an energy".into(),
            Self::DOLLAR_RATE => "money per time".into(),
            Self::DOLLAR_PER_JOULE => "money per energy".into(),
            Self::DOLLAR_PER_BANDWIDTH => "money per bandwidth".into(),
            Self::SEQUENCE => "a number of sequences".into(),
            Self::TOKEN => "a number of tokens".into(),
            other => format!("a value in `{}`", other.suffix().trim_start_matches('_')),
        }
    }
}

/// The unit words that may be written: text, factor to the base unit, unit.
const WORDS: &[(&str, f64, Unit)] = &[
    ("s", 1.0, Unit::SECOND),
    ("ms", 1e-3, Unit::SECOND),
    ("us", 1e-6, Unit::SECOND),
    ("µs", 1e-6, Unit::SECOND),
    ("ns", 1e-9, Unit::SECOND),
    ("ps", 1e-12, Unit::SECOND),
    ("min", 60.0, Unit::SECOND),
    ("h", 3600.0, Unit::SECOND),
    ("days", 86400.0, Unit::SECOND),
    ("day", 86400.0, Unit::SECOND),
    ("years", 31_536_000.0, Unit::SECOND),
    ("year", 31_536_000.0, Unit::SECOND),
    ("B", 1.0, Unit::BYTE),
    ("kB", 1e3, Unit::BYTE),
    ("MB", 1e6, Unit::BYTE),
    ("GB", 1e9, Unit::BYTE),
    ("TB", 1e12, Unit::BYTE),
    ("PB", 1e15, Unit::BYTE),
    ("KiB", 1024.0, Unit::BYTE),
    ("MiB", 1_048_576.0, Unit::BYTE),
    ("GiB", 1_073_741_824.0, Unit::BYTE),
    ("TiB", 1_099_511_627_776.0, Unit::BYTE),
    ("b", 0.125, Unit::BYTE),
    ("kb", 125.0, Unit::BYTE),
    ("Mb", 125e3, Unit::BYTE),
    ("Gb", 125e6, Unit::BYTE),
    ("Tb", 125e9, Unit::BYTE),
    ("FLOP", 1.0, Unit::FLOP),
    ("MFLOP", 1e6, Unit::FLOP),
    ("GFLOP", 1e9, Unit::FLOP),
    ("TFLOP", 1e12, Unit::FLOP),
    ("PFLOP", 1e15, Unit::FLOP),
    ("W", 1.0, Unit::WATT),
    ("kW", 1e3, Unit::WATT),
    ("MW", 1e6, Unit::WATT),
    ("GW", 1e9, Unit::WATT),
    ("J", 1.0, Unit::JOULE),
    ("kJ", 1e3, Unit::JOULE),
    ("MJ", 1e6, Unit::JOULE),
    ("kWh", 3.6e6, Unit::JOULE),
    ("MWh", 3.6e9, Unit::JOULE),
    ("GWh", 3.6e12, Unit::JOULE),
    ("$", 1.0, Unit::DOLLAR),
    ("k$", 1e3, Unit::DOLLAR),
    ("M$", 1e6, Unit::DOLLAR),
    ("G$", 1e9, Unit::DOLLAR),
    ("seq", 1.0, Unit::SEQUENCE),
    ("samples", 1.0, Unit::SEQUENCE),
    ("tok", 1.0, Unit::TOKEN),
    ("Mtok", 1e6, Unit::TOKEN),
    ("Gtok", 1e9, Unit::TOKEN),
    ("Ttok", 1e12, Unit::TOKEN),
    ("npus", 1.0, Unit::NONE),
    ("%", 0.01, Unit::NONE),
];

/// Every unit word that may be written, for suggestions.
pub fn unit_words() -> impl Iterator<Item = &'static str> {
    WORDS.iter().map(|word| word.0)
}

/// A number with what it measures, in base units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantity {
    /// The value in base units (seconds, bytes, FLOPs, watts, dollars, sequences, tokens).
    pub value: f64,
    /// What it measures.
    pub unit: Unit,
}

/// Why a text is no quantity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuantityError {
    /// The text does not begin with a number.
    NotANumber,
    /// The number is not finite, or too large to keep.
    NotFinite,
    /// What follows the number is no unit; the word that was not understood.
    UnknownUnit(String),
}

impl Quantity {
    /// Reads `400 GB/s`, `1.5 us`, `60 $/(GB/s)`, `-10 %`, `2048`.
    ///
    /// # Errors
    /// If the text does not start with a finite number, or ends in something that is no unit.
    pub fn parse(text: &str) -> Result<Self, QuantityError> {
        let text = text.trim();
        let (number, rest) = split_number(text).ok_or(QuantityError::NotANumber)?;
        let value: f64 = number.replace('_', "").parse().map_err(|_| QuantityError::NotANumber)?;
        let (factor, unit) = parse_unit(rest.trim())?;
        // Divide by the whole inverse of a small factor: `500 ns` is then 500 / 1e9, the nearest double.
        let scaled = if factor < 1.0 { value / (1.0 / factor).round() } else { value * factor };
        let scaled =
            if factor < 1.0 && (factor * (1.0 / factor).round() - 1.0).abs() > 1e-12 { value * factor } else { scaled };
        if scaled.is_finite() { Ok(Self { value: scaled, unit }) } else { Err(QuantityError::NotFinite) }
    }
}

/// Splits a leading number (sign, digits, `_`, point, exponent) from what follows; none if there is no digit.
#[must_use]
pub fn split_number(text: &str) -> Option<(&str, &str)> {
    let bytes = text.as_bytes();
    let mut end = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let start = end;
    while matches!(bytes.get(end), Some(b'0'..=b'9' | b'_' | b'.')) {
        end += 1;
    }
    if !bytes[start..end].iter().any(u8::is_ascii_digit) {
        return None;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        if matches!(bytes.get(end + 1 + sign), Some(b'0'..=b'9')) {
            end += 1 + sign;
            while matches!(bytes.get(end), Some(b'0'..=b'9')) {
                end += 1;
            }
        }
    }
    Some((&text[..end], &text[end..]))
}

/// Reads a unit: words joined by `/` and `*`, parts in parentheses. The empty text is a plain number.
///
/// # Errors
/// [`QuantityError::UnknownUnit`] with the word that is none.
pub fn parse_unit(text: &str) -> Result<(f64, Unit), QuantityError> {
    let unknown = || QuantityError::UnknownUnit(text.to_owned());
    if text.is_empty() {
        return Ok((1.0, Unit::NONE));
    }
    let mut factor = 1.0;
    let mut unit = Unit::NONE;
    let mut rest = text;
    let mut divide = false;
    loop {
        rest = rest.trim_start();
        let (part_factor, part_unit, after) = if let Some(inner) = rest.strip_prefix('(') {
            let close = inner.find(')').ok_or_else(unknown)?;
            let (part_factor, part_unit) = parse_unit(inner[..close].trim())?;
            (part_factor, part_unit, &inner[close + 1..])
        } else {
            let end = rest.find(['/', '*', '(', ')', ' ']).unwrap_or(rest.len());
            let word = &rest[..end];
            let found = WORDS.iter().find(|known| known.0 == word);
            let (_, part_factor, part_unit) = found.ok_or_else(|| QuantityError::UnknownUnit(word.to_owned()))?;
            (*part_factor, *part_unit, &rest[end..])
        };
        if divide {
            factor /= part_factor;
            unit = unit.over(part_unit);
        } else {
            factor *= part_factor;
            unit = unit.times(part_unit);
        }
        rest = after.trim_start();
        divide = match rest.chars().next() {
            None => return Ok((factor, unit)),
            Some('/') => true,
            Some('*') => false,
            Some(_) => return Err(unknown()),
        };
        rest = &rest[1..];
    }
}

/// A value with the largest unit in which it is at least one: `450 GB/s`, `1.5 us`, `80 GB`. For people; files keep base units.
#[must_use]
pub fn human(value: f64, unit: Unit) -> String {
    let scales: &[(f64, &str)] = match unit {
        Unit::SECOND => &[(86400.0, "days"), (1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"), (1e-12, "ps")],
        Unit::BYTE => &[(1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")],
        Unit::BANDWIDTH => &[(1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1.0, "B/s")],
        Unit::FLOP => &[(1e15, "PFLOP"), (1e12, "TFLOP"), (1e9, "GFLOP"), (1.0, "FLOP")],
        Unit::FLOP_RATE => &[(1e15, "PFLOP/s"), (1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1.0, "FLOP/s")],
        Unit::WATT => &[(1e6, "MW"), (1e3, "kW"), (1.0, "W")],
        Unit::JOULE => &[(3.6e12, "GWh"), (3.6e9, "MWh"), (3.6e6, "kWh"), (1e3, "kJ"), (1.0, "J")],
        Unit::JOULE_PER_TOKEN => &[(1.0, "J/tok")],
        Unit::DOLLAR => &[(1e6, "M$"), (1e3, "k$"), (1.0, "$")],
        Unit::DOLLAR_RATE => &[(1.0 / 3600.0, "$/h")],
        Unit::DOLLAR_PER_JOULE => &[(1.0 / 3.6e9, "$/MWh")],
        Unit::DOLLAR_PER_TOKEN => &[(1e-6, "M$/Ttok"), (1e-9, "k$/Ttok"), (1e-12, "$/Ttok")],
        Unit::DOLLAR_PER_BANDWIDTH => &[(1e-9, "$/(GB/s)")],
        Unit::SEQUENCE => &[(1.0, "seq")],
        Unit::TOKEN => &[(1.0, "tok")],
        Unit::SEQUENCE_RATE => &[(1e6, "Mseq/s"), (1e3, "kseq/s"), (1.0, "seq/s")],
        Unit::TOKEN_RATE => &[(1e6, "Mtok/s"), (1e3, "ktok/s"), (1.0, "tok/s")],
        _ => &[(1.0, "")],
    };
    let size = value.abs();
    let (scale, word) = scales.iter().find(|scale| size >= scale.0 * 0.999_999).unwrap_or(&scales[scales.len() - 1]);
    let text = plain(value / scale);
    if word.is_empty() { text } else { format!("{text} {word}") }
}

/// A number with at most four significant digits after the point is needed, whole numbers whole.
#[must_use]
pub fn plain(value: f64) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let size = value.abs();
    if !(1e-4..1e15).contains(&size) {
        return format!("{value:.3e}");
    }
    let decimals = if size >= 1000.0 {
        0
    } else if size >= 100.0 {
        1
    } else if size >= 10.0 {
        2
    } else {
        3 + usize::from(size < 1.0)
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A count with commas: `1,658,880`.
#[must_use]
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (k, digit) in digits.chars().enumerate() {
        if k > 0 && (digits.len() - k).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantity(text: &str) -> f64 {
        Quantity::parse(text).expect("a quantity").value
    }

    #[test]
    fn gb_is_ten_to_the_ninth_gib_two_to_the_thirtieth_and_gb_small_b_bits() {
        assert_eq!(quantity("1 GB"), 1e9);
        assert_eq!(quantity("1 GiB"), 1_073_741_824.0);
        assert_eq!(quantity("400 Gb/s"), 50e9);
    }

    #[test]
    fn notations_of_one_value_are_equal_to_the_last_bit() {
        assert_eq!(quantity("1 TB/s").to_bits(), quantity("1000 GB/s").to_bits());
        assert_eq!(quantity("500 ns").to_bits(), quantity("0.5 us").to_bits());
        assert_eq!(quantity("1e3 GB").to_bits(), quantity("1_000 GB").to_bits());
    }

    #[test]
    fn money_per_bandwidth_has_parentheses() {
        let price = Quantity::parse("60 $/(GB/s)").expect("a price");
        assert_eq!(price.unit, Unit::DOLLAR_PER_BANDWIDTH);
        assert_eq!(price.unit.times(Unit::BANDWIDTH), Unit::DOLLAR);
        assert!((price.value - 60e-9).abs() < 1e-20);
    }

    #[test]
    fn what_is_no_unit_is_named() {
        assert_eq!(Quantity::parse("400 GBps"), Err(QuantityError::UnknownUnit("GBps".into())));
        assert_eq!(Quantity::parse("fast"), Err(QuantityError::NotANumber));
        assert_eq!(Quantity::parse("1e400 GB"), Err(QuantityError::NotFinite));
        assert_eq!(Quantity::parse("nan"), Err(QuantityError::NotANumber));
    }

    #[test]
    fn suffixes_follow_the_unit() {
        assert_eq!(Unit::BANDWIDTH.suffix(), "_bytes_per_s");
        assert_eq!(Unit::NONE.suffix(), "");
        assert_eq!(Unit::DOLLAR_PER_BANDWIDTH.suffix(), "_usd_per_bytes_per_s");
        assert_eq!(Unit::SECOND.over(Unit::BYTE).suffix(), "_s_per_byte");
        assert_eq!(Unit::TOKEN_RATE.suffix(), "_tok_per_s");
    }

    #[test]
    fn watts_for_seconds_are_joules() {
        assert_eq!(Unit::WATT.times(Unit::SECOND), Unit::JOULE);
        assert_eq!(Unit::JOULE.suffix(), "_joules");
        assert_eq!(Unit::JOULE_PER_TOKEN.suffix(), "_joules_per_tok");
        assert_eq!(Unit::DOLLAR_PER_JOULE.suffix(), "_usd_per_joule");
        assert_eq!(Unit::DOLLAR.over(Unit::TOKEN), Unit::DOLLAR_PER_TOKEN);
        let price = Quantity::parse("80 $/MWh").expect("a price");
        assert_eq!((price.unit, human(price.value, price.unit)), (Unit::DOLLAR_PER_JOULE, "80 $/MWh".to_owned()));
        assert_eq!(quantity("1 kWh"), 3.6e6);
        assert_eq!(human(quantity("2.5 $/h"), Unit::DOLLAR_RATE), "2.5 $/h");
    }

    #[test]
    fn people_read_the_largest_fitting_unit() {
        assert_eq!(human(450e9, Unit::BANDWIDTH), "450 GB/s");
        assert_eq!(human(1.5e-6, Unit::SECOND), "1.5 us");
        assert_eq!(human(0.0, Unit::BYTE), "0 B");
    }
}
