//! A step as a timeline: every operation of every stage with its start and its end, as trace events that Perfetto opens.

use std::path::Path;

use super::step::Step;
use super::{Unexported, beside, make_room};
use crate::engine::event_driven::record;
use crate::run::timeline;
use crate::units::Time;
use crate::workload::Job;

/// Writes the timeline of a job on a system into a file that is not there yet; when it ends.
///
/// # Errors
/// If the job cannot be, or the file is there or cannot be written.
pub fn timeline(job: &Job, system: &crate::system::System, path: &Path) -> Result<Time, Unexported> {
    let step = Step::of(job, system).map_err(Unexported::infeasible("the point cannot exist"))?;
    let recorded = record(&step.program, &step.placement, &step.system);
    let (trace, outcome) = recorded.map_err(Unexported::infeasible("the point cannot be simulated"))?;
    make_room(path)?;
    let part = beside(path);
    timeline::write(&part, &trace, &outcome)
        .map_err(|timeline::Unwritten { path, source }| Unexported::File { path, source })?;
    std::fs::rename(&part, path).map_err(Unexported::file(path))?;
    Ok(outcome.spans.iter().map(|span| span.end).max().unwrap_or_default())
}
