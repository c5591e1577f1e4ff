//! Retention: deletes settled and old rows, in small steps that never stall a send.
//!
//! A step reads a limited number of rows, oldest first, and continues where the last one stopped.
//! Invariant: nothing READY, LEASED, HELD or DEAD is touched, and no message while one of its
//! deliveries is unsettled.

use hive_core::time::WallTime;
use rusqlite::Result;

use crate::store::key::AgentKey;
use crate::store::statement::{Statements, all, change, one, run};
use crate::store::write::tx::Tx;

/// The times before which rows are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cutoffs {
    /// Settled mail, turns and events from before this time are deleted.
    pub history: WallTime,
    /// Request ids from before this time are deleted. What a consumer settled after it is kept, so
    /// that a repeated settlement has the result of the first.
    pub requests: WallTime,
}

/// The position at which the next step begins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    requests: Place,
    message: i64,
    turn: i64,
}

/// The key of a request with a row of its own: the caller, the RPC and the id.
type RequestKey = (AgentKey, String, String);

/// The key of a block of requests: the caller, the RPC, the series, and the first number.
type BlockKey = ((AgentKey, String, String), i64);

/// The place of the next step in the tables of requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Start,
    After(RequestKey),
    /// Among the blocks, after one of them.
    Blocks(Option<BlockKey>),
    End,
}

/// Requests, or blocks of them, that one step reads. The tables are not ordered by time, so all of
/// them are read once in each pass of the retention, on a connection that only reads.
const REQUESTS_READ_MAX: u32 = 2000;

/// Events that one step deletes at most, apart from the first page. A page has up to 64.
const EVENTS_MAX: u32 = 600;

/// The old requests that a step deletes.
#[derive(Clone, Debug)]
pub struct OldRequests {
    ids: Vec<RequestKey>,
    blocks: Vec<BlockKey>,
    next: Place,
}

/// Returns the old requests of the next step, at most `rows` and as many blocks.
pub(crate) fn old_requests(
    conn: &impl Statements,
    cutoffs: Cutoffs,
    cursor: &Cursor,
    rows: u32,
) -> Result<OldRequests> {
    let before = cutoffs.requests;
    let start = || (AgentKey(0), String::new(), String::new());
    let (mut ids, mut blocks) = (Vec::new(), Vec::new());
    let mut next = cursor.requests.clone();
    if matches!(next, Place::Start | Place::After(_)) {
        let sql = "SELECT caller_id, rpc, request_id, time FROM request WHERE (caller_id, rpc, request_id) > (?1, ?2, ?3) \
             ORDER BY caller_id, rpc, request_id LIMIT ?4";
        let (caller, rpc, id) = if let Place::After(key) = next { key } else { start() };
        let found: Vec<(RequestKey, WallTime)> =
            all(conn, sql, (caller.0, rpc, id, REQUESTS_READ_MAX))?;
        let last = take_old(found, before, rows, &mut ids);
        next = last.map_or(Place::Blocks(None), Place::After);
    }
    if let Place::Blocks(after) = next {
        let sql = "SELECT caller_id, rpc, series, first, time FROM request_block \
             WHERE (caller_id, rpc, series, first) > (?1, ?2, ?3, ?4) \
             ORDER BY caller_id, rpc, series, first LIMIT ?5";
        let ((caller, rpc, series), first) = after.unwrap_or_else(|| (start(), 0));
        let found: Vec<(BlockKey, WallTime)> =
            all(conn, sql, (caller.0, rpc, series, first, REQUESTS_READ_MAX))?;
        let last = take_old(found, before, rows, &mut blocks);
        next = last.map_or(Place::End, |last| Place::Blocks(Some(last)));
    }
    Ok(OldRequests { ids, blocks, next })
}

/// Moves the keys of old rows, at most `rows`, to `old`; returns the last key that was looked at,
/// or `None` if there are no more.
fn take_old<K: Clone>(
    found: Vec<(K, WallTime)>,
    before: WallTime,
    rows: u32,
    old: &mut Vec<K>,
) -> Option<K> {
    let is_last = found.len() < REQUESTS_READ_MAX as usize;
    let mut last = None;
    for (key, time) in found {
        if old.len() == rows as usize {
            return last;
        }
        if time < before {
            old.push(key.clone());
        }
        last = Some(key);
    }
    last.filter(|_| !is_last)
}

