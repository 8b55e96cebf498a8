//! A deadlock in words: which operations of which ranks wait for ever, and for what.

use std::collections::BTreeMap;

use super::simulate::alike;
use crate::engine::event_driven::{Outcome, Stuck, Wait};
use crate::system::collective::Collective;
use crate::units::count;
use crate::workload::trace::fault::{group_text, ranks_text};
use crate::workload::trace::{Node, Trace, Work};

/// An operation that waits for ever, on one rank or on several alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Knot {
    /// The ranks, ascending.
    pub ranks: Vec<u32>,
    /// The operation's number.
    pub operation: u64,
    /// Its name; empty if it has none.
    pub name: String,
    /// What it waits for: follows "waits for".
    pub waits_for: String,
    /// Whether it has begun, so that what it waits for is not of its own rank.
    pub has_begun: bool,
}

/// How the words for ranks that are in equal collectives and do not meet begin.
const SAME: &str = "the other members, which wait in the same";

impl Knot {
    /// What to look at, if it is not plain.
    #[must_use]
    pub fn help(&self) -> Option<&'static str> {
        self.waits_for.starts_with(SAME).then_some(
            "ASTRA-sim numbers the chunks of all groups together: ranks that have made different numbers of them do not meet",
        )
    }
}

/// The knots of a deadlock: those that have begun come first; neighbouring ranks that wait alike are one.
#[must_use]
pub fn knots(trace: &Trace, outcome: &Outcome) -> Vec<Knot> {
    let stuck = &all(trace, outcome);
    let node = |stuck: &Stuck| {
        let graph = trace.graph(stuck.rank);
        graph.position(stuck.operation).map(|place| (graph.nodes()[place], graph.name(place)))
    };
    // Who is in a collective of a group, and what holds each rank's places.
    let mut taking: Taking = Taking::new();
    let mut holds: BTreeMap<(u32, &str), String> = BTreeMap::new();
    for stuck in stuck.iter().filter(|stuck| stuck.wait == Wait::Others) {
        let Some((node, name)) = node(stuck) else { continue };
        if let Work::Collective { group, .. } = node.work {
            taking.entry(group).or_default().insert(stuck.rank, node.work);
        }
        if let Some(slot) = slot(&node) {
            holds.insert((stuck.rank, slot), operation(stuck.operation, name));
        }
    }
    let words = |stuck: &Stuck, node: &Node| match stuck.wait {
        Wait::Others => others(trace, stuck.rank, node.work, &taking),
        Wait::Slot => match slot(node).and_then(|slot| Some((slot, holds.get(&(stuck.rank, slot))?))) {
            Some((slot, holder)) => format!("{holder}: a rank does one {slot} at a time"),
            None => "another operation of its rank".to_owned(),
        },
        Wait::Operations(1) => "an operation of its rank that does not end".to_owned(),
        Wait::Operations(open) => format!("{} operations of its rank that do not end", count(u64::from(open))),
    };
    let mut found: Vec<Knot> = Vec::new();
    for has_begun in [true, false] {
        let mut alike: BTreeMap<(u64, &str, String), usize> = BTreeMap::new();
        for stuck in stuck.iter().filter(|stuck| (stuck.wait == Wait::Others) == has_begun) {
            let Some((node, name)) = node(stuck) else { continue };
            let waits_for = words(stuck, &node);
            let known = *alike.entry((stuck.operation, name, waits_for.clone())).or_insert(found.len());
            if let Some(knot) = found.get_mut(known) {
                knot.ranks.push(stuck.rank);
                continue;
            }
            let (operation, name) = (stuck.operation, name.to_owned());
            found.push(Knot { ranks: vec![stuck.rank], operation, name, waits_for, has_begun });
        }
    }
    found
}

/// What waits for ever on every rank, those included for which another stands.
fn all(trace: &Trace, outcome: &Outcome) -> Vec<Stuck> {
    let alike = if outcome.stuck.is_empty() { BTreeMap::new() } else { alike(outcome) };
    let mut all = Vec::new();
    for stuck in &outcome.stuck {
        let Some(place) = trace.graph(stuck.rank).position(stuck.operation) else { continue };
        for &rank in alike.get(&stuck.rank).into_iter().flatten() {
            // Ranks that are alike have the same operation at the same place.
            let operation = trace.graph(rank).nodes().get(place).map_or(stuck.operation, |node| node.id);
            all.push(Stuck { rank, operation, wait: stuck.wait });
        }
    }
    all.sort_by_key(|stuck| (stuck.rank, stuck.operation));
    all
}

/// What an operation takes, one at a time on its rank.
const fn slot(node: &Node) -> Option<&'static str> {
    match node.work {
        _ if node.on_host => Some("operation of its host"),
        Work::Compute { .. } => Some("computation"),
        Work::Receive { .. } => None,
        _ => Some("collective, send or access to remote memory"),
    }
}

/// In which collectives of a group its members are.
type Taking = BTreeMap<Option<u32>, BTreeMap<u32, Work>>;

/// What an operation that has begun waits for.
fn others(trace: &Trace, rank: u32, work: Work, taking: &Taking) -> String {
    match work {
        Work::Receive { from, bytes, tag } => format!("{} bytes under tag {tag} from rank {from}", count(bytes)),
        Work::Send { to, bytes, tag } => format!("rank {to} to receive {} bytes under tag {tag}", count(bytes)),
        Work::Collective { collective, bytes, group, .. } => {
            let members: Vec<u32> = match group {
                Some(group) => trace.groups[group as usize].ranks.clone(),
                None => (0..trace.ranks()).collect(),
            };
            let taking = taking.get(&group);
            let is_missing = |member: &u32| !taking.is_some_and(|taking| taking.contains_key(member));
            let mut missing: Vec<u32> =
                members.into_iter().filter(|member| *member != rank && is_missing(member)).collect();
            missing.sort_unstable();
            let kind = Collective::NAMES[collective as usize];
            let group = group_text(group.map(|group| trace.groups[group as usize].id));
            let what = format!("{kind} of {} bytes among {group}", count(bytes));
            if missing.is_empty() && taking.is_some_and(|taking| taking.values().all(|other| *other == work)) {
                format!("{SAME} {what}")
            } else if missing.is_empty() {
                format!("the other members, which have begun something else, to take part in {what}")
            } else {
                format!("{} to take part in {what}", ranks_text(&missing))
            }
        }
        _ => "what does not come".to_owned(),
    }
}

/// An operation in words.
#[must_use]
pub fn operation(id: u64, name: &str) -> String {
    if name.is_empty() { format!("operation {id}") } else { format!("operation {id} ({name})") }
}
