//! Backups and checks: a copy is complete or missing, a stopped one leaves no file, and damage is
//! reported.

use std::io::Read as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::Path;

use rusqlite::Connection;
use tokio_util::sync::CancellationToken;

use super::super::backup::{Copied, CopyError};
use super::super::check::{CheckError, Checked, check};
use super::{Failed, Rig, directory, open, write};

/// Returns the names of the files in a directory.
pub(super) fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().expect("text")).collect();
    names.sort();
    names
}

/// Returns a store with this many messages.
pub(super) async fn with_messages(count: u32) -> Rig {
    let rig = Rig::new();
    let filled = rig.write(move |tx| {
        crate::store::agent::ensure_operator(tx)?;
        for number in 0..count {
            write(tx, &format!("message {number}, {}", "x".repeat(40)))?;
        }
        Ok::<_, Failed>(())
    });
    filled.await.expect("written");
    rig
}

/// Puts a copy at the path of the broker's database.
fn restored(copied: &mut Copied) -> tempfile::TempDir {
    let dir = directory();
    let mut bytes = Vec::new();
    copied.file.read_to_end(&mut bytes).expect("it can be read");
    assert_eq!(bytes.len() as u64, copied.bytes);
    std::fs::write(dir.path().join("hive.db"), bytes).expect("written");
    dir
}

#[tokio::test]
async fn a_copy_is_the_database_and_has_no_name() {
    let rig = with_messages(3).await;
    let before = names(rig.dir.path());
    let mut copied = rig.copy(CancellationToken::new()).await.expect("copied");
    assert_eq!(names(rig.dir.path()), before, "it has no name any more");
    assert_eq!(copied.file.metadata().expect("its metadata").permissions().mode() & 0o777, 0o600);
    assert_eq!(rig.send("after").await, 4);

    let other = Rig::open(restored(&mut copied));
    assert_eq!(other.send("there").await, 2_000_001, "nobody knows which numbers were used");
    let checked = other.check(CancellationToken::new()).await.expect("checked");
    assert_eq!(checked.problems, [] as [&str; 0]);
    assert!(checked.pages > 20, "{}", checked.pages);
}

#[tokio::test]
async fn there_is_one_copy_at_a_time() {
    let rig = with_messages(1).await;
    let copied = rig.copy(CancellationToken::new()).await.expect("copied");
    let refused = rig.copy(CancellationToken::new()).await.expect_err("one is being read");
    assert!(matches!(refused, CopyError::UnderWay), "{refused:?}");
    drop(copied);
    rig.copy(CancellationToken::new()).await.expect("copied");
}

#[tokio::test]
async fn nothing_is_left_of_a_copy_that_was_given_up() {
    let rig = with_messages(20_000).await;
    let before = names(rig.dir.path());
    let stop = CancellationToken::new();
    stop.cancel();
    assert!(matches!(rig.copy(stop.clone()).await, Err(CopyError::Stopped)));
    assert_eq!(names(rig.dir.path()), before);
    assert!(matches!(rig.check(stop).await, Err(CheckError::Stopped)));
    rig.copy(CancellationToken::new()).await.expect("the next one is made");
}

#[tokio::test]
async fn leftovers_of_a_killed_broker_are_removed_at_the_next_start() {
    let rig = with_messages(1).await;
    for leftover in ["backup.tmp", "backup.tmp-journal"] {
        std::fs::write(rig.dir.path().join(leftover), "half of it").expect("a file");
    }
    let rig = rig.reopen();
    assert!(
        !names(rig.dir.path()).iter().any(|name| name.starts_with("backup")),
        "{:?}",
        names(rig.dir.path())
    );
    rig.copy(CancellationToken::new()).await.expect("copied");
}

