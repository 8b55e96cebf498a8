//! What each stage of a point costs: expand, check, build, price a collective, evaluate, write a segment, end to end.
//!
//! `cargo bench` prints times beside a calibration loop; see `benches/README.md` for how to read them.

use std::hint::black_box;
use std::sync::atomic::AtomicBool;

use divan::{Bencher, counter::ItemsCount};
use starsweep::engine::{self, Memo};
use starsweep::results::sink::parquet::write_columns;
use starsweep::results::{Segment, Table};
use starsweep::run::evaluate::Evaluator;
use starsweep::run::worker::Worker;
use starsweep::run::{Layout, Progress, vocabulary};
use starsweep::sweep::{Inputs, Sweep, point, resolve};
use starsweep::system::collective::Collective;
use starsweep::system::hierarchy::Cost;
use starsweep::units::Bytes;
use starsweep::workload::{self, Placement, Program};

fn main() {
    divan::main();
}

fn quickstart() -> Sweep {
    resolve(include_str!("../sweeps/quickstart.yaml"), &[], &vocabulary()).expect("the quickstart")
}

/// The first thousand points that can exist.
fn feasible(sweep: &Sweep) -> Vec<Inputs> {
    let mut cursor = sweep.space.cursor(0);
    let mut found = Vec::new();
    while found.len() < 1000 && cursor.next_point(sweep.space.len()).is_some() {
        let (job, system) = Evaluator::question(&cursor.inputs);
        if workload::check(&job, &system).is_ok() {
            found.push(cursor.inputs.clone());
        }
        cursor.step();
    }
    found
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

#[divan::bench]
fn resolve_a_file(bencher: Bencher<'_, '_>) {
    bencher.bench(quickstart);
}

#[divan::bench]
fn expand(bencher: Bencher<'_, '_>) {
    let sweep = quickstart();
    bencher.counter(ItemsCount::new(65_536_usize)).bench(|| {
        let mut cursor = sweep.space.cursor(0);
        let mut found = 0_u64;
        while cursor.next_point(65_536).is_some() {
            found += 1;
            cursor.step();
        }
        found
    });
}

#[divan::bench]
fn check(bencher: Bencher<'_, '_>) {
    let questions: Vec<_> = feasible(&quickstart()).iter().map(Evaluator::question).collect();
    bencher
        .counter(ItemsCount::new(questions.len()))
        .bench(|| questions.iter().filter(|(job, system)| workload::check(black_box(job), system).is_ok()).count());
}

#[divan::bench]
fn build(bencher: Bencher<'_, '_>) {
    let jobs: Vec<_> = feasible(&quickstart()).iter().map(point::job).collect();
    let mut program = Program::default();
    bencher.counter(ItemsCount::new(jobs.len())).bench_local(|| {
        for job in &jobs {
            workload::build(black_box(job), &mut program);
        }
        program.operations.len()
    });
}

#[divan::bench]
fn price_a_collective(bencher: Bencher<'_, '_>) {
    let inputs = &feasible(&quickstart())[0];
    let system = point::system(inputs);
    let spans = system.network.everyone();
    bencher.bench(|| Cost::of(Collective::AllReduce, black_box(Bytes::new(1 << 30)), &spans, &system).delay);
}

#[divan::bench]
fn evaluate(bencher: Bencher<'_, '_>) {
    let questions: Vec<_> = feasible(&quickstart()).iter().map(Evaluator::question).collect();
    let mut placement = Placement::default();
    let (mut program, mut memo) = (Program::default(), Memo::default());
    bencher.counter(ItemsCount::new(questions.len())).bench_local(|| {
        let mut total = 0;
        for (job, system) in &questions {
            workload::build(job, &mut program);
            if workload::place(job, &system.network, &mut placement).is_ok() {
                total += engine::evaluate(&program, &placement, system, &mut memo)
                    .map_or(0, |report| report.total.as_picoseconds());
            }
        }
        total
    });
}

#[divan::bench(sample_count = 10)]
fn a_segment_as_rows(bencher: Bencher<'_, '_>) {
    let sweep = quickstart();
    let layout = Layout::of(&sweep);
    let mut worker = Worker::new(&sweep, &layout, None);
    let (progress, stop) = (Progress::default(), AtomicBool::new(false));
    let mut rows = |_, table: &Table| {
        divan::black_box(table.rows());
        Ok(())
    };
    bencher
        .bench_local(|| worker.evaluate(Segment { start: 0, end: 65_536 }, &progress, &stop, &mut rows).expect("rows"));
}

#[divan::bench(sample_count = 10)]
fn write_a_segment(bencher: Bencher<'_, '_>) {
    let sweep = quickstart();
    let layout = Layout::of(&sweep);
    let mut worker = Worker::new(&sweep, &layout, None);
    let mut bencher = Some(bencher);
    let mut file = |_, table: &Table| {
        if let Some(bencher) = bencher.take() {
            bencher.bench_local(|| {
                let mut out = Vec::new();
                write_columns(table.schema(), table.rows(), |kinds| table.pages(kinds), &[], &mut out).expect("a file");
                out.len()
            });
        }
        Ok(())
    };
    let (progress, stop) = (Progress::default(), AtomicBool::new(false));
    worker.evaluate(Segment { start: 0, end: 65_536 }, &progress, &stop, &mut file).expect("rows");
}
