//! Records of an execution trace in Chakra's form: a length, then a message of Protocol Buffers, read where they lie, and written.

use prost::DecodeError;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, encode_key, encode_varint, skip_field};

/// Why bytes are no records.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The bytes end within a record.
    #[error("the file ends within a record")]
    Short,
    /// The length of a record is none.
    #[error("the length of a record is none")]
    Length,
    /// A record is no message.
    #[error("a record is no message: {0}")]
    Message(#[from] DecodeError),
}

/// The next record, if there is one.
///
/// # Errors
/// If the bytes end within it, or its length is none.
pub fn next<'a>(bytes: &mut &'a [u8]) -> Result<Option<&'a [u8]>, Malformed> {
    const LONGEST: usize = 5;
    if bytes.is_empty() {
        return Ok(None);
    }
    let mut length = 0_u64;
    for k in 0..LONGEST {
        let Some(&byte) = bytes.get(k) else { return Err(Malformed::Short) };
        length |= u64::from(byte & 0x7f) << (7 * k);
        if byte < 0x80 {
            *bytes = &bytes[k + 1..];
            let length = usize::try_from(length).map_err(|_| Malformed::Length)?;
            let (record, rest) = bytes.split_at_checked(length).ok_or(Malformed::Short)?;
            *bytes = rest;
            return Ok(Some(record));
        }
    }
    Err(Malformed::Length)
}

/// The value of an attribute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// A whole number, or true or false.
    Whole(i128),
    /// A text.
    Text(&'a [u8]),
    /// A list of true and false, packed, as bits from the lowest; those behind the 32nd are left out.
    Flags(u32),
    /// A real number, bytes, a list: of no use here.
    Other,
}

/// The attributes of a node that mean something; of several with one name the first counts.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Attributes<'a> {
    pub is_cpu_op: Option<Value<'a>>,
    pub num_ops: Option<Value<'a>>,
    pub tensor_size: Option<Value<'a>>,
    pub comm_type: Option<Value<'a>>,
    pub comm_size: Option<Value<'a>>,
    pub comm_src: Option<Value<'a>>,
    pub comm_dst: Option<Value<'a>>,
    pub comm_tag: Option<Value<'a>>,
    pub pg_name: Option<Value<'a>>,
    pub involved_dim: Option<Value<'a>>,
}

/// A node as it stands in the file.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Raw<'a> {
    pub id: u64,
    pub name: &'a [u8],
    pub kind: u64,
    pub duration_micros: u64,
    pub attributes: Attributes<'a>,
}

/// The bytes of a field with a length.
fn take<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], Malformed> {
    let length = usize::try_from(decode_varint(bytes)?).map_err(|_| Malformed::Length)?;
    let (field, rest) = bytes.split_at_checked(length).ok_or(Malformed::Short)?;
    *bytes = rest;
    Ok(field)
}

/// Reads a node; the numbers of those that it waits for are added to `after`.
///
/// # Errors
/// If the record is no message.
pub fn node<'a>(mut bytes: &'a [u8], after: &mut Vec<u64>) -> Result<Raw<'a>, Malformed> {
    let bytes = &mut bytes;
    let mut raw = Raw::default();
    while !bytes.is_empty() {
        match decode_key(bytes)? {
            (1, WireType::Varint) => raw.id = decode_varint(bytes)?,
            (2, WireType::LengthDelimited) => raw.name = take(bytes)?,
            (3, WireType::Varint) => raw.kind = decode_varint(bytes)?,
            (4 | 5, WireType::LengthDelimited) => {
                let mut packed = take(bytes)?;
                while !packed.is_empty() {
                    after.push(decode_varint(&mut packed)?);
                }
            }
            (4 | 5, WireType::Varint) => after.push(decode_varint(bytes)?),
            (7, WireType::Varint) => raw.duration_micros = decode_varint(bytes)?,
            (10, WireType::LengthDelimited) => attribute(take(bytes)?, &mut raw.attributes)?,
            (tag, wire) => skip(wire, tag, bytes)?,
        }
    }
    Ok(raw)
}

fn skip(wire: WireType, tag: u32, bytes: &mut &[u8]) -> Result<(), Malformed> {
    if wire == WireType::LengthDelimited {
        return take(bytes).map(drop);
    }
    Ok(skip_field(wire, tag, bytes, DecodeContext::default())?)
}

