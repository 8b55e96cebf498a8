//! The content of a file of a trace: opened once, asked for its size, read at one go.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::units::index;

/// The largest trace of one rank that is read, bytes.
pub const MAX_BYTES: u64 = 2 << 30;

/// A file that is there.
#[derive(Debug)]
pub struct There {
    /// Its path.
    pub path: PathBuf,
    /// What it holds; or why that cannot be read.
    pub bytes: Result<Vec<u8>, String>,
}

impl There {
    /// The file of a path, or else the one with the ending of a compressed one.
    pub fn plain_or_packed(plain: PathBuf) -> Option<Self> {
        if let Some(bytes) = content(&plain) {
            return Some(Self { path: plain, bytes });
        }
        let packed = packed(&plain);
        content(&packed).map(|bytes| Self { path: packed, bytes })
    }
}

/// The path of a compressed file.
pub fn packed(plain: &Path) -> PathBuf {
    let mut packed = plain.as_os_str().to_owned();
    packed.push(".gz");
    packed.into()
}

/// What a file holds; none if there is no such file.
fn content(path: &Path) -> Option<Result<Vec<u8>, String>> {
    let read = File::open(path).and_then(|mut file| {
        let metadata = file.metadata()?;
        match metadata.len() {
            _ if !metadata.is_file() => Err(ErrorKind::NotFound.into()),
            size if size > MAX_BYTES => Ok(Err(format!("it has more than {MAX_BYTES} bytes"))),
            size => Ok(Ok(whole(&mut file, index(size))?)),
        }
    });
    match read {
        Ok(read) => Some(read),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => None,
        Err(error) => Some(Err(format!("it cannot be read: {error}"))),
    }
}

/// All bytes of what should have so many: with room for one more, one look says that there are no others.
fn whole(from: &mut impl Read, size: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; size + 1];
    let read = loop {
        match from.read(&mut bytes) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => break read?,
        }
    };
    bytes.truncate(read);
    if read != size {
        // It is read by halves, or is written meanwhile.
        from.take(MAX_BYTES).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes that come so many at a time.
    struct Slow<'a>(&'a [u8], usize, usize);

    impl Read for Slow<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            self.2 += 1;
            let some = self.1.min(to.len());
            self.0.read(&mut to[..some])
        }
    }

    #[test]
    fn all_bytes_are_read_and_mostly_at_one_go() {
        let bytes: Vec<u8> = (0..100).collect();
        for (at_a_time, size, most) in [(1000, 100, 1), (7, 100, 99), (1000, 60, 9), (1000, 0, 9), (1000, 140, 9)] {
            let mut slow = Slow(&bytes, at_a_time, 0);
            assert_eq!(whole(&mut slow, size).expect("bytes"), bytes, "{size}");
            assert!(slow.2 <= most, "{} times", slow.2);
        }
    }

    #[test]
    fn what_is_no_file_is_not_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("w.et");
        assert!(There::plain_or_packed(path.clone()).is_none());
        assert!(There::plain_or_packed(folder.path().to_owned()).is_none());
        std::fs::write(packed(&path), "x").expect("a file");
        assert!(There::plain_or_packed(path.join("y")).is_none());
        let there = There::plain_or_packed(path.clone()).expect("a file");
        assert_eq!((there.path, there.bytes), (packed(&path), Ok(b"x".to_vec())));
        std::fs::write(&path, "").expect("a file");
        let there = There::plain_or_packed(path.clone()).expect("a file");
        assert_eq!((there.path, there.bytes), (path, Ok(Vec::new())));
    }
}
