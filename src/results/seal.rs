//! The seal of a file: a hash of all its bytes, kept inside it, so that damage anywhere is seen before anything is used.
//!
//! The footer of a segment has a line of sixteen zeros; the hash is of the file with the zeros, and then takes their place.

use xxhash_rust::xxh3::xxh3_64;

/// The footer's key of the seal.
pub const SEAL_KEY: &str = "starsweep.seal";
/// What stands in the place of the seal while the hash is taken.
pub const BLANK: &str = "0000000000000000";

/// Where the seal's text is; none if the bytes have no place for one.
fn place(bytes: &[u8]) -> Option<std::ops::Range<usize>> {
    let key = SEAL_KEY.as_bytes();
    let found = bytes.windows(key.len()).rposition(|window| window == key)? + key.len();
    // Between key and value stand the value's field and its length, a byte each (Thrift's compact protocol).
    let start = found + 2;
    (start + BLANK.len() <= bytes.len()).then_some(start..start + BLANK.len())
}

/// Seals bytes that have a blank seal. Bytes without one stay as they are.
pub fn seal(bytes: &mut [u8]) {
    if let Some(place) = place(bytes) {
        let hash = format!("{:016x}", xxh3_64(bytes));
        bytes[place].copy_from_slice(hash.as_bytes());
    }
}

/// Whether bytes are as they were when they were sealed. The seal is blank afterwards.
pub fn is_whole(bytes: &mut [u8]) -> bool {
    let Some(place) = place(bytes) else { return false };
    let said = bytes[place.clone()].to_vec();
    bytes[place].copy_from_slice(BLANK.as_bytes());
    format!("{:016x}", xxh3_64(bytes)).as_bytes() == said
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed() -> Vec<u8> {
        let mut bytes = format!("rows{SEAL_KEY}\u{18}\u{10}{BLANK}the end").into_bytes();
        seal(&mut bytes);
        bytes
    }

    #[test]
    fn a_sealed_file_is_whole_and_no_byte_of_it_can_change() {
        assert!(is_whole(&mut sealed()));
        for k in 0..sealed().len() {
            let mut bytes = sealed();
            bytes[k] ^= 1;
            assert!(!is_whole(&mut bytes), "byte {k}");
        }
    }

    #[test]
    fn what_was_never_sealed_is_not_whole() {
        assert!(!is_whole(&mut b"PAR1".to_vec()));
        assert!(!is_whole(&mut SEAL_KEY.as_bytes().to_vec()));
    }
}
