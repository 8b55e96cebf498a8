//! What the event-driven engine costs: message by message, and by symmetry.
//!
//! `cargo bench --bench events` prints times beside a calibration loop; see `benches/README.md` for how to read them.

use std::hint::black_box;

use divan::{Bencher, counter::ItemsCount};
use starsweep::engine::event_driven::{Ask, Path, simulate_by};
use starsweep::system::collective::{Algorithm, Collective};
use starsweep::system::machine::{Dimension, Entry, Machine};
use starsweep::system::rules::Rules;
use starsweep::system::topology::Topology;
use starsweep::workload::trace::graph::Draft;
use starsweep::workload::trace::{Node, Trace, Work};

fn main() {
    divan::main();
}

/// Rings of some sizes with the settings of the reference's speed table: 1 GiB, 100 GB/s, 500 ns.
fn machine(sizes: &[u32], chunks: u64) -> Machine {
    let dimension = |&size: &u32| Dimension { block: Topology::Ring, size, bandwidth: 107.374_182_4, latency: 500.0 };
    Machine {
        chunks,
        endpoint_delay: 10.0,
        memory_bandwidth: 1600e9,
        rules: Rules::ASTRA_SIM,
        ..Machine::plain(sizes.iter().map(dimension).collect(), &vec![Entry::of(Algorithm::Ring); sizes.len()])
    }
}

fn all_reduce(machine: &Machine) -> Trace {
    let work =
        Work::Collective { collective: Collective::AllReduce, bytes: 1 << 30, group: None, dimensions: u32::MAX };
    let mut draft = Draft::default();
    draft.push(Node { id: 0, work, recorded: 0, on_host: false }, "", []);
    Trace::same(draft.finish().expect("a graph"), machine.npus())
}

fn simulate(bencher: Bencher<'_, '_>, sizes: &[u32], chunks: u64, path: Path) {
    let machine = machine(sizes, chunks);
    let trace = all_reduce(&machine);
    let ask = Ask { path, ..Ask::default() };
    let outcome = simulate_by(&machine, &trace, ask).expect("an outcome");
    let messages = usize::try_from(outcome.messages).expect("a count");
    bencher.counter(ItemsCount::new(messages)).bench(|| simulate_by(black_box(&machine), &trace, ask));
}

/// A loop whose time says how fast this machine is now: a million steps of a linear generator.
#[divan::bench]
fn calibration(bencher: Bencher<'_, '_>) {
    bencher.counter(ItemsCount::new(1_000_000_usize)).bench(|| {
        let mut state = black_box(1_u64);
        for _ in 0..1_000_000 {
            state = black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
        state
    });
}

#[divan::bench(sample_count = 10)]
fn messages_ring_64(bencher: Bencher<'_, '_>) {
    simulate(bencher, &[64], 4, Path::Messages);
}

#[divan::bench(sample_count = 3)]
fn messages_ring_512(bencher: Bencher<'_, '_>) {
    simulate(bencher, &[512], 4, Path::Messages);
}

#[divan::bench(sample_count = 5)]
fn messages_torus_8_8_8(bencher: Bencher<'_, '_>) {
    simulate(bencher, &[8, 8, 8], 4, Path::Messages);
}

#[divan::bench(sample_count = 5)]
fn messages_2_8_8_4_in_64_chunks(bencher: Bencher<'_, '_>) {
    simulate(bencher, &[2, 8, 8, 4], 64, Path::Messages);
}

#[divan::bench(args = [4, 64])]
fn symmetric_torus_16_16_16(bencher: Bencher<'_, '_>, chunks: u64) {
    simulate(bencher, &[16, 16, 16], chunks, Path::Symmetric);
}

#[divan::bench(args = [4, 64])]
fn symmetric_4_8_16_8(bencher: Bencher<'_, '_>, chunks: u64) {
    simulate(bencher, &[4, 8, 16, 8], chunks, Path::Symmetric);
}

#[divan::bench]
fn symmetric_ring_4096(bencher: Bencher<'_, '_>) {
    simulate(bencher, &[4096], 4, Path::Symmetric);
}
