//! Migrations: a database of every earlier version opens, keeps its contents, and can be used.

use std::path::Path;

use hive_core::agent::{Heard, Wanted};
use hive_core::delivery::{Lane, LeaseEnd};
use hive_core::event::{DeliveryLeased, Facts, HarnessAttached, Kind};
use hive_core::id::{MessageId, TurnId};
use hive_core::time::WallTime;
use hive_core::turn::{Ended, Outcome, ToolUse};
use rusqlite::Connection;

use super::super::codec::Coded as _;
use super::super::event::{Fact, log};
use super::super::file::migrate;
use super::super::lease::LeaseRequest;
use super::super::request::{self, RequestKey};
use super::super::turn_stats::Window;
use super::super::{
    AgentKey, SCHEMA_VERSION, agent, delivery, event, inbox, lease, message, question, turn,
    turn_stats, turn_tool,
};
use super::{Failed, directory, open, send};

/// The contents of a database with schema version 1: an agent, a message on its way, its event, and
/// counters that pruning kept.
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

/// The contents of a database with schema version 2: an agent of the file in mid-conversation, an
/// ended turn, an open turn, and a question.
const VERSION_2: &str = "
    INSERT INTO agent (id, name, source, harness_state_time) VALUES (1, 'operator', 0, 0);
    INSERT INTO agent (id, name, source, model, declared, harness_state_time, context_tokens, context_window_tokens, session_epoch, session_token)
    VALUES (2, 'ada', 1, 'large', '{\"parent\":null,\"role\":\"\",\"model\":\"large\"}', 0, 90000, 200000, 3, 'session');
    INSERT INTO inbox (agent_id, open_count) VALUES (1, 0), (2, 0);
    INSERT INTO turn (id, agent_id, kind, conversation, session_epoch, process_token, boot_id, outcome, settled, start_time, end_time,
    output_tokens) VALUES (11, 2, 2, 'main', 3, 'process', 'boot-0', 1, '{\"acked\":0,\"returned\":0,\"dead\":0,\"held\":0}', 1000, 3000, 70);
    INSERT INTO turn (id, agent_id, kind, conversation, session_epoch, process_token, boot_id, start_time)
    VALUES (12, 2, 2, 'main', 3, 'process', 'boot-0', 4000);
    INSERT INTO question (id, asker_id, target_id, text, options, multi, create_time, message_id) VALUES (9, 2, 1, 'well?', '[]', 0, 1000, 8);
    INSERT INTO meta (key, value) VALUES ('last_id', 12), ('last_event', 3);
    PRAGMA user_version = 2;
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
    seed(dir.path(), include_str!("../file/sql/0001_init.sql"), VERSION_1);
    let (store, _) = open(dir.path());
    let id = MessageId::new(7).expect("not 0");
    let found = store.read(move |conn, _| {
        let version: u32 = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
        let held = message::get(conn, id)?.expect("the message is kept");
        let (events, open) = (event::after(conn, 0, None, 10)?, question::open_count(conn)?);
        let ada = agent::by_name(conn, "ada")?.expect("the agent is kept");
        Ok::<_, Failed>((version, held, events, open, ada.policy))
    });
    let (version, held, events, open_questions, policy) = found.await.expect("read");
    assert_eq!(version, SCHEMA_VERSION);
    assert_eq!((held.body.as_str(), held.question_id, held.reminder_id), ("hello", None, None));
    assert_eq!(held.traceparent, None);
    assert_eq!((events.len(), events[0].sequence, events[0].question_id), (1, 3, None));
    assert_eq!(events[0].kind(), Kind::MessageAccepted);
    assert_eq!(open_questions, 0);
    assert_eq!(
        (policy.tool_groups, policy.questions_open_max),
        (vec!["messaging".to_owned()], None)
    );
    send(&store, "it goes on").await.expect("written");
    let newest = store.read(|conn, _| {
        Ok::<_, Failed>(
            conn.query_row("SELECT max(id) FROM message", [], |row| row.get::<_, i64>(0))?,
        )
    });
    assert_eq!(newest.await.expect("read"), 42, "ids go on behind what was given out");
}