#[tokio::test]
async fn a_copy_that_cannot_be_written_is_an_error_and_the_mail_goes_on() {
    let rig = with_messages(1).await;
    std::fs::create_dir_all(rig.dir.path().join("backup.tmp/in the way")).expect("a directory");
    let refused = rig.copy(CancellationToken::new()).await.expect_err("something is in the way");
    assert!(matches!(refused, CopyError::Unwritable { .. }), "{refused:?}");
    assert!(refused.to_string().contains("backup.tmp cannot be written: File exists"), "{refused}");
    assert_eq!(rig.send("on").await, 2);
}

/// Overwrites a page in the middle of a database.
fn damage(path: &Path) {
    let file = std::fs::OpenOptions::new().write(true).open(path).expect("it opens");
    let pages = file.metadata().expect("its metadata").len() / 4096;
    file.write_all_at(&[0xff; 4096], pages / 2 * 4096).expect("damaged");
}

#[tokio::test]
async fn a_damaged_database_is_an_error_and_not_passed_on_as_a_copy() {
    let rig = with_messages(20_000).await;
    rig.close();
    damage(&rig.dir.path().join("hive.db"));
    let rig = rig.reopen();
    let checked = rig.check(CancellationToken::new()).await.expect("checked");
    assert!(checked.problems[0].starts_with("the file is damaged: "), "{:?}", checked.problems);
    assert!(checked.problems.len() <= 100, "{}", checked.problems.len());
    let refused = rig.copy(CancellationToken::new()).await.expect_err("it cannot be read through");
    assert!(matches!(refused, CopyError::Unreadable { .. }), "{refused:?}");
    assert!(refused.to_string().contains("`hivectl doctor --deep` tells"), "{refused}");
    assert!(!names(rig.dir.path()).iter().any(|name| name.starts_with("backup")));
}

#[test]
fn a_file_that_is_no_database_is_an_error_and_not_an_empty_list() {
    let dir = directory();
    let path = dir.path().join("hive.db");
    let problems = check(&path, CancellationToken::new()).problems;
    assert!(problems[0].starts_with("the file cannot be opened: "), "{problems:?}");
    std::fs::write(&path, "the notes of somebody").expect("a file");
    let problems = check(&path, CancellationToken::new()).problems;
    assert!(problems[0].contains("file is not a database"), "{problems:?}");
    std::fs::write(&path, "").expect("a file");
    let problems = check(&path, CancellationToken::new()).problems;
    assert!(
        problems.contains(&"the books cannot be read to the end: no such table: agent".to_owned()),
        "{problems:?}"
    );
}

