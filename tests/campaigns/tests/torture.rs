//! A slice of the kill campaign, a check that its rules find tampering, and a check that it drives
//! the whole contract.

use std::collections::BTreeSet;
use std::path::Path;

use hive_campaigns::torture::rpcs::{DRIVEN, LEFT_OUT, RARE};
use hive_campaigns::torture::{self, Options};
use hive_history::Rule;
use rusqlite::Connection;

/// Enough for every kind of kill, and short enough for every day.
const KILLS: u64 = 200;

#[tokio::test(flavor = "multi_thread")]
async fn the_contract_holds_while_every_process_is_killed() {
    let options =
        Options { kills: KILLS, seed: 7, faults: torture::named_faults_dir(), keep: false };
    let run = torture::run(&options, |_, _| {}).await;
    assert!(run.found.is_empty(), "{}", run.found.join("\n"));
    assert!(run.figures.kills() >= KILLS, "{}", run.figures);
    // The hive was not idle.
    for what in [
        "messages",
        "redelivered",
        "turns",
        "questions",
        "reminders",
        "answers lost",
        "broker starts",
        "restores",
    ] {
        assert!(run.figures.get(what) > 0, "there were no {what}: {}", run.figures);
    }
    for rpc in DRIVEN.iter().filter(|rpc| !RARE.contains(rpc)) {
        assert!(
            run.figures.get(&format!("rpc {rpc}")) > 0,
            "{rpc} was never done: {}",
            run.figures
        );
    }
}

#[test]
fn every_rpc_of_the_contract_is_driven_or_listed_as_left_out() {
    let contract = hive_tests::binary::workspace().join("proto/hive/v1");
    let files = std::fs::read_dir(contract)
        .expect("the contract is readable")
        .map(|entry| entry.expect("an entry").path());
    let texts: Vec<String> =
        files.map(|file| std::fs::read_to_string(file).expect("it is text")).collect();
    let lines = texts.iter().flat_map(|text| text.lines());
    let rpcs: BTreeSet<&str> = lines
        .filter_map(|line| line.trim().strip_prefix("rpc ")?.split_once('('))
        .map(|(name, _)| name)
        .collect();
    assert!(rpcs.len() > 30, "the contract was not read");
    let left_out = LEFT_OUT.iter().map(|(name, _)| *name);
    let said: Vec<&str> = DRIVEN.into_iter().chain(left_out).collect();
    let once: BTreeSet<&str> = said.iter().copied().collect();
    assert_eq!(once.len(), said.len(), "one stands in the lists twice");
    assert_eq!(once, rpcs, "the lists of src/torture/rpcs.rs are not the contract");
    assert!(RARE.iter().all(|rpc| DRIVEN.contains(rpc)), "a rare one is driven all the same");
}

fn change(database: &Path, sql: &str) {
    let database = Connection::open(database).expect("the database is there");
    database
        .execute_batch(&format!("PRAGMA foreign_keys = OFF; {sql}"))
        .expect("it can be changed");
}

/// The newest message of an agent whose calls are on the tape; those of real harnesses' claudes are
/// not. One to a guest that was purged may lose its delivery.
const SOME: &str = "(SELECT max(id) FROM message WHERE system_kind IS NULL \
     AND origin_name NOT IN ('h1', 'h2') \
     AND to_id NOT IN (SELECT id FROM agent WHERE purged_name IS NOT NULL))";

fn delete_deliveries() -> String {
    format!(
        "DELETE FROM open_delivery WHERE message_id = {SOME}; DELETE FROM settled_delivery WHERE message_id = {SOME};"
    )
}

fn lose_a_message(database: &Path) {
    change(database, &format!("{} DELETE FROM message WHERE id = {SOME};", delete_deliveries()));
}

fn lose_a_delivery(database: &Path) {
    change(database, &delete_deliveries());
}

fn change_a_body(database: &Path) {
    change(database, &format!("UPDATE message SET body = 'another' WHERE id = {SOME};"));
}

fn use_attempts(database: &Path) {
    change(
        database,
        "UPDATE open_delivery SET failures = failures + 4; UPDATE settled_delivery SET failures = failures + 4;",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_mail_is_found() {
    let found = torture::tampered(11, lose_a_message).await;
    assert!(found.iter().any(|violation| violation.rule == Rule::NothingLost), "{found:?}");
    let found = torture::tampered(12, lose_a_delivery).await;
    assert!(found.iter().any(|violation| violation.rule == Rule::NothingLost), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_mail_is_found() {
    let found = torture::tampered(13, change_a_body).await;
    assert!(
        found.iter().any(|violation| matches!(violation.rule, Rule::Receipt | Rule::NoPhantom)),
        "{found:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_that_nothing_used_are_found() {
    let found = torture::tampered(14, use_attempts).await;
    assert!(found.iter().any(|violation| violation.rule == Rule::Attempts), "{found:?}");
}
