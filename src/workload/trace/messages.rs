//! Messages of a trace: sends and receives that have no other end, and who waits for whom where both ends are certain.

use std::collections::{BTreeMap, BTreeSet};

use super::chain::Chains;
use super::fault::{End, Fault};
use super::wait::Waits;
use super::{Graph, Trace, Work};
use crate::system::machine::Machine;

/// Tags that differ by this are one tag on the wire [ASTRA2].
const TAGS: u64 = 500_000_000;

/// A send or a receive; those of one message stand together when they are sorted, sends first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Message {
    from: u32,
    to: u32,
    tag: u64,
    bytes: u64,
    is_receive: bool,
    place: u32,
}

impl Trace {
    /// Messages are matched by ranks, tag and bytes, and by their numbers only.
    pub(super) fn check_messages(
        &self,
        machine: &Machine,
        chains: &mut [Chains<'_>],
        waits: &mut Waits<'_>,
        faults: &mut Vec<Fault>,
    ) {
        let mut messages = Vec::new();
        for rank in 0..self.ranks() {
            for (node, place) in self.graph(rank).nodes().iter().zip(0..) {
                let (from, to, tag, bytes, is_receive) = match node.work {
                    Work::Send { to, bytes, tag } => (rank, to, tag % TAGS, bytes, false),
                    Work::Receive { from, bytes, tag } => (from, rank, tag % TAGS, bytes, true),
                    _ => continue,
                };
                // Who is not there is told elsewhere.
                if from != to && from.max(to) < self.ranks() {
                    messages.push(Message { from, to, tag, bytes, is_receive, place });
                }
            }
        }
        messages.sort_unstable();
        let taken = self.tags_of_own();
        let mut open: Vec<(Message, (u64, u64))> = Vec::new();
        for alike in messages.chunk_by_mut(|a, b| (a.from, a.to, a.tag, a.bytes) == (b.from, b.to, b.tag, b.bytes)) {
            if taken.contains(&alike[0].tag) {
                continue;
            }
            let (sends, receives) = alike.split_at_mut(alike.partition_point(|message| !message.is_receive));
            let counts = (sends.len() as u64, receives.len() as u64);
            if let Some(last) = sends.last().filter(|_| counts.0 > counts.1) {
                open.push((*last, counts));
            }
            if let Some(last) = receives.last().filter(|_| counts.1 > counts.0) {
                open.push((*last, (counts.1, counts.0)));
            }
            let mut order = |messages: &[Message], rank: u32| {
                let mut places: Vec<u32> = messages.iter().map(|message| message.place).collect();
                chains[self.of_rank[rank as usize] as usize].order(&mut places).then_some(places)
            };
            if let ([first, ..], [_, ..]) = (&*sends, &*receives)
                && let (Some(sends), Some(receives)) = (order(sends, first.from), order(receives, first.to))
            {
                for (send, receive) in sends.into_iter().zip(receives) {
                    waits.message((first.from, send), (first.to, receive));
                }
            }
        }
        faults.extend(self.unmatched(&open, machine.rendezvous));
    }

    /// Messages with one end as faults, each with the other end that was perhaps meant.
    fn unmatched(&self, open: &[(Message, (u64, u64))], waits: bool) -> Vec<Fault> {
        // The keys that all but one of a message's four properties make, by which of them is left out.
        let keys = |message: &Message| {
            let Message { from, to, tag, bytes, is_receive, .. } = *message;
            let of = |k: u8, values: [u64; 3]| (k, !is_receive, values);
            let [from, to] = [from, to].map(u64::from);
            [of(0, [from, to, tag]), of(1, [from, to, bytes]), of(2, [to, tag, bytes]), of(3, [from, tag, bytes])]
        };
        let mut known = BTreeMap::new();
        for (message, _) in open {
            for (k, is_receive, values) in keys(message) {
                known.entry((k, !is_receive, values)).or_insert(*message);
            }
        }
        let end = |message: &Message| {
            let rank = if message.is_receive { message.to } else { message.from };
            self.end(rank, message.place as usize)
        };
        let near = |message: &Message| -> Option<(End, &'static str)> {
            let mut found = keys(message).into_iter().zip(["size", "tag", "sender", "receiver"]);
            found.find_map(|(key, what)| Some((end(known.get(&key)?)?, what)))
        };
        let fault = |&(ref message, counts): &(Message, (u64, u64))| {
            let (this, near) = (end(message)?, near(message));
            Some(if message.is_receive {
                Fault::Unsent { receive: this, counts, near }
            } else {
                Fault::Unreceived { send: this, counts, near, waits }
            })
        };
        open.iter().filter_map(fault).collect()
    }

    /// The tags of collectives that are graphs: their messages and those of the workload share them.
    fn tags_of_own(&self) -> BTreeSet<u64> {
        let nodes = self.own.iter().flatten().flat_map(Graph::nodes);
        let tag = |work| match work {
            Work::Send { tag, .. } | Work::Receive { tag, .. } => Some(tag % TAGS),
            _ => None,
        };
        nodes.filter_map(|node| tag(node.work)).collect()
    }
}
