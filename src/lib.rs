#![doc = include_str!("ARCHITECTURE.md")]

pub mod astra_sim;
pub mod cli;
pub mod column;
pub mod engine;
pub mod input;
mod registry;
pub mod results;
pub mod run;
pub mod sweep;
pub mod system;
pub mod units;
pub mod workload;
