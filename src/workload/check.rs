//! `check`: can a point exist? Arithmetic on shapes and degrees alone: the model, divisibility, then capacity.

use super::Job;
use super::footprint::Footprint;
use super::infeasible::{Infeasible, Reason};
use crate::system::collective::Collective;
use crate::system::hierarchy::MultiDim;
use crate::system::memory::{MAX_TIERS, Tier};
use crate::system::network::Congestion;
use crate::system::rules::Quirk;
use crate::system::{Dimension, System};
use crate::units::{Bytes, narrow, real};

/// Whether a job can run on a machine, and what it fills of its memories.
///
/// # Errors
/// The first rule that does not hold, with what is needed and what there is. A job that is too large comes with its account.
pub fn check(job: &Job, system: &System) -> Result<Footprint, Infeasible> {
    let dims = system.network.dims.len();
    if dims > 1 && system.network.congestion == Congestion::Aware && system.rules.has(Quirk::LowestDimension) {
        return Err(Infeasible::new(Reason::Congestion, real(dims as u64), 1.0));
    }
    if let &Job::Collective { collective, .. } = job
        && let Some(members) = uneven(collective, system)
    {
        return Err(Infeasible::new(Reason::PowerOfTwo, members.into(), members.next_power_of_two().into()));
    }
    let training = match job {
        Job::Training(training) => training,
        Job::Recorded | Job::Collective { .. } => return Ok(Footprint::default()),
    };
    if system.npu.peak.get() <= 0.0 {
        return Err(Infeasible::new(Reason::NoRate, 0.0, 0.0));
    }
    training.model.check()?;
    training.fits(system)
}

/// How many members a collective's algorithm has where it takes a power of two: over all NPUs at once, and in each dimension under the
/// rules by which members wait for single messages.
fn uneven(collective: Collective, system: &System) -> Option<u32> {
    let dims = &system.network.dims;
    if collective == Collective::Broadcast && system.rules.has(Quirk::BroadcastIsADelay) {
        return None;
    }
    let is_flat = system.collectives.multi_dim == MultiDim::Flat && dims.len() > 1;
    let needs = |dim: &Dimension| system.algorithm(collective, dim).part().needs_power_of_two(collective);
    let uneven = |members: u32| Some(members).filter(|members| !members.is_power_of_two());
    if is_flat {
        dims.first().filter(|dim| needs(dim)).and_then(|_| uneven(narrow(system.network.npus())))
    } else if system.rules.has(Quirk::UnsharedBandwidth) {
        dims.iter().filter(|dim| needs(dim)).find_map(|dim| uneven(dim.size))
    } else {
        None
    }
}

/// Whether an account fits, and what lives in tiers, which is asked for where the rest does.
///
/// # Errors
/// The memory that is too small, with the account.
pub(super) fn fits(
    footprint: Footprint,
    in_tiers: impl FnOnce() -> [Bytes; MAX_TIERS],
    system: &System,
) -> Result<Footprint, Infeasible> {
    let refuse =
        |reason, demand: f64, bound: f64| Err(Infeasible { reason, demand, bound, footprint: Some(footprint) });
    let (demand, bound) = (footprint.total(), system.memory.usable());
    if demand > bound {
        return refuse(Reason::Memory, demand.as_real(), bound.as_real());
    }
    for (tier, demand) in in_tiers().into_iter().enumerate().filter(|tier| tier.1 > Bytes::ZERO) {
        let bound = system.memory.tiers.get(tier).map_or(Bytes::ZERO, Tier::share);
        if demand > bound {
            return refuse(Reason::TierMemory, demand.as_real(), bound.as_real());
        }
    }
    Ok(footprint)
}
