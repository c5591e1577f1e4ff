//! The writer's memory: agents and counts are what the transaction would return, whatever fails.

use hive_core::agent::{Policy, Source};
use hive_core::delivery::Lane;
use hive_core::id::MessageId;

use super::super::agent::{self, NewAgent};
use super::super::{AgentKey, Tx, delivery, inbox, lease};
use super::{Failed, Rig, aborted, disk, write};

/// Creates an agent; returns its key.
pub(super) async fn create(rig: &Rig, name: &'static str) -> AgentKey {
    let policy = Policy::default();
    let created = rig.write(move |tx| {
        agent::ensure_operator(tx)?;
        let (role, model) = ("", "");
        let new = NewAgent {
            name,
            source: Source::Runtime,
            parent: None,
            role,
            model,
            policy: &policy,
            declared: None,
        };
        Ok::<_, Failed>(agent::insert(tx, &new)?)
    });
    created.await.expect("created")
}

/// Puts a new message into an inbox.
pub(super) fn deliver(tx: &Tx<'_>, to: AgentKey) -> Result<(), Failed> {
    let id = MessageId::new(write(tx, "hello")?).expect("not 0");
    Ok(delivery::insert(tx, to, id, Lane::Normal, None, 5)?)
}

/// Returns the open deliveries of an inbox and the model of its agent: those that a command sees,
/// and those on disk.
async fn seen(rig: &Rig, key: AgentKey) -> ((u32, String), (u32, String)) {
    let in_memory = rig.write(move |tx| {
        let agent = agent::by_key(tx, key)?;
        Ok::<_, Failed>((inbox::get(tx, key)?.open_count, agent.model.clone()))
    });
    let on_disk = rig.read(move |conn, _| {
        let sql = "SELECT i.open_count, a.model FROM inbox i JOIN agent a ON a.id = i.agent_id WHERE a.id = ?1";
        Ok::<_, Failed>(conn.query_row(sql, [key.0], |row| Ok((row.get(0)?, row.get(1)?)))?)
    });
    (in_memory.await.expect("read"), on_disk.await.expect("read"))
}

fn set_model(tx: &Tx<'_>, key: AgentKey, model: &str) -> Result<(), Failed> {
    let row = agent::by_key(tx, key)?;
    Ok(agent::update(tx, &agent::AgentRow { model: model.to_owned(), ..(*row).clone() })?)
}

#[tokio::test]
async fn a_command_sees_the_earlier_ones_of_its_batch_and_none_that_failed() {
    let rig = Rig::new();
    let key = create(&rig, "ada").await;
    let hold = rig.hold().await;
    let first = rig
        .queue(move |tx| {
            deliver(tx, key)?;
            set_model(tx, key, "large")
        })
        .await;
    let failed = rig
        .queue(move |tx| {
            deliver(tx, key)?;
            set_model(tx, key, "wrong")?;
            // Reads its own change into memory.
            assert_eq!(agent::by_key(tx, key)?.model, "wrong");
            assert_eq!(inbox::get(tx, key)?.open_count, 2);
            Err::<(), _>(Failed::Refused)
        })
        .await;
    let last = rig
        .queue(move |tx| {
            Ok((inbox::get(tx, key)?.open_count, agent::by_key(tx, key)?.model.clone()))
        })
        .await;
    hold.release().await.expect("committed");
    first.committed().await;
    failed.result().await.expect_err("refused");
    assert_eq!(last.committed().await, (1, "large".to_owned()));
    let expected = (1, "large".to_owned());
    assert_eq!(seen(&rig, key).await, (expected.clone(), expected));
}

#[tokio::test]
async fn counts_that_a_failed_command_has_written_are_written_again() {
    let rig = Rig::new();
    let key = create(&rig, "ada").await;
    let hold = rig.hold().await;
    let first = rig.queue(move |tx| deliver(tx, key)).await;
    let failed = rig
        .queue(move |tx| {
            // Writes the counts that the command before has changed.
            lease::holders(tx)?;
            Err::<(), _>(Failed::Refused)
        })
        .await;
    hold.release().await.expect("committed");
    first.committed().await;
    failed.result().await.expect_err("refused");
    let expected = (1, String::new());
    assert_eq!(seen(&rig, key).await, (expected.clone(), expected));
}

#[tokio::test]
async fn an_aborted_batch_leaves_nothing_in_memory() {
    let rig = Rig::new();
    let key = create(&rig, "ada").await;
    let faulty = rig.write(move |tx| {
        deliver(tx, key)?;
        set_model(tx, key, "wrong")?;
        Err::<(), _>(disk(rusqlite::ffi::SQLITE_FULL))
    });
    aborted(faulty.await);
    rig.recovered().await;
    let expected = (0, String::new());
    assert_eq!(seen(&rig, key).await, (expected.clone(), expected));
}

#[tokio::test]
async fn a_command_that_checks_first_may_fail_before_it_writes() {
    let rig = Rig::new();
    let key = create(&rig, "ada").await;
    let hold = rig.hold().await;
    let written = rig.queue_send("kept").await;
    let store = std::sync::Arc::clone(&rig.store);
    let refused = tokio::spawn(async move {
        let command = move |tx: &Tx<'_>| {
            agent::by_key(tx, key)?;
            Err::<(), _>(Failed::Refused)
        };
        store.write_after_checks(command).await
    });
    tokio::task::yield_now().await;
    hold.release().await.expect("committed");
    written.committed().await;
    let refused = refused.await.expect("no panic");
    assert!(matches!(refused, Err(Failed::Refused)), "{refused:?}");
    rig.holds(&["kept"]).await;
}

#[tokio::test]
async fn a_command_that_fails_after_it_has_written_aborts_its_batch() {
    let rig = Rig::new();
    rig.send("before").await;
    let hold = rig.hold().await;
    let innocent = rig.queue_send("in the same batch").await;
    let store = std::sync::Arc::clone(&rig.store);
    let half = tokio::spawn(async move {
        let command = |tx: &Tx<'_>| {
            write(tx, "half")?;
            Err::<(), _>(Failed::Refused)
        };
        store.write_after_checks(command).await
    });
    tokio::task::yield_now().await;
    aborted(hold.release().await);
    aborted(innocent.result().await);
    aborted(half.await.expect("no panic"));
    rig.recovered().await;
    let panicked = rig.write_after_checks(|tx| {
        write(tx, "half")?;
        panic!("a bug");
        #[expect(unreachable_code, reason = "the type of the command")]
        Ok::<(), Failed>(())
    });
    aborted(panicked.await);
    rig.recovered().await;
    rig.holds(&["before"]).await;
}
