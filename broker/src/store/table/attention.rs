//! Table `attention`: the outbox of what began to wait on the operator and was not told yet.
//!
//! A row is written with what makes the thing wait, and deleted once it was told, or once the thing
//! waits no more. Its `id` is the table's own and may come again; what it is about has an id of the
//! hive's sequence. Invariant: a thing has one row at most, however often it is added.

use hive_core::time::WallTime;
use rusqlite::{Connection, Result, Row};

use crate::store::codec::{Coded as _, coded, codes, integer, unsigned};
use crate::store::effect::Effect;
use crate::store::key::AgentKey;
use crate::store::write::tx::Tx;

/// What waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A question to the operator.
    Question,
    /// Mail in the operator's inbox.
    Mail,
    /// A dead letter of an agent.
    DeadLetter,
    /// An agent that is parked until somebody logs claude in.
    NeedsLogin,
}

codes! {
    Kind { Question = 1, Mail = 2, DeadLetter = 3, NeedsLogin = 4 }
}

/// A row of the outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttentionRow {
    /// Its number in this table.
    pub id: i64,
    /// What waits.
    pub kind: Kind,
    /// The agent it is about.
    pub agent: AgentKey,
    /// The id of what waits: a question, a message, or the turn that found no login.
    pub subject: u64,
    /// What there is to say.
    pub text: String,
    /// Since when it waits.
    pub create_time: WallTime,
    /// How often telling it has failed.
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

/// Adds a thing, if it is not there already.
pub fn insert(tx: &Tx<'_>, kind: Kind, agent: AgentKey, subject: u64, text: &str) -> Result<()> {
    tx.prepare_cached(
        "INSERT INTO attention (kind, agent_id, subject, text, create_time) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING",
    )?
    .execute((kind.code(), agent.0, integer(subject), text, tx.now.wall.0))?;
    tx.after_commit(Effect::Attention);
    Ok(())
}

/// What is due: first what was never put off, oldest first. `latest` is the furthest time that a
/// row can have been put off to; what is further was put off by a clock that has been set back
/// since, and is due as well.
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

/// When the next row that is put off becomes due.
pub fn next_due(conn: &Connection, now: WallTime) -> Result<Option<WallTime>> {
    conn.prepare_cached("SELECT min(next_time) FROM attention WHERE next_time > ?1")?
        .query_row([now.0], |row| row.get::<_, Option<i64>>(0))
        .map(|next| next.map(WallTime))
}

/// Deletes a row: it was told, or is not to be told any more.
pub fn delete(tx: &Tx<'_>, id: i64) -> Result<()> {
    tx.prepare_cached("DELETE FROM attention WHERE id = ?1")?.execute([id]).map(|_| ())
}

/// Counts a failed attempt, and puts the row off.
pub fn put_off(tx: &Tx<'_>, id: i64, next: WallTime) -> Result<()> {
    tx.prepare_cached("UPDATE attention SET attempts = attempts + 1, next_time = ?2 WHERE id = ?1")?
        .execute((id, next.0))
        .map(|_| ())
}

/// Makes everything due that was put off.
pub fn hurry(tx: &Tx<'_>) -> Result<()> {
    tx.prepare_cached("UPDATE attention SET next_time = 0 WHERE next_time <> 0")?
        .execute([])
        .map(|_| ())
}
