//! Does the house keep its rules? Imports one way, file lengths, first lines, citations, registered files, the top level.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::{read, root};

/// Who may import whom: quoted by ARCHITECTURE.md.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("units", &[]),
    ("registry", &[]),
    ("column", &["units"]),
    ("input", &["units"]),
    ("system", &["units", "registry"]),
    ("workload", &["units", "registry", "system"]),
    ("engine", &["units", "registry", "system", "workload"]),
    ("astra_sim", &["units", "input", "system", "workload"]),
    ("sweep", &["units", "column", "input", "system", "workload"]),
    ("results", &["units", "registry", "column", "system", "workload", "engine"]),
    ("run", &["units", "column", "input", "system", "workload", "engine", "astra_sim", "sweep", "results"]),
    ("cli", &["units", "column", "input", "system", "workload", "engine", "astra_sim", "sweep", "results", "run"]),
];

/// Words that must not stand in a folder's sources.
const MUST_NOT_HOLD: &[(&str, &[&str])] = &[
    ("system", &["std::fs", "std::thread", "Instant", "println!", "\nstatic ", "powf", ".ln()", ".exp()"]),
    ("workload", &["std::fs", "std::thread", "Instant", "println!", "\nstatic ", "powf", ".ln()", ".exp()"]),
    ("engine", &["std::fs", "std::thread", "Instant", "println!", "\nstatic ", "HashMap", "powf", ".ln()", ".exp()"]),
    ("input", &["std::fs", "println!", "std::thread", "Instant"]),
    ("astra_sim", &["println!", "std::thread", "Instant"]),
    ("sweep", &["println!", "std::thread", "Instant"]),
    ("results", &["println!", "std::thread"]),
    ("run", &["println!"]),
];

/// Lines that a file may have, tests left out.
const LONGEST: usize = 600;
fn sources() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open = vec![root().join("src")];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let name = path.strip_prefix(root().join("src")).expect("below src").display().to_string();
                found.push((name, fs::read_to_string(&path).expect("a source")));
            }
        }
    }
    found.sort();
    found
}

/// A source without its tests and comments.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

fn folder(name: &str) -> &str {
    let head = name.split('/').next().unwrap_or(name);
    head.strip_suffix(".rs").unwrap_or(head)
}

#[test]
fn imports_go_one_way() {
    for (name, text) in sources() {
        let from = folder(&name);
        if matches!(from, "lib" | "main") {
            continue;
        }
        let line = MAY_IMPORT.iter().find(|line| line.0 == from);
        let allowed = line.unwrap_or_else(|| panic!("`{from}` has no line in the table of imports")).1;
        for part in code(&text).split("crate::").skip(1) {
            let to: String = part.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            assert!(to == from || allowed.contains(&to.as_str()), "{name} imports `{to}`, and `{from}` may not");
        }
    }
}

#[test]
fn pure_folders_see_no_world() {
    for (name, text) in sources() {
        for (from, words) in MUST_NOT_HOLD {
            if folder(&name) == *from {
                for word in *words {
                    assert!(!code(&text).contains(word), "{name} holds `{word}`");
                }
            }
        }
    }
}

#[test]
fn casts_to_and_from_real_numbers_stand_in_units_alone() {
    for (name, text) in sources() {
        let float_cast = code(&text).contains(" as f64") || code(&text).contains(" as i64");
        assert!(!float_cast || folder(&name) == "units" || name == "input/tree.rs", "{name} casts numbers");
    }
}

#[test]
fn files_are_short_and_say_what_they_are() {
    for (name, text) in sources() {
        let lines = text.split("#[cfg(test)]").next().unwrap_or_default().lines().count();
        assert!(lines <= LONGEST, "{name} has {lines} lines");
        assert!(text.starts_with("//! ") || name == "lib.rs", "{name} does not say what it is");
        let forbidden = ["util.rs", "utils.rs", "helpers.rs", "common.rs", "imp.rs"];
        assert!(!forbidden.iter().any(|word| name.ends_with(word)), "{name} has a name that says nothing");
        for word in ["todo!(", "unimplemented!(", "dbg!(", "#[allow("] {
            assert!(!text.contains(word), "{name} holds `{word}`");
        }
    }
}

/// Keys in brackets, like [Thakur05]: a capital letter, ending in two digits, or one of the two that do not.
fn citations(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for part in text.split('[').skip(1) {
        let Some((inside, _)) = part.split_once(']') else { continue };
        for key in inside.split([',', ' ']) {
            let digits = key.chars().rev().take_while(char::is_ascii_digit).count();
            let dated = key.len() > 3 && digits == 2;
            let word = key.chars().next().is_some_and(|c| c.is_ascii_uppercase())
                && key.chars().all(|c| c.is_ascii_alphanumeric());
            if word && (dated || key == "ASTRA2" || key == "StepFit") {
                found.insert(key.to_owned());
            }
        }
    }
    found
}

#[test]
fn every_citation_is_listed_and_every_reference_is_cited() {
    let cited: BTreeSet<String> = sources().iter().flat_map(|(_, text)| citations(text)).collect();
    let page = read("src/system/REFERENCES.md");
    let listed: BTreeSet<String> = page
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .map(|line| line.trim_matches(['[', ']']).to_owned())
        .collect();
    assert_eq!(cited, listed);
}

#[test]
fn every_file_of_a_registry_is_registered() {
    for registry in [
        "system/topology",
        "system/collective",
        "workload/optimizer",
        "workload/schedule",
        "workload/strategy",
        "results/metric",
        "results/sink",
    ] {
        let list = read(&format!("src/{registry}/mod.rs"));
        for entry in fs::read_dir(root().join("src").join(registry)).expect("a registry") {
            let path = entry.expect("an entry").path();
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            assert!(name == "mod" || list.contains(&format!("{name}::")), "{registry}/{name}.rs is not in the list");
        }
    }
}

#[test]
fn the_table_of_imports_is_in_the_architecture_page() {
    let page = read("src/ARCHITECTURE.md");
    for (from, to) in MAY_IMPORT {
        let line = format!("| {from} | {} |", to.join(", "));
        assert!(page.contains(&line), "ARCHITECTURE.md lacks `{line}`");
    }
}

#[test]
fn the_top_level_is_the_agreed_one() {
    let agreed = [
        "Cargo.toml",
        "Cargo.lock",
        "src",
        "sweeps",
        "results",
        "scripts",
        "tests",
        "benches",
        "README.md",
        "CHANGELOG.md",
        "LICENSE",
        "rustfmt.toml",
        "target",
    ];
    for entry in fs::read_dir(root()).expect("the root") {
        let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
        assert!(name.starts_with('.') || agreed.contains(&name.as_str()), "`{name}` stands at the top level");
    }
    for name in &agreed[..11] {
        assert!(root().join(name).exists(), "`{name}` is missing");
    }
}

#[test]
fn the_readme_is_short_and_its_links_lead_somewhere() {
    for page in ["README.md", "src/ARCHITECTURE.md", "tests/README.md", "benches/README.md", "scripts/README.md"] {
        let text = read(page);
        assert!(page != "README.md" || text.lines().count() < 150, "README.md has {} lines", text.lines().count());
        let folder = PathBuf::from(page).parent().map_or_else(PathBuf::new, Path::to_path_buf);
        for link in text.split("](").skip(1).filter_map(|part| part.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            if !target.is_empty() && !target.contains("://") {
                assert!(root().join(&folder).join(target).exists(), "{page}: `{link}` leads nowhere");
            }
        }
    }
}
