//! Backups: a backup contains everything that was accepted before the request, and a hive that
//! starts on it continues from there.

use std::path::Path;

use tokio::io::AsyncReadExt as _;
use tokio_util::sync::CancellationToken;

use super::audit::audit;
use super::*;
use crate::engine::operator::backup::Backup;
use crate::store::check::check;

pub(super) async fn bytes(mut backup: Backup) -> Vec<u8> {
    let mut bytes = Vec::new();
    backup.file.read_to_end(&mut bytes).await.expect("it can be read");
    assert_eq!(bytes.len() as u64, backup.bytes);
    bytes
}

/// Puts a copy into a state directory in place of everything in it.
pub(super) fn restore(dir: &Path, copy: &[u8]) {
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_file() {
            std::fs::remove_file(path).expect("removed");
        }
    }
    std::fs::write(dir.join("hive.db"), copy).expect("written");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_is_made_among_sends_is_whole_and_its_books_are_right() {
    let mut hive = Arc::new(Hive::new(&["alice", "bob"]).await);
    let mut last = None;
    for round in 0..3 {
        let before = hive.send("alice", "bob", &format!("before backup {round}")).await;
        let sender = Arc::clone(&hive);
        let sends = tokio::spawn(async move {
            for number in 0..100 {
                sender.send("alice", "bob", &format!("during backup {round}: {number}")).await;
            }
        });
        let copy = bytes(hive.engine().backup().await.expect("a backup")).await;
        done(sends).await;
        let dir = directory();
        let path = dir.path().join("hive.db");
        std::fs::write(&path, &copy).expect("written");
        audit(&path);
        assert_eq!(check(&path, CancellationToken::new()).problems, [] as [&str; 0]);
        last = Some((before, copy));
    }
    let (before, copy) = last.expect("three rounds");
    let hive = Arc::get_mut(&mut hive).expect("nobody sends any more");
    hive.restart_after(|dir| restore(dir, &copy)).await;
    let kept = hive.inbox("bob").await.len();
    assert!((203..=303).contains(&kept), "{kept}: what was accepted before the call is there");
    hive.delivery("bob", before).await;
    let newest = hive.inbox("bob").await.iter().map(|delivery| delivery.message.id).max();
    assert!(Some(hive.send("alice", "bob", "after").await) > newest, "numbers go on");
    assert_eq!(hive.engine().check_integrity().await.expect("checked").problems, [] as [&str; 0]);
}

#[tokio::test]
async fn a_second_backup_is_refused_until_the_first_was_read() {
    let hive = Hive::new(&[]).await;
    let first = hive.engine().backup().await.expect("a backup");
    let refusal = hive.engine().backup().await.expect_err("one at a time");
    assert_eq!(refusal.reason(), Reason::StorageUnavailable);
    assert!(refusal.to_string().contains("another backup is under way"), "{refusal}");
    assert!(refusal.retry_after().is_some(), "waiting helps");
    drop(first);
    hive.engine().backup().await.expect("a backup");
}

#[tokio::test]
async fn a_draining_broker_begins_no_long_work() {
    let hive = Hive::new(&[]).await;
    hive.engine().drain();
    assert_eq!(reason(hive.engine().backup().await), Reason::Draining);
    assert_eq!(reason(hive.engine().check_integrity().await), Reason::Draining);
}

#[tokio::test]
async fn checks_that_come_together_are_all_answered() {
    let hive = Hive::new(&["alice", "bob"]).await;
    hive.send("alice", "bob", "hello").await;
    let engine = hive.engine();
    let (one, two, sent) = tokio::join!(
        engine.check_integrity(),
        engine.check_integrity(),
        hive.send("alice", "bob", "again")
    );
    assert_eq!(one.expect("checked").problems, [] as [&str; 0]);
    assert_eq!(two.expect("checked").problems, [] as [&str; 0]);
    assert!(sent.get() > 0);
}
