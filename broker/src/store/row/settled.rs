//! The row of a settled delivery.

use std::sync::Arc;

use rusqlite::Result;

use crate::store::codec::{Coded, integer};
use crate::store::row::delivery::DeliveryRow;
use crate::store::statement::{Statements, insert_all};

/// Adds deliveries that have been settled.
pub(in crate::store) fn insert(to: &impl Statements, rows: &[Arc<DeliveryRow>]) -> Result<()> {
    insert_all!(to, rows, |row: DeliveryRow| into settled_delivery {
        message_id: integer(row.message.get()),
        agent_id: row.agent.0,
        lane: row.lane.code(),
        state: row.progress.state.code(),
        failures: row.progress.failures,
        cause: row.progress.cause.map(Coded::code),
        lease_token: row.lease.as_ref().map(|lease| lease.token.as_str()),
        lease_turn_id: row.lease_turn(),
        lease_end: row.lease.as_ref().and_then(|lease| lease.end).map(Coded::code),
        turn_id: row.turn.map(|turn| integer(turn.get())),
        state_time: row.state_time.0,
        settled_by: row.settled_by.as_str(),
        sender_id: row.sender.map(|key| key.0),
        body_bytes: integer(row.body_bytes),
        last_error: row.last_error.as_str(),
        output_tail: row.output_tail.as_str(),
    })
}
