//! Machine against machine: the same model on two NPUs, predicted ratio of tokens a second and NPU against measured.

use itertools::Itertools as _;

use super::Validation;
use super::predict::Case;
use super::score::Score;

/// What two runs have in common that are set against each other; besides these release and width of format.
const SAME: [&str; 4] = ["source", "model", "seq", "gpus"];
/// NPUs of one generation.
const BLACKWELL: [&str; 2] = ["B200", "B300"];

/// The ratios of one kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Ratios {
    /// Which they are.
    pub kind: String,
    /// Predicted over measured ratio, less 1: pair by pair, scored.
    pub score: Score,
}

/// The ratios of every pair of published runs of one source, release, model, sequence length, width of format and number of
/// NPUs, on NPUs of two kinds.
#[must_use]
pub fn ratios(validation: &Validation) -> Vec<Ratios> {
    let measured = validation.cases.iter().filter(|case| case.error().is_some());
    let same = |case: &&Case| {
        let columns = SAME.map(|column| case.run.text(column).unwrap_or_default().to_owned());
        (columns, release(case).to_owned(), width(case.run.text("precision").unwrap_or_default()))
    };
    let alike = measured.into_group_map_by(same).into_iter().sorted_by(|a, b| a.0.cmp(&b.0));
    let pairs = alike.flat_map(|(_, cases)| cases.into_iter().array_combinations().collect::<Vec<_>>());
    let errors = pairs.filter_map(|[a, b]| {
        let is_another = a.run.text("gpu_type") != b.run.text("gpu_type");
        let error = (1.0 + b.error()?) / (1.0 + a.error()?) - 1.0;
        Some((kind(a, b), error)).filter(|_| is_another)
    });
    let by_kind = errors.into_group_map().into_iter().sorted_by(|a, b| a.0.cmp(&b.0));
    by_kind.filter_map(|(kind, errors)| Some(Ratios { kind, score: Score::of(&errors)? })).collect()
}

/// The release that a row's reference begins with, if it does.
fn release(case: &Case) -> &str {
    let first = case.run.text("source_ref").and_then(|text| text.split(' ').next()).unwrap_or_default();
    if first.starts_with(|character: char| character.is_ascii_digit()) { first } else { "" }
}

/// The bits of a format: the number that its name ends in.
fn width(precision: &str) -> String {
    let digits = precision.chars().rev().take_while(char::is_ascii_digit).collect::<String>();
    digits.chars().rev().collect()
}

/// Which ratios a pair belongs to.
fn kind(a: &Case, b: &Case) -> String {
    let source = a.run.text("source").and_then(|source| source.split(' ').next()).unwrap_or("one source");
    let model = if a.run.count("experts").is_some_and(|experts| experts > 0) { "mixture of experts" } else { "dense" };
    let is_new = |case: &Case| {
        let npu = case.run.text("gpu_type").unwrap_or_default();
        BLACKWELL.iter().any(|name| npu.contains(name))
    };
    match (is_new(a), is_new(b)) {
        (true, true) => format!("{source} {model} among Blackwells"),
        (false, false) => format!("{source} {model}"),
        _ => format!("{source} {model} onto Blackwell"),
    }
}

#[cfg(test)]
mod tests {
    use super::width;

    #[test]
    fn a_format_ends_in_its_bits() {
        assert_eq!(["bf16", "mxfp8", "nvfp4"].map(width), ["16", "8", "4"]);
    }
}
