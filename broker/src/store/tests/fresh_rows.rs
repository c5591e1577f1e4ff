//! New rows and leases in the writer's memory: every statement sees them, they are written once,
//! and a command that fails takes only its own ones back.

use std::sync::Arc;
use std::time::Duration;

use hive_core::delivery::{Lane, State};
use hive_core::id::MessageId;
use hive_core::time::BootTime;

use super::super::delivery::{self, DeliveryRow};
use super::super::lease::Lease;
use super::super::{AgentKey, Tx, event, inbox, message, stream};
use super::memory::{create, deliver};
use super::{Failed, Rig, write};

const STREAM: &str = "s";
const GRACE: Duration = Duration::from_secs(30);

/// Leases the next due delivery to a stream.
fn claim(tx: &Tx<'_>, key: AgentKey) -> Result<Arc<DeliveryRow>, Failed> {
    let mut row = delivery::due(tx, key, None, 9, 1)?.pop().expect("one is due");
    row.progress = row.progress.lease(tx.now).expect("what is due can be leased");
    let token = delivery::lease_token(key, row.message, "secret");
    row.lease = Some(Lease::of_stream(token, STREAM, GRACE));
    Ok(delivery::save(tx, row, State::Ready)?)
}

fn ack(tx: &Tx<'_>, key: AgentKey, message: u64) -> Result<(), Failed> {
    let token = delivery::lease_token(key, id(message), "secret");
    let mut row = delivery::by_lease_token(tx, key, &token)?.expect("it has this lease");
    assert_eq!(row.progress.state, State::Leased);
    row.progress.state = State::Acked;
    Ok(delivery::save(tx, row, State::Leased).map(drop)?)
}

fn id(number: u64) -> MessageId {
    MessageId::new(number).expect("not 0")
}

