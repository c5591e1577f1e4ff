//! A database of each earlier version opens with what it held.
//!
//! The database of a version is made as its brokers made it: from the first schema on, with rows in
//! each table and column as soon as there is one.

use std::path::Path;

use hive_core::agent::{Heard, Wanted};
use hive_core::id::MessageId;
use hive_core::message::Origin;
use hive_core::trace::{TraceContext, Traced};
use rusqlite::Connection;
use rusqlite::types::Value;
use tokio_util::sync::CancellationToken;

use super::super::agent::{self, AgentRow};
use super::super::file::migrate;
use super::super::message::{self, NewMessage, To};
use super::super::{AgentKey, SCHEMA_VERSION, Store, wanted};
use super::{Failed, directory, open, send};

/// Returns the rows that brokers of this version add, or nothing.
fn rows(version: u32) -> &'static str {
    match version {
        // Messages 11 to 14: ready, held, dead and acked; 15 to everyone; 16 leased.
        1 => {
            "INSERT INTO agent (id, name, source, harness_state_time) VALUES (1, 'operator', 0, 0), (2, 'ada', 2, 0), (3, 'bob', 2, 0);
             INSERT INTO inbox (agent_id, open_count, stored_bytes) VALUES (1, 0, 0), (2, 5, 0), (3, 1, 0);
             INSERT INTO message (id, origin_kind, origin_id, origin_name, to_id, body, accept_time) VALUES
                (11, 2, 1, 'uid 0', 2, 'ready', 1000), (12, 2, 1, 'uid 0', 2, 'held', 1000), (13, 2, 1, 'uid 0', 2, 'dead', 1000),
                (14, 2, 1, 'uid 0', 2, 'acked', 1000), (15, 2, 1, 'uid 0', 0, 'all', 1000),
                (16, 2, 1, 'uid 0', 2, 'leased', 1000);
             INSERT INTO delivery (agent_id, message_id, lane, state, failures, cause, lease_token, turn_id, last_error, state_time,
                settled_by, body_bytes) VALUES
                (2, 11, 2, 1, 0, NULL, NULL, NULL, '', 1000, '', 5), (2, 12, 2, 3, 0, NULL, '2.12.t', 21, '', 1000, '', 4),
                (2, 13, 1, 4, 5, 1, NULL, 21, 'it failed', 1000, '', 4), (2, 14, 2, 5, 0, NULL, '2.14.t', NULL, '', 1000, 'ada', 5),
                (2, 15, 2, 1, 0, NULL, NULL, NULL, '', 1000, '', 3), (3, 15, 2, 1, 0, NULL, NULL, NULL, '', 1000, '', 3);
             INSERT INTO delivery (agent_id, message_id, lane, state, lease_token, lease_until_boot, state_time, body_bytes)
                VALUES (2, 16, 2, 2, '2.16.t', 5000, 1000, 6);
             INSERT INTO turn (id, agent_id, kind, conversation, session_epoch, process_token, boot_id, outcome, settled, start_time,
                end_time) VALUES (21, 2, 1, 'main', 1, 'p', 'boot-0', 1, '{}', 1000, 2000);
             INSERT INTO turn_delivery (turn_id, message_id, agent_id) VALUES (21, 12, 2), (21, 13, 2);
             INSERT INTO command (id, agent_id, command, create_time, given_by) VALUES (22, 2, '{\"Interrupt\":null}', 1000, 'uid 0');
             INSERT INTO request (caller_id, rpc, request_id, fingerprint, answer, time) VALUES (1, 'RemoveAgent', 'r', x'00', '3', 1);
             INSERT INTO event (sequence, kind, time, agent_id, message_id, detail) VALUES (1, 1, 1000, 2, 11, 'from operator');
             INSERT INTO meta (key, value) VALUES ('boot_id', 'boot-0'), ('last_id', 30), ('last_event', 1);"
        }
        2 => {
            "INSERT INTO question (id, asker_id, target_id, text, options, multi, create_time, message_id)
                VALUES (23, 2, 1, 'well?', '[]', 0, 1000, 11);
             INSERT INTO reminder (id, agent_id, body, create_time, due_time) VALUES (24, 2, 'later', 1000, 99999999999999);
             INSERT INTO published_loose_end (id, agent_id, label, key, text, create_time) VALUES (25, 2, 'ci', 'k', 't', 1000);
             INSERT INTO attention (id, kind, agent_id, subject, text, create_time) VALUES (26, 1, 2, 23, 'well?', 1000);"
        }
        3 => "INSERT INTO turn_tool (turn_id, name, count) VALUES (21, 'Bash', 4);",
        4 => "INSERT INTO purge (id, name, time) VALUES (3, 'old', 1000);",
        8 => "UPDATE delivery SET lease_end = 1 WHERE message_id = 14;",
        9 => "UPDATE event SET code = NULL, number = NULL;",
        10 => "UPDATE open_delivery SET lease_request = NULL;",
        _ => "",
    }
}

/// Returns every row that all versions have, as text.
fn held(dir: &Path) -> Vec<String> {
    let conn = Connection::open(dir.join("hive.db")).expect("it opens");
    let all = [
        "SELECT id, name, retired, stopped, purged_name FROM agent ORDER BY 1",
        "SELECT agent_id, open_count, ready_count, leased_count FROM inbox ORDER BY 1",
        "SELECT id, to_id, body, recipient_count FROM message ORDER BY 1",
        "SELECT agent_id, message_id, lane, state, failures, cause, turn_id, last_error, settled_by FROM delivery ORDER BY 1, 2",
        "SELECT id, outcome, end_time FROM turn",
        "SELECT turn_id, message_id FROM turn_delivery ORDER BY 1, 2",
        "SELECT id, command FROM command",
        "SELECT rpc, request_id, answer FROM request WHERE rpc = 'RetireAgent'",
        "SELECT kind, message_id, detail, code, number FROM event WHERE sequence = 1",
    ];
    let mut held = Vec::new();
    for sql in all {
        let mut select = conn.prepare(sql).expect("a statement");
        let columns = select.column_count();
        let mut rows = select.query([]).expect("rows");
        while let Some(row) = rows.next().expect("a row") {
            let cells =
                (0..columns).map(|at| format!("{:?}", row.get::<_, Value>(at).expect("a cell")));
            held.push(cells.collect::<Vec<_>>().join(" "));
        }
    }
    held
}

