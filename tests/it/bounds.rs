//! Is any result better than all of an NPU's bandwidth allows? Under our rules none is, whatever the system and the trace.

use proptest::prelude::*;
use starsweep::engine::event_driven::{Ask, Outcome, Path, simulate_by};
use starsweep::system::collective::{Algorithm, Collective};
use starsweep::system::dimension_order::DimensionOrder;
use starsweep::system::machine::{Congestion, Dimension, Entry, Hierarchy, Machine, Own, Pace};
use starsweep::system::queue_order::QueueOrder;
use starsweep::system::rules::Rules;
use starsweep::system::topology::Topology;
use starsweep::units::{Time, narrow, real};
use starsweep::workload::trace::graph::Draft;
use starsweep::workload::trace::{Group, Node, Trace, Work};

/// Bytes of which chunks, blocks and windows are whole numbers, mostly.
const UNIT: u64 = 604_800;

fn recipe() -> impl Strategy<Value = Entry> {
    prop_oneof![
        2 => Just(Entry::of(Algorithm::Ring)),
        2 => (1_u32..6).prop_map(Entry::direct),
        1 => Just(Entry::of(Algorithm::Direct)),
        2 => Just(Entry::of(Algorithm::HalvingDoubling)),
        1 => Just(Entry::of(Algorithm::DoubleBinaryTree)),
    ]
}

fn dimension() -> impl Strategy<Value = Dimension> {
    let block = prop_oneof![Just(Topology::Ring), Just(Topology::Switch), Just(Topology::FullyConnected)];
    let bandwidth = prop_oneof![Just(25.0), Just(50.0), Just(107.3)];
    let latency = prop_oneof![Just(0.0), Just(100.0), Just(500.5)];
    (block, 2_u32..7, bandwidth, latency).prop_map(|(block, size, bandwidth, latency)| Dimension {
        block,
        size,
        bandwidth,
        latency,
    })
}

prop_compose! {
    fn machine()(
        dimensions in prop::collection::vec(dimension(), 1..4),
        recipes in prop::collection::vec(recipe(), 3),
        hierarchy in prop_oneof![Just(Hierarchy::PerDimension), Just(Hierarchy::ScatterGather)],
        chunks in 1_u64..9,
        active_chunks in 1_u32..5,
        queues in 1_u32..5,
        endpoint_delay in prop_oneof![Just(0.0), Just(10.0)],
        has_memory in any::<bool>(),
        dimension_order in prop::sample::select(DimensionOrder::ALL),
        queue_order in prop::sample::select(QueueOrder::ALL),
        is_flat in prop_oneof![8 => Just(false), 1 => Just(true)],
        rendezvous in prop_oneof![4 => Just(false), 1 => Just(true)],
    ) -> Machine {
        let mut machine = Machine {
            dimensions,
            congestion: Congestion::Unaware,
            algorithms: Default::default(),
            own: Own::default(),
            hierarchy,
            chunks,
            active_chunks,
            queues,
            endpoint_delay,
            memory_bandwidth: if has_memory { 1600e9 } else { f64::INFINITY },
            pace: Pace::Recorded,
            remote: None,
            bus: None,
            rendezvous,
            dimension_order,
            queue_order,
            rules: Rules::OURS,
        };
        let mut entries: Vec<Entry> = machine.dimensions.iter().zip(recipes).map(|it| it.1).collect();
        if is_flat {
            // All of them may be no power of two.
            let entry = if entries[0].algorithm == Algorithm::Direct { entries[0] } else { Entry::of(Algorithm::Ring) };
            entries = vec![Entry { whole: true, ..entry }];
        }
        machine.algorithms = std::array::from_fn(|_| entries.clone());
        machine
    }
}

/// What every rank does in one place of its graph, before ranks are known.
#[derive(Debug, Clone)]
enum Plan {
    Compute(u64),
    /// Among all ranks, in the dimensions of which the bits say it.
    Everybody(Collective, u64, u32),
    /// Among those that differ in one dimension alone.
    Line(Collective, u64, usize),
    /// Among every second of these, or the half beside each other.
    Part(Collective, u64, usize, bool),
    /// Among the first three quarters, or so, of all ranks, and among the others.
    Irregular(Collective, u64),
    /// To the rank so far ahead; a receive beside it.
    Message(u64, u32),
    Broadcast(u64),
}

fn plan() -> impl Strategy<Value = Plan> {
    let collective = || prop::sample::select(&Collective::ALL);
    let bytes = || 1_u64..9;
    prop_oneof![
        1 => (1_u64..20_000).prop_map(Plan::Compute),
        3 => (collective(), bytes(), 0_u32..8).prop_map(|(kind, bytes, bits)| Plan::Everybody(kind, bytes, bits)),
        3 => (collective(), bytes(), 0_usize..3).prop_map(|(kind, bytes, k)| Plan::Line(kind, bytes, k)),
        1 => (collective(), bytes(), 0_usize..3, any::<bool>()).prop_map(|(kind, bytes, k, far)| Plan::Part(kind, bytes, k, far)),
        1 => (collective(), bytes()).prop_map(|(kind, bytes)| Plan::Irregular(kind, bytes)),
        3 => (bytes(), 1_u32..40).prop_map(|(bytes, far)| Plan::Message(bytes, far)),
        1 => bytes().prop_map(Plan::Broadcast),
    ]
}

