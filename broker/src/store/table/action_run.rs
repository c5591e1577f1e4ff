//! Table `action_run`: the runs of approved actions.
//!
//! A row is written in the transaction that approves its question, and kept with the question.
//! Invariant: a row that has ended never changes again.

use hive_core::effect::RunState;
use hive_core::id::QuestionId;
use rusqlite::Result;

use crate::store::codec::{Coded as _, integer};
use crate::store::columns::columns;
use crate::store::effect::Effect;
use crate::store::statement::{Statements, all, change, first, run};
use crate::store::write::tx::Tx;

columns! {
    /// A row.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ActionRunRow, const COLUMNS {
        /// The approval.
        pub question: QuestionId = "question_id",
        pub state: RunState = "state",
        /// How many runs began.
        pub runs: u32 = "runs",
        /// How it ended; empty before.
        pub detail: String = "detail",
    }
}

/// Queues the action of an approved question.
pub fn insert(tx: &Tx<'_>, question: QuestionId) -> Result<()> {
    let sql = "INSERT INTO action_run (question_id, create_time) VALUES (?1, ?2)";
    run(tx, sql, (integer(question.get()), tx.now.wall.0))?;
    tx.after_commit(Effect::Action);
    Ok(())
}

/// Returns the row of an approved question.
pub(crate) fn get(conn: &impl Statements, question: QuestionId) -> Result<Option<ActionRunRow>> {
    let sql = format!("SELECT {COLUMNS} FROM action_run WHERE question_id = ?1");
    first(conn, &sql, [integer(question.get())])
}

/// Returns what to run next: a run that did not end, then what was asked first.
pub(crate) fn next(conn: &impl Statements) -> Result<Option<ActionRunRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM action_run WHERE state < 3 ORDER BY state DESC, question_id LIMIT 1"
    );
    first(conn, &sql, [])
}

/// Returns all that have not ended.
pub(crate) fn open(conn: &impl Statements) -> Result<Vec<ActionRunRow>> {
    let sql = format!("SELECT {COLUMNS} FROM action_run WHERE state < 3 ORDER BY question_id");
    all(conn, &sql, [])
}

/// Counts a run that begins.
pub fn begin(tx: &Tx<'_>, question: QuestionId) -> Result<()> {
    let sql =
        "UPDATE action_run SET state = 2, runs = runs + 1 WHERE question_id = ?1 AND state < 3";
    run(tx, sql, [integer(question.get())])
}

/// Ends it; returns whether it had not ended before.
pub fn end(tx: &Tx<'_>, question: QuestionId, state: RunState, detail: &str) -> Result<bool> {
    let sql = "UPDATE action_run SET state = ?2, detail = ?3, end_time = ?4 WHERE question_id = ?1 AND state < 3";
    let changed = change(tx, sql, (integer(question.get()), state.code(), detail, tx.now.wall.0))?;
    Ok(changed > 0)
}
