//! A database as the first broker would have left it, with any number of messages.
//!
//! Invariant: of two messages one is settled, and each has its delivery, its events and the row of
//! its request, so that a migration has all to do that it ever has.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

/// The schema of the first broker.
const SCHEMA: &str = include_str!("../../../broker/src/store/file/sql/0001_init.sql");
/// Agents with messages.
const AGENTS: u32 = 100;

/// The contents of a database, as far as a migration must not lose them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents {
    pub version: u32,
    pub messages: u32,
    pub body_bytes: i64,
    pub unsettled: u32,
    pub settled: u32,
    pub events: u32,
    pub requests: u32,
}

/// Makes the database of a hive with this many messages of 200 bytes, and returns its contents.
/// They are new, so that no retention deletes them.
pub fn make(database: &Path, messages: u32) -> rusqlite::Result<Contents> {
    let conn = Connection::open(database)?;
    // It is read when it is whole, and a test or a bench that ends early makes another.
    conn.execute_batch("PRAGMA journal_mode = memory; PRAGMA synchronous = off; BEGIN")?;
    conn.execute_batch(SCHEMA)?;
    conn.execute_batch(&format!(
        "INSERT INTO agent (id, name, source, harness_state_time) VALUES (1, 'operator', 0, 0);
        INSERT INTO agent (id, name, source, harness_state_time)
            WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < {AGENTS} - 1)
            SELECT 2 + i, 'a' || i, 2, 0 FROM n;
        INSERT INTO message (id, origin_kind, origin_id, origin_name, to_id, body, accept_time)
            WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {messages})
            SELECT i, 2, 1, 'uid 0 (root)', 2 + i % {AGENTS}, printf('%-200d', i), unixepoch() * 1000 - {messages} + i FROM n;
        INSERT INTO delivery (agent_id, message_id, lane, state, lease_token, state_time, sender_id, body_bytes)
            SELECT to_id, id, 2, iif(id % 4 < 2, 1, 5),
            iif(id % 4 < 2, NULL, to_id || '.' || id || '.' || lower(hex(randomblob(16)))), accept_time, 1, 200
            FROM message ORDER BY 1, 2;
        INSERT INTO event (kind, time, agent_id, message_id, detail)
            SELECT kind, accept_time, to_id, id, detail FROM message JOIN
            (SELECT 1 AS kind, 'from operator' AS detail, 0 AS least UNION ALL SELECT 2, 'attempt 1', 2 UNION ALL SELECT 3, '', 2)
            ON id % 4 >= least;
        INSERT INTO request (caller_id, rpc, request_id, fingerprint, answer, time)
            SELECT 1, 'SendMessage', lower(hex(randomblob(16))), randomblob(16),
            '{{\"message_id\":' || id || ',\"accept_time\":' || accept_time || ',\"recipients\":[\"a\"]}}', accept_time
            FROM message ORDER BY 3;
        INSERT INTO inbox (agent_id, open_count)
            SELECT id, (SELECT count(*) FROM delivery WHERE agent_id = id AND state = 1) FROM agent;
        INSERT INTO meta (key, value) VALUES ('last_id', {messages}),
            ('last_event', (SELECT max(sequence) FROM event));
        PRAGMA user_version = 1;
        COMMIT"
    ))?;
    contents(&conn)
}

/// Returns the contents of a database of any version that no broker has open.
pub fn read(database: &Path) -> rusqlite::Result<Contents> {
    contents(&Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_WRITE)?)
}

fn contents(conn: &Connection) -> rusqlite::Result<Contents> {
    // The first versions have a table of this name, and the others a view of both tables.
    let sql = "SELECT (SELECT count(*) FROM message), (SELECT sum(length(body)) FROM message), \
         (SELECT count(*) FROM delivery WHERE state < 5), (SELECT count(*) FROM delivery WHERE state >= 5), \
         (SELECT count(*) FROM event WHERE message_id IS NOT NULL), (SELECT count(*) FROM request)";
    let version = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
    conn.query_row(sql, [], |row| {
        Ok(Contents {
            version,
            messages: row.get(0)?,
            body_bytes: row.get(1)?,
            unsettled: row.get(2)?,
            settled: row.get(3)?,
            events: row.get(4)?,
            requests: row.get(5)?,
        })
    })
}
