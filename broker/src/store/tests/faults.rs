//! Faults: a full or failing disk voids the whole batch, says "unknown, retry", and nothing is
//! answered until the database is sound again.

use std::sync::Arc;

use super::super::{Health, StoreError};
use super::{Failed, GUARD, Hold, directory, heard, open, queue, recovered, said, say};

/// What a disk without room says.
fn disk_full() -> Failed {
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL), None)
        .into()
}

#[tokio::test]
async fn a_full_disk_voids_the_batch_and_the_store_recovers() {
    let dir = directory();
    let (store, commits) = open(dir.path());
    let store = Arc::new(store);
    said(&store, "before").await.expect("committed");
    let full = store.write(|tx| {
        let pages: i64 = tx.pragma_query_value(None, "page_count", |row| row.get(0))?;
        Ok::<_, Failed>(tx.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))?)
    });
    full.await.expect("from now on there is no room for another page");
    let before = commits.all().len();

    let hold = Hold::on(&store).await;
    let innocent = queue(&store, |tx| Ok(say(tx, "small, and first")?)).await;
    let large = queue(&store, |tx| Ok(say(tx, &"large ".repeat(100_000))?)).await;
    let late = queue(&store, |tx| Ok(say(tx, "small, and last")?)).await;
    assert!(hold.release().await.expect_err("void").is_unavailable());
    for task in [innocent, large] {
        assert!(task.await.expect("no panic").expect_err("void").is_unavailable());
    }
    recovered(&store).await;
    // The limit was the connection's own; on the new one there is room again. No caller got the
    // numbers of the aborted batch.
    assert_eq!(
        late.await
            .expect("no panic")
            .expect("it was behind the fault, and is the first of the next batch"),
        2
    );
    assert_eq!(said(&store, "after").await.expect("committed"), 3);
    let bodies = [(1, "before"), (2, "small, and last"), (3, "after")]
        .map(|(id, body)| (id, body.to_owned()));
    assert_eq!(heard(&store).await.expect("read"), (bodies.to_vec(), vec![1, 2, 3]));
    assert_eq!(commits.all().len(), before + 2, "nobody was woken by what was void");
}

#[tokio::test]
async fn each_fault_is_outlived() {
    let dir = directory();
    let (store, _) = open(dir.path());
    for number in 1..=5 {
        let faulty = store.write(|tx| {
            say(tx, "void")?;
            Err::<(), _>(disk_full())
        });
        assert!(faulty.await.expect_err("void").is_unavailable());
        recovered(&store).await;
        assert_eq!(said(&store, "hello").await.expect("committed"), number);
    }
}

#[tokio::test]
async fn while_the_database_is_gone_nothing_is_accepted_or_answered() {
    let dir = directory();
    let (store, commits) = open(dir.path());
    let store = Arc::new(store);
    said(&store, "before").await.expect("committed");
    heard(&store).await.expect("read");
    let (here, aside) = (dir.path().join("hive.db"), dir.path().join("aside.db"));
    let (from, to) = (here.clone(), aside.clone());
    let fault = store.write(move |tx| {
        say(tx, "void")?;
        std::fs::rename(&from, &to).expect("moved");
        Err::<(), _>(disk_full())
    });
    assert!(fault.await.expect_err("void").is_unavailable());
    // A caller that got "unknown" finds the store already faulted.
    assert!(
        matches!(&*store.health().borrow(), Health::Faulted(problem) if problem.contains("full"))
    );
    assert!(heard(&store).await.expect_err("no answer").is_unavailable());
    assert!(said(&store, "meanwhile").await.expect_err("not accepted").is_unavailable());
    assert_eq!(commits.all().len(), 1);
    std::fs::rename(&aside, &here).expect("moved back");
    recovered(&store).await;
    assert_eq!(said(&store, "after").await.expect("committed"), 2);
    let bodies = vec![(1, "before".to_owned()), (2, "after".to_owned())];
    assert_eq!(heard(&store).await.expect("read"), (bodies, vec![1, 2]));
}

#[tokio::test]
async fn a_query_under_way_when_the_fault_comes_is_not_answered() {
    let dir = directory();
    let (store, _) = open(dir.path());
    let store = Arc::new(store);
    said(&store, "before").await.expect("committed");
    let (begun, begins) = tokio::sync::oneshot::channel();
    let (go_on, goes_on) = std::sync::mpsc::channel::<()>();
    let reader = Arc::clone(&store);
    let query = tokio::spawn(async move {
        let read = reader.read(move |_, _| {
            begun.send(()).expect("the test waits");
            goes_on.recv().expect("the test goes on");
            Ok::<_, Failed>(())
        });
        read.await
    });
    begins.await.expect("it reads");
    let (here, aside) = (dir.path().join("hive.db"), dir.path().join("aside.db"));
    let (from, to) = (here.clone(), aside.clone());
    let fault = store.write(move |_| {
        std::fs::rename(&from, &to).expect("moved");
        Err::<(), _>(disk_full())
    });
    assert!(fault.await.expect_err("void").is_unavailable());
    go_on.send(()).expect("it waits");
    assert!(query.await.expect("no panic").expect_err("no answer").is_unavailable());
    std::fs::rename(&aside, &here).expect("moved back");
    recovered(&store).await;
}

#[tokio::test]
async fn a_store_that_is_closed_while_faulted_ends() {
    let dir = directory();
    let (store, _) = open(dir.path());
    let (here, aside) = (dir.path().join("hive.db"), dir.path().join("aside.db"));
    let fault = store.write(move |_| {
        std::fs::rename(&here, &aside).expect("moved");
        Err::<(), _>(disk_full())
    });
    assert!(fault.await.expect_err("void").is_unavailable());
    let ended = tokio::task::spawn_blocking(move || drop(store));
    tokio::time::timeout(GUARD, ended).await.expect("it ends").expect("no panic");
}

#[tokio::test]
async fn an_ordinary_mistake_of_a_command_is_no_fault() {
    let dir = directory();
    let (store, _) = open(dir.path());
    let health = store.health();
    let wrong = store.write(|tx| Ok::<_, Failed>(tx.execute("SELECT * FROM nowhere", [])?)).await;
    assert!(matches!(wrong, Err(Failed::Store(StoreError::Sql(_)))));
    assert!(!health.has_changed().expect("the store is open"));
}
