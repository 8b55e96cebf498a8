//! Do messages that share links wait for each other, in any number of dimensions, and lose nothing?

use starsweep::engine::event_driven::simulate;
use starsweep::system::collective::{Algorithm, Collective};
use starsweep::system::machine::{Congestion, Dimension, Entry, Machine};
use starsweep::system::topology::Topology;
use starsweep::units::Time;
use starsweep::workload::trace::graph::Draft;
use starsweep::workload::trace::{Graph, Node, Trace, Work};

/// Links of 1 B/ns and 100 ns in every dimension.
fn machine(dimensions: &[(Topology, u32)]) -> Machine {
    let dimension = |&(block, size): &(Topology, u32)| Dimension { block, size, bandwidth: 1.0, latency: 100.0 };
    let algorithms = vec![Entry::of(Algorithm::Ring); dimensions.len()];
    Machine {
        congestion: Congestion::Aware,
        chunks: 2,
        endpoint_delay: 10.0,
        ..Machine::plain(dimensions.iter().map(dimension).collect(), &algorithms)
    }
}

fn graph(works: &[Work]) -> Graph {
    let mut draft = Draft::default();
    for (id, &work) in (0..).zip(works) {
        draft.push(Node { id, work, recorded: 0, on_host: false }, "", []);
    }
    draft.finish().expect("a graph")
}

/// When each of some messages, from whom to whom, has arrived, nanoseconds.
fn arrivals(machine: &Machine, messages: &[(u32, u32)], bytes: u64) -> Vec<u64> {
    let graphs = (0..machine.npus()).map(|rank| {
        let works = messages.iter().zip(0..).filter_map(|(&(from, to), tag)| match rank {
            _ if rank == from => Some(Work::Send { to, bytes, tag }),
            _ if rank == to => Some(Work::Receive { from, bytes, tag }),
            _ => None,
        });
        graph(&works.collect::<Vec<_>>())
    });
    let outcome = simulate(machine, &Trace::new(graphs.collect(), Vec::new()), false).expect("an outcome");
    messages.iter().map(|&(_, to)| outcome.ranks[to as usize].finish.map_or(0, Time::whole_nanoseconds)).collect()
}

#[test]
fn a_message_goes_through_every_dimension_device_by_device() {
    // 0 to 7 of [switch of 2, ring of 4]: up to the switch and down, 200 ns and 2,000 B each, then one step back round the ring.
    let two = machine(&[(Topology::Switch, 2), (Topology::Ring, 4)]);
    assert_eq!(arrivals(&two, &[(0, 7)], 1000), [3 * 1100]);
    // 0 to 5: two steps round, a tie.
    assert_eq!(arrivals(&two, &[(0, 5)], 1000), [4 * 1100]);
    let three = machine(&[(Topology::FullyConnected, 3), (Topology::FullyConnected, 2), (Topology::Switch, 2)]);
    assert_eq!(arrivals(&three, &[(0, 11)], 1000), [4 * 1100]);
}

#[test]
fn messages_on_one_link_follow_each_other() {
    // Both leave 0 through its port to the switch: the second a message's bytes behind the first.
    let switch = machine(&[(Topology::Switch, 4), (Topology::Ring, 2)]);
    assert_eq!(arrivals(&switch, &[(0, 1), (0, 2)], 1000), [2200, 3200]);
    // Both come in through the port of 3.
    assert_eq!(arrivals(&switch, &[(0, 3), (1, 3)], 1000), [3200, 3200]);
    // Different links.
    assert_eq!(arrivals(&switch, &[(0, 1), (2, 3)], 1000), [2200, 2200]);
}

#[test]
fn a_collective_over_links_takes_no_less_than_its_bytes() {
    for dimensions in
        [vec![(Topology::Ring, 4), (Topology::Switch, 2)], vec![(Topology::FullyConnected, 3), (Topology::Ring, 2)]]
    {
        let machine = machine(&dimensions);
        for collective in Collective::ALL {
            let work = Work::Collective { collective, bytes: 6 << 20, group: None, dimensions: u32::MAX };
            let outcome = simulate(&machine, &Trace::same(graph(&[work]), machine.npus()), false).expect("an outcome");
            for rank in &outcome.ranks {
                let finish = rank.finish.expect("an end").as_delay().as_nanoseconds();
                for (dimension, &sent) in machine.dimensions.iter().zip(&rank.sent) {
                    let links = dimension.npu_bandwidth();
                    assert!(finish >= starsweep::units::real(sent) / links, "{collective:?} {dimensions:?}");
                }
            }
        }
    }
}