/// The groups of a trace, each once.
#[derive(Default)]
struct Groups(Vec<Group>);

impl Groups {
    fn place(&mut self, ranks: Vec<u32>) -> u32 {
        let place = self.0.iter().position(|group| group.ranks == ranks).unwrap_or_else(|| {
            self.0.push(Group { id: self.0.len() as u64 + 1, ranks });
            self.0.len() - 1
        });
        narrow(place as u64)
    }
}

/// The ranks that differ from one in one dimension alone: all, every second, or those of its half.
fn line(machine: &Machine, rank: u32, k: usize, part: Option<bool>) -> Vec<u32> {
    let stride: u32 = machine.dimensions[..k].iter().map(|dimension| dimension.size).product();
    let size = machine.dimensions[k].size;
    let me = rank / stride % size;
    let half = size / 2;
    let is_in = |at: &u32| match part {
        Some(_) if !size.is_multiple_of(2) => true,
        None => true,
        Some(true) => at % 2 == me % 2,
        Some(false) => at / half == me / half,
    };
    (0..size).filter(is_in).map(|at| rank - me * stride + at * stride).collect()
}

fn trace(machine: &Machine, plans: &[(Plan, usize)]) -> Trace {
    let npus = machine.npus();
    let last = machine.dimensions.len() - 1;
    let mut groups = Groups::default();
    let mut graphs = Vec::new();
    for rank in 0..npus {
        let mut draft = Draft::default();
        let mut done: Vec<u64> = Vec::new();
        let mut stream: Option<u64> = None;
        for (k, (plan, back)) in (1_u64..).zip(plans) {
            // A rank is in one collective at a time: all take them in one order.
            let joins = !matches!(plan, Plan::Compute(_) | Plan::Message(..));
            let before = stream.filter(|_| joins);
            let after: Vec<u64> = done.iter().rev().nth(*back).copied().into_iter().chain(before).collect();
            if joins {
                stream = Some(2 * k);
            }
            let mut push = |id, work, recorded| {
                draft.push(Node { id, work, recorded, on_host: false }, "", after.iter().copied());
            };
            let mut among = |kind, bytes, ranks: Vec<u32>| {
                let group = groups.place(ranks);
                Work::Collective { collective: kind, bytes: bytes * UNIT, group: Some(group), dimensions: u32::MAX }
            };
            let (work, recorded) = match *plan {
                Plan::Compute(time) => (Work::Compute { operations: None, bytes: None }, time),
                Plan::Everybody(collective, bytes, dimensions) => {
                    (Work::Collective { collective, bytes: bytes * UNIT, group: None, dimensions }, 0)
                }
                Plan::Line(kind, bytes, k) => (among(kind, bytes, line(machine, rank, k.min(last), None)), 0),
                Plan::Part(kind, bytes, k, far) => (among(kind, bytes, line(machine, rank, k.min(last), Some(far))), 0),
                // Whose turn it is counts chunks of all groups: those of different shapes would come out of step.
                Plan::Irregular(kind, bytes) if machine.dimension_order == DimensionOrder::RoundRobin => {
                    (among(kind, bytes, line(machine, rank, 0, None)), 0)
                }
                Plan::Irregular(kind, bytes) => {
                    let cut = (npus * 3 / 4).max(1);
                    (among(kind, bytes, if rank < cut { (0..cut).collect() } else { (cut..npus).collect() }), 0)
                }
                Plan::Message(bytes, far) => {
                    let far = 1 + far % (npus - 1);
                    let (to, from) = ((rank + far) % npus, (rank + npus - far) % npus);
                    push(2 * k + 1, Work::Receive { from, bytes: bytes * UNIT, tag: k }, 0);
                    (Work::Send { to, bytes: bytes * UNIT, tag: k }, 0)
                }
                Plan::Broadcast(bytes) => {
                    let (collective, bytes) = (Collective::Broadcast, bytes * UNIT);
                    (Work::Collective { collective, bytes, group: None, dimensions: u32::MAX }, 0)
                }
            };
            push(2 * k, work, recorded);
            done.push(2 * k);
        }
        graphs.push(draft.finish().expect("a graph"));
    }
    Trace::new(graphs, groups.0)
}

fn outcome(machine: &Machine, trace: &Trace, path: Path) -> Outcome {
    let outcome = simulate_by(machine, trace, Ask { path, ..Ask::default() });
    outcome.unwrap_or_else(|refused| panic!("{refused}"))
}

