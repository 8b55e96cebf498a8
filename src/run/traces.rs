//! Traces that a sweep has read: those used last, within so many bytes.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use crate::input::Diagnostic;
use crate::sweep::recording::Recording;
use crate::workload::trace::Trace;

/// A trace, or what is wrong with it.
pub type Found = Result<Arc<Trace>, Arc<[Diagnostic]>>;

/// A trace that is read by whoever asks first.
pub type Cell = Arc<OnceLock<Found>>;

/// A trace by its files and its number of ranks.
pub type Key = (Recording, u32);

/// Bytes of traces that are kept.
const MOST: u64 = 1 << 30;
/// Bytes of what is known of a trace besides its content, about.
const ENTRY: u64 = 1 << 10;

/// Traces that were read.
#[derive(Debug)]
pub struct Traces {
    known: BTreeMap<Key, Known>,
    /// Who was used when, the longest ago first.
    used: BTreeMap<u64, Key>,
    clock: u64,
    /// Bytes of all, and how many there may be unless they are in use.
    bytes: u64,
    most: u64,
}

#[derive(Debug)]
struct Known {
    used: u64,
    /// None until it is read.
    bytes: Option<u64>,
    cell: Cell,
}

impl Known {
    /// Whether nobody reads it or runs it.
    fn is_idle(&self) -> bool {
        let is_held = match self.cell.get() {
            Some(Ok(trace)) => Arc::strong_count(trace) > 1,
            Some(Err(_)) => false,
            None => true,
        };
        Arc::strong_count(&self.cell) == 1 && !is_held
    }
}

impl Default for Traces {
    fn default() -> Self {
        Self { known: BTreeMap::new(), used: BTreeMap::new(), clock: 0, bytes: 0, most: MOST }
    }
}

impl Traces {
    /// A trace, to be read if nobody has.
    pub fn get(&mut self, key: &Key) -> Cell {
        self.clock += 1;
        let clock = self.clock;
        let fresh = || Known { used: clock, bytes: None, cell: Cell::default() };
        let known = self.known.entry(key.clone()).or_insert_with(fresh);
        let before = std::mem::replace(&mut known.used, clock);
        self.used.remove(&before);
        self.used.insert(clock, key.clone());
        known.cell.clone()
    }

    /// A trace was read: what was used longest ago goes if there is no room, but nothing that is in use.
    pub fn weigh(&mut self, key: &Key, found: &Found) {
        let Some(known) = self.known.get_mut(key).filter(|known| known.bytes.is_none()) else { return };
        let bytes = ENTRY + found.as_ref().map_or(0, |trace| trace.bytes());
        known.bytes = Some(bytes);
        self.bytes += bytes;
        if self.bytes <= self.most {
            return;
        }
        let idle = self.used.iter().filter(|used| self.known.get(used.1).is_some_and(Known::is_idle));
        let idle: Vec<u64> = idle.map(|used| *used.0).collect();
        for clock in idle {
            if self.bytes <= self.most {
                break;
            }
            let gone = self.used.remove(&clock).and_then(|key| self.known.remove(&key));
            self.bytes -= gone.and_then(|known| known.bytes).unwrap_or(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::trace::graph::Draft;
    use crate::workload::trace::{Node, Work};

    fn trace(operations: u64) -> Trace {
        let mut draft = Draft::default();
        for id in 0..operations {
            draft.push(Node { id, work: Work::Nothing, recorded: 0, on_host: false }, "x", []);
        }
        Trace::same(draft.finish().expect("a graph"), 8)
    }

    fn key(k: u64) -> Key {
        (Recording { prefix: k.to_string(), groups: None, own: Vec::new() }, 8)
    }

    /// Reads a trace as one who runs it would, and keeps what it holds.
    fn read(traces: &mut Traces, k: u64, operations: u64) -> Arc<Trace> {
        let cell = traces.get(&key(k));
        let found = cell.get_or_init(|| Ok(Arc::new(trace(operations)))).clone();
        drop(cell);
        traces.weigh(&key(k), &found);
        found.expect("a trace")
    }

    #[test]
    fn the_traces_used_last_are_kept_within_so_many_bytes() {
        let each = ENTRY + trace(100).bytes();
        let mut traces = Traces { most: 4 * each, ..Traces::default() };
        for k in 0..9 {
            read(&mut traces, k, 100);
            read(&mut traces, 0, 100);
            assert!(traces.bytes <= 4 * each);
        }
        let kept: Vec<bool> = (0..9).map(|k| traces.known.contains_key(&key(k))).collect();
        assert_eq!(kept, [true, false, false, false, false, false, true, true, true]);
        assert_eq!((traces.known.len(), traces.used.len(), traces.bytes), (4, 4, 4 * each));
        // A large one makes room for itself.
        drop(read(&mut traces, 9, 300));
        assert!(traces.bytes <= 4 * each && traces.known.contains_key(&key(9)));
    }

    #[test]
    fn a_trace_in_use_is_kept_however_large() {
        let mut traces = Traces { most: 1, ..Traces::default() };
        let first = read(&mut traces, 0, 1000);
        let second = read(&mut traces, 1, 1000);
        assert!(Arc::ptr_eq(&first, &read(&mut traces, 0, 1000)));
        drop((first, second));
        let third = read(&mut traces, 2, 1000);
        assert_eq!(traces.known.len(), 1);
        assert!(Arc::ptr_eq(&third, &read(&mut traces, 2, 1000)));
    }

    #[test]
    fn what_is_being_read_is_kept() {
        let mut traces = Traces { most: 1, ..Traces::default() };
        let cell = traces.get(&key(0));
        drop(read(&mut traces, 1, 10));
        assert!(Arc::ptr_eq(&cell, &traces.get(&key(0))));
    }
}
