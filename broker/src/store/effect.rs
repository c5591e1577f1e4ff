//! Effects: values that a command of the writer returns, applied once its batch is on disk.
//!
//! Invariant: memory changes only by effects. The effects of a failed command or of an aborted
//! batch are never applied.

use std::sync::Arc;

use hive_core::agent::Isolation;
use hive_core::time::BootTime;
use tokio_util::sync::CancellationToken;

use super::key::AgentKey;
use crate::measures::Count;

/// A consequence of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The inbox has new work.
    Hint(AgentKey),
    /// The agent's session ended or was replaced.
    Session(AgentKey),
    /// The operator gave the agent's harness a new order, or the agent was changed.
    Changed(AgentKey),
    /// What others see of the agent changed.
    Shown(AgentKey),
    /// A lease or a grace time ends at this time, unless it changes before.
    Due(BootTime),
    /// A deadline or a reminder became due earlier than it was, by the wall clock.
    WallDue,
    /// The operator outbox has a new item.
    Outbox,
    /// An action waits for its run.
    Action,
    /// The presence of the agent's harness changed.
    Presence(AgentKey, PresenceChange),
    /// Something that is counted; only if metrics are offered.
    Count(Count),
    /// An agent was purged: a later agent may take its name, and has another key.
    NameFreed(String),
}

/// A change of the presence of a harness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PresenceChange {
    /// A harness attached; an older attachment ends.
    Attached {
        /// The number of its session.
        epoch: u64,
        /// The token of its session.
        token: String,
        /// Its isolation, as the broker sees it.
        isolation: Option<Isolation>,
        /// The new attachment.
        live: Live,
        /// The time of the attach.
        now: BootTime,
    },
    /// A session opened or ended a turn.
    TurnOpen {
        /// Whether a turn is open now.
        open: bool,
        /// The time of the change.
        now: BootTime,
    },
    /// A session has no harness, and its grace time begins.
    Awaited {
        /// The number of the session.
        epoch: u64,
        /// The token of the session.
        token: String,
        /// When the grace time begins.
        now: BootTime,
    },
    /// The sessions up to this number ended.
    Ended {
        /// The number of the last one.
        epoch: u64,
    },
}

/// One attachment of a harness. Clones are equal, and two attachments are not.
#[derive(Clone, Debug)]
pub struct Live(Arc<CancellationToken>);

impl Live {
    /// Returns a new attachment.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::default())
    }

    /// Returns the token that is cancelled when the attachment ends.
    #[must_use]
    pub fn ended(&self) -> &CancellationToken {
        &self.0
    }
}

impl Default for Live {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for Live {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Live {}

/// A receiver of committed effects, called where the batch was run, before the replies are sent.
/// Must not block.
pub trait Committed: Send + Sync {
    /// Applies effects that are on disk; `last_event` is the newest event.
    fn committed(&self, effects: &[Effect], last_event: u64);

    /// Notes that the callers of the batch have their answers; `last_event` is the newest event.
    /// Who only watches is notified here: a hundred watchers would otherwise run before the sender.
    /// May be called after a later batch.
    fn answered(&self, last_event: u64);

    /// Notes that the database can be used again after a failure. A batch that was aborted may be
    /// on disk after all, and its effects were not applied.
    fn recovered(&self) {}
}