/// Ways to cook the books of a hive of `alice` (2), `bob` (3) and the retired `zoe` (4), and what
/// is said of each.
const COOKED: &[(&str, &[&str])] = &[
    (
        "INSERT INTO message (id, origin_kind, origin_name, to_id, body, accept_time, recipient_count) VALUES (15, 3, '', 0, 'all', 0, 2)",
        &["message 15 to everyone states 2 recipients and has 0 deliveries"],
    ),
    ("DELETE FROM inbox WHERE agent_id = 3", &["agent `bob` has no inbox"]),
    (
        "UPDATE inbox SET open_count = 7, stored_bytes = 5, ready_count = 2, leased_count = 3 WHERE agent_id = 2",
        &[
            "the inbox of `alice` counts 7 unsettled deliveries and has 0",
            "the inbox of `alice` counts 2 ready and 3 leased deliveries and has 0 and 0",
            "`alice` is charged for 5 bytes of unsettled messages and has sent 0",
        ],
    ),
    (
        "INSERT INTO settled_delivery (agent_id, message_id, lane, state, state_time, body_bytes) VALUES (3, 99, 2, 6, 0, 1)",
        &["there is a delivery of message 99 to `bob`, and no such message"],
    ),
    (
        "INSERT INTO settled_delivery (agent_id, message_id, lane, state, state_time, body_bytes) VALUES (9, 10, 2, 6, 0, 5)",
        &["there is a delivery of message 10 to agent number 9, and no such agent"],
    ),
    (
        "INSERT INTO settled_delivery (agent_id, message_id, lane, state, state_time, body_bytes) VALUES (3, 10, 2, 6, 0, 4)",
        &[
            "the delivery of message 10 to `bob` goes by 4 bytes, and its text has 5",
            "message 10 went to one recipient, and is in the inbox of `bob` too",
        ],
    ),
    (
        "INSERT INTO open_delivery (agent_id, queue, message_id, lane, state, state_time, body_bytes, lease_token, lease_turn_id) \
         VALUES (2, 0, 10, 2, 2, 0, 5, 't', 11); UPDATE inbox SET open_count = 1, leased_count = 1 WHERE agent_id = 2",
        &[
            "message 10 is leased from the inbox of `alice` to turn 11, which is not open",
            "turn 11 holds message 10 without carrying it",
        ],
    ),
    (
        "INSERT INTO open_delivery (agent_id, queue, message_id, lane, state, state_time, body_bytes, lease_token, lease_until_boot, \
         not_before_boot) VALUES (2, 0, 10, 2, 2, 0, 5, 't', 1, 1), (1, 0, 14, 2, 2, 0, 5, 't', NULL, NULL); \
         UPDATE inbox SET open_count = 1, leased_count = 1 WHERE agent_id IN (1, 2)",
        &[
            "message 14 is leased from the inbox of `operator` to nobody",
            "2 leases share one token, among them that of message 10",
            "message 14 is leased from the inbox of the operator, whose mail is not leased",
            "the delivery of message 10 to `alice` does not wait, and has a backoff",
        ],
    ),
    (
        "INSERT INTO open_delivery (agent_id, queue, message_id, lane, state, state_time, body_bytes) VALUES (2, 4, 10, 2, 4, 0, 5); \
         UPDATE inbox SET open_count = 1 WHERE agent_id = 2",
        &["message 10 is a dead letter of `alice` that never failed"],
    ),
    (
        "INSERT INTO open_delivery (agent_id, queue, message_id, lane, state, state_time, body_bytes) \
         VALUES (2, 1, 10, 1, 1, 0, 5), (2, 2, 10, 2, 1, 0, 5); \
         INSERT INTO settled_delivery (agent_id, message_id, lane, state, state_time, body_bytes) VALUES (2, 10, 2, 6, 0, 5); \
         UPDATE inbox SET open_count = 2, ready_count = 2 WHERE agent_id = 2",
        &[
            "message 10 to `alice` is settled, and is not",
            "message 10 to `alice` is settled, and is not",
            "message 10 is in the inbox of `alice` 2 times",
        ],
    ),
    (
        "UPDATE turn SET outcome = NULL, end_time = NULL WHERE id = 11",
        &["turn 11 of `alice` is open, and not of its present session"],
    ),
    (
        "UPDATE agent SET parent_id = 4 WHERE id = 2",
        &["the parent of `alice` is `zoe`, who is retired"],
    ),
    (
        "UPDATE agent SET parent_id = 5 - id WHERE id IN (2, 3)",
        &["`alice` is its own ancestor", "`bob` is its own ancestor"],
    ),
    (
        "UPDATE message SET question_id = 12, system_kind = 6 WHERE id = 10",
        &["the asker of question 12 was told 1 outcomes"],
    ),
    (
        "UPDATE question SET target_id = 4; UPDATE reminder SET agent_id = 4",
        &[
            "question 12 is open, and `zoe` is retired",
            "reminder 13 is pending, and `zoe` is retired",
        ],
    ),
    ("UPDATE message SET reminder_id = 13 WHERE id = 10", &["reminder 13 became 1 messages"]),
    (
        "UPDATE turn SET id = 10; UPDATE reminder SET id = 12",
        &[
            "number 10 was given to a turn and to a message",
            "number 12 was given to a reminder and to a question",
        ],
    ),
    (
        "INSERT INTO event_page (last, first, time, agents, events) VALUES (6, 5, 0, 0, '[[5,1,0,null,null,null,null]]'), (8, 7, 0, 0, '[')",
        &[
            "the events 5 to 6 are in a page with the events 5 to 5",
            "the events 7 to 8 cannot be read",
        ],
    ),
    (
        "INSERT INTO request_page (id, time, answers) VALUES (1, 0, '[]'), (2, 0, '['), (3, 0, '[[2,\"Send\",\"a\"]]'), \
         (4, 0, '[[2,\"Send\",\"a\",[[1,\"0\",\"1\"]]]]'), (5, 0, '[[2,\"Send\",\"a\",[[1,\"00000000000000000000000000000000\",\"1\"]]]]'); \
         INSERT INTO request_block (caller_id, rpc, series, first, time, answers) VALUES \
         (2, 'Send', 'a', 8, 0, '[[8,\"00000000000000000000000000000000\",\"1\"]]'), \
         (2, 'Send', 'b', 8, 0, '[[9,\"00000000000000000000000000000000\",\"1\"]]'), \
         (2, 'Send', 'c', 8, 0, '['), (2, 'Send', 'd', 8, 0, '[[8,\"00000000000000000000000000000000\",1]]')",
        &[
            "the answers to requests in page 2 cannot be read",
            "the answers to requests in page 3 cannot be read",
            "the answers to requests in page 4 cannot be read",
            "the answers to the requests of agent number 2 from `b-8` on are those from 9 on",
            "the answers to the requests of agent number 2 from `c-8` on cannot be read",
            "the answers to the requests of agent number 2 from `d-8` on cannot be read",
        ],
    ),
    (
        "PRAGMA foreign_keys = off; UPDATE turn SET agent_id = 9",
        &["row 11 of the table `turn` refers to a row of `agent` that is not there"],
    ),
];

