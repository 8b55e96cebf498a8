//! The answer of a validation: tables for a terminal and for a page.

use itertools::Itertools as _;

use super::baseline;
use super::known::shipped;
use super::memory::{self, Call};
use super::peers::{Peer, Peers};
use super::predict::Case;
use super::score::Score;
use super::shipped::Half;
use super::table::Table;
use super::{Validation, bars, ranks, ratios};

/// One table, with what it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// What it is of.
    pub title: String,
    /// The names of its columns.
    pub header: Vec<&'static str>,
    /// Its rows.
    pub rows: Vec<Vec<String>>,
}

/// The score of a group or of a half of it, beside those who predict the same.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupScore {
    /// The group.
    pub group: String,
    /// The half, where it has halves.
    pub half: Option<Half>,
    /// Its score.
    pub score: Score,
    /// That of one constant for each NPU and precision.
    pub baseline: Option<Score>,
    /// That of the best peer.
    pub peer: Option<Peer>,
}

/// A share in per cent.
#[must_use]
pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// A share in per cent, with its sign.
#[must_use]
pub fn signed_percent(share: f64) -> String {
    format!("{:+.1} %", 100.0 * share)
}

/// Nothing, as a cell.
const NONE: &str = "-";

fn or_none(text: Option<String>) -> String {
    text.unwrap_or_else(|| NONE.to_owned())
}

/// The score of every group and half that has one, in the order of the table.
#[must_use]
pub fn scores(validation: &Validation) -> Vec<GroupScore> {
    let peers = Peers::shipped();
    let baseline = baseline::errors(validation);
    let of = |k: usize| (validation.cases[k].run.group.as_str(), validation.halves[k]);
    let all = 0..validation.cases.len();
    let groups: Vec<&str> = all.clone().map(|k| of(k).0).unique().collect();
    let halves = [None, Some(Half::Fitted), Some(Half::HeldOut)];
    let score = |(group, half): (&str, Option<Half>)| {
        let members: Vec<usize> = all.clone().filter(|&k| of(k) == (group, half)).collect();
        let score = Score::of_cases(members.iter().map(|&k| &validation.cases[k]))?;
        let of_baseline: Vec<f64> = members.iter().filter_map(|&k| baseline[k]).collect();
        let rows: Vec<&str> = members.iter().map(|&k| validation.cases[k].run.id.as_str()).collect();
        let (baseline, peer) = (Score::of(&of_baseline), peers.best("step_s", &rows));
        Some(GroupScore { group: group.to_owned(), half, score, baseline, peer })
    };
    groups.into_iter().cartesian_product(halves).filter_map(score).collect()
}

/// Every table that has a row.
#[must_use]
pub fn sections(validation: &Validation) -> Vec<Section> {
    let is_ours = validation.halves.iter().any(Option::is_some);
    let all =
        [sources(validation), of_memory(validation), of_calls(validation), of_ranks(validation), of_ratios(validation)];
    let ours =
        is_ours.then(|| [of_bars(validation), of_shapes(validation), of_far(validation), of_baseline(validation)]);
    all.into_iter().chain(ours.into_iter().flatten()).filter(|section| !section.rows.is_empty()).collect()
}

