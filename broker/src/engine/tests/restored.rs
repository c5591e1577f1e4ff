//! Restored backups: a new log begins, nothing of the replaced database goes on or is used again,
//! and what the backup holds is kept.

use std::path::Path;

use hive_core::delivery::RedeliveryCause;
use hive_core::event::{HarnessLoss, HarnessLost};
use hive_core::time::WallTime;

use super::backup::bytes;
use super::*;
use crate::store::request::RequestKey;
use crate::store::restore::restore;
use crate::store::turn_events::Line;

/// The time that a copy without a mark gets.
const NOW: WallTime = WallTime(1_000);

/// Makes a backup in a directory of its own.
async fn copy_of(hive: &Hive) -> tempfile::TempDir {
    let dir = directory();
    let copy = bytes(hive.engine().backup().await.expect("a backup")).await;
    std::fs::write(dir.path().join("copy.db"), copy).expect("written");
    dir
}

/// Stops the broker, restores the backup as `hived restore` does, and starts the broker.
async fn put_back(hive: &mut Hive, copy: &tempfile::TempDir) {
    hive.restart_after(|dir| {
        restore(dir, &copy.path().join("copy.db"), NOW).expect("restored");
    })
    .await;
}

async fn log_of(hive: &Hive) -> String {
    hive.engine().log_id().to_owned()
}

async fn last_event(hive: &Hive) -> u64 {
    hive.events().await.last().expect("events").sequence
}

#[tokio::test]
async fn a_follower_of_the_replaced_log_is_told_and_numbers_go_on_above_it() {
    let mut hive = Hive::new(&["alice", "bob"]).await;
    let kept = hive.send("alice", "bob", "kept").await;
    let (log, copy) = (log_of(&hive).await, copy_of(&hive).await);
    let mut lost = kept;
    for number in 0..10 {
        lost = hive.send("alice", "bob", &format!("lost {number}")).await;
    }
    let position = last_event(&hive).await;
    put_back(&mut hive, &copy).await;

    let engine = hive.engine();
    assert!(engine.is_of_log(position, &log_of(&hive).await).expect("the present log"));
    assert!(!engine.is_of_log(position, &log).expect("another log"));
    assert_eq!(reason(engine.is_of_log(position, "")), Reason::FieldInvalid);
    let begun = hive.events().await.into_iter().find(|event| event.kind() == EventKind::LogBegun);
    assert_eq!(begun.expect("it is in the log").sequence, position + 1);
    assert_eq!(hive.inbox("bob").await.len(), 1, "what was accepted after the backup is gone");
    let next = hive.send("alice", "bob", "after").await;
    assert_eq!(next.get(), lost.get() + 1, "no id is used again");
    assert_eq!(hive.engine().check_integrity().await.expect("checked").problems, [] as [&str; 0]);
}

#[tokio::test]
async fn a_log_stays_the_same_as_long_as_no_backup_replaces_it() {
    let mut hive = Hive::new(&["alice"]).await;
    let log = log_of(&hive).await;
    assert_eq!(log.len(), 32, "{log}");
    drop(copy_of(&hive).await);
    hive.restart().await;
    hive.reboot().await;
    assert_eq!(log_of(&hive).await, log, "the source of a backup is not marked");
}

#[tokio::test]
async fn each_restore_begins_a_log_of_its_own_above_all_earlier_ones() {
    let mut hive = Hive::new(&["alice", "bob"]).await;
    let copy = copy_of(&hive).await;
    let (mut logs, mut last) = (vec![log_of(&hive).await], 0);
    for _ in 0..3 {
        let sent = hive.send("alice", "bob", "lost").await.get();
        assert!(sent > last, "{sent} was used before");
        last = sent;
        put_back(&mut hive, &copy).await;
        let log = log_of(&hive).await;
        assert!(!logs.contains(&log), "{log} is the id of an earlier log");
        logs.push(log);
    }
}

#[tokio::test]
async fn without_the_replaced_database_numbers_go_on_at_a_full_million() {
    let mut hive = Hive::new(&["alice", "bob"]).await;
    hive.send("alice", "bob", "kept").await;
    let copy = bytes(hive.engine().backup().await.expect("a backup")).await;
    hive.send("alice", "bob", "lost").await;
    hive.restart_after(|dir| backup::restore(dir, &copy)).await;
    let begun = hive.events().await.into_iter().find(|event| event.kind() == EventKind::LogBegun);
    assert_eq!(begun.expect("it is in the log").sequence, 2_000_001);
    assert_eq!(hive.send("alice", "bob", "after").await, message(2_000_001));
    hive.restart().await;
    assert_eq!(hive.send("alice", "bob", "again").await, message(2_000_002));
}

