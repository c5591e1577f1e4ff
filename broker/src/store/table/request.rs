//! Tables `request`, `request_page` and `request_block`: the answers by request id, so that a
//! repeated request gets the first answer again.
//!
//! Invariant: an answer is written in the transaction of its work.

use rusqlite::Result;

use crate::store::columns::{columns, sql};
use crate::store::key::AgentKey;
use crate::store::row::request::{ANSWER_BYTES_MAX, Counted, Entry, Series};
use crate::store::statement::{Sql, Statements, first, one, run};
use crate::store::write::request_ids::Known;
use crate::store::write::tx::Tx;

/// The key of a repeatable request: the RPC, the id, and a digest of its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestKey {
    pub rpc: &'static str,
    /// The client's id.
    pub id: String,
    /// Digest of everything in the request but its id.
    pub fingerprint: [u8; 16],
}

/// A request that was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// Whether its content was the same.
    pub is_same: bool,
    /// The answer, as JSON.
    pub answer: String,
}

columns! {
    /// The row of a request that has one.
    struct Row, const COLUMNS {
        fingerprint: Vec<u8> = "fingerprint",
        answer: String = "answer",
    }
}

/// Returns the earlier request of this caller with this id. One that is certainly new is not looked
/// for.
pub fn find(tx: &Tx<'_>, caller: AgentKey, key: &RequestKey) -> Result<Option<Answered>> {
    let Some(id) = Counted::of(&key.id) else { return read(tx, caller, key) };
    let cache = tx.cache();
    if cache.request_ids.is_new(caller, key.rpc, id, || known(tx, caller, key.rpc, id))? {
        return Ok(None);
    }
    let series = series(caller, key.rpc, id);
    match cache.fresh.requests.find(tx, &series, id.number)? {
        Some(Entry { fingerprint, answer, .. }) => {
            Ok(Some(Answered { is_same: fingerprint == key.fingerprint, answer }))
        }
        None => read(tx, caller, key),
    }
}

fn series(caller: AgentKey, rpc: &'static str, id: Counted<'_>) -> Series {
    Series { caller, rpc: rpc.into(), name: id.series.to_owned() }
}

/// Returns what the rows say of the numbers of a series.
fn known(tx: &Tx<'_>, caller: AgentKey, rpc: &'static str, id: Counted<'_>) -> Result<Known> {
    // A full stop is the character after a hyphen.
    let sql = "SELECT EXISTS (SELECT 1 FROM request WHERE caller_id = ?1 AND rpc = ?2 AND request_id >= ?3 || '-' AND request_id < ?3 || '.')";
    if one(tx, Sql::Direct(sql), (caller.0, rpc, id.series))? {
        return Ok(Known::Nothing);
    }
    tx.cache().fresh.requests.highest(tx, &series(caller, rpc, id)).map(Known::UpTo)
}

/// Returns the answer to a request that has a row of its own.
pub(crate) fn read(
    conn: &impl Statements,
    caller: AgentKey,
    key: &RequestKey,
) -> Result<Option<Answered>> {
    const SQL: &str = sql!(
        "SELECT ",
        COLUMNS,
        " FROM request WHERE caller_id = ?1 AND rpc = ?2 AND request_id = ?3"
    );
    let row: Option<Row> = first(conn, Sql::Direct(SQL), (caller.0, key.rpc, &key.id))?;
    Ok(row.map(|Row { fingerprint, answer }| {
        let is_same = fingerprint == key.fingerprint;
        Answered { is_same, answer }
    }))
}

/// Stores the first answer to a request, which never gets another one.
pub fn add(tx: &Tx<'_>, caller: AgentKey, key: &RequestKey, answer: String) -> Result<()> {
    match Counted::of(&key.id).filter(|_| answer.len() <= ANSWER_BYTES_MAX) {
        Some(id) => {
            let entry = Entry { number: id.number, fingerprint: key.fingerprint, answer };
            tx.cache().fresh.add_answer(series(caller, key.rpc, id), entry);
            Ok(())
        }
        None => put(tx, caller, key, &answer),
    }
}

/// Stores an answer, in the place of an earlier one that is not replayed any more.
pub fn put(tx: &Tx<'_>, caller: AgentKey, key: &RequestKey, answer: &str) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO request (caller_id, rpc, request_id, fingerprint, answer, time) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let fingerprint = key.fingerprint.as_slice();
    let values = (caller.0, key.rpc, &key.id, fingerprint, answer, tx.now.wall.0);
    run(tx, Sql::Direct(sql), values)
}

/// Deletes all requests, which only a planted bug does.
pub(crate) fn forget(tx: &Tx<'_>) -> Result<()> {
    for table in ["request", "request_page", "request_block"] {
        run(tx, &format!("DELETE FROM {table}"), [])?;
    }
    tx.cache().fresh.requests.forget_pages();
    Ok(())
}
