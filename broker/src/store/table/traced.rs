//! What spans are made of, read from the tables of messages, turns and open deliveries.
//!
//! Invariant: no text of a message is read, only its length.

use hive_core::id::{MessageId, TurnId};
use hive_core::message::{Origin, SystemKind};
use hive_core::time::WallTime;
use hive_core::trace::{TraceContext, Traced};
use hive_core::traced::{SentMessage, WaitingDelivery};
use rusqlite::Result;

use crate::store::codec::integer;
use crate::store::columns::{columns, name_of, sql};
use crate::store::statement::{Statements, all, first};

columns! {
    /// The columns of a message `m` that its span shows.
    const SENT: SentMessage {
        id: MessageId = "m.id",
        traced: Option<Traced> = "m.traceparent",
        origin: Origin = "m.origin_kind, m.origin_name",
        to: Option<String> = name_of!("m.to_id"),
        recipient_count: u32 = "m.recipient_count",
        body_bytes: u64 = "octet_length(m.body)",
        accept_time: WallTime = "m.accept_time",
        system_kind: Option<SystemKind> = "m.system_kind",
        in_reply_to: Option<MessageId> = "m.in_reply_to",
    }
}

columns! {
    /// The columns of a delivery `d` that is ready or leased, of a message `m` in a trace.
    const WAITING: WaitingDelivery {
        message: MessageId = "d.message_id",
        agent: String = name_of!("d.agent_id"),
        context: TraceContext = "m.traceparent",
        state_time: WallTime = "d.state_time",
        accept_time: WallTime = "m.accept_time",
        is_leased: bool = "d.state = 2",
        lease_turn: Option<TurnId> = "d.lease_turn_id",
    }
}

/// Returns a message.
pub(crate) fn sent(conn: &impl Statements, id: MessageId) -> Result<Option<SentMessage>> {
    const SQL: &str = sql!("SELECT ", SENT, " FROM message m WHERE m.id = ?1");
    first(conn, SQL, [integer(id.get())])
}

/// Returns the deliveries that are ready or leased, of messages in traces, at most `rows`.
pub(crate) fn waiting(conn: &impl Statements, rows: u32) -> Result<Vec<WaitingDelivery>> {
    const SQL: &str = sql!(
        "SELECT ",
        WAITING,
        " FROM agent a JOIN open_delivery d ON d.agent_id = a.id AND d.queue IN (0, 1, 2) \
         JOIN message m ON m.id = d.message_id WHERE m.traceparent IS NOT NULL LIMIT ?1"
    );
    all(conn, SQL, [rows])
}

/// Returns the span of a turn; `None` if it is in no trace.
pub(crate) fn of_turn(conn: &impl Statements, turn: TurnId) -> Result<Option<Traced>> {
    let sql = "SELECT traceparent FROM turn WHERE id = ?1";
    let found: Option<Option<Traced>> = first(conn, sql, [integer(turn.get())])?;
    Ok(found.flatten())
}

/// Returns the spans of the messages that a turn received besides the one that started it, and
/// the messages, at most `rows`.
pub(crate) fn received(
    conn: &impl Statements,
    turn: TurnId,
    rows: u32,
) -> Result<Vec<(MessageId, TraceContext)>> {
    let sql = "SELECT m.id, m.traceparent FROM turn_delivery d JOIN message m ON m.id = d.message_id \
         WHERE d.turn_id = ?1 AND d.tool_use_id IS NOT NULL AND m.traceparent IS NOT NULL ORDER BY m.id LIMIT ?2";
    all(conn, sql, (integer(turn.get()), rows))
}