#[tokio::test]
async fn a_database_that_cannot_be_read_counts_as_gone() {
    let mut hive = Hive::new(&["alice", "bob"]).await;
    let copy = copy_of(&hive).await;
    hive.restart_after(|dir| {
        std::fs::write(dir.join("hive.db"), "damaged").expect("written");
        let done = restore(dir, &copy.path().join("copy.db"), NOW).expect("restored");
        assert!(!done.numbers_known);
        let kept = done.replaced.expect("it is kept");
        assert_eq!(std::fs::read(kept).expect("it can be read"), b"damaged");
    })
    .await;
    assert_eq!(hive.send("alice", "bob", "after").await, message(2_000_001));
}

#[tokio::test]
async fn turns_and_sessions_of_the_backup_end_without_an_attempt() {
    let (mut hive, mut harness, run) = in_mid_turn().await;
    let second = hive.send("alice", "bob", "received in the turn").await;
    hive.recv(&run, "toolu_1", 1).await;
    let copy = copy_of(&hive).await;
    hive.end(&run, Outcome::Ok).await;
    harness.vanish();
    put_back(&mut hive, &copy).await;

    assert_eq!(hive.outcome(&run).await, Some(Outcome::Fenced));
    for sent in [run.message(), second] {
        let delivery = hive.delivery("bob", sent).await;
        assert_eq!(delivery.state, State::Ready);
        assert_eq!(delivery.cause, Some(RedeliveryCause::Restored));
        assert_eq!(delivery.attempt, 1, "no attempt was used");
    }
    let lost = HarnessLost { session_epoch: harness.epoch, loss: HarnessLoss::Restored };
    assert!(hive.events().await.iter().any(|event| event.facts == lost.into()));
    assert_eq!(reason(hive.try_end(&run, ended(Outcome::Ok)).await), Reason::SessionLost);
    let again = hive.try_attach("bob", &harness.token, false).await.expect("a new session");
    assert!(!again.resumed, "the session of the backup is over");
    assert_ne!(again.token, harness.token);
    assert!(again.open_turn.is_none());
    let redelivered = hive.begin(&again).await;
    assert_eq!(redelivered.message(), run.message());
    assert_eq!(redelivered.begun().delivery().attempt, 1);
    assert!(redelivered.id > run.id);
}

#[tokio::test]
async fn leases_of_consumers_end_without_an_attempt() {
    let mut hive = Hive::new(&["alice", "bob"]).await;
    let sent = hive.send("alice", "bob", "hello").await;
    let leased = hive.receive("bob", 1).await.remove(0);
    let copy = copy_of(&hive).await;
    hive.ack("bob", &leased).await.expect("acked");
    put_back(&mut hive, &copy).await;

    assert_eq!(reason(hive.ack("bob", &leased).await), Reason::LeaseLost);
    let again = hive.receive("bob", 1).await.remove(0);
    assert_eq!(again.delivery.message.id, sent);
    assert_eq!(again.delivery.cause, Some(RedeliveryCause::Restored));
    assert_eq!(again.delivery.attempt, 1);
}

#[tokio::test]
async fn a_request_is_repeated_as_far_as_the_backup_knows_it() {
    let mut hive = Hive::new(&["alice", "bob"]).await;
    let (early, late) = (request("SendMessage", "early", 1), request("SendMessage", "late", 2));
    let send = |hive: &Hive, key: &RequestKey| {
        let (engine, key) = (Arc::clone(hive.engine()), key.clone());
        async move { engine.send(actor("alice"), key, mail("bob", "hello")).await }
    };
    let kept = send(&hive, &early).await.expect("sent").message;
    let copy = copy_of(&hive).await;
    let lost = send(&hive, &late).await.expect("sent").message;
    put_back(&mut hive, &copy).await;
    assert_eq!(send(&hive, &early).await.expect("a repeat").message, kept);
    let again = send(&hive, &late).await.expect("sent anew").message;
    assert!(again > lost, "{again}: it was lost with its request id, and its id is not used again");
    assert_eq!(hive.inbox("bob").await.len(), 2);
}

/// Fills the search index and finds messages with a word.
async fn found(hive: &Hive, word: &str) -> usize {
    while hive.engine().index_search().await.expect("indexed") {}
    let search = crate::engine::mail::search::Search {
        query: word.to_owned(),
        rows: 20,
        ..Default::default()
    };
    hive.engine().search_messages(caller("operator"), search).await.expect("found").0.len()
}