#[tokio::test]
async fn a_database_of_version_2_is_brought_forward_and_its_turns_can_be_summed_up() {
    let dir = directory();
    let schema = concat!(
        include_str!("../file/sql/0001_init.sql"),
        include_str!("../file/sql/0002_conversation.sql")
    );
    seed(dir.path(), schema, VERSION_2);
    let (store, _) = open(dir.path());
    let found = store.read(|conn, _| {
        let version: u32 = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
        let ada = agent::by_name(conn, "ada")?.expect("the agent is kept");
        let window = Window { start: WallTime(0), end: WallTime(10_000) };
        let mut ended = Vec::new();
        turn_stats::each(conn, window, None, |turn| ended.push(turn))?;
        let tools = turn_tool::most_called(conn, window, None, 10)?;
        Ok::<_, Failed>((version, ada, ended, tools, question::open_count(conn)?))
    });
    let (version, ada, ended, tools, open_questions) = found.await.expect("read");
    assert_eq!(version, SCHEMA_VERSION);
    assert_eq!(
        (ada.context_tokens, ada.context_time, ada.available_models.len()),
        (90_000, None, 0)
    );
    assert_eq!((ada.model.as_str(), ada.session_token.as_deref()), ("large", Some("session")));
    let [turn] = &ended[..] else { panic!("{ended:?}") };
    assert_eq!((turn.usage.output_tokens, turn.end_time.since(turn.start_time).as_secs()), (70, 2));
    assert_eq!((tools.len(), open_questions), (0, 1));
    // New records can be written to it.
    let written = store.write(move |tx| {
        let open = TurnId::new(12).expect("not 0");
        turn::end(tx, open, &Ended::new(Outcome::Ok), "{}")?;
        turn_tool::insert(tx, open, &[ToolUse { name: "Bash".to_owned(), count: 4 }])?;
        agent::set_context(tx, ada.key, 5, 10)?;
        let models = vec!["small".to_owned()];
        agent::update(tx, &agent::AgentRow { available_models: models, ..ada })?;
        Ok::<_, Failed>((tx.now.wall, agent::by_name(tx, "ada")?.expect("it is there")))
    });
    let (now, ada) = written.await.expect("written");
    assert_eq!(
        (ada.context_time, ada.available_models.clone()),
        (Some(now), vec!["small".to_owned()])
    );
    send(&store, "it goes on").await.expect("written");
}

#[tokio::test]
async fn agents_of_a_broker_without_a_launcher_are_wanted_as_they_were() {
    let dir = directory();
    let mut conn = Connection::open(dir.path().join("hive.db")).expect("a database");
    conn.pragma_update(None, "journal_mode", "wal").expect("a pragma");
    migrate::make(&mut conn, 15, |_, _| {});
    let rows = "INSERT INTO agent (id, name, source, harness_state_time, stopped, retired) VALUES
            (1, 'operator', 0, 0, 0, 0), (2, 'ada', 2, 0, 0, 0), (3, 'bob', 2, 0, 1, 0), (4, 'cyd', 2, 0, 1, 1);
        INSERT INTO inbox (agent_id, open_count) VALUES (1, 0), (2, 0), (3, 0), (4, 0);
        INSERT INTO meta (key, value) VALUES ('last_id', 1), ('last_event', 1);";
    conn.execute_batch(rows).expect("rows of that version");
    conn.close().expect("closed");
    let (store, _) = open(dir.path());
    let found = store.read(|conn, _| {
        let of = |name| {
            let row = agent::by_name(conn, name)?.expect("it is kept");
            let told = (row.restart_count, row.restarts_told, row.heard);
            Ok::<_, Failed>((row.wanted(), row.on_demand, told))
        };
        Ok::<_, Failed>([of("ada")?, of("bob")?, of("cyd")?])
    });
    let nothing = (0, 0, Heard::Well);
    let stopped = (Wanted::Stopped, false, nothing);
    let expected = [(Wanted::Running, false, nothing), stopped, stopped];
    assert_eq!(found.await.expect("read"), expected);
    let other = Connection::open(store.path()).expect("it opens");
    for change in ["on_demand = 2", "on_demand = NULL", "heard = 3", "restart_count = NULL"] {
        let changed = other.execute(&format!("UPDATE agent SET {change} WHERE id = 2"), []);
        assert!(changed.is_err(), "{change}");
    }
}

