//! One binary, one file per question: see `tests/README.md`.

mod astra_sim;
mod bounds;
mod chakra;
mod cli;
mod columns;
mod compare;
mod diagnostics;
mod docs;
mod faults;
mod fidelity;
mod golden;
mod golden_files;
mod laws;
mod links;
mod named_files;
mod papers;
mod quirks;
mod recorded;
mod resume;
mod simulate;
mod smoke;
mod space;
mod support;
mod symmetry;
mod tidy;
mod validation;