/// Returns how many messages, turns and reminders are in a trace.
fn traced(dir: &Path) -> [u32; 3] {
    let conn = Connection::open(dir.join("hive.db")).expect("it opens");
    ["message", "turn", "reminder"].map(|table| {
        let sql = format!("SELECT count(traceparent) FROM {table}");
        conn.query_row(&sql, [], |row| row.get(0)).expect("read")
    })
}

/// Returns what a launcher has to know of the agents, of each its name before it.
fn launched(store: &Store) -> impl Future<Output = Vec<(String, Launched)>> {
    let read = store.read(|conn, _| {
        let of = |name| {
            let row = agent::by_name(conn, name)?.expect("the agent is kept");
            let AgentRow { restart_count, restarts_told, heard, .. } = row;
            Ok((row.name.clone(), (row.wanted(), restart_count, restarts_told, heard)))
        };
        ["ada", "bob"].into_iter().map(of).collect::<Result<Vec<_>, Failed>>()
    });
    async { read.await.expect("read") }
}

/// How an agent is wanted, its requested restarts, and what its parent was notified of.
type Launched = (Wanted, u64, u64, Heard);

/// Returns the rows of tables that came after the first version.
fn later(dir: &Path) -> Vec<u32> {
    let conn = Connection::open(dir.join("hive.db")).expect("it opens");
    let tables = ["question", "reminder", "published_loose_end", "attention", "turn_tool", "purge"];
    let count = |table: &&str| {
        conn.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))
            .expect("read")
    };
    tables.iter().map(count).collect()
}

/// Writes a message in this span; returns the span in which it is read.
async fn sent_in(store: &Store, context: TraceContext) -> Option<TraceContext> {
    let written = store.write(move |tx| {
        let id = MessageId::new(tx.next_id()).expect("not 0");
        let new = NewMessage::new(id, &Origin::System, To::One(AgentKey::OPERATOR), "traced");
        let traced = Some(Traced { context, parent: None });
        message::insert(tx, &NewMessage { traced, ..new })?;
        Ok::<_, Failed>(id)
    });
    let id = written.await.expect("written");
    let read = store.read(move |conn, _| Ok::<_, Failed>(message::get(conn, id)?));
    read.await.expect("read").expect("it is kept").traceparent
}

#[tokio::test]
async fn a_database_of_each_version_opens_with_what_it_held() {
    let mut first = None;
    for version in 1..SCHEMA_VERSION {
        let dir = directory();
        let mut conn = Connection::open(dir.path().join("hive.db")).expect("a database");
        conn.pragma_update(None, "journal_mode", "wal").expect("a log");
        migrate::make(&mut conn, version, |conn, version| {
            conn.execute_batch(rows(version)).expect("rows of that version");
        });
        conn.close().expect("closed");
        let (store, _) = open(dir.path());
        let checked = store.check(CancellationToken::new()).await.expect("it is checked");
        assert!(checked.problems.is_empty(), "version {version}: {:?}", checked.problems);
        let held = held(dir.path());
        assert_eq!(first.get_or_insert_with(|| held.clone()), &held, "version {version}");
        let since = |first: u32| u32::from(version >= first);
        let [conversation, tools, purges] = [since(2), since(3), since(4)];
        let expected = [conversation, conversation, conversation, conversation, tools, purges];
        assert_eq!(later(dir.path()), expected, "version {version}");
        assert_eq!(traced(dir.path()), [0; 3], "version {version}");
        let found = store.read(|conn, _| {
            let read = conn.pragma_query_value(None, "user_version", |row| row.get::<_, u32>(0))?;
            Ok::<_, Failed>(read)
        });
        assert_eq!(found.await.expect("read"), SCHEMA_VERSION);
        assert_eq!(send(&store, "it goes on").await.expect("written"), 31, "version {version}");
        let context =
            TraceContext::parse("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
        assert_eq!(sent_in(&store, context.expect("a context")).await, context);
        let as_before = (Wanted::Running, 0, 0, Heard::Well);
        let both = ["ada", "bob"].map(|name| (name.to_owned(), as_before));
        assert_eq!(launched(&store).await, both, "version {version}");
        let changed = store.write(|tx| {
            let key = agent::by_name(tx, "ada")?.expect("the agent is kept").key;
            wanted::set_wanted(tx, key, false, true)?;
            wanted::request_restart(tx, key)?;
            Ok::<_, Failed>(wanted::set_heard(tx, key, Heard::Crashed, 1)?)
        });
        changed.await.expect("written");
        let [ada, bob] = [(Wanted::OnDemand, 1, 1, Heard::Crashed), as_before];
        let expected = [("ada".to_owned(), ada), ("bob".to_owned(), bob)];
        assert_eq!(launched(&store).await, expected, "version {version}");
    }
    let held = first.expect("versions");
    assert!(held.iter().any(|row| row.contains("\"ready\"")), "{held:?}");
    assert_eq!(held.len(), 3 + 3 + 6 + 7 + 1 + 2 + 1 + 1 + 1, "{held:?}");
}
