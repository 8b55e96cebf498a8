//! The share of one NPU of a DLRM: samples by data parallelism, tables by what the fullest has of them [Mudigere22].

use super::{Dlrm, Training};
use crate::units::{index, real};
use crate::workload::infeasible::{Infeasible, Reason};
use crate::workload::plan::Plan;
use crate::workload::recompute::Recompute;

/// What one NPU has of a step, and of tables what the busiest and the fullest has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// Samples that its MLPs see: b = B / n.
    pub samples: f64,
    /// Samples for which it sums rows of its tables: B.
    pub all_samples: f64,
    /// Tables, or their parts, of the NPU that has the most: ceil(T s / n).
    pub tables: f64,
    /// Rows of the NPU that has the most.
    pub rows: f64,
    /// Columns of each of them: d / s.
    pub columns: f64,
    /// NPUs: n.
    pub ranks: u64,
}

impl Share {
    /// Of the plan's data-parallel ranks.
    #[must_use]
    pub fn of(training: &Training) -> Self {
        let Training { model, plan, global_batch, .. } = training;
        let (ranks, shards) = (plan.dp, plan.table_shards);
        Self {
            samples: real(*global_batch) / real(ranks),
            all_samples: real(*global_batch),
            tables: real((model.tables * shards).div_ceil(ranks)),
            rows: fullest(model, shards, ranks),
            columns: real(model.embedding_dim) / real(shards),
            ranks,
        }
    }
}

/// Whether a plan can train a DLRM: tables go over the data-parallel ranks, and nothing else is divided.
///
/// # Errors
/// The first rule that does not hold.
pub fn check(training: &Training) -> Result<(), Infeasible> {
    let Training { model, plan, global_batch, .. } = training;
    let Plan { dp, table_shards, micro_batch_size, .. } = *plan;
    let rule = |holds: bool, reason, demand: u64, bound: u64| {
        if holds { Ok(()) } else { Err(Infeasible::new(reason, real(demand), real(bound))) }
    };
    let others = plan.tp * plan.cp * plan.pp;
    rule(others == 1, Reason::DegreesOfTables, others, 1)?;
    rule(plan.zero < 3, Reason::ZeroOfTables, plan.zero.into(), 2)?;
    let shard = plan.zero_shard.unwrap_or(dp);
    rule(shard == dp, Reason::ZeroOfTables, shard, dp)?;
    let is_plain = plan.recompute == Recompute::NONE && plan.tiers() == [None; 3];
    rule(is_plain, Reason::LayersOfTables, 1, 0)?;
    rule(model.embedding_dim.is_multiple_of(table_shards), Reason::ColumnsPerShard, model.embedding_dim, table_shards)?;
    rule(model.tables * table_shards >= dp, Reason::TablesPerRank, dp, model.tables * table_shards)?;
    rule(global_batch.is_multiple_of(dp), Reason::BatchPerReplica, *global_batch, dp * micro_batch_size)
}

/// Rows of the fullest of n NPUs: tables, each s times, are dealt out from the largest on, to and fro, so that none has more than
/// ceil(T s / n) of them [Mudigere22 weighs time and memory; this is memory among as many tables].
///
/// Worked: rows 40, 30, 20, 10 on 2 NPUs: 40 + 10 and 30 + 20; on 3: 40, 30 and 20 + 10.
fn fullest(model: &Dlrm, shards: u64, ranks: u64) -> f64 {
    let pieces = model.tables * shards;
    let rows = model.rows.descending();
    if rows.len() == 1 {
        return real(pieces.div_ceil(ranks)) * real(rows.last());
    }
    let of_rank = |rank: u64| {
        let round = |round: u64| if round.is_multiple_of(2) { round * ranks + rank } else { (round + 1) * ranks - 1 - rank };
        (0..pieces.div_ceil(ranks)).map(round).map(|piece| rows.get(index(piece / shards))).sum::<u64>()
    };
    real((0..ranks.min(pieces)).map(of_rank).max().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::super::Rows;
    use super::super::tests::mlperf;
    use super::*;

    #[test]
    fn tables_are_dealt_out_to_and_fro() {
        let of = |rows: &[u64], ranks| {
            fullest(&Dlrm { tables: rows.len() as u64, rows: Rows::of(rows), ..mlperf() }, 1, ranks)
        };
        assert_eq!(of(&[10, 40, 20, 30], 2), 50.0);
        assert_eq!(of(&[10, 40, 20, 30], 3), 40.0);
        assert_eq!(of(&[10, 40, 20, 30], 1), 100.0);
        assert_eq!(of(&[10, 40, 20, 30], 4), 40.0);
    }

    #[test]
    fn the_largest_table_decides_on_eight_ranks_and_its_halves_on_sixteen() {
        let model = mlperf();
        // 39,979,771 and, dealt to the same NPU, the 16th and the 17th of 26 sorted: 2,208 and 1,543; the 32nd is none.
        assert_eq!(fullest(&model, 1, 8), 39_979_771.0 + 2_208.0 + 1_543.0);
        // 52 halves on 16 NPUs: one of 39,979,771 rows with the 32nd and the 33rd half.
        assert_eq!(fullest(&model, 2, 16), 39_979_771.0 + 2_208.0 + 1_543.0);
        assert_eq!(fullest(&Dlrm { rows: Rows::of(&[1000]), ..model }, 1, 8), 4000.0);
    }
}
