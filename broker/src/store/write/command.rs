//! One command in the transaction of its batch.
//!
//! Invariant: a failed command leaves nothing behind, or its batch is aborted.

use std::sync::Arc;

use super::queue::{Ran, Undo};
use super::tx::Tx;
use crate::store::statement::{Sql, run};

/// Runs one command, whose changes are undone if it fails.
pub(super) fn one(
    tx: &Tx<'_>,
    undo: Undo,
    command: impl FnOnce(&Tx<'_>) -> Ran,
) -> Result<(), Arc<str>> {
    run_or_undo(tx, undo, command)?;
    if tx.is_torn() {
        return Err("what is new could not be written".into());
    }
    Ok(())
}

fn run_or_undo(
    tx: &Tx<'_>,
    undo: Undo,
    command: impl FnOnce(&Tx<'_>) -> Ran,
) -> Result<(), Arc<str>> {
    if undo == Undo::Nothing {
        let mark = tx.mark();
        let changes_before = tx.changes();
        return match command(tx) {
            Ran::Keep => Ok(()),
            Ran::Undo if tx.changes() == changes_before => {
                tx.reset(mark);
                Ok(())
            }
            Ran::Undo => Err("a command failed after it had written".into()),
            Ran::Abort(problem) => Err(problem),
        };
    }
    // What earlier commands have changed in memory is not undone with this one.
    tx.write_back().and_then(|()| statement(tx, "SAVEPOINT command")).map_err(text)?;
    let mark = tx.mark();
    match command(tx) {
        Ran::Keep => statement(tx, "RELEASE command").map_err(text),
        Ran::Undo => {
            tx.reset(mark);
            statement(tx, "ROLLBACK TO command")
                .and_then(|()| statement(tx, "RELEASE command"))
                .map_err(text)
        }
        Ran::Abort(problem) => Err(problem),
    }
}

pub(super) fn statement(tx: &Tx<'_>, sql: &'static str) -> rusqlite::Result<()> {
    run(tx, Sql::Direct(sql), [])
}

pub(super) fn text(error: rusqlite::Error) -> Arc<str> {
    error.to_string().into()
}
