#![doc = include_str!("ARCHITECTURE.md")]

mod registry;
pub mod units;
