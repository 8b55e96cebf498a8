//! Pages: a column of runs as Parquet stores it, written run by run and not row by row.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use polars_parquet::parquet::CowBuffer;
use polars_parquet::parquet::encoding::uleb128;
use polars_parquet::parquet::metadata::Descriptor;
use polars_parquet::parquet::page::{DataPage, DataPageHeader, DataPageHeaderV1, DictPage, Page};
use polars_parquet::parquet::schema::types::PrimitiveType;
use polars_parquet::parquet::statistics::{
    BinaryStatistics, BooleanStatistics, ParquetStatistics, PrimitiveStatistics,
};
use polars_parquet::parquet::types::NativeType as _;
use polars_parquet::write::Encoding;

use super::runs::Runs;
use crate::column::Dtype;
use crate::units::{index, narrow, signed, whole};

/// Of how many rows with a value there is one value more in the dictionary of a column of numbers: beyond that they are written as they are.
const ROWS_PER_VALUE: usize = 4;

/// The pages of a column: a dictionary of its values and which of them each row has, or the values themselves where many are met
/// once. NaN is null; a text is told by its place among words.
pub fn pages<'a>(
    dtype: Dtype,
    (runs, rows): (&Runs, usize),
    word: impl Fn(usize) -> Option<&'a String>,
    kind: &PrimitiveType,
) -> Vec<Page> {
    let there = || runs.of(rows).filter(|run| !run.0.is_nan());
    let filled = there().map(|run| run.1).sum::<usize>();
    let nulls = (rows - filled).try_into().ok();
    let mut bytes = levels(runs.of(rows).map(|(value, rows)| (!value.is_nan(), rows)));
    let (dictionary, statistics) = match dtype {
        Dtype::Real => {
            let known = keys(there(), Some(filled / ROWS_PER_VALUE), &mut bytes);
            if known.is_none() {
                there().for_each(|(value, rows)| repeat(&value.to_le_bytes(), rows, &mut bytes));
            }
            let ends = (
                there().map(|run| run.0.norm_min()).reduce(f64::min),
                there().map(|run| run.0.norm_max()).reduce(f64::max),
            );
            let plain = |value: f64, page: &mut Vec<u8>| page.extend(value.to_le_bytes());
            (known.map(|known| dictionary(&known, plain)), primitive(kind, nulls, ends))
        }
        Dtype::Count => {
            let known = keys(there(), Some(filled / ROWS_PER_VALUE), &mut bytes);
            if known.is_none() {
                there().for_each(|(value, rows)| repeat(&signed(value).to_le_bytes(), rows, &mut bytes));
            }
            let counts = || there().map(|run| signed(run.0));
            let ends = (counts().min(), counts().max());
            let plain = |value: f64, page: &mut Vec<u8>| page.extend(signed(value).to_le_bytes());
            (known.map(|known| dictionary(&known, plain)), primitive(kind, nulls, ends))
        }
        Dtype::Flag => {
            let flags = || there().map(|run| run.0 != 0.0);
            bits(there().map(|(value, rows)| (value != 0.0, rows)), &mut bytes);
            let (min_value, max_value) = (flags().min(), flags().max());
            (None, BooleanStatistics { null_count: nulls, distinct_count: None, min_value, max_value }.serialize())
        }
        Dtype::Text => {
            let known = keys(there(), None, &mut bytes).unwrap_or_default();
            let text = |value: f64| word(index(whole(value))).map_or(&[][..], |word| word.as_bytes());
            let plain = |value: f64, page: &mut Vec<u8>| {
                page.extend(narrow(text(value).len() as u64).to_le_bytes());
                page.extend_from_slice(text(value));
            };
            let [min_value, max_value] =
                [known.iter().map(|&value| text(value)).min(), known.iter().map(|&value| text(value)).max()]
                    .map(|end| end.map(<[u8]>::to_vec));
            let ends = BinaryStatistics {
                primitive_type: kind.clone(),
                null_count: nulls,
                distinct_count: None,
                min_value,
                max_value,
            };
            (Some(dictionary(&known, plain)), ends.serialize())
        }
    };
    let encoding = if dictionary.is_some() { Encoding::RleDictionary } else { Encoding::Plain };
    dictionary.map(Page::Dict).into_iter().chain([page(bytes, rows, encoding, statistics, kind)]).collect()
}

/// The pages of texts that all are so many bytes long, one behind the other: lengths first, which are told as their differences.
pub fn pages_of_length(texts: &[u8], length: usize, kind: &PrimitiveType) -> Vec<Page> {
    /// Differences of a block, and parts of it that have a width each.
    const BLOCK: [usize; 2] = [128, 4];
    let rows = texts.len() / length;
    let mut bytes = levels([(true, rows)].into_iter());
    let [block, parts] = BLOCK;
    // The first length is a signed number: its sign is the lowest bit.
    for number in [block, parts, rows, length << 1] {
        variable(number as u64, &mut bytes);
    }
    // Of each block the least difference, and no bit for what others are more.
    let blocks = rows.saturating_sub(1).div_ceil(block);
    bytes.resize(bytes.len() + blocks * (1 + parts), 0);
    bytes.extend_from_slice(texts);
    let each = || texts.chunks_exact(length);
    let [min_value, max_value] = [each().min(), each().max()].map(|end| end.map(<[u8]>::to_vec));
    let primitive_type = kind.clone();
    let ends = BinaryStatistics { primitive_type, null_count: Some(0), distinct_count: None, min_value, max_value };
    vec![page(bytes, rows, Encoding::DeltaLengthByteArray, ends.serialize(), kind)]
}

