//! `preview`: what a sweep is before anything is evaluated.

use super::args::PreviewArgs;
use super::exit::Exit;
use super::render::{count, estimate};
use crate::run::preview::{CHECKED, COUNTED, SAMPLE, preview as look};
use crate::sweep::Sweep;
use crate::units::{plain, real};

/// Previews a sweep.
pub fn preview(args: &PreviewArgs) -> anyhow::Result<Exit> {
    let sweep = match super::load(&args.sweep, &args.set)? {
        Ok(sweep) => sweep,
        Err(exit) => return Ok(exit),
    };
    let found = look(&sweep);
    product(&sweep);
    if !found.is_exact() {
        anstream::println!("  beyond {} numbers: counts are from a sample of {}, with their standard error", count(COUNTED), count(SAMPLE));
    }
    for (name, removed) in &found.removed {
        anstream::println!("  not tried   {:>24}  {name}", estimate(found.estimate(*removed)));
    }
    anstream::println!("  left        {:>24}  points, a row each", estimate(found.estimate(found.left)));
    if found.checked > 0 {
        let exact = found.checked == found.left && found.is_exact();
        let of = if exact { String::new() } else { format!(" (of {} checked)", count(found.checked)) };
        let mut fit = found.checked;
        for (reason, points) in &found.infeasible {
            anstream::println!("  cannot be   {:>24}  {}{of}", count(*points), reason.name());
            fit -= points;
        }
        anstream::println!("  can be      {:>24}  {of}", count(fit));
        let _ = CHECKED;
    }
    let (left, _) = found.estimate(found.left);
    anstream::println!("  about {} a million points to evaluate, {} MB", "3 CPU seconds", plain((left * 170e-6).ceil()));
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
        let labels: Vec<&str> = axis.alternatives.iter().map(|alternative| alternative.label.as_str()).take(8).collect();
        let more = if axis.alternatives.len() > labels.len() { ", ..." } else { "" };
        anstream::println!("  {:<28} {:>10}  {}{more}", axis.name, count(axis.len), labels.join(", "));
    }
    anstream::println!("product {} = {}", plain(real(sweep.space.len())), count(sweep.space.len()));
}