#[tokio::test]
async fn a_search_finds_what_the_backup_holds_and_nothing_else() {
    let mut hive = Hive::new(&["alice", "bob"]).await;
    hive.send("alice", "bob", "pruned after the backup").await;
    assert_eq!(found(&hive, "pruned").await, 1);
    let copy = copy_of(&hive).await;
    let index = hive.path().with_file_name("search.sqlite3");
    hive.send("alice", "bob", "lost").await;
    assert_eq!(found(&hive, "lost").await, 1);
    put_back(&mut hive, &copy).await;
    assert_eq!(found(&hive, "lost").await, 0);
    // An index that lacks mail which the backup still holds, at the position of the backup.
    rusqlite::Connection::open(&index)
        .expect("opened")
        .execute("DELETE FROM words", [])
        .expect("emptied");
    let copy = copy_of(&hive).await;
    put_back(&mut hive, &copy).await;
    assert_eq!(found(&hive, "pruned").await, 1);
}

fn line(text: &str) -> Line {
    Line { sequence: 1, stream: 1, text: text.to_owned(), time: WallTime(1) }
}

#[tokio::test]
async fn lines_of_turns_that_the_backup_does_not_have_are_deleted() {
    let (mut hive, harness, run) = in_mid_turn().await;
    hive.engine().turn_events.append(run.id, &[line("kept")]).expect("written");
    let copy = copy_of(&hive).await;
    hive.end(&run, Outcome::Ok).await;
    hive.send("alice", "bob", "lost").await;
    let lost = hive.begin(&harness).await;
    hive.engine().turn_events.append(lost.id, &[line("lost")]).expect("written");
    put_back(&mut hive, &copy).await;
    let lines = |turn| hive.engine().turn_events.after(turn, 0, 10, 1000).expect("read");
    assert_eq!(lines(run.id), [line("kept")]);
    assert_eq!(lines(lost.id), []);
}

#[tokio::test]
async fn a_copy_made_by_hand_is_right_if_it_is_restored() {
    let mut hive = Hive::new(&["alice", "bob"]).await;
    let log = log_of(&hive).await;
    hive.send("alice", "bob", "kept").await;
    let copy = directory();
    hive.restart_after(|dir| {
        std::fs::copy(dir.join("hive.db"), copy.path().join("copy.db")).expect("copied");
    })
    .await;
    let lost = hive.send("alice", "bob", "lost").await;
    put_back(&mut hive, &copy).await;
    assert_ne!(log_of(&hive).await, log);
    assert_eq!(hive.inbox("bob").await.len(), 1);
    assert!(hive.send("alice", "bob", "after").await > lost);
}

#[tokio::test]
async fn a_restore_is_undone_by_restoring_what_it_replaced() {
    let mut hive = Hive::new(&["alice", "bob"]).await;
    let copy = copy_of(&hive).await;
    let lost = hive.send("alice", "bob", "lost").await;
    put_back(&mut hive, &copy).await;
    let after = hive.send("alice", "bob", "after").await;
    let replaced = |dir: &Path, number| dir.join(format!("hive.replaced-{number}.db"));
    hive.restart_after(|dir| {
        let done = restore(dir, &replaced(dir, 1), NOW).expect("restored");
        assert_eq!(done.replaced, Some(replaced(dir, 2)));
    })
    .await;
    let bodies: Vec<String> =
        hive.inbox("bob").await.into_iter().map(|delivery| delivery.message.body).collect();
    assert_eq!(bodies, ["lost"]);
    hive.delivery("bob", lost).await;
    assert!(hive.send("alice", "bob", "again").await > after);
}

#[tokio::test]
async fn etags_of_the_replaced_database_are_stale_and_a_later_agent_has_another_one() {
    let mut hive = Hive::new(&["alice"]).await;
    let copy = copy_of(&hive).await;
    hive.create("bob", None, Policy::default()).await;
    let read = [hive.agent("alice").await.etag, hive.agent("bob").await.etag];
    let lost = hive.row("bob").await.key;
    put_back(&mut hive, &copy).await;
    // The row of the second bob has the key of the first one.
    hive.create("bob", None, Policy::default()).await;
    assert_eq!(hive.row("bob").await.key, lost);
    assert_ne!(hive.agent("bob").await.etag, read[1]);
    assert_ne!(hive.agent("alice").await.etag, read[0], "it is to be read again");
}
