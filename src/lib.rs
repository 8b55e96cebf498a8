#![doc = include_str!("ARCHITECTURE.md")]

mod registry;
pub mod system;
pub mod units;
pub mod workload;
