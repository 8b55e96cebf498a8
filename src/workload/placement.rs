//! Placement: which NPUs form each group, so which part of which dimension a group takes.

use super::infeasible::{Infeasible, Reason};
use super::{Job, Training};
use crate::system::{Network, Span, Spans};
use crate::units::{narrow, real};

/// The groups of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Group {
    /// Shares every layer.
    Tensor,
    /// Shares the tokens of every sequence.
    Context,
    /// Holds the same weights, for other tokens: the ranks of a context group, too; with `zero_shard` those among
    /// which states are cut.
    Data,
    /// Holds the stages of one replica.
    Pipeline,
    /// Shares the experts of a layer.
    Expert,
    /// Shares the matrices of an expert.
    ExpertTensor,
    /// Holds the same experts, and cuts their states.
    ExpertData,
    /// Holds the same states: the copies that `zero_shard` leaves.
    Replica,
    /// All NPUs.
    Everyone,
}

impl Group {
    /// Every group.
    pub const ALL: [Self; 9] = [
        Self::Tensor,
        Self::Context,
        Self::Data,
        Self::Pipeline,
        Self::Expert,
        Self::ExpertTensor,
        Self::ExpertData,
        Self::Replica,
        Self::Everyone,
    ];
    /// How many there are.
    pub const COUNT: u64 = Self::ALL.len() as u64;
}

/// Where each group lies in the network.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Placement {
    /// By [`Group`].
    spans: [Spans; Group::ALL.len()],
}

impl Placement {
    /// The parts of dimensions that a group takes, innermost first; empty for a group of one.
    #[must_use]
    pub fn spans(&self, group: Group) -> &Spans {
        &self.spans[group as usize]
    }
}

/// NPUs `stride` apart, `size` of them.
#[derive(Debug, Clone, Copy)]
struct Factor {
    stride: u64,
    size: u64,
}

/// Places the groups of a job on a network of as many NPUs as the job has ranks.
///
/// Rank r is NPU r. The degrees take neighbouring ranks in the order of the plan: with `tp-dp-pp`, tensor group members
/// are 1 apart, data 1 * tp, pipeline tp * dp. Context groups lie directly
/// behind tensor groups; what expert groups take is [`Plan::expert_ranks`].
///
/// `placement` is written over, and used again from point to point.
///
/// # Errors
/// [`Reason::Placement`] if a group neither divides a dimension nor is made of whole ones.
pub fn place(job: &Job, network: &Network, placement: &mut Placement) -> Result<(), Infeasible> {
    let mut put = |group: Group, factors: &[Factor]| locate(factors, network, &mut placement.spans[group as usize]);
    match job {
        Job::Recorded | Job::Collective { .. } => put(Group::Everyone, &[Factor { stride: 1, size: network.npus() }])?,
        Job::Training(Training { plan, model, .. }) => {
            let [strides @ .., pipeline] = plan.order.strides(plan);
            let [tensor, context, _] = factors(strides, [plan.tp, plan.cp, plan.dp]);
            put(Group::Tensor, &[tensor])?;
            put(Group::Context, &[context])?;
            if let Some([of_context, of_data]) = plan.shard_ranks() {
                let taken = [1, of_context, of_data];
                put(Group::Data, &factors(strides, taken))?;
                let left = [1, plan.cp / of_context, plan.dp / of_data];
                put(Group::Replica, &factors(behind(strides, taken), left))?;
            }
            put(Group::Pipeline, &[Factor { stride: pipeline, size: plan.pp }])?;
            if let Some(ranks) = plan.expert_ranks().filter(|_| model.has_experts()) {
                let expert = behind(strides, ranks.tensor);
                put(Group::ExpertTensor, &factors(strides, ranks.tensor))?;
                put(Group::Expert, &factors(expert, ranks.expert))?;
                put(Group::ExpertData, &factors(behind(expert, ranks.expert), ranks.data))?;
            }
        }
    }
    Ok(())
}