#[tokio::test]
async fn an_answer_of_remove_agent_is_found_under_its_new_name() {
    let dir = directory();
    let schema = concat!(
        include_str!("../file/sql/0001_init.sql"),
        include_str!("../file/sql/0002_conversation.sql"),
        include_str!("../file/sql/0003_turn_loop.sql"),
        include_str!("../file/sql/0004_stop_and_purge.sql"),
        include_str!("../file/sql/0005_tree.sql")
    );
    let rows = "INSERT INTO agent (id, name, source, harness_state_time) VALUES (1, 'operator', 0, 0);
        INSERT INTO request (caller_id, rpc, request_id, fingerprint, answer, time)
        VALUES (1, 'RemoveAgent', 'r1', x'00', '3', 1000), (1, 'StopAgent', 'r1', x'00', 'null', 1000);
        PRAGMA user_version = 5;";
    seed(dir.path(), schema, rows);
    let (store, _) = open(dir.path());
    let found = store.read(|conn, _| {
        let answer = |rpc| {
            let key = RequestKey { rpc, id: "r1".to_owned(), fingerprint: [0; 16] };
            request::read(conn, AgentKey::OPERATOR, &key)
        };
        let found = [answer("RemoveAgent")?, answer("RetireAgent")?, answer("StopAgent")?];
        Ok::<_, Failed>(found.map(|found| found.map(|answered| answered.answer)))
    });
    let found = found.await.expect("read");
    assert_eq!(found, [None, Some("3".to_owned()), Some("null".to_owned())]);
}

#[tokio::test]
async fn the_recipients_of_old_messages_are_counted() {
    let dir = directory();
    let old = format!(
        "{VERSION_1} INSERT INTO agent (id, name, source, harness_state_time) VALUES (3, 'bob', 2, 0); \
         INSERT INTO inbox (agent_id, open_count) VALUES (3, 1); \
         INSERT INTO message (id, origin_kind, origin_id, origin_name, to_id, body, accept_time) \
         VALUES (8, 2, 1, 'uid 0 (root)', 0, 'all', 1000), (9, 2, 1, 'uid 0 (root)', 0, 'none', 1000); \
         INSERT INTO delivery (agent_id, message_id, lane, state, state_time, body_bytes) \
         VALUES (2, 8, 2, 1, 1000, 3), (3, 8, 2, 5, 1000, 3);"
    );
    seed(dir.path(), include_str!("../file/sql/0001_init.sql"), &old);
    let (store, _) = open(dir.path());
    let counted = store.read(|conn, _| {
        let count = |id| {
            let message = message::get(conn, MessageId::new(id).expect("not 0"))?;
            Ok::<_, Failed>(message.expect("it is kept").recipient_count)
        };
        Ok::<_, Failed>([count(7)?, count(8)?, count(9)?])
    });
    assert_eq!(counted.await.expect("read"), [1, 2, 0]);
}

#[tokio::test]
async fn events_of_a_broker_without_facts_have_none_and_new_ones_have_them() {
    let dir = directory();
    let schema = concat!(
        include_str!("../file/sql/0001_init.sql"),
        include_str!("../file/sql/0002_conversation.sql"),
        include_str!("../file/sql/0003_turn_loop.sql"),
        include_str!("../file/sql/0004_stop_and_purge.sql"),
        include_str!("../file/sql/0005_tree.sql"),
        include_str!("../file/sql/0006_retire_agent.sql"),
        include_str!("../file/sql/0007_recipient_count.sql"),
        include_str!("../file/sql/0008_settling.sql")
    );
    let kinds: Vec<String> = Kind::ALL
        .iter()
        .zip(1..)
        .map(|(kind, sequence)| format!("({sequence}, {}, 1000, 'in words')", kind.code()))
        .collect();
    let rows = format!(
        "INSERT INTO agent (id, name, source, harness_state_time) VALUES (1, 'operator', 0, 0); \
         INSERT INTO event (sequence, kind, time, detail) VALUES {}; \
         INSERT INTO meta (key, value) VALUES ('last_id', 1), ('last_event', {}); \
         PRAGMA user_version = 8;",
        kinds.join(", "),
        kinds.len()
    );
    seed(dir.path(), schema, &rows);
    let (store, _) = open(dir.path());
    let attached = HarnessAttached { session_epoch: 4 };
    let written = store.write(move |tx| {
        log(tx, Fact::about(attached, AgentKey::OPERATOR).detail("in words"));
        Ok::<_, Failed>(())
    });
    written.await.expect("written");
    let found = store.read(|conn, _| Ok::<_, Failed>(event::after(conn, 0, None, 100)?));
    let found = found.await.expect("read");
    let (new, old) = found.split_last().expect("events");
    assert_eq!(old.len(), Kind::ALL.len());
    for (event, kind) in old.iter().zip(Kind::ALL) {
        assert_eq!((event.facts, event.detail.as_str()), (Facts::unknown(*kind), "in words"));
    }
    assert_eq!(new.facts, attached.into());
}

