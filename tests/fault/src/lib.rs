//! Fail points and planted bugs, which the proof needs and no delivered program has.
//!
//! A *fail point* is a named place in a program at which it can be killed:
//! `HIVE_FAIL_POINT=broker.commit.before:3` ends the process with SIGKILL when it comes there for
//! the third time. A *planted bug* is a named mistake that the simulation switches on to show that
//! it would find it. Invariant: without the feature `on` both are nothing: no code, no environment
//! variable, no branch.

#[cfg(feature = "on")]
mod on;

#[cfg(feature = "on")]
pub use on::{Bug, fill, plant, planted, point, seed};

/// A place at which the process can be killed. Nothing here.
#[cfg(not(feature = "on"))]
#[inline(always)]
pub fn point(_name: &'static str) {}

/// Whether this mistake is to be made: `planted!(LostWake)`. Never, where the feature is off.
#[cfg(feature = "on")]
#[macro_export]
macro_rules! planted {
    ($bug:ident) => {
        $crate::planted($crate::Bug::$bug)
    };
}

/// Whether this mistake is to be made. Never, where the feature is off.
#[cfg(not(feature = "on"))]
#[macro_export]
macro_rules! planted {
    ($bug:ident) => {
        false
    };
}

/// Random bytes by a seed, for a simulation: whether `_bytes` were filled. Never, where the feature
/// is off.
#[cfg(not(feature = "on"))]
#[inline(always)]
#[must_use]
pub fn fill(_bytes: &mut [u8]) -> bool {
    false
}
