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
