//! Layers: how many of one kind a pipeline stage holds, and in which of its chunks they lie.

/// Layers of one kind in a pipeline stage. They lie evenly in its chunks but for the first and the last: what is different at the ends of
/// a model (leading dense layers, layers that are missing) is so in these two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Layers {
    /// In all chunks.
    pub all: u64,
    /// In the first chunk.
    pub first: u64,
    /// In the last chunk; with one chunk that is the first, too.
    pub last: u64,
}

impl Layers {
    /// Adds those of the chunk `chunk` of `chunks`.
    pub const fn add(&mut self, count: u64, chunk: u64, chunks: u64) {
        self.all += count;
        if chunk == 0 {
            self.first = count;
        }
        if chunk + 1 == chunks {
            self.last = count;
        }
    }

    /// Those of the chunk `chunk` of `chunks`.
    #[must_use]
    pub const fn of_chunk(&self, chunk: u64, chunks: u64) -> u64 {
        if chunk == 0 {
            return self.first;
        }
        if chunk + 1 == chunks {
            return self.last;
        }
        let (between, others) = (self.all - self.first - self.last, chunks - 2);
        between * chunk / others - between * (chunk - 1) / others
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_hold_what_was_added_to_them() {
        for counts in [&[3_u64][..], &[3, 4], &[0, 4, 4, 4, 2], &[1, 2, 2, 0]] {
            let chunks = counts.len() as u64;
            let mut layers = Layers::default();
            for (chunk, &count) in (0..).zip(counts) {
                layers.add(count, chunk, chunks);
            }
            let found: Vec<u64> = (0..chunks).map(|chunk| layers.of_chunk(chunk, chunks)).collect();
            assert_eq!(found, counts);
        }
    }
}
