//! Group commit: commands share a sync, and each gets its own result.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::{AgentKey, Committed, Effect, Store, StoreError};
use super::{Commits, Failed, Rig, clock, directory, read, send, write};
use crate::clock::Clock as _;

#[tokio::test]
async fn commands_that_wait_together_are_committed_together() {
    let rig = Rig::new();
    let hold = rig.hold().await;
    let mut tasks = Vec::new();
    for number in 0..100 {
        tasks.push(rig.queue_send(number.to_string()).await);
    }
    hold.release().await.expect("committed");
    for (number, task) in (1..=100).zip(tasks) {
        assert_eq!(task.committed().await, number, "first come, first served");
    }
    let commits = rig.commits.all();
    assert_eq!((commits.len(), commits[0].last_event), (1, 100));
    assert_eq!(commits[0].effects, [Effect::Hint(AgentKey::OPERATOR)], "one hint is enough");
    let (bodies, events) = read(&rig.reopen()).await.expect("read");
    assert_eq!(bodies.len(), 100);
    assert_eq!(events, (1..=100).collect::<Vec<u64>>());
}

#[tokio::test]
async fn a_batch_with_many_changes_takes_no_further_command() {
    let rig = Rig::new();
    let hold = rig.hold().await;
    let mut tasks = Vec::new();
    for _ in 0..4 {
        // A message and an event each: two such commands are not too many, and three are.
        let job = rig.queue(|tx| (0..600).try_for_each(|_| write(tx, "hello").map(drop)));
        tasks.push(job.await);
    }
    hold.release().await.expect("committed");
    for task in tasks {
        task.committed().await;
    }
    let commits: Vec<u64> = rig.commits.all().iter().map(|commit| commit.last_event).collect();
    assert_eq!(commits, [1800, 2400]);
}

#[tokio::test]
async fn many_at_once_are_all_there_and_none_twice() {
    let rig = Rig::new();
    let mut tasks = Vec::new();
    for number in 0..2000 {
        let store = Arc::clone(&rig.store);
        tasks.push(tokio::spawn(async move { send(&store, &number.to_string()).await }));
    }
    let mut ids = Vec::new();
    for task in tasks {
        ids.push(task.await.expect("no panic").expect("committed"));
    }
    ids.sort_unstable();
    assert_eq!(ids, (1..=2000).collect::<Vec<u64>>());
    assert!(rig.commits.all().len() < 2000);
    let (messages, _) = read(&rig.reopen()).await.expect("read");
    let mut bodies: Vec<u32> =
        messages.iter().map(|(_, body)| body.parse().expect("a number")).collect();
    bodies.sort_unstable();
    assert_eq!(bodies, (0..2000).collect::<Vec<u32>>());
}

/// Checks with a connection of its own, at the time of the commit, whether the row is there.
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

    fn answered(&self, _: u64) {}
}