#[tokio::test]
async fn a_detail_that_the_facts_say_is_not_stored_and_is_read_as_before() {
    let dir = directory();
    let (store, _) = open(dir.path());
    let leased = DeliveryLeased { attempt: 3, cause: None };
    let written = store.write(move |tx| {
        log(tx, Fact::about(leased, AgentKey::OPERATOR));
        Ok::<_, Failed>(())
    });
    written.await.expect("written");
    // An older broker stored it beside the facts.
    let copy = "INSERT INTO event_page (last, first, time, agents, events) SELECT 2, 2, time, 2, \
         json_array(json_array(2, kind, time, agent_id, NULL, code, 2, NULL, 'attempt 2')) FROM event WHERE sequence = 1";
    let other = Connection::open(store.path()).expect("it opens");
    assert_eq!(other.execute(copy, []).expect("written"), 1);
    let found = store.read(|conn, _| {
        let stored: String =
            conn.query_row("SELECT detail FROM event WHERE sequence = 1", [], |row| row.get(0))?;
        Ok::<_, Failed>((stored, event::after(conn, 0, None, 10)?))
    });
    let (stored, events) = found.await.expect("read");
    assert_eq!(stored, "");
    let details: Vec<_> = events.iter().map(|event| event.detail.as_str()).collect();
    assert_eq!(details, ["attempt 3", "attempt 2"]);
}

#[tokio::test]
async fn a_database_with_rows_of_no_known_version_is_not_migrated_by_half() {
    let dir = directory();
    let schema = concat!(
        include_str!("../file/sql/0001_init.sql"),
        include_str!("../file/sql/0002_conversation.sql")
    );
    // A table of another program has the name of the new one.
    seed(dir.path(), schema, "CREATE TABLE turn_tool (x); PRAGMA user_version = 2");
    let opened = super::super::Store::open(
        dir.path(),
        std::sync::Arc::new(crate::clock::ManualClock::new("boot-0")),
        std::sync::Arc::new(super::Commits::default()),
    );
    assert!(opened.is_err());
    let conn = Connection::open(dir.path().join("hive.db")).expect("opened");
    let version: u32 =
        conn.pragma_query_value(None, "user_version", |row| row.get(0)).expect("read");
    let columns: i64 = conn
        .query_row(
            "SELECT count(*) FROM pragma_table_info('agent') WHERE name = 'context_time'",
            [],
            |row| row.get(0),
        )
        .expect("read");
    assert_eq!((version, columns), (2, 0), "all of a step or nothing");
}

