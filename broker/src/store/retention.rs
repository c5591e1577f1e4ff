//! Retention: what is settled and old goes, in small batches that never stall a send.
//!
//! Invariant: nothing READY, LEASED, HELD or DEAD is touched, and no message while one of its deliveries is unsettled.

use hive_core::time::WallTime;
use rusqlite::Result;

use super::Tx;

/// How old is too old.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cutoffs {
    /// Settled mail, turns and events from before this time go.
    pub history: WallTime,
    /// Request ids from before this time are forgotten.
    pub requests: WallTime,
}

/// Deletes at most `rows` of each kind; answers how many went.
pub fn prune(tx: &Tx<'_>, cutoffs: Cutoffs, rows: u32) -> Result<usize> {
    let history = cutoffs.history.0;
    let mut gone = 0;
    // Deliveries first: a message goes once none of its own is left.
    let mut old = tx.prepare_cached(
        "SELECT m.id FROM message m WHERE m.accept_time < ?1 \
         AND NOT EXISTS (SELECT 1 FROM delivery d WHERE d.message_id = m.id AND d.state NOT IN (5, 6, 7)) ORDER BY m.id LIMIT ?2",
    )?;
    let ids: Vec<i64> = old.query_map((history, rows), |row| row.get(0))?.collect::<Result<_>>()?;
    for id in ids {
        tx.prepare_cached("DELETE FROM delivery WHERE message_id = ?1")?.execute([id])?;
        gone += tx.prepare_cached("DELETE FROM message WHERE id = ?1")?.execute([id])?;
    }
    let mut turns = tx.prepare_cached(
        "SELECT t.id FROM turn t WHERE t.end_time < ?1 AND NOT EXISTS (SELECT 1 FROM turn_delivery td \
         JOIN delivery d ON d.agent_id = td.agent_id AND d.message_id = td.message_id \
         WHERE td.turn_id = t.id AND d.state NOT IN (5, 6, 7)) ORDER BY t.id LIMIT ?2",
    )?;
    let ids: Vec<i64> = turns.query_map((history, rows), |row| row.get(0))?.collect::<Result<_>>()?;
    for id in ids {
        tx.prepare_cached("DELETE FROM turn_delivery WHERE turn_id = ?1")?.execute([id])?;
        tx.prepare_cached("DELETE FROM absorbed WHERE turn_id = ?1")?.execute([id])?;
        gone += tx.prepare_cached("DELETE FROM turn WHERE id = ?1")?.execute([id])?;
    }
    gone += tx
        .prepare_cached(
            "DELETE FROM event WHERE sequence IN (SELECT sequence FROM event WHERE time < ?1 ORDER BY sequence LIMIT ?2)",
        )?
        .execute((history, rows))?;
    gone += tx
        .prepare_cached("DELETE FROM command WHERE id IN (SELECT id FROM command WHERE close_time < ?1 LIMIT ?2)")?
        .execute((history, rows))?;
    gone += tx
        .prepare_cached(
            "DELETE FROM request WHERE (caller_id, rpc, request_id) IN \
             (SELECT caller_id, rpc, request_id FROM request WHERE time < ?1 LIMIT ?2)",
        )?
        .execute((cutoffs.requests.0, rows))?;
    Ok(gone)
}
