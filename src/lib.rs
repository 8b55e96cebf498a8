#![doc = include_str!("ARCHITECTURE.md")]

pub mod engine;
mod registry;
pub mod sweep;
pub mod system;
pub mod units;
pub mod workload;
