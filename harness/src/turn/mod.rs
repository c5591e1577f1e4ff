//! The turn machine: decides what the harness does, and touches nothing.
//!
//! ```text
//!              attached            begun               exited             answered
//!   Detached ────────► Starting ─► Beginning ─► Running ─────► Ending ───────────┐
//!      ▲                              ▲  ▲        │   retry (login)              │
//!      │ fenced: Discarding           │  └────────┘                    Opening ◄─┤ asked for another turn
//!      └── (claude dies first)        └──────────────────────────────────────────┘
//! ```
//!
//! Inputs come from the broker, from claude, from the operator and from the clock; outputs are what
//! the driver has to do. Nothing here does IO, waits, or reads a clock, so every path is a plain
//! test. Invariants: a turn that began is ended once, unless the broker said that it is no longer
//! ours; a claude is started only inside a turn, and no turn is begun or attached anew before the
//! last claude is gone.

pub mod context;
pub mod input;
pub mod job;
pub mod machine;
pub mod output;
pub mod reset_rule;
pub mod windows;

mod course;
mod phase;

#[cfg(test)]
mod tests;