/// Reads `rows` rows of each kind and deletes the old ones; returns where the next step begins, or
/// `None` at the end.
pub fn prune(
    tx: &Tx<'_>,
    cutoffs: Cutoffs,
    cursor: &Cursor,
    requests: OldRequests,
    rows: u32,
) -> Result<Option<Cursor>> {
    tx.keep_counters()?;
    // A time in the future was written while the wall clock was ahead. Such a row is kept until
    // then, and the step continues after it.
    let now = tx.now.wall.0;
    delete_requests(tx, cutoffs.requests, cursor, &requests)?;
    let sql = "DELETE FROM event_page WHERE last IN (SELECT last FROM \
         (SELECT last, time FROM event_page WHERE time <= ?3 \
          AND last <= (SELECT max(last, first + ?4 - 1) FROM event_page WHERE time <= ?3 ORDER BY last LIMIT 1) \
          ORDER BY last LIMIT ?2) WHERE time < ?1)";
    let event_pages = change(tx, sql, (cutoffs.history.0, rows, now, EVENTS_MAX))?;
    run(tx, "DELETE FROM command WHERE close_time < ?1", [cutoffs.history.0])?;
    run(tx, "DELETE FROM reminder WHERE state <> 1 AND close_time < ?1", [cutoffs.history.0])?;
    let ended = "SELECT id FROM schedule WHERE state = 3 AND end_time < ?1";
    run(
        tx,
        &format!("DELETE FROM schedule_target WHERE schedule_id IN ({ended})"),
        [cutoffs.history.0],
    )?;
    run(tx, "DELETE FROM schedule WHERE state = 3 AND end_time < ?1", [cutoffs.history.0])?;
    let message = messages(tx, cutoffs, cursor.message, rows)?;
    let turn = turns(tx, cutoffs.history, cursor.turn, rows)?;
    if message.is_none() && turn.is_none() && event_pages == 0 && requests.next == Place::End {
        return Ok(None);
    }
    Ok(Some(Cursor {
        requests: requests.next,
        message: message.unwrap_or(i64::MAX),
        turn: turn.unwrap_or(i64::MAX),
    }))
}

fn delete_requests(
    tx: &Tx<'_>,
    before: WallTime,
    cursor: &Cursor,
    requests: &OldRequests,
) -> Result<()> {
    for (caller, rpc, id) in &requests.ids {
        run(
            tx,
            "DELETE FROM request WHERE caller_id = ?1 AND rpc = ?2 AND request_id = ?3 AND time < ?4",
            (caller.0, rpc, id, before.0),
        )?;
    }
    for ((caller, rpc, series), first) in &requests.blocks {
        run(
            tx,
            "DELETE FROM request_block WHERE caller_id = ?1 AND rpc = ?2 AND series = ?3 AND first = ?4 AND time < ?5",
            (caller.0, rpc, series, first, before.0),
        )?;
    }
    // The pages are few, and are looked at once in each pass.
    if requests.next == Place::End && cursor.requests != Place::End {
        let deleted = change(tx, "DELETE FROM request_page WHERE time < ?1", [before.0])?;
        if deleted > 0 {
            tx.cache().fresh.requests.forget_pages();
        }
    }
    Ok(())
}

/// Runs one step through the messages; returns `None` at the first message that is not old. Ids
/// rise with time, so no later one is old, apart from times in the future.
fn messages(tx: &Tx<'_>, cutoffs: Cutoffs, after: i64, rows: u32) -> Result<Option<i64>> {
    let before = cutoffs.history;
    let sql = "SELECT id, to_id, accept_time FROM message WHERE id > ?1 ORDER BY id LIMIT ?2";
    let found: Vec<(i64, i64, i64)> = all(tx, sql, (after, rows))?;
    for (id, to, accept_time) in &found {
        if *accept_time > tx.now.wall.0 {
            continue;
        }
        if *accept_time >= before.0 {
            return Ok(None);
        }
        // For a broadcast every inbox is checked, for any other message its one.
        let inboxes = if *to == 0 {
            "SELECT id FROM agent"
        } else {
            "SELECT to_id FROM message WHERE id = ?1"
        };
        let sql = format!(
            "SELECT NOT EXISTS (SELECT 1 FROM settled_delivery WHERE message_id = ?1 AND (state_time >= ?2 OR (lease_end IS NOT NULL AND state_time >= ?3))) \
             AND NOT EXISTS (SELECT 1 FROM open_delivery WHERE agent_id IN ({inboxes}) AND queue IN (0, 1, 2, 4) AND message_id = ?1)"
        );
        if one(tx, &sql, (id, before.0, cutoffs.requests.0))? {
            run(tx, "DELETE FROM settled_delivery WHERE message_id = ?1", [id])?;
            run(tx, "DELETE FROM message WHERE id = ?1", [id])?;
        }
    }
    Ok(found.last().map(|(id, ..)| *id))
}

/// Runs one step through the turns; returns `None` at the first that did not begin before `before`.
fn turns(tx: &Tx<'_>, before: WallTime, after: i64, rows: u32) -> Result<Option<i64>> {
    let sql = "SELECT id, start_time FROM turn WHERE id > ?1 ORDER BY id LIMIT ?2";
    let found: Vec<(i64, i64)> = all(tx, sql, (after, rows))?;
    for (id, start_time) in &found {
        if *start_time > tx.now.wall.0 {
            continue;
        }
        if *start_time >= before.0 {
            return Ok(None);
        }
        // A turn that carried unsettled mail stays, because a later run of that mail reads the
        // messages that it sent. An open turn stays as well.
        let sql = "SELECT (SELECT end_time < ?2 FROM turn WHERE id = ?1) IS TRUE AND NOT EXISTS (SELECT 1 FROM turn_delivery td \
             JOIN open_delivery d ON d.agent_id = td.agent_id AND d.queue IN (0, 1, 2, 4) AND d.message_id = td.message_id \
             WHERE td.turn_id = ?1)";
        if one(tx, sql, (id, before.0))? {
            for sql in [
                "DELETE FROM turn_delivery WHERE turn_id = ?1",
                "DELETE FROM absorbed WHERE turn_id = ?1",
                "DELETE FROM turn_tool WHERE turn_id = ?1",
                "DELETE FROM turn WHERE id = ?1",
            ] {
                run(tx, sql, [id])?;
            }
        }
    }
    Ok(found.last().map(|(id, _)| *id))
}
