//! A slice of the kill campaign, and whether its check looks at all.

use std::path::Path;

use hive_campaigns::torture::{self, Options};
use hive_history::Rule;
use rusqlite::Connection;

/// Enough for every kind of kill, and not too long for every day.
const KILLS: u64 = 200;

#[tokio::test(flavor = "multi_thread")]
async fn the_contract_holds_while_everybody_is_killed() {
    let options = Options { kills: KILLS, seed: 7, faults: torture::named_faults_dir(), keep: false };
    let run = torture::run(&options, |_, _| {}).await;
    assert!(run.found.is_empty(), "{}", run.found.join("\n"));
    assert!(run.figures.kills() >= KILLS, "{}", run.figures);
    // It was no idle hive.
    for what in ["messages", "redelivered", "turns", "questions", "reminders", "answers lost", "broker starts"] {
        assert!(run.figures.get(what) > 0, "there were no {what}: {}", run.figures);
    }
}

fn change(database: &Path, sql: &str) {
    let database = Connection::open(database).expect("the database is there");
    database.execute_batch(&format!("PRAGMA foreign_keys = OFF; {sql}")).expect("it can be changed");
}

fn lose_a_message(database: &Path) {
    let some = "(SELECT max(id) FROM message WHERE system_kind IS NULL)";
    change(database, &format!("DELETE FROM delivery WHERE message_id = {some}; DELETE FROM message WHERE id = {some};"));
}

fn lose_a_delivery(database: &Path) {
    let some = "(SELECT max(id) FROM message WHERE system_kind IS NULL)";
    change(database, &format!("DELETE FROM delivery WHERE message_id = {some};"));
}

fn change_a_body(database: &Path) {
    change(database, "UPDATE message SET body = 'another' WHERE id = (SELECT max(id) FROM message WHERE system_kind IS NULL);");
}

fn use_attempts(database: &Path) {
    change(database, "UPDATE delivery SET failures = failures + 1;");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_lost_is_found() {
    let found = torture::tampered(11, lose_a_message).await;
    assert!(found.iter().any(|violation| violation.rule == Rule::NothingLost), "{found:?}");
    let found = torture::tampered(12, lose_a_delivery).await;
    assert!(found.iter().any(|violation| violation.rule == Rule::NothingLost), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_changed_is_found() {
    let found = torture::tampered(13, change_a_body).await;
    assert!(found.iter().any(|violation| matches!(violation.rule, Rule::Receipt | Rule::NoPhantom)), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_that_nothing_used_are_found() {
    let found = torture::tampered(14, use_attempts).await;
    assert!(found.iter().any(|violation| violation.rule == Rule::Attempts), "{found:?}");
}
