//! The trace of all ranks: a file each, plain or compressed, found by the prefix of their names; equal files are one graph.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use itertools::Itertools as _;
use xxhash_rust::xxh3::xxh3_128;

use super::chakra::{self, Oddity, Scope};
use super::content::{MAX_BYTES, There, packed};
use super::groups;
use crate::input::{Diagnostic, Remarks};
use crate::system::machine::Own;
use crate::units::{index, narrow};
use crate::workload::trace::{Graph, Group, Trace, Work};

/// What a file compressed by `gzip` begins with.
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Of how many files mistakes are told.
const MANY: usize = 8;

/// The path of a rank's trace.
#[must_use]
pub fn path(prefix: &Path, rank: u32) -> PathBuf {
    let mut path = prefix.as_os_str().to_owned();
    path.push(format!(".{rank}.et"));
    path.into()
}

/// The file of a rank's trace: the plain one, or that with the ending of a compressed one.
fn find(prefix: &Path, rank: u32) -> Option<There> {
    There::plain_or_packed(path(prefix, rank))
}

/// The one file of all ranks' traces, if they have no file each: the reference knows only those.
fn find_common(prefix: &Path) -> Option<There> {
    There::plain_or_packed(common(prefix))
}

/// The path of the one file of all ranks' traces.
#[must_use]
pub fn common(prefix: &Path) -> PathBuf {
    let mut path = prefix.as_os_str().to_owned();
    path.push(".et");
    path.into()
}

/// What the files of a trace hold, as many as there are, whatever the number of ranks; none for one that cannot be read.
pub fn contents(prefix: &Path) -> impl Iterator<Item = Option<Vec<u8>>> {
    let first = find(prefix, 0);
    let common = if first.is_none() { find_common(prefix) } else { None };
    let has_each = first.is_some();
    let others = (1..).map_while(move |rank| if has_each { find(prefix, rank) } else { None });
    first.into_iter().chain(others).chain(common).map(|there| there.bytes.ok())
}

/// The bytes of a trace, unpacked if they are compressed.
fn unpack(bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    if !bytes.starts_with(&GZIP) {
        return Ok(bytes);
    }
    let mut unpacked = Vec::new();
    let mut reader = flate2::read::MultiGzDecoder::new(bytes.as_slice()).take(MAX_BYTES + 1);
    reader.read_to_end(&mut unpacked).map_err(|error| format!("the compressed file is broken: {error}"))?;
    if unpacked.len() as u64 > MAX_BYTES {
        return Err(format!("it has more than {MAX_BYTES} bytes, unpacked"));
    }
    Ok(unpacked)
}

/// Graphs as they are read, file by file; equal files are read once.
struct Shelf<'a> {
    scope: Scope<'a>,
    graphs: Vec<Graph>,
    claims: Vec<Option<(u32, u64)>>,
    /// The graph of a file, by a hash of its bytes; none if it is wrong.
    known: BTreeMap<u128, Option<u32>>,
    oddities: BTreeMap<Oddity, (u64, String)>,
    /// How many operations took the place of earlier ones with their numbers, and the first in words.
    replaced: (usize, Option<String>),
    /// Files with mistakes.
    wrong: usize,
}

impl<'a> Shelf<'a> {
    const fn new(scope: Scope<'a>) -> Self {
        Self {
            scope,
            graphs: Vec::new(),
            claims: Vec::new(),
            known: BTreeMap::new(),
            oddities: BTreeMap::new(),
            replaced: (0, None),
            wrong: 0,
        }
    }

    /// The place of the graph in a file.
    fn read(&mut self, There { path, bytes }: There, remarks: &mut Remarks) -> (PathBuf, Option<u32>) {
        let place = self.place(&path, bytes, remarks);
        (path, place)
    }

    fn place(&mut self, path: &Path, bytes: Result<Vec<u8>, String>, remarks: &mut Remarks) -> Option<u32> {
        let hash = bytes.as_ref().ok().map(|bytes| xxh3_128(bytes));
        if let Some(&known) = hash.and_then(|hash| self.known.get(&hash)) {
            return known;
        }
        let read = bytes.and_then(unpack).map_err(|why| vec![why]).and_then(|bytes| chakra::read(&bytes, self.scope));
        let place = match read {
            Ok(read) => {
                for (oddity, (count, first)) in read.oddities {
                    let file = || format!("`{}`", path.display());
                    let first = || first.map_or_else(file, |id| format!("operation {id} of {}", file()));
                    self.oddities.entry(oddity).or_insert_with(|| (0, first())).0 += count;
                }
                if let Some((id, [earlier, later])) = read.replaced.first() {
                    self.replaced.1.get_or_insert_with(|| {
                        format!(
                            "`{}`: operation {id} ({later}) takes the place of operation {id} ({earlier})",
                            path.display()
                        )
                    });
                    self.replaced.0 += read.replaced.len();
                }
                self.graphs.push(read.graph);
                self.claims.push(read.claim);
                Some(narrow(self.graphs.len() as u64 - 1))
            }
            Err(mistakes) => {
                self.wrong(path, mistakes, remarks);
                None
            }
        };
        if let Some(hash) = hash {
            self.known.insert(hash, place);
        }
        place
    }

