//! What certainly goes wrong in a trace, in whatever order operations are taken: found before anything is simulated.
//!
//! Three searches, each linear in the size of the trace but for a sort: messages without their other end, collectives that
//! members of a group take for different ones, and operations of several ranks that wait for each other in a circle. What
//! depends on which of several operations goes first is not told here: a simulation says it.

use super::Trace;
use super::chain::Chains;
use super::fault::Fault;
use super::wait::Waits;
use crate::system::machine::{Machine, Pace};
impl Trace {
    /// What certainly goes wrong when a machine runs it; nothing if the two do not fit, which a simulation refuses.
    ///
    /// Sends and receives are matched by ranks, tag and bytes, and by their numbers only, so that their order does not matter.
    /// Collectives are compared one by one where their order is forced by dependencies, else all together. In circles a
    /// receive waits for its send where it is certain which that is; a send waits for nothing, as it needs no receive.
    #[must_use]
    pub fn check(&self, machine: &Machine) -> Vec<Fault> {
        let mut faults = Vec::new();
        let fits = machine.check().is_ok() && machine.npus() == self.ranks() && self.broken_group().is_none();
        if !fits || machine.pace == Pace::Replayed {
            return faults;
        }
        self.check_powers(machine, &mut faults);
        // Ranks that all do the same do not wait for each other in vain.
        if self.of_rank.iter().all(|graph| *graph == self.of_rank[0]) {
            return faults;
        }
        let mut chains: Vec<Chains<'_>> = self.graphs.iter().map(Chains::new).collect();
        let mut waits = Waits::new(self);
        self.check_messages(machine, &mut chains, &mut waits, &mut faults);
        self.check_collectives(machine, &mut chains, &mut waits, &mut faults);
        faults.extend(waits.circles().into_iter().map(Fault::Circle));
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::super::graph::Draft;
    use super::super::{Graph, Group, Node, Work};
    use super::*;
    use crate::system::collective::{Algorithm, Collective};
    use crate::system::dimension_order::DimensionOrder;
    use crate::system::machine::{Congestion, Dimension, Entry, Hierarchy, Own};
    use crate::system::queue_order::QueueOrder;
    use crate::system::rules::Rules;
    use crate::system::topology::Topology;

    fn machine(npus: u32) -> Machine {
        Machine {
            dimensions: vec![Dimension { block: Topology::Switch, size: npus, bandwidth: 50.0, latency: 500.0 }],
            congestion: Congestion::Unaware,
            algorithms: std::array::from_fn(|_| vec![Entry::of(Algorithm::Ring)]),
            own: Own::default(),
            pace: Pace::Recorded,
            remote: None,
            hierarchy: Hierarchy::ScatterGather,
            chunks: 4,
            active_chunks: 1,
            queues: 1,
            endpoint_delay: 10.0,
            memory_bandwidth: 1e12,
            bus: None,
            rendezvous: false,
            dimension_order: DimensionOrder::Ascending,
            queue_order: QueueOrder::Fifo,
            rules: Rules::ASTRA_SIM,
        }
    }

    fn graph(operations: &[(u64, Work, &[u64])]) -> Graph {
        let mut draft = Draft::default();
        for &(id, work, after) in operations {
            draft.push(Node { id, work, recorded: 0, on_host: false }, &format!("op{id}"), after.iter().copied());
        }
        draft.finish().expect("a graph")
    }

    fn send(to: u32, bytes: u64, tag: u64) -> Work {
        Work::Send { to, bytes, tag }
    }

    fn receive(from: u32, bytes: u64, tag: u64) -> Work {
        Work::Receive { from, bytes, tag }
    }

    fn all_reduce(bytes: u64, group: Option<u32>) -> Work {
        Work::Collective { collective: Collective::AllReduce, bytes, group, dimensions: u32::MAX }
    }

    const COMPUTE: Work = Work::Compute { operations: None, bytes: None };

    /// The faults of a trace, each in words and whether it is fatal.
    fn check(graphs: Vec<Graph>, groups: &[&[u32]]) -> Vec<(String, bool)> {
        let groups = groups.iter().zip(1..).map(|(ranks, id)| Group { id, ranks: ranks.to_vec() }).collect();
        let trace = Trace::new(graphs, groups);
        let faults = trace.check(&machine(trace.ranks()));
        faults
            .iter()
            .map(|fault| (format!("{fault} | {}", fault.help().unwrap_or_default()), fault.is_fatal()))
            .collect()
    }

    /// The one fault of a trace.
    fn one(graphs: Vec<Graph>, groups: &[&[u32]]) -> (String, bool) {
        let [fault] = <[_; 1]>::try_from(check(graphs, groups)).expect("one fault");
        fault
    }

    /// A pipeline of so many ranks: each microbatch comes, is computed and goes on, and all reduce at the end.
    fn pipeline(ranks: u32, microbatches: u64) -> Vec<Graph> {
        let of_rank = |rank: u32| {
            let mut operations: Vec<(u64, Work, Vec<u64>)> = Vec::new();
            for tag in 0..microbatches {
                let id = 10 * tag;
                if rank > 0 {
                    operations.push((id, receive(rank - 1, 1024, tag % 3), vec![]));
                }
                let before = if rank > 0 { vec![id] } else { vec![] };
                operations.push((id + 1, COMPUTE, before));
                if rank + 1 < ranks {
                    let after = if tag == 0 { vec![id + 1] } else { vec![id + 1, id - 8] };
                    operations.push((id + 2, send(rank + 1, 1024, tag % 3), after));
                }
            }
            operations.push((10 * microbatches, all_reduce(4096, None), vec![10 * microbatches - 9]));
            let operations: Vec<_> = operations.iter().map(|(id, work, after)| (*id, *work, &after[..])).collect();
            graph(&operations)
        };
        (0..ranks).map(of_rank).collect()
    }

    #[test]
    fn a_healthy_pipeline_has_no_fault() {
        assert_eq!(check(pipeline(4, 6), &[]), []);
    }

    #[test]
    fn a_message_without_its_other_end_is_told_with_the_nearest() {
        let graphs = |first: &[(u64, Work, &[u64])], second: &[(u64, Work, &[u64])]| vec![graph(first), graph(second)];
        let alone = one(graphs(&[(1, COMPUTE, &[])], &[(7, receive(0, 2048, 3), &[])]), &[]);
        let text =
            "operation 7 (op7) of rank 1 waits for 2,048 bytes under tag 3 from rank 0, which never sends them | ";
        assert_eq!(alone, (text.to_owned(), true));

        let sized = check(graphs(&[(1, send(1, 1024, 3), &[])], &[(7, receive(0, 2048, 3), &[])]), &[]);
        assert_eq!([sized[0].1, sized[1].1], [false, true]);
        let help = "| operation 1 (op1) of rank 0 sends 1,024 bytes under tag 3 to rank 1: another size";
        assert!(sized[1].0.ends_with(help), "{sized:?}");

        let tagged = check(graphs(&[(1, send(1, 2048, 4), &[])], &[(7, receive(0, 2048, 3), &[])]), &[]);
        assert!(tagged[1].0.ends_with("another tag"), "{tagged:?}");

        let fewer =
            one(graphs(&[(1, send(1, 8, 3), &[])], &[(7, receive(0, 8, 3), &[]), (8, receive(0, 8, 3), &[])]), &[]);
        assert!(fewer.0.contains("which sends them once, and not twice"), "{fewer:?}");

        // A send ends when it has arrived, unless its receiver must ask first.
        let trace = Trace::new(graphs(&[(1, send(1, 8, 3), &[])], &[(7, COMPUTE, &[])]), Vec::new());
        let fatal = [false, true].map(|rendezvous| {
            let faults = trace.check(&Machine { rendezvous, ..machine(2) });
            faults.iter().map(Fault::is_fatal).collect::<Vec<_>>()
        });
        assert_eq!(fatal, [[false], [true]]);
    }

    #[test]
    fn members_with_different_numbers_of_collectives_are_named() {
        let graphs = (0..4).map(|rank| match rank {
            2 => graph(&[(1, all_reduce(64, Some(0)), &[])]),
            _ => graph(&[(1, all_reduce(64, Some(0)), &[]), (2, all_reduce(64, Some(0)), &[])]),
        });
        let text =
            "members of group 1 take part in different numbers of its collectives: ranks 0..1, 3 in 2, rank 2 in 1 | ";
        assert_eq!(one(graphs.collect(), &[&[3, 2, 1, 0]]), (text.to_owned(), true));
    }

    #[test]
    fn members_that_do_something_else_as_one_collective_are_named() {
        let of = |work: Work| graph(&[(1, all_reduce(1 << 20, None), &[]), (2, work, &[1])]);
        let sized = one(vec![of(all_reduce(1 << 20, None)), of(all_reduce(1 << 21, None))], &[]);
        let text = "collective 2 of all ranks is all_reduce of 1,048,576 bytes in operation 2 (op2) of rank 0, and \
                    all_reduce of 2,097,152 bytes in operation 2 (op2) of rank 1 | ";
        assert_eq!(sized, (text.to_owned(), true));
        let gather =
            Work::Collective { collective: Collective::AllGather, bytes: 1 << 19, group: None, dimensions: u32::MAX };
        let kinds = one(vec![of(all_reduce(1 << 20, None)), of(gather)], &[]);
        assert!(!kinds.1 && kinds.0.contains("all_gather of 524,288 bytes"), "{kinds:?}");
        // What the machine makes equal is equal: both are blown up to a byte for each rank in each chunk.
        assert_eq!(check(vec![of(all_reduce(1, None)), of(all_reduce(3, None))], &[]), []);
    }

    #[test]
    fn a_free_order_of_collectives_is_compared_as_a_whole() {
        let of = |sizes: [u64; 2]| graph(&[(1, all_reduce(sizes[0], None), &[]), (2, all_reduce(sizes[1], None), &[])]);
        assert_eq!(check(vec![of([4096, 8192]), of([8192, 4096])], &[]), []);
        let other = one(vec![of([4096, 8192]), of([8192, 1 << 20])], &[]);
        assert!(other.1 && other.0.starts_with("a collective of all ranks is"), "{other:?}");
    }

    #[test]
    fn a_circle_of_messages_is_told_with_ranks_names_and_reasons() {
        let of = |other: u32| graph(&[(1, receive(other, 8, 0), &[]), (2, send(other, 8, 0), &[1])]);
        let text = "ranks wait for each other in a circle:\n  \
                    operation 1 (op1) of rank 0 receives what operation 2 (op2) of rank 1 sends\n  \
                    operation 2 (op2) of rank 1 waits for operation 1 (op1) of rank 1\n  \
                    operation 1 (op1) of rank 1 receives what operation 2 (op2) of rank 0 sends\n  \
                    operation 2 (op2) of rank 0 waits for operation 1 (op1) of rank 0 | ";
        assert_eq!(one(vec![of(1), of(0)], &[]), (text.to_owned(), true));
    }

    #[test]
    fn a_circle_through_collectives_says_who_takes_part_with_whom() {
        // Rank 0 reduces before it sends, rank 1 receives before it reduces.
        let first = graph(&[(1, all_reduce(4096, None), &[]), (2, send(1, 8, 0), &[1])]);
        let second = graph(&[(1, receive(0, 8, 0), &[]), (2, all_reduce(4096, None), &[1])]);
        let (text, fatal) = one(vec![first, second], &[]);
        assert!(
            fatal && text.contains("operation 1 (op1) of rank 0 takes part with operation 2 (op2) of rank 1"),
            "{text}"
        );
        // Two groups in opposite orders: a circle if the orders are forced, and perhaps none if they are not.
        let of = |first: u32, then: u32, after: &[u64]| {
            graph(&[(1, all_reduce(4096, Some(first)), &[]), (2, all_reduce(4096, Some(then)), after)])
        };
        let groups: &[&[u32]] = &[&[0, 1], &[1, 0]];
        assert!(one(vec![of(0, 1, &[1]), of(1, 0, &[1])], groups).0.contains("circle"));
        assert_eq!(check(vec![of(0, 1, &[1]), of(1, 0, &[])], groups), []);
    }

    #[test]
    fn what_does_not_join_all_ranks_is_not_compared() {
        let mut machine = machine(4);
        machine.dimensions = vec![Dimension { size: 2, ..machine.dimensions[0].clone() }; 2];
        let graphs = || {
            vec![
                graph(&[(1, all_reduce(64, None), &[])]),
                graph(&[(1, all_reduce(64, None), &[])]),
                graph(&[]),
                graph(&[]),
            ]
        };
        // One algorithm for two dimensions: the outer one is left out, and ranks 0 and 1 are alone.
        assert_eq!(Trace::new(graphs(), Vec::new()).check(&machine), []);
        machine.algorithms = std::array::from_fn(|_| vec![Entry::of(Algorithm::Ring); 2]);
        assert_eq!(Trace::new(graphs(), Vec::new()).check(&machine).len(), 1);
        assert_eq!(Trace::new(graphs(), Vec::new()).check(&Machine { pace: Pace::Replayed, ..machine }), []);
    }

    #[test]
    fn what_a_simulation_refuses_is_not_looked_at() {
        let graphs = || vec![graph(&[(1, all_reduce(64, Some(7)), &[]), (2, send(9, 8, 0), &[])]), graph(&[])];
        assert_eq!(Trace::new(graphs(), Vec::new()).check(&machine(2)), []);
        assert_eq!(Trace::new(graphs(), Vec::new()).check(&machine(3)), []);
        let dimensions = vec![Dimension { size: u32::MAX, ..machine(2).dimensions[0].clone() }; 2];
        assert_eq!(Trace::new(graphs(), Vec::new()).check(&Machine { dimensions, ..machine(2) }), []);
    }

    #[test]
    fn a_large_trace_is_checked_in_a_moment() {
        let trace = Trace::new(pipeline(64, 1600), Vec::new());
        let begun = std::time::Instant::now();
        assert_eq!(trace.check(&machine(64)), []);
        let lasted = begun.elapsed();
        // 50 ms where it is optimised; far more is a cost that is not linear.
        assert!(lasted < std::time::Duration::from_secs(3), "{lasted:?}");
    }
}
