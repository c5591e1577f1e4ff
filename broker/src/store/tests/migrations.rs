//! Migrations: a database of every earlier version opens, keeps what it held, and goes on.

use std::path::Path;

use hive_core::id::MessageId;
use rusqlite::Connection;

use super::super::{SCHEMA_VERSION, event, message, question};
use super::{Failed, directory, open, said};

/// What hived of schema version 1 left behind: an agent, a message on its way, its event, and counters that pruning kept.
const VERSION_1: &str = "
    INSERT INTO agent (id, name, source, harness_state_time) VALUES (1, 'operator', 0, 0), (2, 'ada', 2, 0);
    UPDATE agent SET policy = '{\"tool_groups\":[\"messaging\"],\"allowed_recipients\":[],\"capabilities\":[]}' WHERE id = 2;
    INSERT INTO inbox (agent_id, open_count) VALUES (1, 0), (2, 1);
    INSERT INTO message (id, origin_kind, origin_id, origin_name, to_id, body, accept_time) VALUES (7, 2, 1, 'uid 0 (root)', 2, 'hello', 1000);
    INSERT INTO delivery (agent_id, message_id, lane, state, state_time, body_bytes) VALUES (2, 7, 2, 1, 1000, 5);
    INSERT INTO event (sequence, kind, time, agent_id, message_id, detail) VALUES (3, 1, 1000, 2, 7, 'from operator');
    INSERT INTO meta (key, value) VALUES ('last_id', 41), ('last_event', 3);
    PRAGMA user_version = 1;
";

fn seed(dir: &Path, schema: &str, rows: &str) {
    let conn = Connection::open(dir.join("hive.db")).expect("a database");
    conn.pragma_update(None, "journal_mode", "wal").expect("a pragma");
    conn.execute_batch(schema).expect("the schema of that version");
    conn.execute_batch(rows).expect("its rows");
}

#[tokio::test]
async fn a_database_of_version_1_is_brought_forward_with_all_it_held() {
    let dir = directory();
    seed(dir.path(), include_str!("../sql/0001_init.sql"), VERSION_1);
    let (store, _) = open(dir.path());
    let id = MessageId::new(7).expect("not 0");
    let found = store.read(move |conn, _| {
        let version: u32 = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
        let held = message::get(conn, id)?.expect("the message is kept");
        let (events, open) = (event::after(conn, 0, None, 10)?, question::open_count(conn)?);
        let ada = super::super::agent::by_name(conn, "ada")?.expect("the agent is kept");
        Ok::<_, Failed>((version, held, events, open, ada.policy))
    });
    let (version, held, events, open_questions, policy) = found.await.expect("read");
    assert_eq!(version, SCHEMA_VERSION);
    assert_eq!((held.body.as_str(), held.question_id, held.reminder_id), ("hello", None, None));
    assert_eq!((events.len(), events[0].sequence, events[0].question_id), (1, 3, None));
    assert_eq!(open_questions, 0);
    assert_eq!((policy.tool_groups, policy.questions_open_max), (vec!["messaging".to_owned()], None));
    said(&store, "it goes on").await.expect("written");
    let newest =
        store.read(|conn, _| Ok::<_, Failed>(conn.query_row("SELECT max(id) FROM message", [], |row| row.get::<_, i64>(0))?));
    assert_eq!(newest.await.expect("read"), 42, "ids go on behind what was given out");
}