/// Every rank comes to its end, and not before its links can have carried what it sent.
///
/// A picosecond and a byte of each message may be lost by rounding.
fn check(machine: &Machine, outcome: &Outcome) -> Result<(), TestCaseError> {
    prop_assert!(outcome.stuck.is_empty(), "{:?}", outcome.stuck);
    let last = outcome.ranks.iter().filter_map(|rank| rank.finish).max().map(Time::as_picoseconds);
    for (k, rank) in outcome.ranks.iter().enumerate() {
        prop_assert!(rank.finish.is_some(), "rank {k} has no end");
        for (dimension, &sent) in machine.dimensions.iter().zip(&rank.sent) {
            let byte = 1000.0 / dimension.npu_bandwidth();
            let lost = real(outcome.messages + 100 * machine.chunks) * (1.0 + byte);
            let wire = real(sent) * byte;
            let end = real(last.unwrap_or(0));
            prop_assert!(
                wire <= end + lost,
                "rank {k} sends {sent} B: {wire} ps of {dimension:?}, and the end is at {end} ps"
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn no_rank_ends_before_its_links_can_have_carried_what_it_sends(
        machine in machine(),
        plans in prop::collection::vec((plan(), 0_usize..4), 1..7),
    ) {
        let trace = trace(&machine, &plans);
        check(&machine, &outcome(&machine, &trace, Path::Automatic))?;
        check(&machine, &outcome(&machine, &trace, Path::Messages))?;
    }

    #[test]
    fn a_collective_sends_what_it_needs_to(
        machine in machine(),
        collective in prop::sample::select(&Collective::ALL),
        units in 1_u64..9,
    ) {
        let bytes = units * UNIT;
        let work = Work::Collective { collective, bytes, group: None, dimensions: u32::MAX };
        let mut draft = Draft::default();
        draft.push(Node { id: 1, work, recorded: 0, on_host: false }, "", []);
        let trace = Trace::same(draft.finish().expect("a graph"), machine.npus());
        let outcome = outcome(&machine, &trace, Path::Automatic);
        check(&machine, &outcome)?;
        // Of a buffer of S bytes on each of n ranks all together send 2 (n - 1) S at least, if each part is added up once and
        // the sum goes to each; half of that if one of the two is not to be done, or each part has one rank that it goes to.
        let n = u64::from(machine.npus());
        let needed = match collective {
            Collective::AllReduce => 2 * (n - 1) * bytes,
            Collective::ReduceScatter | Collective::AllToAll | Collective::Broadcast => (n - 1) * bytes,
            Collective::Scatter => (n - 1) * bytes / n,
            Collective::AllGather => (n - 1) * n * bytes,
        };
        // What a message has is rounded to whole bytes: of each chunk, in each dimension, there and back.
        let sent: u64 = outcome.ranks.iter().flat_map(|rank| &rank.sent).sum();
        let rounded = needed / 100_000 + 2 * n * machine.chunks * machine.dimensions.len() as u64;
        prop_assert!(sent + rounded >= needed, "{sent} B of {needed} B");
        // And no more, by what sends each part once and adds it up in between; a question is 8 KiB, and a message that crosses two
        // dimensions is sent in both.
        let is_least = |entry: &Entry| {
            matches!(entry.algorithm, Algorithm::Ring | Algorithm::Direct) && (!entry.whole || machine.dimensions.len() == 1)
        };
        let is_cut = collective.halves().is_none() || machine.hierarchy == Hierarchy::ScatterGather || machine.dimensions.len() == 1;
        let are_least = machine.algorithms[0].iter().all(is_least) && is_cut && !machine.rendezvous;
        if are_least && matches!(collective, Collective::AllReduce | Collective::ReduceScatter | Collective::AllGather) {
            let most = needed + needed / 1000 + 1000 * n * machine.chunks;
            prop_assert!(sent <= most, "{sent} B, and {needed} B are needed");
        }
    }

    #[test]
    fn over_one_dimension_all_at_once_is_that_dimension(
        machine in machine(),
        collective in prop::sample::select(&Collective::ALL),
        units in 1_u64..9,
    ) {
        let one = Machine { dimensions: machine.dimensions[..1].to_vec(), ..machine };
        let by = |whole| {
            let entries = vec![Entry { whole, ..one.algorithms[0][0] }];
            let machine = Machine { algorithms: std::array::from_fn(|_| entries.clone()), ..one.clone() };
            let work = Work::Collective { collective, bytes: units * UNIT, group: None, dimensions: u32::MAX };
            let mut draft = Draft::default();
            draft.push(Node { id: 1, work, recorded: 0, on_host: false }, "", []);
            outcome(&machine, &Trace::same(draft.finish().expect("a graph"), machine.npus()), Path::Automatic).ranks
        };
        prop_assert_eq!(by(false), by(true));
    }
}