#[tokio::test]
async fn effects_and_answers_come_after_the_commit() {
    let dir = directory();
    let witness =
        Arc::new(Witness { path: dir.path().join("hive.db"), saw: AtomicBool::new(false) });
    let committed: Arc<dyn Committed> = Arc::<Witness>::clone(&witness);
    let store = Store::open(dir.path(), clock(), committed).expect("it opens");
    send(&store, "hello").await.expect("committed");
    assert!(witness.saw.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_command_that_fails_is_rolled_back_alone() {
    let rig = Rig::new();
    let hold = rig.hold().await;
    let first = rig.queue_send("first").await;
    let refused = rig.queue(move |tx| {
        write(tx, "refused")?;
        write(tx, "refused too")?;
        tx.after_commit(Effect::Due(tx.now.boot));
        Err::<(), _>(Failed::Refused)
    });
    let refused = refused.await;
    let wrong = rig.queue(|tx| {
        write(tx, "wrong")?;
        tx.connection().execute("INSERT INTO meta (key, value) VALUES (NULL, NULL)", [])?;
        Ok(())
    });
    let wrong = wrong.await;
    let last = rig.queue_send("last").await;
    hold.release().await.expect("committed");
    assert_eq!(first.committed().await, 1);
    assert!(matches!(refused.result().await, Err(Failed::Refused)));
    assert!(matches!(wrong.result().await, Err(Failed::Store(StoreError::Sql(_)))));
    assert_eq!(last.committed().await, 2, "the numbers of those that failed are free again");
    rig.holds(&["first", "last"]).await;
    let commits = rig.commits.all();
    assert_eq!((commits.len(), commits[0].last_event), (1, 2));
    assert!(!commits[0].effects.iter().any(|effect| matches!(effect, Effect::Due(_))));
}

#[tokio::test]
async fn a_command_that_panics_is_rolled_back_alone_and_the_writer_lives() {
    let rig = Rig::new();
    let hold = rig.hold().await;
    let first = rig.queue_send("first").await;
    let panics = rig.queue::<(), _>(|tx| {
        write(tx, "half done")?;
        panic!("a bug");
    });
    let panics = panics.await;
    let last = rig.queue_send("last").await;
    hold.release().await.expect("committed");
    assert_eq!(first.committed().await, 1);
    assert!(matches!(panics.result().await, Err(Failed::Store(StoreError::Panicked))));
    assert_eq!(last.committed().await, 2);
    assert_eq!(rig.commits.all().len(), 1);
    assert_eq!(rig.send("after").await, 3, "the writer lives");
    rig.holds(&["first", "last", "after"]).await;
}

#[tokio::test]
async fn a_query_that_panics_harms_no_other_call() {
    let rig = Rig::new();
    for _ in 0..5 {
        let answer = rig.read(|_, _| -> Result<(), Failed> {
            panic!("a bug");
        });
        assert!(matches!(answer.await, Err(Failed::Store(StoreError::Panicked))));
    }
    rig.send("hello").await;
    rig.holds(&["hello"]).await;
}

#[tokio::test]
async fn a_command_whose_caller_is_gone_is_done() {
    let rig = Rig::new();
    let hold = rig.hold().await;
    let task = rig.queue_send("its caller is gone").await;
    task.0.abort();
    assert!(task.0.await.is_err());
    hold.release().await.expect("committed");
    rig.send("next").await;
    rig.holds(&["its caller is gone", "next"]).await;
}

#[tokio::test]
async fn a_reader_sees_the_callers_own_last_commit() {
    let rig = Rig::new();
    for number in 1..=100 {
        rig.send("hello").await;
        rig.holds(&vec!["hello"; number]).await;
    }
}

#[tokio::test]
async fn a_query_reads_one_snapshot() {
    let rig = Rig::new();
    rig.send("before").await;
    let (begun, begins) = tokio::sync::oneshot::channel();
    let (go_on, goes_on) = std::sync::mpsc::channel::<()>();
    let reader = Arc::clone(&rig.store);
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
    send(&rig, "during the query").await.expect("a reader holds up no writer");
    go_on.send(()).expect("it waits");
    assert_eq!(query.await.expect("no panic").expect("read"), (1, 1));
}

#[tokio::test]
async fn closing_finishes_what_is_queued_and_refuses_later_commands() {
    let rig = Rig::new();
    let hold = rig.hold().await;
    let queued = rig.queue_send("in time").await;
    let closing = Arc::clone(&rig.store);
    let closed = tokio::task::spawn_blocking(move || closing.close());
    hold.release().await.expect("committed");
    closed.await.expect("no panic");
    assert_eq!(queued.committed().await, 1);
    assert!(matches!(send(&rig, "late").await, Err(Failed::Store(StoreError::Closed))));
    rig.reopen().holds(&["in time"]).await;
}

#[tokio::test]
async fn the_time_of_a_command_is_not_before_its_call() {
    let (dir, clock, commits) = (directory(), clock(), Arc::new(Commits::default()));
    let committed: Arc<dyn Committed> = Arc::<Commits>::clone(&commits);
    let store = Store::open(dir.path(), Arc::<_>::clone(&clock) as _, committed);
    let rig = Rig { dir, store: Arc::new(store.expect("it opens")), commits };
    let hold = rig.hold().await;
    // The batch has begun, and the command that will be in it has not been called.
    clock.advance(std::time::Duration::from_secs(10));
    let called = clock.now();
    let command = rig.queue(move |tx| Ok(tx.now)).await;
    hold.release().await.expect("committed");
    let now = command.committed().await;
    assert_eq!(rig.commits.all().len(), 1, "they share a batch");
    assert_eq!((now.wall, now.boot), (called.wall, called.boot));
}
