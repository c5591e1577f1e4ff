//! Group commit: commands share a sync, and each answers for itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::{AgentKey, Committed, Effect, Store, StoreError};
use super::{Failed, Hold, directory, heard, open, queue, said, say};
use crate::clock::ManualClock;

#[tokio::test]
async fn commands_that_wait_together_are_committed_together() {
    let dir = directory();
    let (store, commits) = open(dir.path());
    let store = Arc::new(store);
    let hold = Hold::on(&store).await;
    let mut tasks = Vec::new();
    for number in 0..100 {
        tasks.push(queue(&store, move |tx| Ok(say(tx, &number.to_string())?)).await);
    }
    hold.release().await.expect("committed");
    for (number, task) in (1..=100).zip(tasks) {
        assert_eq!(
            task.await.expect("no panic").expect("committed"),
            number,
            "first come, first served"
        );
    }
    let told = commits.all();
    assert_eq!((told.len(), told[0].last_event), (1, 100));
    assert_eq!(told[0].effects, [Effect::Hint(AgentKey::OPERATOR)], "one hint is enough");
    drop(Arc::into_inner(store).expect("the last one"));
    let (store, _) = open(dir.path());
    let (bodies, events) = heard(&store).await.expect("read");
    assert_eq!(bodies.len(), 100);
    assert_eq!(events, (1..=100).collect::<Vec<u64>>());
}

#[tokio::test]
async fn many_at_once_are_all_there_and_none_twice() {
    let dir = directory();
    let (store, commits) = open(dir.path());
    let store = Arc::new(store);
    let mut tasks = Vec::new();
    for number in 0..2000 {
        let store = Arc::clone(&store);
        tasks.push(tokio::spawn(async move { said(&store, &number.to_string()).await }));
    }
    let mut ids = Vec::new();
    for task in tasks {
        ids.push(task.await.expect("no panic").expect("committed"));
    }
    ids.sort_unstable();
    assert_eq!(ids, (1..=2000).collect::<Vec<u64>>());
    assert!(commits.all().len() < 2000);
    drop(Arc::into_inner(store).expect("the last one"));
    let (store, _) = open(dir.path());
    let mut bodies: Vec<u32> = heard(&store)
        .await
        .expect("read")
        .0
        .iter()
        .map(|(_, body)| body.parse().expect("a number"))
        .collect();
    bodies.sort_unstable();
    assert_eq!(bodies, (0..2000).collect::<Vec<u32>>());
}

/// Looks from outside, at the moment of the commit, whether the row is there.
struct Witness {
    path: std::path::PathBuf,
    saw: AtomicBool,
}

