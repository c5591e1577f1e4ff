//! Watches that survive a restart of the broker.
//!
//! - `events`: the event log; `questions`: questions; `turn`: the output of a turn
//! - `reconnect`: waiting for a broker that is away
//!
//! Invariant: a refusal ends a watch; only a broker that is away, or not ready, is waited for.

mod events;
pub(crate) mod questions;
mod reconnect;
pub(crate) mod turn;

pub(crate) use self::events::{Feed, Step, watch};
pub(crate) use self::reconnect::{RECONNECT_FIRST, RECONNECT_LONGEST};
