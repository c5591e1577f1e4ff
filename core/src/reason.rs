//! Reasons: the stable machine words of all refusals on the wire, with what programs may know about
//! them.
//!
//! `proto/hive/v1/reason.proto` declares them, and `table` is made from it. Invariant: each has a
//! help page `docs/errors/<REASON>.md` (a test checks it), and its text never changes.

use std::fmt;

/// Whether the identical request, with the same bytes, may succeed later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// It does not become right by waiting.
    Never,
    /// It may succeed when something else has changed.
    Later,
    /// A client repeats it by itself after a pause.
    Soon,
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident = $number:literal, $text:literal, $code:literal, $retry:expr, $keys:expr, $optional:expr;)+) => {
        /// Why a call was refused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Reason {
            $($(#[$doc])* $variant,)+
        }

        impl Reason {
            /// All reasons.
            pub const ALL: &'static [Reason] = &[$(Self::$variant,)+];

            /// Returns the number of its value in the contract.
            #[must_use]
            pub const fn number(self) -> i32 {
                match self { $(Self::$variant => $number,)+ }
            }

            /// Returns the reason with this number.
            #[must_use]
            pub const fn numbered(number: i32) -> Option<Self> {
                match number { $($number => Some(Self::$variant),)+ _ => None }
            }

            /// Returns the word on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }

            /// Returns the reason with this word.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)+ _ => None }
            }

            /// Returns the number of the gRPC code.
            #[must_use]
            pub const fn code(self) -> i32 {
                match self { $(Self::$variant => $code,)+ }
            }

            /// Returns whether a retry helps.
            #[must_use]
            pub const fn retry(self) -> Retry {
                match self { $(Self::$variant => $retry,)+ }
            }

            /// Returns the keys that its metadata always has.
            #[must_use]
            pub const fn metadata(self) -> &'static [&'static str] {
                match self { $(Self::$variant => &$keys,)+ }
            }

            /// Returns the keys that its metadata has in some of the cases.
            #[must_use]
            pub const fn optional_metadata(self) -> &'static [&'static str] {
                match self { $(Self::$variant => &$optional,)+ }
            }
        }
    };
}

#[rustfmt::skip]
mod table;

pub use table::Reason;

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip() {
        for reason in Reason::ALL {
            assert_eq!(Reason::parse(reason.as_str()), Some(*reason));
        }
        assert_eq!(Reason::parse("NO_SUCH_REASON"), None);
    }
}