    /// Tells the mistakes of a file, unless too many have some.
    fn wrong(&mut self, path: &Path, mistakes: Vec<String>, remarks: &mut Remarks) {
        self.wrong += 1;
        if self.wrong <= MANY {
            for mistake in mistakes {
                remarks.say(Diagnostic::error(format!("`{}`: {mistake}", path.display())));
            }
        } else if self.wrong == MANY + 1 {
            remarks.say(Diagnostic::error("traces of other ranks have mistakes too"));
        }
    }

    /// Tells what is odd.
    fn report(&self, remarks: &mut Remarks) {
        for (oddity, (count, first)) in &self.oddities {
            let (what, consequence) = oddity.texts();
            let times = if *count == 1 { String::new() } else { format!("{count} of them, the first is ") };
            remarks.say(Diagnostic::caution(format!("{what} ({times}{first})")).help(consequence));
        }
        if let (count, Some(first)) = &self.replaced {
            let more =
                if *count == 1 { String::new() } else { format!(", and there are {} more of this kind", count - 1) };
            let help = "two operations have one number; as in the reference simulator, the later counts";
            remarks.say(Diagnostic::caution(format!("{first}{more}")).help(help));
        }
    }
}

/// What the trace of a machine is made of.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    /// The path of every rank's trace, without the rank and what follows it.
    pub workload: &'a Path,
    /// The file of groups.
    pub groups: Option<&'a Path>,
    /// Which collectives are traces of their own.
    pub own: &'a Own,
    /// The prefixes of those, by their places.
    pub own_prefixes: &'a [PathBuf],
    /// How many ranks there are.
    pub ranks: u32,
    /// Whether every operation lasts as long as was recorded.
    pub is_replayed: bool,
    /// Whether of operations with one number the last counts; else that is a mistake.
    pub keeps_last: bool,
}

/// Reads the trace of all ranks; none if something is wrong, which is remarked.
pub fn read(parts: Parts<'_>, remarks: &mut Remarks) -> Option<Trace> {
    let before = remarks.errors();
    let groups = parts.groups.map_or_else(|| Some(Vec::new()), |path| groups::read(path, parts.ranks, remarks));
    // Without its groups a trace's collectives would all be wrong.
    let groups = groups?;
    let places = chakra::places(&groups);
    let Parts { ranks, is_replayed, keeps_last, .. } = parts;
    let mut shelf = Shelf::new(Scope { groups: &places, ranks, is_replayed, keeps_last });
    // Told only if all files are there.
    let mut found = Remarks::default();
    let (mut of_rank, mut missing) = (Vec::new(), Vec::new());
    let mut first = find(parts.workload, 0);
    let common = if first.is_none() { find_common(parts.workload) } else { None };
    let common = common.map(|there| shelf.read(there, &mut found));
    for rank in 0..ranks {
        let mut there = || if rank == 0 { first.take() } else { find(parts.workload, rank) };
        let read = common.clone().or_else(|| there().map(|there| shelf.read(there, &mut found)));
        match read {
            Some((file, Some(place))) => {
                let mistakes = strangers(rank, &shelf.graphs[place as usize], shelf.claims[place as usize], &groups);
                if !mistakes.is_empty() {
                    shelf.wrong(&file, mistakes, &mut found);
                }
                of_rank.push(place);
            }
            Some((_, None)) => {}
            None => missing.push(rank),
        }
        if missing.len() > MANY {
            break;
        }
    }
    if !missing.is_empty() {
        say_missing(&parts, &missing, remarks);
        return None;
    }
    if common.is_none() {
        say_more(&parts, remarks);
    }
    remarks.append(found);
    shelf.report(remarks);
    let mut trace = Trace { graphs: shelf.graphs, of_rank, groups, own: Vec::new() };
    if remarks.errors() == before {
        trace.own = own(&parts, &trace, remarks);
    }
    (remarks.errors() == before).then_some(trace)
}

/// Says that files of some ranks are not there.
fn say_missing(parts: &Parts<'_>, missing: &[u32], remarks: &mut Remarks) {
    let others = match missing.len() - 1 {
        0 => String::new(),
        MANY => ", nor are those of other ranks".to_owned(),
        1 => format!(", nor is that of rank {}", missing[1]),
        _ => format!(", nor are those of ranks {}", missing[1..].iter().join(", ")),
    };
    let message = format!("`{}` is not there{others}", path(parts.workload, missing[0]).display());
    let npus = parts.ranks;
    let help = format!(
        "the network has {npus} NPUs, and each has a trace, `PREFIX.RANK.et` or `PREFIX.RANK.et.gz`, or all have `PREFIX.et`"
    );
    remarks.say(Diagnostic::error(message).help(help));
}

/// Says that there is a file of a rank which is not there.
fn say_more(parts: &Parts<'_>, remarks: &mut Remarks) {
    let plain = path(parts.workload, parts.ranks);
    let packed = packed(&plain);
    if let Some(more) = [plain, packed].iter().find(|path| path.is_file()) {
        let message = format!("`{}` is not read: the network has {} NPUs", more.display(), parts.ranks);
        remarks.say(Diagnostic::caution(message).help("the trace has more ranks than the network"));
    }
}

