//! `preview`: what a sweep is before it is run: its points, what removes how many, which evaluators, what they will cost.

use std::time::Duration;

use super::anchor;
use super::args::PreviewArgs;
use super::exit::Exit;
use super::render::{count, estimate};
use crate::run::preview::{COUNTED, Preview, SAMPLE, preview as look, time_event_driven};
use crate::sweep::{Refine, Sweep};
use crate::units::{Unit, human, real};

/// CPU time of a point, all included: see `benches/README.md`.
const SECONDS_A_POINT: f64 = 3e-6;
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
    if let Some(measured) = &sweep.anchor {
        anstream::println!("{}", anchor::line(measured));
    }
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
    costs(&sweep, &found);
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

/// Which evaluators are at work, and what that will cost.
fn costs(sweep: &Sweep, found: &Preview) {
    let rows = found.estimate(found.left).value();
    let disk = human(rows * BYTES_A_POINT, Unit::BYTE);
    let closed = found.estimate(found.left - found.event_driven).value();
    if found.event_driven < found.left || found.left == 0 {
        let cpu = human(closed * SECONDS_A_POINT, Unit::SECOND);
        anstream::println!(
            "closed_form: about {cpu} of CPU and {disk} of disk, as measured on other sweeps (benches/README.md)"
        );
    }
    let refine = sweep.decide.refine.as_ref();
    if found.event_driven == 0 && refine.is_none() {
        return;
    }
    let Some(timing) = time_event_driven(sweep) else {
        anstream::println!("event_driven: no point was found to time");
        return;
    };
    let second = |duration: Duration| human(duration.as_secs_f64(), Unit::SECOND);
    let each = human(timing.mean(), Unit::SECOND);
    let points = if timing.points == 1 { "point" } else { "points" };
    let (least, most) = (second(timing.least), second(timing.most));
    let timed = format!("{} {points} just timed here: {least} to {most}", timing.points);
    if let Some(Refine { top, by: (column, direction) }) = refine {
        let by = format!("{} {column}", direction.name());
        let cpu = human(real(*top) * timing.mean(), Unit::SECOND);
        anstream::println!("refine, event_driven: the front and the best {} by {by}", count(*top));
        anstream::println!("  {cpu} of CPU for the best, and the front, at about {each} a point ({timed})");
    } else {
        let points = found.estimate(found.event_driven);
        let cpu = human(points.value() * timing.mean(), Unit::SECOND);
        let disk = if found.event_driven < found.left { String::new() } else { format!(" and {disk} of disk") };
        let points = estimate(points);
        anstream::println!("event_driven: about {cpu} of CPU{disk}, {points} points at about {each} ({timed})");
    }
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
