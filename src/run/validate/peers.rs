//! Peers: what other tools predict for the runs that we ship, as `peer_accuracy.csv` has it.

use itertools::Itertools as _;

use super::known::shipped;
use super::score::Score;
use super::table::Table;

/// The kind of a prediction that is no peer's.
const BASELINE: &str = "baseline";
/// How the kind of a prediction begins that was tuned on what it predicts.
const IN_SAMPLE: &str = "in-sample";

/// The best peer of some rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Peer {
    /// Its name and version.
    pub name: String,
    /// The errors of the rows that it covers.
    pub score: Score,
    /// Whether it was measured or tuned on the same machine or rows.
    pub is_in_sample: bool,
}

/// What peers predict.
#[derive(Debug)]
pub struct Peers(Table);

impl Peers {
    /// As shipped.
    #[must_use]
    pub fn shipped() -> Self {
        Self(Table::of_ours(shipped!("peer_accuracy.csv")))
    }

    /// The peer with the smallest mean error over those of some rows that it covers; a baseline is no peer.
    #[must_use]
    pub fn best(&self, quantity: &str, rows: &[&str]) -> Option<Peer> {
        let table = &self.0;
        let is_asked = |row: &&super::table::Row| {
            table.cell(row, "quantity") == Some(quantity)
                && table.cell(row, "kind") != Some(BASELINE)
                && table.cell(row, "row_id").is_some_and(|id| rows.contains(&id))
        };
        let by_peer = table.rows.iter().filter(is_asked).into_group_map_by(|row| table.cell(row, "peer"));
        let scored = by_peer.into_iter().filter_map(|(name, rows)| {
            let error =
                |row: &&super::table::Row| table.cell(row, "error_pct")?.parse().ok().map(|error: f64| error / 100.0);
            let score = Score::of(&rows.iter().filter_map(error).collect::<Vec<_>>())?;
            let is_in_sample =
                rows.iter().any(|row| table.cell(row, "kind").is_some_and(|kind| kind.starts_with(IN_SAMPLE)));
            Some(Peer { name: name?.to_owned(), score, is_in_sample })
        });
        scored.min_by(|a, b| a.score.mean.total_cmp(&b.score.mean).then_with(|| a.name.cmp(&b.name)))
    }
}
