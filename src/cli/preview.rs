//! `preview`: what a sweep is before anything is evaluated.

use super::args::PreviewArgs;
use super::exit::Exit;
use super::render::{count, estimate};
use crate::run::preview::{COUNTED, SAMPLE, preview as look};
use crate::sweep::Sweep;
use crate::units::{Unit, human};

/// CPU time of a point, all included: see `benches/README.md`.
const SECONDS_A_POINT: f64 = 4e-6;
/// Bytes of a row on disk: see `benches/README.md`.
const BYTES_A_POINT: f64 = 30.0;

/// Previews a sweep.
#[expect(clippy::unnecessary_wraps, reason = "every subcommand has this shape")]
pub fn preview(args: &PreviewArgs) -> anyhow::Result<Exit> {
    let sweep = match super::load(&args.sweep, &args.set) {
        Ok(sweep) => sweep,
        Err(exit) => return Ok(exit),
    };
    let found = look(&sweep);
    product(&sweep);
    if !found.is_exact() {
        anstream::println!(
            "  beyond {} numbers: counts are from a sample of {}, with their standard error",
            count(COUNTED),
            count(SAMPLE)
        );
    }
    let width = if found.is_exact() { 16 } else { 38 };
    let line = |what: &str, points: u64, meaning: &str| {
        let points = estimate(found.estimate(points));
        anstream::println!("  {what:<10}  {points:>width$}  {meaning}");
    };
    for (name, removed) in &found.removed {
        line("not tried", *removed, name);
    }
    line("left", found.left, "points, a row each");
    for (reason, points) in &found.infeasible {
        line("cannot be", *points, reason.name());
    }
    let fit = found.left - found.infeasible.iter().map(|reason| reason.1).sum::<u64>();
    line("can be", fit, "points");
    let left = found.estimate(found.left).value();
    anstream::println!(
        "about {} of CPU and {} of disk, as measured on other sweeps (benches/README.md)",
        human(left * SECONDS_A_POINT, Unit::SECOND),
        human(left * BYTES_A_POINT, Unit::BYTE)
    );
    if args.defaults {
        anstream::println!("defaults in force:");
        for (path, value) in &sweep.defaults {
            anstream::println!("  {path}: {value}");
        }
    } else {
        anstream::println!("defaults in force: {} (--defaults shows them)", sweep.defaults.len());
    }
    Ok(Exit::Complete)
}

/// The axes and the size of their product.
fn product(sweep: &Sweep) {
    for axis in &sweep.space.axes {
        let labels: Vec<&str> =
            axis.alternatives.iter().map(|alternative| alternative.label.as_str()).take(8).collect();
        let more = if axis.alternatives.len() > labels.len() { ", ..." } else { "" };
        anstream::println!("  {:<28} {:>10}  {}{more}", axis.name, count(axis.len), labels.join(", "));
    }
    anstream::println!("product = {}", count(sweep.space.len()));
}
