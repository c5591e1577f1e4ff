//! The turn machine: decides what the harness does, without side effects.
//!
//! ```text
//!              attached            begun               exited             answered
//!   Detached ────────► Starting ─► Beginning ─► Running ─────► Ending ───────────┐
//!      ▲                              ▲  ▲        │   retry (login)              │
//!      │ fenced: Discarding           │  └────────┘                    Opening ◄─┤ asked for another turn
//!      └── (claude dies first)        └──────────────────────────────────────────┘
//! ```
//!
//! Inputs come from the broker, claude, the operator and the clock; outputs are tasks for the
//! driver. The machine does no IO, never waits, and reads no clock, so plain tests cover every
//! path. Invariants: a turn that began is ended once, unless the broker reports that it is not
//! open. A claude is started only inside a turn. No turn begins and no new session is attached
//! before the last claude is gone.
//!
//! The harness of an agent that runs on demand asks after a rest in `Beginning` whether it may end.
//! A session that is lost before the answer (`Unsure`) may have ended because of the question.

pub mod context;
pub mod input;
pub mod job;
pub mod machine;
pub mod output;
pub mod reset_rule;
pub mod windows;

mod phase;
mod plan;

#[cfg(test)]
mod tests;
