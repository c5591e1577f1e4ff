//! Table `request`: the answers by request id, so that a repeated request gets the first answer
//! again.
//!
//! Invariant: a row is written in the transaction of its work.

use rusqlite::Result;

use crate::store::columns::{columns, sql};
use crate::store::key::AgentKey;
use crate::store::statement::{Sql, Statements, first, one, run};
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

columns! {
    /// A request that was answered.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Answered, const COLUMNS {
        /// Digest of its content.
        pub fingerprint: Vec<u8> = "fingerprint",
        /// The answer, as JSON.
        pub answer: String = "answer",
    }
}

/// Returns the earlier request of this caller with this id. One that is certainly new is not looked
/// for.
pub fn find(tx: &Tx<'_>, caller: AgentKey, key: &RequestKey) -> Result<Option<Answered>> {
    let has_any = |series: &str| {
        // A full stop is the character after a hyphen.
        let sql = "SELECT EXISTS (SELECT 1 FROM request WHERE caller_id = ?1 AND rpc = ?2 AND request_id >= ?3 || '-' AND request_id < ?3 || '.')";
        one(tx, Sql::Direct(sql), (caller.0, key.rpc, series))
    };
    if tx.cache().request_ids.is_new(caller, key.rpc, &key.id, has_any)? {
        return Ok(None);
    }
    read(tx, caller, key)
}

/// Returns the row of a request.
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
    first(conn, Sql::Direct(SQL), (caller.0, key.rpc, &key.id))
}

/// Stores the answer. It replaces an older one whose replay is no longer guaranteed.
pub fn put(tx: &Tx<'_>, caller: AgentKey, key: &RequestKey, answer: &str) -> Result<()> {
    let sql = "INSERT OR REPLACE INTO request (caller_id, rpc, request_id, fingerprint, answer, time) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let fingerprint = key.fingerprint.as_slice();
    let values = (caller.0, key.rpc, &key.id, fingerprint, answer, tx.now.wall.0);
    run(tx, Sql::Direct(sql), values)
}

/// Deletes all requests, which only a planted bug does.
pub(crate) fn forget(tx: &Tx<'_>) -> Result<()> {
    run(tx, "DELETE FROM request", [])
}
