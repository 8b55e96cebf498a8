//! The column dictionary, made from the keys and the metrics.

use std::fmt::Write as _;

use super::layout::{fixed_columns, metric_column};
use crate::column::{Column, Dtype};
use crate::results::MetricPart;
use crate::sweep::column::{Contents, input_columns};
use crate::sweep::key::{KEYS, ZIPS_FROM};
use crate::units::Unit;
use crate::workload::Reason;

/// `results/README.md`: every column with its type, unit and meaning, and every reason.
#[must_use]
pub fn dictionary() -> String {
    let mut text = String::from(include_str!("dictionary.md"));
    let mut seen = vec!["id".to_owned()];
    let mut push = |text: &mut String, column: &Column| {
        if seen.contains(&column.name) {
            return;
        }
        seen.push(column.name.clone());
        let unit = column.unit.suffix().trim_start_matches('_').replace('_', " ");
        let unit = match (column.dtype, column.unit) {
            (Dtype::Real, Unit::NONE) => "ratio".to_owned(),
            _ => unit,
        };
        let _ = writeln!(
            text,
            "| `{}` | {} | {unit} | {} |",
            column.name,
            column.dtype.name(),
            column.meaning.replace('|', "\\|")
        );
    };
    let head = "| column | type | unit | meaning |\n| --- | --- | --- | --- |";
    let _ = writeln!(
        text,
        "## First columns\n\n{head}\n| `id` | text |  | the point's id: 13 characters made from its inputs; any unique prefix names it |"
    );
    for (column, _) in fixed_columns() {
        push(&mut text, &column);
    }
    let _ = writeln!(
        text,
        "\n## Inputs\n\nOf a key that has no column of its own, one appears if the key is an axis. Each zip adds a text column with its name. `dim0_...` stands for every dimension, innermost first, `tier_...` for every tier beyond the local memory, by its name.\n\n{head}"
    );
    let every: Vec<usize> = (0..KEYS.len()).collect();
    let set: Vec<usize> = (0..ZIPS_FROM).collect();
    let tiers = ["tier".to_owned()];
    for is_collective in [false, true] {
        let contents = Contents { is_collective, dims: 1, zips: &[], tiers: &tiers, swept: &every, set: &set };
        for input in input_columns(&contents) {
            push(&mut text, &input.column);
        }
    }
    let _ = writeln!(
        text,
        "\n## Results\n\n`dim0_...` stands for every dimension, innermost first; `derive` adds columns of its own.\n\n{head}"
    );
    for &metric in MetricPart::ALL {
        push(&mut text, &metric_column(metric, 0));
    }
    let _ = writeln!(text, "\n## Reasons\n\n| reason | meaning | what would help |\n| --- | --- | --- |");
    for reason in Reason::ALL {
        let _ = writeln!(text, "| `{}` | {} | {} |", reason.name(), reason.meaning(), reason.levers().join(", "));
    }
    text
}
