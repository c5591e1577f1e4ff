//! Table `reminder`: the reminders of agents.
//!
//! Invariant: a row that is not PENDING never changes again. A fired one names its message, written
//! in the same transaction.

use hive_core::id::{MessageId, ReminderId, TurnId};
use hive_core::name::AgentName;
use hive_core::reminder::{Reminder, State};
use hive_core::time::WallTime;
use rusqlite::{Connection, OptionalExtension as _, Result, Row};

use crate::store::codec::{Coded as _, coded, id, id_option, integer, parsed, unsigned};
use crate::store::effect::Effect;
use crate::store::key::AgentKey;
use crate::store::table::message::EARLIER_RUNS;
use crate::store::write::tx::Tx;

/// A reminder with the key of its agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReminderRow {
    /// The reminder.
    pub reminder: Reminder,
    /// The key of the agent that set it.
    pub agent: AgentKey,
}

/// A reminder to write.
#[derive(Clone, Copy, Debug)]
pub struct NewReminder<'a> {
    /// The id of the reminder.
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
}

/// Writes a pending reminder.
pub fn insert(tx: &Tx<'_>, new: &NewReminder<'_>) -> Result<()> {
    tx.prepare_cached(
        "INSERT INTO reminder (id, agent_id, body, create_time, due_time, delay_ms, turn_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute((
        integer(new.id.get()),
        new.agent.0,
        new.body,
        tx.now.wall.0,
        new.due_time.0,
        new.delay_ms.map(integer),
        new.turn.map(|id| integer(id.get())),
    ))?;
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
    tx.prepare_cached("UPDATE reminder SET state = ?2, close_time = ?3, message_id = ?4 WHERE id = ?1 AND state = 1")?
        .execute((integer(id.get()), state.code(), tx.now.wall.0, message.map(|id| integer(id.get()))))
        .map(|changed| changed == 1)
}

const COLUMNS: &str = "r.id, (SELECT coalesce(purged_name, name) FROM agent WHERE id = r.agent_id), r.body, r.state, r.create_time, r.due_time, r.close_time, \
     r.message_id, r.turn_id, r.agent_id";

fn from_row(row: &Row<'_>) -> Result<ReminderRow> {
    Ok(ReminderRow {
        reminder: Reminder {
            id: id(row, 0, ReminderId::new)?,
            agent: parsed(row, 1, AgentName::parse)?,
            body: row.get(2)?,
            state: coded(row, 3)?,
            create_time: WallTime(row.get(4)?),
            due_time: WallTime(row.get(5)?),
            close_time: row.get::<_, Option<i64>>(6)?.map(WallTime),
            message_id: id_option(row, 7, MessageId::new)?,
            turn_id: id_option(row, 8, TurnId::new)?,
        },
        agent: AgentKey(row.get(9)?),
    })
}

/// Returns a reminder, without a check of the reader.
pub fn row(conn: &Connection, id: ReminderId) -> Result<Option<ReminderRow>> {
    conn.prepare_cached(&format!("SELECT {COLUMNS} FROM reminder r WHERE r.id = ?1"))?
        .query_row([integer(id.get())], from_row)
        .optional()
}

/// Returns reminders by id, of one agent or of all; and whether there are more.
pub fn page(
    conn: &Connection,
    agent: Option<AgentKey>,
    states: &[State],
    after: Option<ReminderId>,
    rows: u32,
) -> Result<(Vec<Reminder>, bool)> {
    let states: Vec<String> = states.iter().map(|state| state.code().to_string()).collect();
    let sql = format!(
        "SELECT {COLUMNS} FROM reminder r WHERE r.id > ?1 AND r.state IN ({}) AND (?2 IS NULL OR r.agent_id = ?2) \
         ORDER BY r.id LIMIT ?3",
        states.join(", ")
    );
    let mut select = conn.prepare_cached(&sql)?;
    let after = after.map_or(0, |id| integer(id.get()));
    let found = select.query_map((after, agent.map(|key| key.0), rows + 1), from_row)?;
    let (mut reminders, mut bytes) = (Vec::new(), 0);
    for row in found {
        let reminder = row?.reminder;
        bytes += reminder.body.len() + 100;
        if reminders.len() == rows as usize
            || (bytes > hive_core::limits::PAGE_BYTES_MAX && !reminders.is_empty())
        {
            return Ok((reminders, true));
        }
        reminders.push(reminder);
    }
    Ok((reminders, false))
}

/// Returns the pending reminders of an agent.
pub fn pending_of(conn: &Connection, agent: AgentKey) -> Result<Vec<ReminderRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM reminder r WHERE r.agent_id = ?1 AND r.state = 1 ORDER BY r.id"
    );
    conn.prepare_cached(&sql)?.query_map([agent.0], from_row)?.collect()
}

/// Returns how many pending reminders an agent has.
pub fn pending(conn: &Connection, agent: AgentKey) -> Result<u32> {
    conn.prepare_cached("SELECT count(*) FROM reminder WHERE agent_id = ?1 AND state = 1")?
        .query_row([agent.0], |row| unsigned(row, 0))
}

/// Returns how many reminders are pending.
pub fn pending_count(conn: &Connection) -> Result<u64> {
    conn.prepare_cached("SELECT count(*) FROM reminder WHERE state = 1")?
        .query_row([], |row| unsigned(row, 0))
}

/// Returns the due pending reminders, in the order of their times.
pub fn due(conn: &Connection, now: WallTime, rows: u32) -> Result<Vec<ReminderRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM reminder r WHERE r.state = 1 AND r.due_time <= ?1 ORDER BY r.due_time, r.id LIMIT ?2"
    );
    conn.prepare_cached(&sql)?.query_map((now.0, rows), from_row)?.collect()
}

/// Returns when the next pending reminder is due.
pub fn next_due(conn: &Connection) -> Result<Option<WallTime>> {
    let sql = "SELECT min(due_time) FROM reminder WHERE state = 1";
    conn.prepare_cached(sql)?.query_row([], |row| Ok(row.get::<_, Option<i64>>(0)?.map(WallTime)))
}

/// Returns the reminders that earlier runs of a turn's deliveries set and did not withdraw, oldest
/// first.
pub fn set_in_earlier_runs(conn: &Connection, turn: TurnId) -> Result<Vec<Reminder>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM reminder r WHERE r.turn_id IN ({EARLIER_RUNS}) AND r.state <> 3 ORDER BY r.id"
    );
    let mut select = conn.prepare_cached(&sql)?;
    let rows = select.query_map([integer(turn.get())], from_row)?;
    rows.map(|row| row.map(|row| row.reminder)).collect()
}

/// Returns a reminder of an earlier run that equals one about to be set and has not replaced
/// another. Reminders with a delay are equal if their delays are, because the later run counts from
/// a later time.
pub fn equal_in_earlier_runs(
    conn: &Connection,
    turn: TurnId,
    new: &NewReminder<'_>,
) -> Result<Option<ReminderId>> {
    let sql = format!(
        "SELECT r.id FROM reminder r WHERE r.turn_id IN ({EARLIER_RUNS}) AND r.state <> 3 AND r.body = ?2 AND r.delay_ms IS ?3 \
         AND (?3 IS NOT NULL OR r.due_time = ?4) AND {} ORDER BY r.id LIMIT 1",
        super::message::not_absorbed("r.id")
    );
    conn.prepare_cached(&sql)?
        .query_row(
            (integer(turn.get()), new.body, new.delay_ms.map(integer), new.due_time.0),
            |row| id(row, 0, ReminderId::new),
        )
        .optional()
}
