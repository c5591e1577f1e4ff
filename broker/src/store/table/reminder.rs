//! Table `reminder`: the reminders of agents.
//!
//! Invariant: a row that is not PENDING never changes again. A fired one names its message, written
//! in the same transaction.

use hive_core::id::{MessageId, ReminderId, TurnId};
use hive_core::name::AgentName;
use hive_core::reminder::{Reminder, State};
use hive_core::time::WallTime;
use hive_core::trace::{TraceContext, Traced};
use rusqlite::Result;

use crate::store::codec::{Coded as _, integer};
use crate::store::columns::{columns, name_of};
use crate::store::effect::Effect;
use crate::store::key::AgentKey;
use crate::store::statement::{Statements, all, change, first, insert, one, page as read_page};
use crate::store::table::message::EARLIER_RUNS;
use crate::store::write::tx::Tx;

columns! {
    const REMINDER: Reminder {
        id: ReminderId = "r.id",
        agent: AgentName = name_of!("r.agent_id"),
        body: String = "r.body",
        state: State = "r.state",
        create_time: WallTime = "r.create_time",
        due_time: WallTime = "r.due_time",
        close_time: Option<WallTime> = "r.close_time",
        message_id: Option<MessageId> = "r.message_id",
        turn_id: Option<TurnId> = "r.turn_id",
    }
}

columns! {
    /// A reminder with the key of its agent.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ReminderRow, const COLUMNS {
        pub reminder: Reminder = REMINDER,
        /// The key of the agent that set it.
        pub agent: AgentKey = "r.agent_id",
        /// The span in which it was set.
        pub trace: Option<TraceContext> = "r.traceparent",
    }
}

/// A reminder to write.
#[derive(Clone, Copy, Debug)]
pub struct NewReminder<'a> {
    pub id: ReminderId,
    /// The key of the agent that sets it.
    pub agent: AgentKey,
    /// The text of the reminder.
    pub body: &'a str,
    /// When it is due.
    pub due_time: WallTime,
    /// The delay that was asked for, in milliseconds.
    pub delay_ms: Option<u64>,
    /// The turn it is set in.
    pub turn: Option<TurnId>,
    /// The span in which it is set.
    pub trace: Option<TraceContext>,
}

/// Writes a pending reminder.
pub fn insert(tx: &Tx<'_>, new: &NewReminder<'_>) -> Result<()> {
    insert!(tx, into reminder {
        id: integer(new.id.get()),
        agent_id: new.agent.0,
        body: new.body,
        create_time: tx.now.wall.0,
        due_time: new.due_time.0,
        delay_ms: new.delay_ms.map(integer),
        turn_id: new.turn.map(|id| integer(id.get())),
        traceparent: new.trace.map(|context| Traced { context, parent: None }.to_bytes()),
    })?;
    tx.after_commit(Effect::WallDue);
    Ok(())
}

/// Closes a reminder if it is pending; returns whether it was.
pub fn close(
    tx: &Tx<'_>,
    id: ReminderId,
    state: State,
    message: Option<MessageId>,
) -> Result<bool> {
    let sql = "UPDATE reminder SET state = ?2, close_time = ?3, message_id = ?4 WHERE id = ?1 AND state = 1";
    let message = message.map(|id| integer(id.get()));
    Ok(change(tx, sql, (integer(id.get()), state.code(), tx.now.wall.0, message))? == 1)
}

/// Returns a reminder, without a check of the reader.
pub(crate) fn row(conn: &impl Statements, id: ReminderId) -> Result<Option<ReminderRow>> {
    let sql = format!("SELECT {COLUMNS} FROM reminder r WHERE r.id = ?1");
    first(conn, &sql, [integer(id.get())])
}

/// Returns reminders by id, of one agent or of all; and whether there are more.
pub(crate) fn page(
    conn: &impl Statements,
    agent: Option<AgentKey>,
    states: &[State],
    after: Option<ReminderId>,
    rows: u32,
) -> Result<(Vec<Reminder>, bool)> {
    let states: Vec<String> = states.iter().map(|state| state.code().to_string()).collect();
    let sql = format!(
        "SELECT {REMINDER} FROM reminder r WHERE r.id > ?1 AND r.state IN ({}) AND (?2 IS NULL OR r.agent_id = ?2) \
         ORDER BY r.id LIMIT ?3",
        states.join(", ")
    );
    let after = after.map_or(0, |id| integer(id.get()));
    let values = (after, agent.map(|key| key.0), rows + 1);
    read_page(conn, &sql, values, rows, |reminder: &Reminder| reminder.body.len() + 100)
}

/// Returns the pending reminders of an agent.
pub(crate) fn pending_of(conn: &impl Statements, agent: AgentKey) -> Result<Vec<ReminderRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM reminder r WHERE r.agent_id = ?1 AND r.state = 1 ORDER BY r.id"
    );
    all(conn, &sql, [agent.0])
}

/// Returns how many pending reminders an agent has.
pub(crate) fn pending(conn: &impl Statements, agent: AgentKey) -> Result<u32> {
    one(conn, "SELECT count(*) FROM reminder WHERE agent_id = ?1 AND state = 1", [agent.0])
}

/// Returns how many reminders are pending.
pub(crate) fn pending_count(conn: &impl Statements) -> Result<u64> {
    one(conn, "SELECT count(*) FROM reminder WHERE state = 1", [])
}

/// Returns the due pending reminders, in the order of their times.
pub(crate) fn due(conn: &impl Statements, now: WallTime, rows: u32) -> Result<Vec<ReminderRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM reminder r WHERE r.state = 1 AND r.due_time <= ?1 ORDER BY r.due_time, r.id LIMIT ?2"
    );
    all(conn, &sql, (now.0, rows))
}

/// Returns when the next pending reminder is due.
pub(crate) fn next_due(conn: &impl Statements) -> Result<Option<WallTime>> {
    one(conn, "SELECT min(due_time) FROM reminder WHERE state = 1", [])
}

/// Returns the reminders that earlier runs of a turn's deliveries set and did not withdraw, oldest
/// first.
pub(crate) fn set_in_earlier_runs(conn: &impl Statements, turn: TurnId) -> Result<Vec<Reminder>> {
    let sql = format!(
        "SELECT {REMINDER} FROM reminder r WHERE r.turn_id IN ({EARLIER_RUNS}) AND r.state <> 3 ORDER BY r.id"
    );
    all(conn, &sql, [integer(turn.get())])
}

/// Returns a reminder of an earlier run that equals one about to be set and has not replaced
/// another. Reminders with a delay are equal if their delays are, because the later run counts from
/// a later time.
pub(crate) fn equal_in_earlier_runs(
    conn: &impl Statements,
    turn: TurnId,
    new: &NewReminder<'_>,
) -> Result<Option<ReminderId>> {
    let sql = format!(
        "SELECT r.id FROM reminder r WHERE r.turn_id IN ({EARLIER_RUNS}) AND r.state <> 3 AND r.body = ?2 AND r.delay_ms IS ?3 \
         AND (?3 IS NOT NULL OR r.due_time = ?4) AND {} ORDER BY r.id LIMIT 1",
        super::message::not_absorbed("r.id")
    );
    let delay = new.delay_ms.map(integer);
    first(conn, &sql, (integer(turn.get()), new.body, delay, new.due_time.0))
}
