//! The status of a row: what became of a point.

/// What became of a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// It can exist, and was evaluated.
    Feasible,
    /// It cannot exist; `reason` says why.
    Infeasible,
    /// It can exist, and is not what was required; `reason` is the name of the requirement.
    Unmet,
    /// We made a mistake; `reason` is the message.
    Error,
    /// Its simulation takes more events than one point may; `reason` says so.
    Limit,
}

impl Status {
    /// Every status, in the order in which they are counted.
    pub const ALL: [Self; 5] = [Self::Feasible, Self::Infeasible, Self::Unmet, Self::Error, Self::Limit];
    /// The texts of the column `status`.
    pub const NAMES: [&'static str; 5] = ["feasible", "infeasible", "unmet", "error", "limit"];
}