#[tokio::test]
async fn deliveries_of_one_table_move_to_their_queues() {
    let dir = directory();
    let schema = concat!(
        include_str!("../file/sql/0001_init.sql"),
        include_str!("../file/sql/0002_conversation.sql"),
        include_str!("../file/sql/0003_turn_loop.sql"),
        include_str!("../file/sql/0004_stop_and_purge.sql"),
        include_str!("../file/sql/0005_tree.sql"),
        include_str!("../file/sql/0006_retire_agent.sql"),
        include_str!("../file/sql/0007_recipient_count.sql"),
        include_str!("../file/sql/0008_settling.sql"),
        include_str!("../file/sql/0009_event_facts.sql")
    );
    // Ready in both lanes, one with a backoff; leased by a receive, by a turn and by a stream;
    // held, dead, acked and dropped.
    let rows = "INSERT INTO agent (id, name, source, harness_state_time) VALUES (1, 'operator', 0, 0), (2, 'ada', 2, 0);
        INSERT INTO inbox (agent_id, open_count, stored_bytes) VALUES (1, 0, 0), (2, 8, 0);
        INSERT INTO message (id, origin_kind, origin_id, origin_name, to_id, body, accept_time)
            WITH RECURSIVE n (id) AS (SELECT 11 UNION ALL SELECT id + 1 FROM n WHERE id < 20) SELECT id, 2, 1, 'ada', 2, 'hello', 1000 FROM n;
        INSERT INTO turn (id, agent_id, kind, conversation, session_epoch, process_token, boot_id, start_time)
            VALUES (30, 2, 1, 'main', 1, 'process', 'boot-0', 1000);
        INSERT INTO turn_delivery (turn_id, message_id, agent_id) VALUES (30, 15, 2);
        INSERT INTO delivery (agent_id, message_id, lane, state, failures, cause, not_before_boot, lease_token, lease_turn_id,
                lease_until_boot, lease_ms, lease_stream, lease_end, turn_id, state_time, settled_by, body_bytes, last_error) VALUES
            (2, 11, 2, 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1000, '', 5, ''),
            (2, 12, 1, 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1000, '', 5, ''),
            (2, 13, 2, 1, 1, 10, 9000000000000, '2.13.old', NULL, 60, 60, NULL, 2, NULL, 1000, '', 5, 'it failed'),
            (2, 14, 2, 2, 0, NULL, NULL, '2.14.secret', NULL, 70, 60, NULL, NULL, NULL, 1000, '', 5, ''),
            (2, 15, 2, 2, 0, NULL, NULL, '2.15.secret', 30, NULL, NULL, NULL, NULL, 30, 1000, '', 5, ''),
            (2, 16, 2, 2, 0, NULL, NULL, '2.16.secret', NULL, 9223372036854775807, 30, 'stream', NULL, NULL, 1000, '', 5, ''),
            (2, 17, 2, 3, 0, NULL, NULL, '2.17.secret', 30, NULL, NULL, NULL, NULL, 30, 1000, '', 5, ''),
            (2, 18, 2, 4, 5, 1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1000, '', 5, 'it failed'),
            (2, 19, 2, 5, 0, NULL, NULL, '2.19.secret', NULL, 60, 60, NULL, 1, NULL, 1000, '', 5, ''),
            (2, 20, 2, 6, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1000, 'ada', 5, '');
        INSERT INTO request (caller_id, rpc, request_id, fingerprint, answer, time) VALUES
            (2, 'ReceiveMessages', 'r-1', x'000102030405060708090a0b0c0d0eff', '{\"leases\":[[14,\"2.14.secret\"]]}', 1000),
            (2, 'SendMessage', 'r-1', x'00', '3', 1000);
        INSERT INTO meta (key, value) VALUES ('boot_id', 'boot-0'), ('last_id', 30), ('last_event', 1);
        PRAGMA user_version = 9;";
    seed(dir.path(), schema, rows);
    let (store, _) = open(dir.path());
    let ada = AgentKey(2);
    let id = |number| MessageId::new(number).expect("not 0");
    let found = store.write(move |tx| {
        let states = (11..=20)
            .map(|number| {
                let row = delivery::get(tx, ada, id(number))?.expect("it is kept");
                Ok((row.lane.code(), row.progress.state.code()))
            })
            .collect::<Result<Vec<_>, Failed>>()?;
        let due = delivery::due(tx, ada, Some(Lane::Normal), 9, 9)?;
        let counts = inbox::get(tx, ada)?;
        let digest = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255];
        let request = LeaseRequest::new(&digest, "r-1");
        let given: Vec<_> = lease::given_by(tx, ada, &request)?
            .into_iter()
            .map(|row| {
                (row.message, row.lease.and_then(|lease| lease.request) == Some(request.clone()))
            })
            .collect();
        let held = super::super::stream::held(tx, ada, "stream")?.deliveries;
        let turn = delivery::leased_by(tx, ada, TurnId::new(30).expect("not 0"))?.len();
        let settled =
            delivery::by_lease_token(tx, ada, "2.19.secret")?.and_then(|row| row.lease?.end);
        let failed = delivery::get(tx, ada, id(13))?.expect("it is kept");
        Ok::<_, Failed>((
            states,
            due.into_iter().map(|row| row.message).collect::<Vec<_>>(),
            counts,
            given,
            (held, turn, settled),
            (failed.last_error, delivery::next_due(tx, ada, tx.now)?.is_some()),
        ))
    });
    let (states, due, counts, given, (held, turn, settled), failed) = found.await.expect("read");
    let expected = [(2, 1), (1, 1), (2, 1), (2, 2), (2, 2), (2, 2), (2, 3), (2, 4), (2, 5), (2, 6)];
    assert_eq!(states, expected);
    assert_eq!(due, [id(11)]);
    assert_eq!((counts.open_count, counts.ready_count, counts.leased_count), (8, 3, 3));
    assert_eq!(given, [(id(14), true)]);
    assert_eq!((held, turn, settled), (1, 1, Some(LeaseEnd::Acked)));
    assert_eq!(failed, ("it failed".to_owned(), true));
}
