//! Fail points and planted bugs for the proof; no delivered program contains them.
//!
//! A *fail point* is a named place in a program at which it can be killed:
//! `HIVE_FAIL_POINT=broker.commit.before:3` ends the process with SIGKILL at the third visit. A
//! *planted bug* is a named mistake that the simulation switches on to show that it would find it.
//! Invariant: without the feature `on` both are nothing: no code, no environment variable, no
//! branch.

#[cfg(feature = "on")]
mod on;

#[cfg(feature = "on")]
pub use on::{Bug, fill, plant, planted, point, seed};

/// Marks a place at which the process can be killed. Without the feature it does nothing.
#[cfg(not(feature = "on"))]
#[inline(always)]
pub fn point(_name: &'static str) {}

/// Returns whether to make this mistake: `planted!(LostWake)`. Always false without the feature.
#[cfg(feature = "on")]
#[macro_export]
macro_rules! planted {
    ($bug:ident) => {
        $crate::planted($crate::Bug::$bug)
    };
}

/// Returns whether to make this mistake. Always false without the feature.
#[cfg(not(feature = "on"))]
#[macro_export]
macro_rules! planted {
    ($bug:ident) => {
        false
    };
}

/// Fills `_bytes` from a seed, for a simulation; returns whether it did. Always false without the
/// feature.
#[cfg(not(feature = "on"))]
#[inline(always)]
pub fn fill(_bytes: &mut [u8]) -> bool {
    false
}
