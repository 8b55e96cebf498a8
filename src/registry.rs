//! The `registry!` macro: a list of parts gives modules, an enum, names and dispatch. One file and one line add a part.

/// Declares a registry: `module::Part` lines become public modules, the variants of an enum, the names that people
/// write (the modules' names, or `as` a word that is no name of a module) and the way to each part's behaviour.
///
/// The parts are unit structs that implement the contract, so dispatch is a pointer and nothing is allocated.
macro_rules! registry {
    (@name $module:ident) => {
        stringify!($module)
    };
    (@name $module:ident $word:literal) => {
        $word
    };
    (
        $(#[$doc:meta])*
        pub enum $name:ident: $contract:ident {
            $($module:ident::$part:ident $(as $word:literal)?,)+
        }
    ) => {
        $(pub mod $module;)+

        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $(
                #[doc = concat!("See [`", stringify!($module), "`].")]
                $part,
            )+
        }

        impl $name {
            /// Every part, in the order of the list.
            pub const ALL: &'static [Self] = &[$(Self::$part,)+];
            /// Every name, in the order of the list.
            pub const NAMES: &'static [&'static str] = &[$(crate::registry::registry!(@name $module $($word)?),)+];

            /// The name that people write: the name of the part's file.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$part => crate::registry::registry!(@name $module $($word)?),)+
                }
            }

            /// What the part does.
            #[must_use]
            pub fn part(self) -> &'static dyn $contract {
                match self {
                    $(Self::$part => &$module::$part,)+
                }
            }
        }
    };
}

pub(crate) use registry;
