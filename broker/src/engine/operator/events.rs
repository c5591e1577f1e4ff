//! Events: reading the log of committed facts.

use hive_core::caller::Caller;
use hive_core::event::Event;

use crate::engine::{Engine, Refusal, actor};
use crate::store::{AgentKey, event};

/// The first and the last number of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogSpan {
    /// The oldest number still kept; 0 when the log is empty.
    pub first: u64,
    /// The newest.
    pub last: u64,
}

impl Engine {
    /// Returns the agent whose events a caller may read: an agent its own, the operator those of
    /// any or of all.
    pub async fn event_scope(
        &self,
        caller: Caller,
        name: String,
    ) -> Result<Option<AgentKey>, Refusal> {
        self.store
            .read(move |conn, _| actor::scope(conn, &caller, &name, "that agent's events"))
            .await
    }

    /// Refuses the position of a follower that does not name its log; returns whether it is a
    /// position in this log.
    pub fn is_of_log(&self, after: u64, log_id: &str) -> Result<bool, Refusal> {
        if after > 0 && log_id.is_empty() {
            let problem =
                "is required with `after_sequence`: the `log_id` that came with that number"
                    .to_owned();
            return Err(Refusal::Field { field: "log_id", problem });
        }
        Ok(log_id.is_empty() || log_id == self.log_id())
    }

    /// Returns events after a number, oldest first, and the span of the log.
    pub async fn events_after(
        &self,
        sequence: u64,
        scope: Option<AgentKey>,
        rows: u32,
    ) -> Result<(Vec<Event>, LogSpan), Refusal> {
        self.store
            .read(move |conn, _| {
                let (first, last) = event::span(conn)?;
                Ok((event::after(conn, sequence, scope, rows)?, LogSpan { first, last }))
            })
            .await
    }
}
