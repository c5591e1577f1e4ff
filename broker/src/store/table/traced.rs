//! What spans are made of, read from the tables of messages, turns and open deliveries.
//!
//! Invariant: no text of a message is read, only its length.

use std::ops::RangeInclusive;

use hive_core::id::{MessageId, TurnId};
use hive_core::message::{Origin, SystemKind};
use hive_core::time::WallTime;
use hive_core::trace::{TraceContext, Traced};
use hive_core::traced::{SentMessage, WaitingDelivery};
use rusqlite::{Error, Result};

use crate::store::codec::integer;
use crate::store::columns::{Columns as _, columns, name_of, sql};
use crate::store::statement::{Sql, Statements, all, first};

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

/// Passes the messages in traces whose ids are in a range to `work`.
pub(crate) fn each_sent(
    conn: &impl Statements,
    ids: RangeInclusive<MessageId>,
    mut work: impl FnMut(SentMessage),
) -> Result<()> {
    const SQL: &str = sql!(
        "SELECT ",
        SENT,
        " FROM message m WHERE m.id BETWEEN ?1 AND ?2 AND m.traceparent IS NOT NULL"
    );
    let [first, last] = [ids.start(), ids.end()].map(|id| integer(id.get()));
    conn.prepared(Sql::Fixed(SQL), |select| {
        let mut rows = select.query([first, last])?;
        while let Some(row) = rows.next()? {
            readable(SentMessage::read(row, 0).map(Some))?.into_iter().for_each(&mut work);
        }
        Ok(())
    })
}

/// Returns the deliveries that are ready or leased, of messages in traces, among the first `rows`
/// that are open.
pub(crate) fn waiting(conn: &impl Statements, rows: u32) -> Result<Vec<WaitingDelivery>> {
    const SQL: &str = sql!(
        "SELECT ",
        WAITING,
        " FROM (SELECT * FROM open_delivery LIMIT ?1) d JOIN message m ON m.id = d.message_id \
         WHERE d.queue IN (0, 1, 2) AND m.traceparent IS NOT NULL"
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

/// Leaves out what no broker has stored: one such row must neither end all traces nor keep a broker
/// from starting. The integrity check names it.
pub(crate) fn readable<T: Default>(read: Result<T>) -> Result<T> {
    match read {
        Err(error @ (Error::FromSqlConversionFailure(..) | Error::InvalidColumnType(..))) => {
            tracing::warn!(%error, "a row is left out of the traces; `hivectl doctor --deep` tells what is wrong with it");
            Ok(T::default())
        }
        read => read,
    }
}