#[test]
fn forged_histories_are_reported_in_sentences() {
    for (cook, sentences) in COOKED {
        let dir = directory();
        drop(open(dir.path()));
        let path = dir.path().join("hive.db");
        let conn = Connection::open(&path).expect("it opens");
        conn.execute_batch(
            "INSERT INTO agent (id, name, source, retired, harness_state_time) \
             VALUES (1, 'operator', 0, 0, 0), (2, 'alice', 1, 0, 0), (3, 'bob', 1, 0, 0), (4, 'zoe', 1, 1, 0); \
             INSERT INTO inbox (agent_id) VALUES (1), (2), (3), (4); \
             INSERT INTO message (id, origin_kind, origin_name, to_id, body, accept_time) \
             VALUES (10, 3, '', 2, 'hello', 0), (14, 3, '', 1, 'hello', 0); \
             INSERT INTO turn (id, agent_id, kind, conversation, session_epoch, process_token, boot_id, start_time, outcome, end_time) \
             VALUES (11, 2, 1, 'main', 1, 'p', 'b', 0, 1, 1); \
             INSERT INTO question (id, asker_id, target_id, text, options, multi, create_time, message_id) \
             VALUES (12, 2, 3, 'why?', '[]', 0, 0, 10); \
             INSERT INTO reminder (id, agent_id, body, create_time, due_time) VALUES (13, 2, 'later', 0, 0)",
        )
        .expect("a hive with books that are right");
        assert_eq!(check(&path, CancellationToken::new()).problems, [] as [&str; 0]);
        conn.execute_batch(cook).expect("cooked");
        let Checked { problems, .. } = check(&path, CancellationToken::new());
        let mut problems: Vec<&str> = problems.iter().map(String::as_str).collect();
        let mut sentences = sentences.to_vec();
        problems.sort_unstable();
        sentences.sort_unstable();
        assert_eq!(problems, sentences, "after {cook}");
    }
}

#[test]
fn at_most_a_hundred_problems_are_reported() {
    let dir = directory();
    drop(open(dir.path()));
    let path = dir.path().join("hive.db");
    Connection::open(&path)
        .expect("it opens")
        .execute_batch(
            "WITH RECURSIVE number (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM number WHERE n < 300) \
             INSERT INTO agent (id, name, source, harness_state_time) SELECT n, 'a' || n, n > 1, 0 FROM number",
        )
        .expect("three hundred agents without an inbox");
    assert_eq!(check(&path, CancellationToken::new()).problems.len(), 100);
}