/// A number in as many bytes as it needs.
fn variable(number: u64, bytes: &mut Vec<u8>) {
    let mut room = [0; 10];
    let used = uleb128::encode(number, &mut room);
    bytes.extend_from_slice(&room[..used]);
}

/// A page of so many rows.
fn page(bytes: Vec<u8>, rows: usize, encoding: Encoding, statistics: ParquetStatistics, kind: &PrimitiveType) -> Page {
    let header = DataPageHeaderV1 {
        num_values: i32::try_from(rows).unwrap_or(i32::MAX),
        encoding: encoding.into(),
        definition_level_encoding: Encoding::Rle.into(),
        repetition_level_encoding: Encoding::Rle.into(),
        statistics: Some(statistics),
    };
    let descriptor = Descriptor { primitive_type: kind.clone(), max_def_level: 0, max_rep_level: 0 };
    Page::Data(DataPage::new(DataPageHeader::V1(header), CowBuffer::Owned(bytes), descriptor, rows))
}

/// A page of values in the order of their keys.
fn dictionary(values: &[f64], plain: impl Fn(f64, &mut Vec<u8>)) -> DictPage {
    let mut bytes = Vec::new();
    for &value in values {
        plain(value, &mut bytes);
    }
    DictPage::new(CowBuffer::Owned(bytes), values.len(), false)
}

/// The least and the greatest of numbers.
fn primitive<T: polars_parquet::parquet::types::NativeType>(
    kind: &PrimitiveType,
    null_count: Option<i64>,
    (min_value, max_value): (Option<T>, Option<T>),
) -> ParquetStatistics {
    PrimitiveStatistics { primitive_type: kind.clone(), null_count, distinct_count: None, min_value, max_value }
        .serialize()
}

/// Which rows have a value, behind the length of that in bytes.
fn levels(there: impl Iterator<Item = (bool, usize)>) -> Vec<u8> {
    const LENGTH: usize = 4;
    let mut hybrid = Hybrid { bytes: vec![0; LENGTH], width: 1, ..Hybrid::default() };
    there.for_each(|(is_there, rows)| hybrid.push(is_there.into(), rows));
    let mut bytes = hybrid.end();
    let length = narrow((bytes.len() - LENGTH) as u64);
    bytes[..LENGTH].copy_from_slice(&length.to_le_bytes());
    bytes
}

/// Writes which value of a dictionary each row has, and gives the values by their keys, in the order in which they come; nothing if there
/// are more than so many.
fn keys(runs: impl Iterator<Item = (f64, usize)>, most: Option<usize>, bytes: &mut Vec<u8>) -> Option<Vec<f64>> {
    let (mut values, mut places, mut keys) = (Vec::<f64>::new(), HashTable::new(), Vec::new());
    for (value, rows) in runs {
        let is_same = |&key: &u32| values[index(key.into())].to_bits() == value.to_bits();
        let hash_of = |&key: &u32| hash(values[index(key.into())]);
        let key = match places.entry(hash(value), is_same, hash_of) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(place) => {
                let key = narrow(values.len() as u64);
                place.insert(key);
                values.push(value);
                key
            }
        };
        if most.is_some_and(|most| values.len() > most) {
            return None;
        }
        keys.push((key, rows));
    }
    let width = usize::BITS - values.len().saturating_sub(1).leading_zeros();
    bytes.push(u8::try_from(width).unwrap_or(u8::MAX));
    let mut hybrid = Hybrid { bytes: std::mem::take(bytes), width, ..Hybrid::default() };
    for (key, rows) in keys {
        hybrid.push(key, rows);
    }
    *bytes = hybrid.end();
    Some(values)
}

/// Spreads values over a table.
fn hash(value: f64) -> u64 {
    /// 2^64 over the golden ratio: its multiples are spread evenly.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = value.to_bits().wrapping_mul(SPREAD);
    (mixed ^ mixed >> 32).wrapping_mul(SPREAD)
}

/// Bytes, so many times.
fn repeat(bytes: &[u8], times: usize, out: &mut Vec<u8>) {
    (0..times).for_each(|_| out.extend_from_slice(bytes));
}

/// A bit for each row, the first the lowest of its byte.
fn bits(flags: impl Iterator<Item = (bool, usize)>, bytes: &mut Vec<u8>) {
    let mut packed = Packed::default();
    for (flag, rows) in flags {
        let mut left = rows;
        while left > 0 {
            if packed.used == 0 && left >= 8 {
                bytes.resize(bytes.len() + left / 8, if flag { u8::MAX } else { 0 });
                left %= 8;
            } else {
                packed.push(flag.into(), 1, bytes);
                left -= 1;
            }
        }
    }
    packed.end(bytes);
}

