//! Quotas: how much an agent may have and do, by its policy where that says so, else by the hive's
//! bounds.

use hive_core::agent::Policy;
use hive_core::limits::Limits;

use super::Refusal;
use super::rate::Buckets;
use crate::store::agent::AgentRow;
use crate::store::{Tx, inbox};

/// What holds for one agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quotas {
    /// Messages, questions and reminders per minute.
    pub(crate) sends_per_minute_max: u32,
    /// Bytes of unsettled bodies.
    pub(crate) sender_stored_bytes_max: u64,
    /// Open questions.
    pub(crate) questions_open_max: u32,
    /// Pending reminders.
    pub(crate) reminders_pending_max: u32,
}

impl Quotas {
    /// Those of an agent.
    pub(crate) fn of(policy: &Policy, limits: &Limits) -> Self {
        Self {
            sends_per_minute_max: policy
                .sends_per_minute_max
                .unwrap_or(limits.sends_per_minute_max),
            sender_stored_bytes_max: policy
                .sender_stored_bytes_max
                .unwrap_or(limits.sender_stored_bytes_max),
            questions_open_max: policy.questions_open_max.unwrap_or(limits.questions_open_max),
            reminders_pending_max: policy
                .reminders_pending_max
                .unwrap_or(limits.reminders_pending_max),
        }
    }

    /// Takes one of what the agent may send this minute.
    pub(crate) fn take_send(
        &self,
        tx: &Tx<'_>,
        buckets: &Buckets,
        me: &AgentRow,
    ) -> Result<(), Refusal> {
        let per_minute = self.sends_per_minute_max;
        buckets
            .take(me.key, per_minute, tx.now.boot)
            .map_err(|retry_after| Refusal::RateLimited { per_minute, retry_after })
    }

    /// Checks that the agent may store so many more bytes in others' inboxes.
    pub(crate) fn check_stored(
        &self,
        tx: &Tx<'_>,
        me: &AgentRow,
        bytes: usize,
    ) -> Result<(), Refusal> {
        let stored = inbox::get(tx, me.key)?.stored_bytes;
        if stored + bytes as u64 > self.sender_stored_bytes_max {
            return Err(Refusal::StorageFull { bytes: stored, max: self.sender_stored_bytes_max });
        }
        Ok(())
    }
}