/// Returns the ids and states of the open deliveries of an agent on disk, and how many of them are
/// counted as ready and as leased.
async fn on_disk(rig: &Rig, key: AgentKey) -> (Vec<(u64, i64)>, (u32, u32)) {
    let read = rig.read(move |conn, _| {
        let sql = "SELECT message_id, state FROM open_delivery WHERE agent_id = ?1 ORDER BY 1";
        let rows = super::super::statement::all(conn, sql, [key.0])?;
        let sql = "SELECT ready_count, leased_count FROM inbox WHERE agent_id = ?1";
        let counts = conn.query_row(sql, [key.0], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok::<_, Failed>((rows, counts))
    });
    read.await.expect("read")
}

#[tokio::test]
async fn every_statement_of_a_batch_sees_what_is_new_in_it() {
    let rig = Rig::new();
    let key = create(&rig, "ada").await;
    let hold = rig.hold().await;
    let first = rig.queue(move |tx| deliver(tx, key)).await;
    let second = rig.queue(move |tx| {
        deliver(tx, key)?;
        let rows = delivery::unsettled_of(tx, key, 9)?;
        let events = event::after(tx, 0, None, 9)?;
        let one = delivery::get(tx, key, id(2))?.expect("it is there");
        Ok((rows.len(), events.len(), one.progress.state))
    });
    let second = second.await;
    hold.release().await.expect("committed");
    first.committed().await;
    assert_eq!(second.committed().await, (2, 2, State::Ready));
    assert_eq!(on_disk(&rig, key).await, (vec![(1, 1), (2, 1)], (2, 0)));
}

#[tokio::test]
async fn what_is_leased_at_once_is_on_disk_as_leased_and_what_is_due_keeps_its_order() {
    let rig = Rig::new();
    let key = create(&rig, "ada").await;
    rig.write(move |tx| deliver(tx, key)).await.expect("committed");
    let leased = rig.write(move |tx| {
        deliver(tx, key)?;
        deliver(tx, key)?;
        let due = delivery::due(tx, key, None, 9, 2)?;
        assert_eq!(due.iter().map(|row| row.message.get()).collect::<Vec<_>>(), [1, 2]);
        Ok::<_, Failed>([claim(tx, key)?.message.get(), claim(tx, key)?.message.get()])
    });
    assert_eq!(leased.await.expect("committed"), [1, 2]);
    assert_eq!(on_disk(&rig, key).await, (vec![(1, 2), (2, 2), (3, 1)], (1, 2)));
    let held = rig.write(move |tx| Ok::<_, Failed>(stream::held(tx, key, STREAM)?.deliveries));
    assert_eq!(held.await.expect("read"), 2);
    rig.write(move |tx| ack(tx, key, 1)).await.expect("committed");
    assert_eq!(on_disk(&rig, key).await, (vec![(2, 2), (3, 1)], (1, 1)));
}

#[tokio::test]
async fn a_failed_command_takes_only_its_own_rows_back() {
    let rig = Rig::new();
    let key = create(&rig, "ada").await;
    rig.write(move |tx| deliver(tx, key).and_then(|()| claim(tx, key))).await.expect("leased");
    let hold = rig.hold().await;
    let first = rig.queue(move |tx| deliver(tx, key)).await;
    let failed = rig.queue(move |tx| {
        deliver(tx, key)?;
        claim(tx, key)?;
        claim(tx, key)?;
        ack(tx, key, 1)?;
        Err::<(), _>(Failed::Refused)
    });
    let failed = failed.await;
    let last = rig.queue(move |tx| {
        assert_eq!(inbox::get(tx, key)?.ready_count, 1);
        ack(tx, key, 1)?;
        Ok(claim(tx, key)?.message.get())
    });
    let last = last.await;
    hold.release().await.expect("committed");
    first.committed().await;
    failed.result().await.expect_err("refused");
    assert_eq!(last.committed().await, 2);
    assert_eq!(on_disk(&rig, key).await, (vec![(2, 2)], (0, 1)));
    let (_, events) = super::read(&rig).await.expect("read");
    assert_eq!(events, [1, 2], "the number of the failed command's event is free again");
}

#[tokio::test]
async fn a_change_of_many_leases_is_seen_in_each() {
    let rig = Rig::new();
    let key = create(&rig, "ada").await;
    rig.write(move |tx| deliver(tx, key).and_then(|()| claim(tx, key))).await.expect("leased");
    let until = rig.write(move |tx| {
        // Reads the leases into memory.
        assert_eq!(stream::held(tx, key, STREAM)?.deliveries, 1);
        stream::begin_grace(tx, key, STREAM, BootTime(77))?;
        let row = stream::leased(tx, key, Some(STREAM))?.pop();
        Ok::<_, Failed>(row.and_then(|row| row.lease?.until))
    });
    assert_eq!(until.await.expect("committed"), Some(BootTime(77)));
}

#[tokio::test]
async fn of_both_lanes_the_systems_mail_is_due_first() {
    let rig = Rig::new();
    let key = create(&rig, "ada").await;
    let first = rig.write(move |tx| {
        deliver(tx, key)?;
        delivery::insert(tx, key, id(write(tx, "a notice")?), Lane::System, None, 8)?;
        Ok::<_, Failed>(delivery::due(tx, key, None, 9, 1)?.pop().map(|row| row.message.get()))
    });
    assert_eq!(first.await.expect("committed"), Some(2));
}

#[tokio::test]
async fn many_deliveries_of_several_inboxes_are_leased_and_settled_in_one_batch() {
    let rig = Rig::new();
    let (ada, bob) = (create(&rig, "ada").await, create(&rig, "bob").await);
    rig.write(move |tx| {
        (0..20).try_for_each(|_| deliver(tx, ada).and_then(|()| deliver(tx, bob)))?;
        (0..17).try_for_each(|_| claim(tx, bob).map(drop))
    })
    .await
    .expect("committed");
    let seen = rig.write(move |tx| {
        (0..19).try_for_each(|_| claim(tx, ada).map(drop))?;
        // Acked in the batch of its lease, and in one after it.
        ack(tx, ada, 1)?;
        (1..=17).try_for_each(|number| ack(tx, bob, number * 2))?;
        (0..2).try_for_each(|_| claim(tx, bob).map(drop))?;
        let due = delivery::due(tx, bob, None, 9, 9)?;
        let settled = delivery::get(tx, bob, id(2))?.map(|row| row.progress.state);
        Ok::<_, Failed>((due.iter().map(|row| row.message.get()).collect::<Vec<_>>(), settled))
    });
    assert_eq!(seen.await.expect("committed"), (vec![40], Some(State::Acked)));
    let of_ada: Vec<_> = (1..20).map(|at| (at * 2 + 1, if at < 19 { 2 } else { 1 })).collect();
    assert_eq!(on_disk(&rig, ada).await, (of_ada, (1, 18)));
    assert_eq!(on_disk(&rig, bob).await, (vec![(36, 2), (38, 2), (40, 1)], (1, 2)));
    let settled = rig.read(move |conn, _| {
        let sql =
            "SELECT count(*) FROM settled_delivery WHERE state = 5 AND lease_token IS NOT NULL";
        Ok::<u32, Failed>(conn.query_row(sql, [], |row| row.get(0))?)
    });
    assert_eq!(settled.await.expect("read"), 18);
}

#[tokio::test]
async fn a_lease_is_extended_in_a_batch_that_settles_and_leases_many() {
    let rig = Rig::new();
    let key = create(&rig, "ada").await;
    rig.write(move |tx| {
        (0..20).try_for_each(|_| deliver(tx, key))?;
        (0..9).try_for_each(|_| claim(tx, key).map(drop))
    })
    .await
    .expect("committed");
    let changed = rig.write(move |tx| {
        (1..9).try_for_each(|number| ack(tx, key, number))?;
        let token = delivery::lease_token(key, id(9), "secret");
        let row = delivery::by_lease_token(tx, key, &token)?.expect("it is leased");
        delivery::save(tx, row, State::Leased)?;
        (0..7).try_for_each(|_| claim(tx, key).map(drop))
    });
    changed.await.expect("committed");
    let of_ada: Vec<_> = (9..21).map(|number| (number, if number < 17 { 2 } else { 1 })).collect();
    assert_eq!(on_disk(&rig, key).await, (of_ada, (4, 8)));
}

#[tokio::test]
async fn a_delivery_that_is_leased_and_returned_in_one_batch_is_ready_at_its_place() {
    let rig = Rig::new();
    let key = create(&rig, "ada").await;
    rig.write(move |tx| deliver(tx, key)).await.expect("committed");
    let due = rig.write(move |tx| {
        deliver(tx, key)?;
        for _ in 0..2 {
            let mut row = Arc::unwrap_or_clone(claim(tx, key)?);
            row.progress.state = State::Ready;
            delivery::save(tx, row, State::Leased)?;
        }
        let due = delivery::due(tx, key, None, 9, 9)?;
        Ok::<_, Failed>(due.iter().map(|row| row.message.get()).collect::<Vec<_>>())
    });
    assert_eq!(due.await.expect("committed"), [1, 2]);
    assert_eq!(on_disk(&rig, key).await, (vec![(1, 1), (2, 1)], (2, 0)));
}

/// Accepts a message with this text to an agent; returns its id.
fn accept(tx: &Tx<'_>, key: AgentKey, body: &str) -> Result<u64, Failed> {
    let message = write(tx, body)?;
    delivery::insert(tx, key, id(message), Lane::Normal, None, 8)?;
    Ok(message)
}

/// Returns the text of a delivery that was just leased.
fn body(tx: &Tx<'_>, row: &DeliveryRow) -> Result<String, Failed> {
    Ok(delivery::view_leased(tx, row, "ada")?.message.body)
}

#[tokio::test]
async fn a_message_is_read_as_it_was_accepted_in_its_batch_and_later() {
    let rig = Rig::new();
    let key = create(&rig, "ada").await;
    let long = "x".repeat(5000);
    for text in ["short".to_owned(), long] {
        let (now, later) = (text.clone(), text.clone());
        let read = rig.write(move |tx| {
            accept(tx, key, &now)?;
            let row = claim(tx, key)?;
            // Twice: memory has it only until it is leased.
            let read = [body(tx, &row)?, body(tx, &row)?];
            accept(tx, key, &now)?;
            Ok::<_, Failed>(read)
        });
        assert_eq!(read.await.expect("committed"), [text.as_str(), &text]);
        let read = rig.write(move |tx| {
            let row = claim(tx, key)?;
            let known = message::get(tx, row.message)?.map(|message| message.body);
            Ok::<_, Failed>([body(tx, &row)?, body(tx, &row)?, known.unwrap_or_default()])
        });
        assert_eq!(read.await.expect("committed"), [later.as_str(), &later, &later]);
    }
}

#[tokio::test]
async fn a_message_that_was_taken_back_is_not_read_in_place_of_the_next_one() {
    let rig = Rig::new();
    let key = create(&rig, "ada").await;
    let hold = rig.hold().await;
    let failed = rig.queue(move |tx| {
        accept(tx, key, "taken back")?;
        Err::<(), _>(Failed::Refused)
    });
    let failed = failed.await;
    let next = rig.queue(move |tx| {
        let found = message::get(tx, id(1))?.is_some();
        let accepted = accept(tx, key, "the next one")?;
        let row = claim(tx, key)?;
        Ok((found, accepted, body(tx, &row)?))
    });
    let next = next.await;
    hold.release().await.expect("committed");
    failed.result().await.expect_err("refused");
    assert_eq!(next.committed().await, (false, 1, "the next one".to_owned()));
}
