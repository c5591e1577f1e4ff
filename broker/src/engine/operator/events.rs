//! Events: reading the log of committed facts.

use hive_core::caller::Caller;
use hive_core::event::Event;
use hive_core::message::OPERATOR;

use crate::engine::{Engine, Refusal, actor};
use crate::store::{AgentKey, agent, event};

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
            .read(move |conn, _| {
                let me = actor::row(conn, &caller)?;
                match &caller {
                    Caller::Agent(own) if name.is_empty() || name == own.as_str() => {
                        Ok(Some(me.key))
                    }
                    Caller::Agent(_) => Err(Refusal::NotYours { what: "that agent's events" }),
                    Caller::Operator(_) if name.is_empty() => Ok(None),
                    Caller::Operator(_) if name == OPERATOR => {
                        Ok(Some(agent::by_key(conn, AgentKey::OPERATOR)?.key))
                    }
                    Caller::Operator(_) => Ok(Some(actor::known(conn, &name)?.key)),
                }
            })
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
