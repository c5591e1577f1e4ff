//! Table `attention`: the operator outbox.
//!
//! A row is written in the transaction that makes its item need the operator. It is deleted once
//! the operator is notified, or once the item is settled. Its `id` is the table's own and may be
//! reused; its subject has an id of the hive's sequence. Invariant: an item has one row at most,
//! however often it is added.

use hive_core::time::WallTime;
use rusqlite::Result;

use crate::store::codec::{Coded as _, codes, integer};
use crate::store::columns::columns;
use crate::store::effect::Effect;
use crate::store::key::AgentKey;
use crate::store::statement::{Statements, all, one, run};
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

columns! {
    /// A row of the outbox.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct AttentionRow, const COLUMNS {
        /// The id of the row in this table.
        pub id: i64 = "id",
        pub kind: Kind = "kind",
        pub agent: AgentKey = "agent_id",
        /// The id of its subject: a question, a message, or the turn that found no login.
        pub subject: u64 = "subject",
        /// The text for the operator.
        pub text: String = "text",
        /// When the item was added.
        pub create_time: WallTime = "create_time",
        /// The number of failed notifications.
        pub attempts: u32 = "attempts",
    }
}

/// Adds an item, if it is not there already.
pub fn insert(tx: &Tx<'_>, kind: Kind, agent: AgentKey, subject: u64, text: &str) -> Result<()> {
    let sql = "INSERT INTO attention (kind, agent_id, subject, text, create_time) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING";
    run(tx, sql, (kind.code(), agent.0, integer(subject), text, tx.now.wall.0))?;
    tx.after_commit(Effect::Outbox);
    Ok(())
}

/// Returns the due items: first those that were never postponed, oldest first. `latest` is the
/// furthest time to which a row can be postponed. If a time is later, the clock has been set back
/// since, and the row is due as well.
pub(crate) fn due(
    conn: &impl Statements,
    now: WallTime,
    latest: WallTime,
    rows: u32,
) -> Result<Vec<AttentionRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM attention WHERE next_time <= ?1 OR next_time > ?2 ORDER BY next_time, id LIMIT ?3"
    );
    all(conn, &sql, (now.0, latest.0, rows))
}

/// Returns when the next postponed row becomes due.
pub(crate) fn next_due(conn: &impl Statements, now: WallTime) -> Result<Option<WallTime>> {
    one(conn, "SELECT min(next_time) FROM attention WHERE next_time > ?1", [now.0])
}

/// Deletes a row: the operator was notified, or need not be.
pub fn delete(tx: &Tx<'_>, id: i64) -> Result<()> {
    run(tx, "DELETE FROM attention WHERE id = ?1", [id])
}

/// Counts a failed attempt, and postpones the row.
pub fn postpone(tx: &Tx<'_>, id: i64, next: WallTime) -> Result<()> {
    run(
        tx,
        "UPDATE attention SET attempts = attempts + 1, next_time = ?2 WHERE id = ?1",
        (id, next.0),
    )
}

/// Makes all postponed rows due.
pub fn make_due(tx: &Tx<'_>) -> Result<()> {
    run(tx, "UPDATE attention SET next_time = 0 WHERE next_time <> 0", [])
}