/// Numbers of some bits, one behind the other.
#[derive(Debug, Default)]
struct Packed {
    open: u64,
    used: u32,
}

impl Packed {
    fn push(&mut self, number: u32, width: u32, bytes: &mut Vec<u8>) {
        self.open |= u64::from(number) << self.used;
        self.used += width;
        while self.used >= 8 {
            bytes.push(self.open.to_le_bytes()[0]);
            self.open >>= 8;
            self.used -= 8;
        }
    }

    /// Fills the last byte with zeros.
    fn end(self, bytes: &mut Vec<u8>) {
        if self.used > 0 {
            bytes.push(self.open.to_le_bytes()[0]);
        }
    }
}

/// Parquet's hybrid of runs and packed numbers: what comes eight times or more is a run, all between is packed in groups of eight.
#[derive(Debug, Default)]
struct Hybrid {
    bytes: Vec<u8>,
    /// Bits of a number.
    width: u32,
    /// The last number, and how many times it came: others may follow that are the same.
    last: (u32, usize),
    /// Numbers to be packed.
    loose: Vec<u32>,
}

impl Hybrid {
    /// How many numbers a group has.
    const GROUP: usize = 8;

    fn push(&mut self, number: u32, times: usize) {
        if number == self.last.0 {
            self.last.1 += times;
        } else {
            self.settle();
            self.last = (number, times);
        }
    }

    /// Writes the last number: what fills the open group, then the rest as a run if it is long, else loose.
    fn settle(&mut self) {
        let (number, times) = self.last;
        let open = (Self::GROUP - self.loose.len() % Self::GROUP) % Self::GROUP;
        let filling = times.min(open);
        let left = times - filling;
        self.loose.extend(std::iter::repeat_n(number, filling));
        if left < Self::GROUP {
            self.loose.extend(std::iter::repeat_n(number, left));
        } else {
            self.pack();
            variable((left as u64) << 1, &mut self.bytes);
            let bytes = number.to_le_bytes();
            self.bytes.extend(bytes.into_iter().take(index(self.width.div_ceil(8).into())));
        }
    }

    /// Writes the loose numbers; of the last group of all some may be no number of anybody.
    fn pack(&mut self) {
        if self.loose.is_empty() {
            return;
        }
        let groups = self.loose.len().div_ceil(Self::GROUP);
        variable((groups as u64) << 1 | 1, &mut self.bytes);
        self.loose.resize(groups * Self::GROUP, 0);
        let mut packed = Packed::default();
        for number in self.loose.drain(..) {
            packed.push(number, self.width, &mut self.bytes);
        }
    }

    fn end(mut self) -> Vec<u8> {
        self.settle();
        self.pack();
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hybrid(width: u32, runs: &[(u32, usize)]) -> Vec<u8> {
        let mut hybrid = Hybrid { width, ..Hybrid::default() };
        for &(number, times) in runs {
            hybrid.push(number, times);
        }
        hybrid.end()
    }

    #[test]
    fn eight_and_more_are_a_run_and_others_are_packed() {
        // 20 times 5 of 3 bits: the header is 20 * 2.
        assert_eq!(hybrid(3, &[(5, 12), (5, 8)]), [40, 5]);
        // One group of 3 bits: 0, 1, ... 7, as in the format's own example.
        let all: Vec<_> = (0..8).map(|number| (number, 1)).collect();
        assert_eq!(hybrid(3, &all), [3, 0b1000_1000, 0b1100_0110, 0b1111_1010]);
        // Three ones, and five of the twenty zeros behind them fill a group; fifteen are a run.
        assert_eq!(hybrid(1, &[(1, 3), (0, 20)]), [3, 0b111, 30, 0]);
        // What is left of a group at the end is filled with zeros.
        assert_eq!(hybrid(2, &[(3, 1), (1, 2)]), [3, 0b01_0111, 0]);
        assert_eq!(hybrid(0, &[(0, 100)]), [200, 1]);
        assert!(hybrid(1, &[]).is_empty());
    }

    #[test]
    fn flags_are_bits() {
        let mut bytes = Vec::new();
        bits([(true, 3), (false, 2), (true, 14)].into_iter(), &mut bytes);
        assert_eq!(bytes, [0b1110_0111, 0xff, 0b111]);
    }

    #[test]
    fn a_dictionary_has_no_more_values_than_are_worth_it() {
        let runs = [(2.0, 3), (7.0, 1), (2.0, 4)];
        let mut bytes = Vec::new();
        assert_eq!(keys(runs.into_iter(), Some(2), &mut bytes), Some(vec![2.0, 7.0]));
        assert_eq!(bytes, [1, 3, 0b1000]);
        assert_eq!(keys(runs.into_iter(), Some(1), &mut Vec::new()), None);
    }
}