impl Committed for Witness {
    fn committed(&self, _: &[Effect], _: u64) {
        let conn = rusqlite::Connection::open(&self.path).expect("opened");
        let rows: i64 =
            conn.query_row("SELECT count(*) FROM message", [], |row| row.get(0)).expect("counted");
        self.saw.store(rows > 0, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn effects_and_answers_come_after_the_commit() {
    let dir = directory();
    let witness =
        Arc::new(Witness { path: dir.path().join("hive.db"), saw: AtomicBool::new(false) });
    let committed: Arc<dyn Committed> = Arc::<Witness>::clone(&witness);
    let store =
        Store::open(dir.path(), Arc::new(ManualClock::new("boot-0")), committed).expect("it opens");
    said(&store, "hello").await.expect("committed");
    assert!(witness.saw.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_failed_command_rolls_back_only_itself() {
    let dir = directory();
    let (store, commits) = open(dir.path());
    let store = Arc::new(store);
    let hold = Hold::on(&store).await;
    let first = queue(&store, |tx| Ok(say(tx, "first")?)).await;
    let refused = queue(&store, move |tx| {
        say(tx, "refused")?;
        say(tx, "refused too")?;
        tx.after_commit(Effect::Due);
        Err::<(), _>(Failed::Refused)
    })
    .await;
    let wrong = queue(&store, |tx| {
        say(tx, "wrong")?;
        tx.execute("INSERT INTO meta (key, value) VALUES (NULL, NULL)", [])?;
        Ok(())
    })
    .await;
    let last = queue(&store, |tx| Ok(say(tx, "last")?)).await;
    hold.release().await.expect("committed");
    assert_eq!(first.await.expect("no panic").expect("committed"), 1);
    assert!(matches!(refused.await.expect("no panic"), Err(Failed::Refused)));
    assert!(matches!(wrong.await.expect("no panic"), Err(Failed::Store(StoreError::Sql(_)))));
    assert_eq!(
        last.await.expect("no panic").expect("committed"),
        2,
        "the numbers of those that failed are free again"
    );
    let bodies = vec![(1, "first".to_owned()), (2, "last".to_owned())];
    assert_eq!(heard(&store).await.expect("read"), (bodies, vec![1, 2]));
    let told = commits.all();
    assert_eq!((told.len(), told[0].last_event), (1, 2));
    assert!(!told[0].effects.contains(&Effect::Due));
}

#[tokio::test]
async fn a_command_that_panics_rolls_back_only_itself_and_the_writer_lives() {
    let dir = directory();
    let (store, commits) = open(dir.path());
    let store = Arc::new(store);
    let hold = Hold::on(&store).await;
    let first = queue(&store, |tx| Ok(say(tx, "first")?)).await;
    let panics = queue::<(), _>(&store, |tx| {
        say(tx, "half done")?;
        panic!("a bug");
    })
    .await;
    let last = queue(&store, |tx| Ok(say(tx, "last")?)).await;
    hold.release().await.expect("committed");
    assert_eq!(first.await.expect("no panic").expect("committed"), 1);
    assert!(matches!(
        panics.await.expect("the caller does not panic"),
        Err(Failed::Store(StoreError::Panicked))
    ));
    assert_eq!(last.await.expect("no panic").expect("committed"), 2);
    assert_eq!(commits.all().len(), 1);
    assert_eq!(said(&store, "on and on").await.expect("the writer lives"), 3);
    assert_eq!(heard(&store).await.expect("read").0.len(), 3);
}

#[tokio::test]
async fn a_query_that_panics_does_not_disturb_others() {
    let dir = directory();
    let (store, _) = open(dir.path());
    for _ in 0..5 {
        let answer = store.read(|_, _| -> Result<(), Failed> {
            panic!("a bug");
        });
        assert!(matches!(answer.await, Err(Failed::Store(StoreError::Panicked))));
    }
    said(&store, "hello").await.expect("committed");
    assert_eq!(heard(&store).await.expect("read").0.len(), 1);
}

#[tokio::test]
async fn a_command_of_a_dropped_caller_is_still_committed() {
    let dir = directory();
    let (store, _) = open(dir.path());
    let store = Arc::new(store);
    let hold = Hold::on(&store).await;
    let task = queue(&store, |tx| Ok(say(tx, "nobody waits")?)).await;
    task.abort();
    assert!(task.await.is_err());
    hold.release().await.expect("committed");
    said(&store, "next").await.expect("committed");
    assert_eq!(heard(&store).await.expect("read").0.len(), 2);
}

#[tokio::test]
async fn a_reader_sees_the_callers_own_last_commit() {
    let dir = directory();
    let (store, _) = open(dir.path());
    for number in 1..=100 {
        said(&store, "hello").await.expect("committed");
        assert_eq!(heard(&store).await.expect("read").0.len(), number);
    }
}

#[tokio::test]
async fn a_query_reads_one_moment() {
    let dir = directory();
    let (store, _) = open(dir.path());
    let store = Arc::new(store);
    said(&store, "before").await.expect("committed");
    let (begun, begins) = tokio::sync::oneshot::channel();
    let (go_on, goes_on) = std::sync::mpsc::channel::<()>();
    let reader = Arc::clone(&store);
    let query = tokio::spawn(async move {
        let read = reader.read(move |conn, _| {
            let count =
                || conn.query_row("SELECT count(*) FROM message", [], |row| row.get::<_, i64>(0));
            let before = count()?;
            begun.send(()).expect("the test waits");
            goes_on.recv().expect("the test goes on");
            Ok::<_, Failed>((before, count()?))
        });
        read.await
    });
    begins.await.expect("it reads");
    said(&store, "meanwhile").await.expect("a reader holds up no writer");
    go_on.send(()).expect("it waits");
    assert_eq!(query.await.expect("no panic").expect("read"), (1, 1));
}

#[tokio::test]
async fn closing_finishes_queued_commands_and_refuses_later_ones() {
    let dir = directory();
    let (store, _) = open(dir.path());
    let store = Arc::new(store);
    let hold = Hold::on(&store).await;
    let queued = queue(&store, |tx| Ok(say(tx, "in time")?)).await;
    let closing = Arc::clone(&store);
    let closed = tokio::task::spawn_blocking(move || closing.close());
    hold.release().await.expect("committed");
    closed.await.expect("no panic");
    assert_eq!(queued.await.expect("no panic").expect("committed"), 1);
    assert!(matches!(said(&store, "late").await, Err(Failed::Store(StoreError::Closed))));
    drop(Arc::into_inner(store).expect("the last one"));
    let (store, _) = open(dir.path());
    assert_eq!(heard(&store).await.expect("read").0.len(), 1);
}

#[tokio::test]
async fn a_command_knows_no_time_before_it_was_called() {
    let dir = directory();
    let (clock, committed) =
        (Arc::new(ManualClock::new("boot-0")), Arc::new(super::Commits::default()));
    let store = Store::open(
        dir.path(),
        Arc::<ManualClock>::clone(&clock),
        Arc::<super::Commits>::clone(&committed),
    );
    let store = Arc::new(store.expect("it opens"));
    let hold = Hold::on(&store).await;
    // The batch has begun, and the command that will be in it has not been called.
    clock.advance(std::time::Duration::from_secs(10));
    let called = crate::clock::Clock::now(&*clock);
    let told = queue(&store, move |tx| Ok(tx.now)).await;
    hold.release().await.expect("committed");
    let now = told.await.expect("no panic").expect("committed");
    assert_eq!(committed.all().len(), 1, "they share a batch");
    assert_eq!(
        (now.wall, now.boot),
        (called.wall, called.boot),
        "a span of it would begin before it was asked for"
    );
}