/// Ranks of the tensor, context and data group.
fn factors(strides: [u64; 3], sizes: [u64; 3]) -> [Factor; 3] {
    std::array::from_fn(|k| Factor { stride: strides[k], size: sizes[k] })
}

/// The strides of what is left of groups of which some ranks are taken.
fn behind(strides: [u64; 3], taken: [u64; 3]) -> [u64; 3] {
    std::array::from_fn(|k| strides[k] * taken[k])
}

/// The parts of dimensions that factors take.
fn locate(factors: &[Factor], network: &Network, spans: &mut Spans) -> Result<(), Infeasible> {
    spans.clear();
    for factor in factors.iter().filter(|factor| factor.size > 1) {
        let (start, end) = (factor.stride, factor.stride * factor.size);
        let mut below = 1;
        let mut found = 1;
        for (dim, dimension) in network.dims.iter().enumerate() {
            let above = below * u64::from(dimension.size);
            let (low, high) = (start.max(below), end.min(above));
            if low < high {
                let aligned = low % below == 0 && high % low == 0 && above % high == 0 && low % start == 0;
                if !aligned {
                    return Err(Infeasible::new(Reason::Placement, real(end), real(above)));
                }
                found *= high / low;
                let span = Span { dim, size: dimension.size, members: narrow(high / low), stride: narrow(low / below) };
                add(spans, span);
            }
            below = above;
        }
        if found != factor.size {
            return Err(Infeasible::new(Reason::Placement, real(factor.size), real(found)));
        }
    }
    spans.sort_by_key(|span| (span.dim, span.stride));
    Ok(())
}

/// Adds a span, as one with its neighbour where the two are one run of the same dimension.
fn add(spans: &mut Spans, span: Span) {
    if let Some(last) = spans.last_mut()
        && last.dim == span.dim
        && last.stride * last.members == span.stride
    {
        last.members *= span.members;
    } else {
        spans.push(span);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::system::Dimension;
    use crate::system::topology::Topology;
    use crate::units::{Bandwidth, Delay};

    /// Switches of these sizes, innermost first.
    pub(crate) fn network(sizes: &[u32]) -> Network {
        let dim = |&size| Dimension {
            block: Topology::Switch,
            size,
            bandwidth: Bandwidth::bytes_per_second(1e9),
            hop_latency: Delay::ZERO,
            algorithm: None,
            window: None,
        };
        Network { dims: sizes.iter().map(dim).collect(), ..Network::default() }
    }

    fn located(stride: u64, size: u64, sizes: &[u32]) -> Option<Vec<(usize, u32, u32)>> {
        let mut spans = Spans::new();
        locate(&[Factor { stride, size }], &network(sizes), &mut spans).ok()?;
        Some(spans.iter().map(|span| (span.dim, span.members, span.stride)).collect())
    }

    #[test]
    fn a_group_of_four_takes_half_of_a_dimension_of_eight() {
        assert_eq!(located(1, 4, &[8, 16]), Some(vec![(0, 4, 1)]));
    }

    #[test]
    fn a_group_behind_tp_of_two_strides_through_dim_0_and_takes_dim_1() {
        assert_eq!(located(2, 64, &[8, 16]), Some(vec![(0, 4, 2), (1, 16, 1)]));
    }

    #[test]
    fn a_group_that_straddles_a_dimension_is_refused() {
        assert_eq!(located(1, 6, &[8, 3]), None);
        assert_eq!(located(2, 3, &[8, 3]), None);
    }

    #[test]
    fn a_group_of_odd_size_fits_where_the_sizes_are_odd() {
        assert_eq!(located(8, 3, &[8, 3]), Some(vec![(1, 3, 1)]));
        assert_eq!(located(4, 6, &[8, 3]), Some(vec![(0, 2, 4), (1, 3, 1)]));
    }
}
