//! History: ended turns, and the lines of running ones.

use crate::engine::error::{HarnessError, TurnError};
use std::sync::Arc;

use hive_core::caller::Caller;
use hive_core::id::TurnId;
use hive_core::limits::PAGE_BYTES_MAX;
use hive_core::message::OPERATOR;
use hive_core::turn::Turn;

use crate::engine::actor::session;
use crate::engine::{Engine, Refusal, actor};
use crate::store::turn_events::Line;
use crate::store::{AgentKey, turn};

/// Lines that one step of a watch reads.
const STEP_LINES: u32 = 500;

impl Engine {
    /// Returns one turn, if the caller may see it.
    pub async fn get_turn(&self, caller: Caller, id: TurnId) -> Result<Turn, Refusal> {
        self.store
            .read(move |conn, _| {
                let me = actor::row(conn, &caller)?;
                let scope = caller.agent().map(|_| me.key);
                turn::view(conn, id, scope)?.ok_or(Refusal::from(TurnError::NotFound { id }))
            })
            .await
    }

    /// Returns the agent of a turn.
    pub(crate) async fn owner_of_turn(&self, id: TurnId) -> Result<AgentKey, Refusal> {
        self.store
            .read(move |conn, _| Ok(turn::get(conn, id)?.ok_or(TurnError::NotFound { id })?.agent))
            .await
    }

    /// Lists turns, newest first; also returns whether there are more.
    pub async fn list_turns(
        &self,
        caller: Caller,
        agent: String,
        before: Option<TurnId>,
        rows: u32,
    ) -> Result<(Vec<Turn>, bool), Refusal> {
        self.store
            .read(move |conn, _| {
                let scope = scope(conn, &caller, &agent)?;
                Ok(turn::page(conn, scope, before, rows)?)
            })
            .await
    }

    /// Checks that a session may report lines of a turn.
    pub async fn check_reporter(
        &self,
        caller: Caller,
        session_token: String,
        id: TurnId,
    ) -> Result<(), Refusal> {
        let presences = Arc::clone(&self.presences);
        self.store
            .read(move |conn, now| {
                let me = session(conn, &caller, &session_token)?;
                presences.touch(me.key, &session_token, now.boot);
                let row = turn::get(conn, id)?.filter(|row| row.agent == me.key);
                let row = row.ok_or(TurnError::NotFound { id })?;
                if row.session_epoch != me.session_epoch {
                    return Err(HarnessError::SessionLost { agent: me.name }.into());
                }
                Ok(())
            })
            .await
    }

    /// Stores lines of a turn; returns how many.
    pub async fn keep_lines(&self, id: TurnId, lines: Vec<Line>) -> Result<usize, Refusal> {
        let turn_events = Arc::clone(&self.turn_events);
        let kept = self.store.blocking(move || turn_events.append(id, &lines)).await??;
        self.lines.send_modify(|changes| *changes += 1);
        Ok(kept)
    }

    /// Returns lines of a turn after a number, at most one step of them.
    pub async fn lines_after(&self, id: TurnId, sequence: u64) -> Result<Vec<Line>, Refusal> {
        let turn_events = Arc::clone(&self.turn_events);
        Ok(self
            .store
            .blocking(move || turn_events.after(id, sequence, STEP_LINES, PAGE_BYTES_MAX))
            .await??)
    }

    /// Returns a channel that changes whenever lines are stored.
    #[must_use]
    pub fn lines_changed(&self) -> tokio::sync::watch::Receiver<u64> {
        self.lines.subscribe()
    }
}

/// Returns the agent whose turns a caller reads under this name; `None` for those of all.
pub(super) fn scope(
    conn: &rusqlite::Connection,
    caller: &Caller,
    agent: &str,
) -> Result<Option<AgentKey>, Refusal> {
    if caller.agent().is_none() && agent == OPERATOR {
        // The operator has no turns.
        return actor::known(conn, agent).map(|row| Some(row.key));
    }
    actor::scope(conn, caller, agent, "that agent's turns")
}
