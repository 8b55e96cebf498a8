//! Do well-known runs fit by the plans that their makers describe, with the MFU that we say?

use starsweep::results::metric::{MetricPart, Outcome};
use starsweep::run::evaluate::Evaluator;
use starsweep::sweep::key::Id;
use starsweep::sweep::point;
use starsweep::system::bill::Bill;

use crate::support::{points, read, sweep};

/// The cells of the table of published plans, a row each.
fn said() -> Vec<Vec<String>> {
    let page = read("tests/VALIDATION.md");
    let part = page.split("## Published plans").nth(1).and_then(|part| part.split("\n## ").next()).expect("the part");
    let rows = part.lines().filter(|line| line.starts_with("| ") && line.contains('_'));
    rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

#[test]
fn well_known_runs_fit_and_their_mfu_is_what_the_page_says() {
    let sweep = sweep(&read("sweeps/published_plans.yaml"));
    let mut evaluator = Evaluator::default();
    let rows = said();
    assert_eq!(rows.len(), 4);
    for (inputs, row) in points(&sweep).iter().zip(rows) {
        let (job, system) = Evaluator::question(inputs);
        let evaluation = evaluator.evaluate(&job, &system, point::fidelity(inputs)).expect("a feasible plan");
        let outcome = Outcome {
            job: &job,
            system: &system,
            npus: inputs.key(Id::Npus),
            bill: Bill::default(),
            footprint: Some(&evaluation.footprint),
            unseen: 0.0,
            report: Some(&evaluation.report),
        };
        let mfu = MetricPart::Mfu.part().value(&outcome, 0).expect("a training step");
        let used = evaluation.footprint.total().as_real() / system.memory.usable().as_real();
        assert_eq!([format!("{:.1} %", 100.0 * mfu), format!("{:.0} %", 100.0 * used)], row[2..4], "{}", row[0]);
    }
}