/// What a rank's graph names and the rank may not.
fn strangers(rank: u32, graph: &Graph, claim: Option<(u32, u64)>, groups: &[Group]) -> Vec<String> {
    let mut mistakes = Vec::new();
    if let Some((other, by)) = claim
        && other != rank
    {
        mistakes
            .push(format!("operation {by} says that this is the trace of rank {other}, and it is that of rank {rank}"));
    }
    let mut seen = BTreeSet::new();
    for node in graph.nodes() {
        match node.work {
            Work::Collective { group: Some(group), .. } => {
                let group_of = &groups[group as usize];
                if seen.insert(group) && !group_of.ranks.contains(&rank) {
                    let (id, operation) = (group_of.id, node.id);
                    mistakes
                        .push(format!("operation {operation} takes part in group {id}, and rank {rank} is not in it"));
                }
            }
            Work::Send { to: other, .. } | Work::Receive { from: other, .. } if other == rank => {
                mistakes.push(format!("operation {} is a message of rank {rank} to itself", node.id));
            }
            _ => {}
        }
        if mistakes.len() == MANY {
            break;
        }
    }
    mistakes
}

/// Reads the graphs of collectives that are traces of their own, as many members as the largest group that uses them has.
fn own(parts: &Parts<'_>, trace: &Trace, remarks: &mut Remarks) -> Vec<Vec<Graph>> {
    let mut members = vec![BTreeSet::new(); parts.own_prefixes.len()];
    for node in trace.graphs.iter().flat_map(Graph::nodes) {
        let Work::Collective { collective, group, .. } = node.work else { continue };
        let own = parts.own.of_operation.get(&node.id).copied().or(parts.own.of_collective[collective as usize]);
        if let Some(sizes) = own.and_then(|own| members.get_mut(own as usize)) {
            sizes.insert(group.map_or(parts.ranks, |group| narrow(trace.groups[group as usize].ranks.len() as u64)));
        }
    }
    let prefixes = parts.own_prefixes.iter().zip(members);
    prefixes.map(|(prefix, sizes)| members_of(prefix, &sizes, parts.keeps_last, remarks)).collect()
}

/// Reads the graphs of a collective of so many members that is a trace of its own; none if something is wrong, which is remarked.
pub fn read_own(prefix: &Path, members: u32, remarks: &mut Remarks) -> Option<Vec<Graph>> {
    let before = remarks.errors();
    if find(prefix, members).is_some() {
        let more = path(prefix, members);
        let message = format!("`{}` is there too, and the collective has {members} members", more.display());
        remarks.say(Diagnostic::error(message).help("the trace is made for more ranks"));
    }
    let graphs = members_of(prefix, &BTreeSet::from([members]), false, remarks);
    (remarks.errors() == before).then_some(graphs)
}

/// Reads the graphs of a collective that is a trace of its own, as many as the largest of the groups that use it has members.
fn members_of(prefix: &Path, sizes: &BTreeSet<u32>, keeps_last: bool, remarks: &mut Remarks) -> Vec<Graph> {
    let most = sizes.last().copied().unwrap_or(0);
    let no_groups = BTreeMap::new();
    let mut shelf = Shelf::new(Scope { groups: &no_groups, ranks: most, is_replayed: false, keeps_last });
    let mut of_member = Vec::new();
    for member in 0..most {
        let Some(file) = find(prefix, member) else {
            let message = format!("`{}` is not there", path(prefix, member).display());
            let help = format!("a collective of {most} ranks that has a trace of its own needs {most} files");
            remarks.say(Diagnostic::error(message).help(help));
            break;
        };
        let (file, Some(place)) = shelf.read(file, remarks) else { continue };
        let mistakes = beyond(&shelf.graphs[place as usize], member, sizes);
        if !mistakes.is_empty() {
            shelf.wrong(&file, mistakes, remarks);
        }
        of_member.push(shelf.graphs[place as usize].clone());
    }
    of_member
}

/// What the graph of a member does that a collective's own trace may not.
fn beyond(graph: &Graph, member: u32, sizes: &BTreeSet<u32>) -> Vec<String> {
    let smallest = sizes.iter().copied().find(|&size| size > member).unwrap_or(0);
    let mistake = |node: &crate::workload::trace::Node| match node.work {
        Work::Send { to: other, .. } | Work::Receive { from: other, .. } if other == member => {
            Some(format!("operation {} is a message of member {member} to itself", node.id))
        }
        Work::Send { to: other, .. } | Work::Receive { from: other, .. } if other >= smallest => {
            Some(format!("operation {} names member {other} of a group of {smallest}", node.id))
        }
        Work::Send { .. } | Work::Receive { .. } | Work::Compute { .. } | Work::Nothing => None,
        _ => Some(format!("operation {} is neither a message nor a computation", node.id)),
    };
    graph.nodes().iter().filter_map(mistake).take(index(MANY as u64)).collect()
}
