//! `preview`: what a sweep is before anything is evaluated.

use super::args::PreviewArgs;
use super::exit::Exit;
use super::render::{count, estimate};
use crate::run::preview::{COUNTED, SAMPLE, preview as look};
use crate::sweep::Sweep;
use crate::units::{Unit, human, plain, real};

/// CPU time of a point, all included: see `benches/README.md`.
const SECONDS_A_POINT: f64 = 4e-6;
/// Bytes of a row on disk: see `benches/README.md`.
const BYTES_A_POINT: f64 = 30.0;

/// Previews a sweep.
pub fn preview(args: &PreviewArgs) -> anyhow::Result<Exit> {
    let sweep = match super::load(&args.sweep, &args.set)? {
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
    for (name, removed) in &found.removed {
        anstream::println!("  not tried   {:>24}  {name}", estimate(found.estimate(*removed)));
    }
    anstream::println!("  left        {:>24}  points, a row each", estimate(found.estimate(found.left)));
    let mut fit = found.left;
    for (reason, points) in &found.infeasible {
        anstream::println!("  cannot be   {:>24}  {}", estimate(found.estimate(*points)), reason.name());
        fit -= points;
    }
    anstream::println!("  can be      {:>24}  points", estimate(found.estimate(fit)));
    let (left, _) = found.estimate(found.left);
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
    anstream::println!("product {} = {}", plain(real(sweep.space.len())), count(sweep.space.len()));
}
