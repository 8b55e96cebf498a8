//! Are generated pages current? `UPDATE_DOCS=1 cargo test docs` writes them.

use std::fs;

use starsweep::run::document::dictionary;
use starsweep::run::validate::page::{columns, page};
use starsweep::sweep::document::{manual, schema};

use crate::support::{read, root};

fn check(path: &str, expected: &str) {
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(root().join(path), expected).expect("a page is written");
    }
    let found = fs::read_to_string(root().join(path)).unwrap_or_default();
    assert!(found == expected, "`{path}` is stale: UPDATE_DOCS=1 cargo test docs");
}

#[test]
fn the_manual_is_current() {
    check("sweeps/README.md", &manual());
}

#[test]
fn the_schema_is_current() {
    let text = serde_json::to_string_pretty(&schema()).expect("JSON");
    check("sweeps/sweep.schema.json", &format!("{text}\n"));
}

#[test]
fn the_column_dictionary_is_current() {
    check("results/README.md", &dictionary());
}

/// The code map of ARCHITECTURE.md: the first line of every file.
fn code_map() -> String {
    let mut lines = Vec::new();
    let mut open = vec![root().join("src")];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(&path).expect("a source");
                let first = text.lines().next().unwrap_or_default();
                let name = path.strip_prefix(root().join("src")).expect("below src").display().to_string();
                let meaning = first.strip_prefix("//! ").unwrap_or("the tour: this page");
                lines.push(format!("| `{name}` | {meaning} |"));
            }
        }
    }
    lines.sort();
    format!("| file | what it is |\n| --- | --- |\n{}\n", lines.join("\n"))
}

/// Holds what stands between two lines of a page to what is made for it.
fn check_between(path: &str, start: &str, end: &str, expected: &str) {
    let text = read(path);
    let from = text.find(start).expect("the part's start") + start.len();
    let to = text.find(end).expect("the part's end");
    check(path, &format!("{}{expected}{}", &text[..from], &text[to..]));
}

#[test]
fn the_code_map_is_current() {
    let (start, end) = ("<!-- code map: generated -->\n", "<!-- end of code map -->");
    check_between("src/ARCHITECTURE.md", start, end, &code_map());
}

#[test]
fn the_measured_part_of_the_validation_is_current() {
    let (start, end) = ("<!-- measured runs: generated -->\n", "<!-- end of measured runs -->");
    check_between("tests/VALIDATION.md", start, end, &page().expect("tables of ours"));
}

#[test]
fn the_columns_of_measurements_are_current() {
    let (start, end) = ("<!-- columns: generated -->\n", "<!-- end of columns -->");
    check_between("tests/data/measured/README.md", start, end, &columns());
}

#[test]
fn every_key_of_the_shipped_sweeps_is_in_the_schema() {
    let schema = schema();
    let known = schema["properties"].as_object().expect("properties");
    for name in ["quickstart", "next_cluster"] {
        for line in read(&format!("sweeps/{name}.yaml")).lines() {
            if let Some((key, _)) = line.split_once(':')
                && key.chars().all(|c| c.is_ascii_lowercase() || c == '_')
                && !key.is_empty()
            {
                assert!(known.contains_key(key), "`{key}` of {name}");
            }
        }
    }
}