fn section(title: &str, header: &[&'static str], rows: impl IntoIterator<Item = Vec<String>>) -> Section {
    Section { title: title.to_owned(), header: header.to_vec(), rows: rows.into_iter().collect() }
}

fn cells(score: &Score) -> [String; 5] {
    let Score { rows, mean, median, worst, bias } = *score;
    [rows.to_string(), percent(mean), percent(median), percent(worst), signed_percent(bias)]
}

fn sources(validation: &Validation) -> Section {
    let header = [
        "group",
        "half",
        "rows",
        "mean",
        "median",
        "worst",
        "bias",
        "baseline",
        "of it",
        "best peer",
        "its rows",
        "which",
    ];
    let row = |of: GroupScore| {
        let half = of.half.map_or("", Half::name).to_owned();
        let baseline = of.baseline.map(|score| score.mean);
        let of_it = baseline.map(|baseline| format!("{:.0} %", 100.0 * of.score.mean / baseline));
        let baseline = [or_none(baseline.map(percent)), or_none(of_it)];
        let star = |peer: &Peer| if peer.is_in_sample { " in sample" } else { "" };
        let peer = of.peer.as_ref();
        let named = peer.map(|peer| format!("{}{}", peer.name, star(peer))).unwrap_or_default();
        let its =
            [or_none(peer.map(|peer| percent(peer.score.mean))), or_none(peer.map(|peer| peer.score.rows.to_string()))];
        [of.group, half].into_iter().chain(cells(&of.score)).chain(baseline).chain(its).chain([named]).collect()
    };
    let title =
        "Step times: |predicted / measured - 1|, beside one utilisation for each NPU and precision, and the best peer";
    section(title, &header, scores(validation).into_iter().map(row))
}

fn of_memory(validation: &Validation) -> Section {
    let groups = validation.cases.iter().map(|case| case.run.group.as_str()).unique();
    let row = |group: &str| {
        let members = validation.cases.iter().filter(|case| case.run.group == group);
        let rows: Vec<&str> = members.clone().map(|case: &Case| case.run.id.as_str()).collect();
        let score = memory::score(members)?;
        let peer = Peers::shipped().best("memory_gib", &rows);
        let its = or_none(peer.as_ref().map(|peer| percent(peer.score.mean)));
        let named = peer.map(|peer| peer.name).unwrap_or_default();
        Some(std::iter::once(group.to_owned()).chain(cells(&score)).chain([its, named]).collect())
    };
    let header = ["group", "rows", "mean", "median", "worst", "bias", "best peer", "which"];
    section("Memory of the fullest NPU, where it was measured", &header, groups.filter_map(row))
}

fn of_calls(validation: &Validation) -> Section {
    let row = |call: Call| {
        let verdict = if call.is_false { "false".to_owned() } else { call.why };
        vec![call.row, percent(call.share), verdict]
    };
    let header = ["row", "of what is usable", "call"];
    section("Measured runs that do not fit by our account", &header, memory::calls(validation).into_iter().map(row))
}

/// Groups of plans that are shown one by one; of a source with more their means.
const SHOWN: usize = 6;

fn of_ranks(validation: &Validation) -> Section {
    let by_group = ranks::ranks(validation).into_iter().into_group_map_by(|ranks| ranks.group.clone());
    let row = |name: String, plans: f64, ranks: &[ranks::Ranks], of: fn(&[f64]) -> f64| {
        let values = |value: fn(&ranks::Ranks) -> f64| of(&ranks.iter().map(value).collect::<Vec<_>>());
        let tau = format!("{:.2}", values(|ranks| ranks.tau));
        let shares = [values(|ranks| ranks.regret), values(|ranks| ranks.best_of_three)].map(percent);
        [name, format!("{plans:.0}"), tau].into_iter().chain(shares).collect::<Vec<_>>()
    };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / crate::units::real(values.len() as u64);
    let rows = by_group.into_iter().sorted_by(|a, b| a.0.cmp(&b.0)).flat_map(|(group, found)| {
        let plans = |ranks: &ranks::Ranks| crate::units::real(ranks.plans as u64);
        if found.len() > SHOWN {
            let worst = |values: &[f64]| values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let all: Vec<f64> = found.iter().map(plans).collect();
            let count = found.len();
            return vec![
                row(format!("{group}: the mean of {count} groups"), mean(&all), &found, mean),
                row(format!("{group}: the largest of {count} groups"), worst(&all), &found, worst),
            ];
        }
        let one = |ranks: &ranks::Ranks| row(ranks.first.clone(), plans(ranks), std::slice::from_ref(ranks), mean);
        found.iter().map(one).collect()
    });
    let header = ["group of", "plans", "tau-b", "regret of the first", "of the best of three"];
    section("Ranks among five and more plans of equal work", &header, rows)
}

fn of_ratios(validation: &Validation) -> Section {
    let row = |ratios: ratios::Ratios| std::iter::once(ratios.kind).chain(cells(&ratios.score)).collect();
    let header = ["pairs", "pairs of runs", "mean", "median", "worst", "bias"];
    let title = "The same model on two machines: predicted against measured ratio of tokens a second and NPU";
    section(title, &header, ratios::ratios(validation).into_iter().map(row))
}

fn of_bars(validation: &Validation) -> Section {
    let row = |bar: bars::Bar| {
        let met = bar.is_met().map_or(NONE, |is_met| if is_met { "met" } else { "not met" }).to_owned();
        let reached = or_none(bar.reached.map(percent));
        let others = [bar.peer, bar.prototype].map(|text| or_none(Some(text).filter(|text| !text.is_empty())));
        let count = bar.count.to_string();
        [bar.what, bar.half, bar.measure, count, percent(bar.bar), reached, met].into_iter().chain(others).collect()
    };
    let header = ["what", "half", "measure", "of", "bar", "reached", "", "best peer", "prototype"];
    section("Bars", &header, bars::bars(validation).into_iter().map(row))
}

fn of_shapes(validation: &Validation) -> Section {
    let row = |(pair, error): (String, f64)| vec![pair, signed_percent(error)];
    section(
        "Shapes: predicted against measured ratio",
        &["pair", "error"],
        bars::shapes(validation).into_iter().map(row),
    )
}

/// The most that a group's error may be of the baseline's.
const OF_BASELINE: f64 = 2.0 / 3.0;

fn of_baseline(validation: &Validation) -> Section {
    let known = Table::of_ours(shipped!("baseline.csv"));
    let why = |group: &str| known.rows.iter().find(|row| known.cell(row, "group") == Some(group));
    let row = |of: GroupScore| {
        let share = of.score.mean / of.baseline.filter(|baseline| baseline.rows == of.score.rows)?.mean;
        let half = of.half.map_or("", Half::name).to_owned();
        let text = why(&of.group).and_then(|row| known.cell(row, "why")).unwrap_or("not explained").to_owned();
        (share > OF_BASELINE).then(|| vec![of.group, half, format!("{:.0} %", 100.0 * share), text])
    };
    let header = ["group", "half", "of the baseline", "what is known"];
    section("Groups that are not a third below the baseline", &header, scores(validation).into_iter().filter_map(row))
}

/// Rows that are far off and of which nothing is known are counted beyond so many.
const LISTED: usize = 12;

fn of_far(validation: &Validation) -> Section {
    let group = |id: &str| {
        let case = validation.cases.iter().find(|case| case.run.id == id);
        case.map_or_else(String::new, |case| case.run.group.clone())
    };
    let by_why = bars::far(validation).into_iter().into_group_map_by(|far| (group(&far.row), far.why.clone()));
    let rows = by_why.into_iter().sorted_by(|a, b| a.0.cmp(&b.0)).flat_map(|((group, why), found)| {
        let text = why.unwrap_or_else(|| "not explained".to_owned());
        if found.len() > LISTED {
            let largest = found.iter().map(|far| far.error.abs()).fold(0.0, f64::max);
            return vec![vec![format!("{group}: {} rows", found.len()), format!("up to {}", percent(largest)), text]];
        }
        found.into_iter().map(|far| vec![far.row, signed_percent(far.error), text.clone()]).collect()
    });
    section("Rows more than twice their bar off", &["row", "error", "what is known"], rows)
}
