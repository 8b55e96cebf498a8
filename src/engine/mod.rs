//! The clock: how long a program takes on a machine.

mod class_cost;
pub mod closed_form;
pub mod event_driven;
pub mod memo;
pub mod prices;
pub mod report;

pub use closed_form::evaluate;
pub use memo::Memo;
pub use report::Report;

/// Goes up with every change that moves a number; results of different versions never mix.
pub const PHYSICS_VERSION: u32 = 9;
