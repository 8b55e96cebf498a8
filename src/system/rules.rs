//! Rules: ours, or the reference simulator's to the cycle: the quirks in which the two differ, each by its name [ASTRA2].

/// Declares the quirks: their names and what they are, in one table.
macro_rules! quirks {
    ($($quirk:ident = $name:literal, $summary:literal;)+) => {
        /// A way in which the reference departs from what is meant.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Quirk {
            $(#[doc = $summary] $quirk,)+
        }

        impl Quirk {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$quirk,)+];

            /// The name that people write.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$quirk => $name,)+
                }
            }

            /// What the reference does, and what ours does instead.
            #[must_use]
            pub const fn summary(self) -> &'static str {
                match self {
                    $(Self::$quirk => $summary,)+
                }
            }
        }
    };
}

quirks! {
    WholeNanoseconds = "whole_nanoseconds",
        "each message, reduction and memory access is rounded down to a whole nanosecond; ours: to the nearest picosecond";
    UnsharedBandwidth = "unshared_bandwidth",
        "messages that an NPU sends at once each have the whole bandwidth; ours: a dimension serves one chunk at a time";
    OneWayRings = "one_way_rings",
        "a ring's chunk uses the links of one way round; ours: half of it goes each way";
    FullLastChunk = "full_last_chunk",
        "the last chunk of a collective is charged as a full one; ours: chunks are equal and add up to the collective";
    SmallestChunk = "smallest_chunk",
        "a chunk has as many bytes as the cluster has NPUs at least, but for all-gathers; ours: as many as it has";
    GroupDelay = "group_delay",
        "the endpoint delay in a group of some ranks is 10 ns whatever was set; ours: what was set";
    FlatGroups = "flat_groups",
        "a group of some ranks in a network of several dimensions is one flat ring in the first one's queues; ours: it runs by dimension, each with its algorithm";
    SharedCounter = "shared_counter",
        "collectives of groups advance the tags of those among all ranks, so ranks of different groups may wait for ever; ours: each group counts for itself";
    LowestDimension = "lowest_dimension",
        "a message pays for the lowest dimension in which its ends differ; ours: for each in which they do";
    MisplacedReductions = "misplaced_reductions",
        "halving and doubling reduces half a block and never the last, windowed direct every second window, a tree once more on the way down; ours: every received block of a sum once";
    UnawakenedFollowers = "unawakened_followers",
        "what follows an operation that takes no time waits for the next end of another; ours: it starts at once";
    OneCommunication = "one_communication",
        "a send, a collective and a memory access share one slot of an NPU; ours: sends and memory accesses have slots of their own";
    SchedulingKeysIgnored = "scheduling_keys_ignored",
        "the two scheduling keys of a system file are not read; ours: they are";
    BroadcastIsADelay = "broadcast_is_a_delay",
        "a broadcast takes its recorded duration or 1 ns; ours: it is sent";
    WholeMemoryBandwidth = "whole_memory_bandwidth",
        "the remote memory's bandwidth is cut to a whole number of GB/s; ours: it is what was written";
    TreesReduceAll = "trees_reduce_all",
        "a double binary tree does an all-reduce whatever is asked; ours: all-reduces and broadcasts have trees, others go as a ring";
    MirroredLoads = "mirrored_loads",
        "Themis sends all-gathers innermost first where loads are level, and counts their loads for the mirrored dimension; ours: outermost first, each load where it is";
    RepeatedNumbers = "repeated_numbers",
        "of two operations of a trace with one number the later takes the place of the earlier; ours: that is an error";
}

impl Quirk {
    /// The quirk of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|quirk| quirk.name() == name)
    }

    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// Which quirks are in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rules(u32);

impl Rules {
    /// None of them.
    pub const OURS: Self = Self(0);
    /// All of them.
    pub const ASTRA_SIM: Self = Self((1 << Quirk::ALL.len()) - 1);
    /// The sets that have a name; the first holds where nothing is said.
    pub const NAMED: [Self; 2] = [Self::OURS, Self::ASTRA_SIM];
    /// The names that people write, in the same order.
    pub const NAMES: [&'static str; 2] = ["ours", "astra_sim"];

    /// The quirks that are in force.
    pub fn quirks(self) -> impl Iterator<Item = Quirk> {
        Quirk::ALL.iter().copied().filter(move |&quirk| self.has(quirk))
    }

    /// Whether a quirk is in force.
    #[must_use]
    pub const fn has(self, quirk: Quirk) -> bool {
        self.0 & quirk.bit() != 0
    }

    /// The same with a quirk in force.
    #[must_use]
    pub const fn with(self, quirk: Quirk) -> Self {
        Self(self.0 | quirk.bit())
    }

    /// The same without a quirk.
    #[must_use]
    pub const fn without(self, quirk: Quirk) -> Self {
        Self(self.0 & !quirk.bit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_quirk_is_on_or_off_by_itself() {
        for &quirk in Quirk::ALL {
            assert!(Rules::ASTRA_SIM.has(quirk) && !Rules::OURS.has(quirk));
            assert_eq!(Rules::OURS.with(quirk).without(quirk), Rules::OURS);
            assert_eq!(Quirk::ALL.iter().filter(|&&other| Rules::OURS.with(quirk).has(other)).count(), 1);
        }
    }
}