/// Reads an attribute, and keeps it if it means something and is the first of its name.
fn attribute<'a>(mut bytes: &'a [u8], found: &mut Attributes<'a>) -> Result<(), Malformed> {
    let bytes = &mut bytes;
    let mut name: &[u8] = &[];
    let mut value = Value::Other;
    while !bytes.is_empty() {
        let (tag, wire) = decode_key(bytes)?;
        match (tag, wire) {
            (1, WireType::LengthDelimited) => name = take(bytes)?,
            (7 | 9, WireType::Varint) => value = Value::Whole(decode_varint(bytes)?.cast_signed().into()),
            (11 | 13, WireType::Varint) => value = Value::Whole(decode_varint(bytes)?.into()),
            (15 | 17, WireType::Varint) => {
                let zigzag = decode_varint(bytes)?;
                let sign = if zigzag & 1 == 1 { -1 } else { 0 };
                value = Value::Whole(i128::from(zigzag >> 1) ^ sign);
            }
            (19 | 23, WireType::ThirtyTwoBit) => {
                let word = u32::from_le_bytes(fixed(bytes)?);
                value = Value::Whole(if tag == 19 { word.into() } else { word.cast_signed().into() });
            }
            (21 | 25, WireType::SixtyFourBit) => {
                let word = u64::from_le_bytes(fixed(bytes)?);
                value = Value::Whole(if tag == 21 { word.into() } else { word.cast_signed().into() });
            }
            (27, WireType::Varint) => value = Value::Whole(i128::from(decode_varint(bytes)? != 0)),
            (28, WireType::LengthDelimited) => value = Value::Flags(flags(take(bytes)?)?),
            (29, WireType::LengthDelimited) => value = Value::Text(take(bytes)?),
            _ => {
                // Field 2 is a comment; what else there is are values of other kinds.
                if tag != 2 {
                    value = Value::Other;
                }
                skip(wire, tag, bytes)?;
            }
        }
    }
    let place = match name {
        b"is_cpu_op" => &mut found.is_cpu_op,
        b"num_ops" => &mut found.num_ops,
        b"tensor_size" => &mut found.tensor_size,
        b"comm_type" => &mut found.comm_type,
        b"comm_size" => &mut found.comm_size,
        b"comm_src" => &mut found.comm_src,
        b"comm_dst" => &mut found.comm_dst,
        b"comm_tag" => &mut found.comm_tag,
        b"pg_name" => &mut found.pg_name,
        b"involved_dim" => &mut found.involved_dim,
        _ => return Ok(()),
    };
    place.get_or_insert(value);
    Ok(())
}

/// So many bytes from the front.
fn fixed<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], Malformed> {
    let (front, rest) = bytes.split_first_chunk::<N>().ok_or(Malformed::Short)?;
    *bytes = rest;
    Ok(*front)
}

/// A list of true and false as bits.
fn flags(mut bytes: &[u8]) -> Result<u32, Malformed> {
    let bytes = &mut bytes;
    let (mut bits, mut place) = (0, 0);
    let mut add = |flag: u64| {
        if place < u32::BITS {
            bits |= u32::from(flag != 0) << place;
            place += 1;
        }
    };
    while !bytes.is_empty() {
        match decode_key(bytes)? {
            (1, WireType::LengthDelimited) => {
                let mut packed = take(bytes)?;
                while !packed.is_empty() {
                    add(decode_varint(&mut packed)?);
                }
            }
            (1, WireType::Varint) => add(decode_varint(bytes)?),
            (tag, wire) => skip(wire, tag, bytes)?,
        }
    }
    Ok(bits)
}

/// Adds a record: its length, then its bytes.
pub fn append(record: &[u8], to: &mut Vec<u8>) {
    encode_varint(record.len() as u64, to);
    to.extend_from_slice(record);
}

/// Adds a field that is a number; none if it is 0, which is what a missing one means.
pub fn put_number(tag: u32, number: u64, to: &mut Vec<u8>) {
    if number != 0 {
        encode_key(tag, WireType::Varint, to);
        encode_varint(number, to);
    }
}

/// Adds a field of bytes.
pub fn put_bytes(tag: u32, bytes: &[u8], to: &mut Vec<u8>) {
    encode_key(tag, WireType::LengthDelimited, to);
    append(bytes, to);
}

/// Adds the numbers of the operations that a node waits for.
pub fn put_after(after: &[u64], to: &mut Vec<u8>) {
    if !after.is_empty() {
        let mut packed = Vec::with_capacity(after.len());
        for &id in after {
            encode_varint(id, &mut packed);
        }
        put_bytes(5, &packed, to);
    }
}

/// Adds an attribute of a node.
pub fn put_attribute(name: &str, value: Written<'_>, to: &mut Vec<u8>) {
    let mut attribute = Vec::with_capacity(name.len() + 16);
    put_bytes(1, name.as_bytes(), &mut attribute);
    match value {
        Written::Whole(number) => {
            encode_key(13, WireType::Varint, &mut attribute);
            encode_varint(number, &mut attribute);
        }
        Written::Flag(flag) => {
            encode_key(27, WireType::Varint, &mut attribute);
            encode_varint(flag.into(), &mut attribute);
        }
        Written::Flags(flags) => {
            let mut list = Vec::new();
            put_bytes(1, flags, &mut list);
            put_bytes(28, &list, &mut attribute);
        }
        Written::Text(text) => put_bytes(29, text.as_bytes(), &mut attribute),
    }
    put_bytes(10, &attribute, to);
}

/// The value of an attribute to be written.
#[derive(Debug, Clone, Copy)]
pub enum Written<'a> {
    /// A whole number.
    Whole(u64),
    /// True or false.
    Flag(bool),
    /// A list of true and false, a byte each.
    Flags(&'a [u8]),
    /// A text.
    Text(&'a str),
}
