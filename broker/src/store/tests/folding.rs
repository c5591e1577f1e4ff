//! The log is folded while nothing is written, and when it has grown, and stays bounded while
//! readers overlap.

use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, OpenFlags};
use tokio_util::sync::CancellationToken;

use super::super::file::fold;
use super::{Failed, GUARD, Rig, send};

/// Returns the number of messages in the database file, without its log.
pub(super) fn folded(dir: &Path) -> Option<u32> {
    let copy = tempfile::NamedTempFile::new().expect("a file");
    std::fs::copy(dir.join("hive.db"), copy.path()).expect("copied");
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
    let conn = Connection::open_with_flags(copy.path(), flags).expect("it opens");
    let found = conn.query_row("SELECT count(*) FROM message", [], |row| row.get(0)).ok();
    drop(conn.pragma_update_and_check(None, "journal_mode", "delete", |_| Ok(())));
    found
}

fn log_bytes(dir: &Path) -> u64 {
    std::fs::metadata(dir.join("hive.db-wal")).map_or(0, |file| file.len())
}

#[tokio::test]
async fn a_log_is_folded_as_soon_as_nothing_is_written() {
    let rig = Rig::new();
    let body = "b".repeat(fold::IDLE_PAGES as usize * 4096);
    rig.send(&body).await;
    let is_folded = async {
        while folded(rig.dir.path()) != Some(1) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(GUARD, is_folded).await.expect("it is folded");
    // The next commit writes over the log.
    let before = log_bytes(rig.dir.path());
    rig.send("short").await;
    assert_eq!(log_bytes(rig.dir.path()), before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_stays_bounded_while_queries_overlap() {
    // As long as a commit or two.
    const SLOW: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000) \
         SELECT count(*) + (SELECT count(*) FROM message) FROM n";
    let rig = Rig::new();
    let body = "b".repeat(64 * 4096);
    let stop = CancellationToken::new();
    let read_on = || {
        let (store, stop) = (Arc::clone(&rig.store), stop.clone());
        tokio::spawn(async move {
            while !stop.is_cancelled() {
                let count = |conn: &Connection| conn.query_row(SLOW, [], |row| row.get(0));
                let read = store.read(move |conn, _| Ok::<u32, Failed>(count(conn)?));
                read.await.expect("read");
            }
        })
    };
    let readers = [read_on(), read_on(), read_on()];
    let mut longest = 0;
    for _ in 0..400 {
        send(&rig, &body).await.expect("committed");
        longest = longest.max(log_bytes(rig.dir.path()));
    }
    stop.cancel();
    for reader in readers {
        reader.await.expect("a reader");
    }
    // Some queries are longer than the wait for them, so it may take a few attempts.
    let most = u64::from(fold::LONG_PAGES + 4 * fold::PAGES) * 4096;
    assert!(longest <= most, "the log had {longest} bytes, of {most}");
}
