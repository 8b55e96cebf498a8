//! The measurements that we ship: published runs, the single-node table beside them, and which half of a group fits constants.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::known::shipped;
use super::table::Table;

/// The published runs.
pub const RUNS: &str = shipped!("validation.csv");
/// Which half of its group a row is in.
const SPLIT: &str = shipped!("split.csv");
/// The single-node table, with columns of its own.
const SINGLE_NODE: &str = shipped!("validation_vtrain_single.csv");

/// One of the halves of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Half {
    /// Its rows move constants.
    Fitted,
    /// Its rows do not.
    HeldOut,
}

impl Half {
    /// Both, with their names.
    pub const NAMES: [(Self, &'static str); 2] = [(Self::Fitted, "fitted"), (Self::HeldOut, "held_out")];

    /// The name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::NAMES[self as usize].1
    }
}

/// The half of every row that we ship, by its name.
#[must_use]
pub fn halves() -> HashMap<String, Half> {
    let table = Table::of_ours(SPLIT);
    let half = |word: &str| Half::NAMES.iter().find(|half| half.1 == word).map(|half| half.0);
    let rows = table.rows.iter();
    rows.filter_map(|row| Some((table.cell(row, "row_id")?.to_owned(), half(table.cell(row, "half")?)?))).collect()
}

/// What the single-node table does not say: its authors' framework and machine, and what FIT supposes of its vocabulary,
/// precision and recomputation.
const SINGLE_NODE_HEAD: &str = "row_id,layers,hidden,heads,ffn,gated_mlp,vocab,seq,gpus,gpu_type,precision,tp,pp,vpp,dp,\
                                micro_batch,global_batch,recompute,zero_stage,measured_step_s\n";
const VOCABULARY: u64 = 51_200;
const MACHINE: &str = "A100-SXM-80GB";

/// The single-node table, in the columns of the others.
#[must_use]
pub fn single_node() -> String {
    let table = Table::of_ours(SINGLE_NODE);
    let mut text = SINGLE_NODE_HEAD.to_owned();
    for row in &table.rows {
        let cell = |column: &str| table.cell(row, column).unwrap_or_default();
        let number = |column: &str| cell(column).parse::<f64>().unwrap_or_default();
        let [id, layers, hidden, heads, seq] = ["row_id", "layers", "hidden", "heads", "seq"].map(cell);
        let [npus, tp, pp, dp] = ["gpus", "tp", "pp", "dp"].map(cell);
        let (micro, global) = (cell("micro_batch"), cell("global_batch"));
        let (ffn, seconds) = (4.0 * number("hidden"), number("iter_ms") / 1e3);
        let _ = writeln!(
            text,
            "{id},{layers},{hidden},{heads},{ffn},0,{VOCABULARY},{seq},{npus},{MACHINE},fp16,{tp},{pp},1,{dp},\
             {micro},{global},none,0,{seconds}"
        );
    }
    text
}
