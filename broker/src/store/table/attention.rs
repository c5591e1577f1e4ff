//! Table `attention`: the operator outbox.
//!
//! A row is written in the transaction that makes its item need the operator. It is deleted once
//! the operator is notified, or once the item is settled. Its `id` is the table's own and may be
//! reused; its subject has an id of the hive's sequence. Invariant: an item has one row at most,
//! however often it is added.

use hive_core::time::WallTime;
use rusqlite::{Connection, Result, Row};

use crate::store::codec::{Coded as _, coded, codes, integer, unsigned};
use crate::store::effect::Effect;
use crate::store::key::AgentKey;
use crate::store::write::tx::Tx;

/// The kind of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A question to the operator.
    Question,
    /// Mail in the operator's inbox.
    Mail,
    /// A dead letter of an agent.
    DeadLetter,
    /// An agent that is parked until the operator logs claude in.
    NeedsLogin,
}

codes! {
    Kind { Question = 1, Mail = 2, DeadLetter = 3, NeedsLogin = 4 }
}

/// A row of the outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttentionRow {
    /// The id of the row in this table.
    pub id: i64,
    /// The kind of the item.
    pub kind: Kind,
    /// The agent of the item.
    pub agent: AgentKey,
    /// The id of its subject: a question, a message, or the turn that found no login.
    pub subject: u64,
    /// The text for the operator.
    pub text: String,
    /// When the item was added.
    pub create_time: WallTime,
    /// The number of failed notifications.
    pub attempts: u32,
}

const COLUMNS: &str = "id, kind, agent_id, subject, text, create_time, attempts";

fn from_row(row: &Row<'_>) -> Result<AttentionRow> {
    Ok(AttentionRow {
        id: row.get(0)?,
        kind: coded(row, 1)?,
        agent: AgentKey(row.get(2)?),
        subject: unsigned(row, 3)?,
        text: row.get(4)?,
        create_time: WallTime(row.get(5)?),
        attempts: unsigned(row, 6)?,
    })
}

/// Adds an item, if it is not there already.
pub fn insert(tx: &Tx<'_>, kind: Kind, agent: AgentKey, subject: u64, text: &str) -> Result<()> {
    tx.prepare_cached(
        "INSERT INTO attention (kind, agent_id, subject, text, create_time) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING",
    )?
    .execute((kind.code(), agent.0, integer(subject), text, tx.now.wall.0))?;
    tx.after_commit(Effect::Attention);
    Ok(())
}

/// Returns the due items: first those that were never postponed, oldest first. `latest` is the
/// furthest time to which a row can be postponed. If a time is later, the clock has been set back
/// since, and the row is due as well.
pub fn due(
    conn: &Connection,
    now: WallTime,
    latest: WallTime,
    rows: u32,
) -> Result<Vec<AttentionRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM attention WHERE next_time <= ?1 OR next_time > ?2 ORDER BY next_time, id LIMIT ?3"
    );
    conn.prepare_cached(&sql)?.query_map((now.0, latest.0, rows), from_row)?.collect()
}

/// Returns when the next postponed row becomes due.
pub fn next_due(conn: &Connection, now: WallTime) -> Result<Option<WallTime>> {
    conn.prepare_cached("SELECT min(next_time) FROM attention WHERE next_time > ?1")?
        .query_row([now.0], |row| row.get::<_, Option<i64>>(0))
        .map(|next| next.map(WallTime))
}

/// Deletes a row: the operator was notified, or need not be.
pub fn delete(tx: &Tx<'_>, id: i64) -> Result<()> {
    tx.prepare_cached("DELETE FROM attention WHERE id = ?1")?.execute([id]).map(|_| ())
}

/// Counts a failed attempt, and postpones the row.
pub fn put_off(tx: &Tx<'_>, id: i64, next: WallTime) -> Result<()> {
    tx.prepare_cached("UPDATE attention SET attempts = attempts + 1, next_time = ?2 WHERE id = ?1")?
        .execute((id, next.0))
        .map(|_| ())
}

/// Makes all postponed rows due.
pub fn hurry(tx: &Tx<'_>) -> Result<()> {
    tx.prepare_cached("UPDATE attention SET next_time = 0 WHERE next_time <> 0")?
        .execute([])
        .map(|_| ())
}
