#![doc = include_str!("ARCHITECTURE.md")]

pub mod units;
