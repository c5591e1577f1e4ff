//! Events are stored in pages, and read one by one; also those of older brokers.

use hive_core::event::{DeliveryLeased, Facts};
use hive_core::id::{MessageId, QuestionId};
use hive_core::time::WallTime;
use rusqlite::Connection;

use super::super::event::{self, Fact, log};
use super::super::file::migrate;
use super::super::retention::{self, Cursor, Cutoffs};
use super::super::{AgentKey, Tx};
use super::memory::create;
use super::{Failed, Rig, directory, open};

/// Logs this many facts about an agent, and one without an agent behind each.
fn log_pairs(tx: &Tx<'_>, agent: AgentKey, pairs: u32) -> Result<(), Failed> {
    for attempt in 1..=pairs {
        log(tx, Fact::about(DeliveryLeased { attempt, cause: None }, agent));
        log(tx, Fact::of_hive(Facts::LogBegun).detail("in words"));
    }
    Ok(())
}

/// Returns the numbers of events after a number.
async fn after(rig: &Rig, sequence: u64, agent: Option<AgentKey>, rows: u32) -> Vec<u64> {
    let read = rig.read(move |conn, _| {
        let events = event::after(conn, sequence, agent, rows)?;
        Ok::<_, Failed>(events.into_iter().map(|event| event.sequence).collect())
    });
    read.await.expect("read")
}

/// Returns the numbers of the first and the last events of the pages.
async fn pages(rig: &Rig) -> Vec<(u64, u64)> {
    let sql = "SELECT first, last FROM event_page ORDER BY last";
    let read =
        rig.read(move |conn, _| Ok::<_, Failed>(super::super::statement::all(conn, sql, [])?));
    read.await.expect("read")
}

async fn newest_time(rig: &Rig) -> i64 {
    let read = rig.read(|conn, _| {
        Ok::<_, Failed>(conn.query_row("SELECT max(time) FROM event_page", [], |row| row.get(0))?)
    });
    read.await.expect("read")
}

/// Runs one step of the retention from the beginning.
async fn prune(rig: &Rig, before: i64, rows: u32) -> Option<Cursor> {
    let cutoffs = Cutoffs { history: WallTime(before), requests: WallTime(0) };
    let pruned = rig.write(move |tx| {
        let requests = retention::old_requests(tx, cutoffs, &Cursor::default(), rows)?;
        Ok::<_, Failed>(retention::prune(tx, cutoffs, &Cursor::default(), requests, rows)?)
    });
    pruned.await.expect("pruned")
}

#[tokio::test]
async fn the_events_of_a_commit_are_a_few_rows_and_are_read_one_by_one() {
    let rig = Rig::new();
    let ada = create(&rig, "ada").await;
    rig.write(move |tx| log_pairs(tx, ada, 50)).await.expect("committed");
    rig.write(move |tx| log_pairs(tx, ada, 1)).await.expect("committed");
    assert_eq!(pages(&rig).await, [(1, 64), (65, 100), (101, 102)]);
    assert_eq!(after(&rig, 0, None, 200).await, (1..=102).collect::<Vec<_>>());
    assert_eq!(after(&rig, 63, None, 3).await, [64, 65, 66]);
    assert_eq!(after(&rig, 62, Some(ada), 2).await, [63, 65]);
    assert_eq!(after(&rig, 99, Some(ada), 9).await, [101]);
    assert_eq!(after(&rig, 102, None, 9).await, [0_u64; 0]);
    let read = rig.read(|conn, _| {
        let span = event::span(conn)?;
        let events = event::after(conn, 0, None, 2)?;
        Ok::<_, Failed>((span, events))
    });
    let (span, events) = read.await.expect("read");
    assert_eq!(span, (1, 102));
    let shown = |at: usize| (events[at].agent.as_str(), events[at].detail.as_str());
    assert_eq!((shown(0), shown(1)), (("ada", "attempt 1"), ("", "in words")));
}

#[tokio::test]
async fn questions_are_found_in_the_pages_that_have_them() {
    let rig = Rig::new();
    let ada = create(&rig, "ada").await;
    let asked = rig.write(move |tx| {
        for number in [7, 8, 7] {
            log_pairs(tx, ada, 40)?;
            log(tx, Fact::about(Facts::QuestionAsked, ada).question(QuestionId::new(number)));
        }
        Ok::<_, Failed>(())
    });
    asked.await.expect("committed");
    let read = async |sequence, rows| {
        let read = rig.read(move |conn, _| {
            let (ids, next) = event::questions_after(conn, sequence, rows)?;
            Ok::<_, Failed>((ids.into_iter().map(QuestionId::get).collect::<Vec<_>>(), next))
        });
        read.await.expect("read")
    };
    assert_eq!(read(0, 9).await, (vec![7, 8], 243));
    assert_eq!(read(0, 2).await, (vec![7, 8], 162));
    assert_eq!(read(162, 2).await, (vec![7], 243));
}

#[tokio::test]
async fn a_page_is_deleted_when_its_newest_event_is_old() {
    let rig = Rig::new();
    let ada = create(&rig, "ada").await;
    rig.write(move |tx| log_pairs(tx, ada, 50)).await.expect("committed");
    let newest = newest_time(&rig).await;
    let prune = async |before| drop(prune(&rig, before, 9).await);
    prune(newest).await;
    assert_eq!(pages(&rig).await, [(1, 64), (65, 100)]);
    prune(newest + 1).await;
    assert_eq!(pages(&rig).await, [(0_u64, 0); 0]);
    let read = rig.read(|conn, _| Ok::<_, Failed>(event::span(conn)?));
    assert_eq!(read.await.expect("read"), (0, 100), "the numbers go on");
}

#[tokio::test]
async fn a_step_deletes_some_hundred_events_and_passes_those_from_the_future() {
    let rig = Rig::new();
    let ada = create(&rig, "ada").await;
    rig.write(move |tx| log_pairs(tx, ada, 500)).await.expect("committed");
    let newest = newest_time(&rig).await;
    let other = Connection::open(rig.store.path()).expect("it opens");
    let far = "UPDATE event_page SET time = time + 1000000000000 WHERE first = 1";
    assert_eq!(other.execute(far, []), Ok(1));
    assert!(prune(&rig, newest + 1, 100).await.is_some(), "there is more");
    assert_eq!(pages(&rig).await[..2], [(1, 64), (641, 704)]);
    assert!(prune(&rig, newest + 1, 100).await.is_some(), "nothing is known of the rest");
    assert_eq!(pages(&rig).await, [(1, 64)]);
    assert_eq!(prune(&rig, newest + 1, 100).await, None);
    assert_eq!(pages(&rig).await, [(1, 64)]);
}

#[tokio::test]
async fn a_value_that_no_broker_has_stored_is_an_error() {
    for (events, problem) in [
        ("[[1,99,0,null,null,null,null]]", "event 1 has no valid kind"),
        ("[[1,2,0,null,null,99,1]]", "event 1 has no valid facts of its kind"),
        ("[[1,1,0,null,0,null,null]]", "event 1 has no valid id"),
        ("[[1,1]]", "column 0"),
    ] {
        let rig = Rig::new();
        let sql =
            "INSERT INTO event_page (last, first, time, agents, events) VALUES (1, 1, 0, 0, ?1)";
        let other = Connection::open(rig.store.path()).expect("it opens");
        other.execute(sql, [events]).expect("written");
        let error = event::after(&other, 0, None, 9).expect_err("it is refused");
        let text =
            format!("{error}: {:?}", std::error::Error::source(&error).map(ToString::to_string));
        assert!(text.contains(problem), "{text}");
    }
}

#[tokio::test]
async fn the_events_of_an_older_broker_are_in_pages_after_the_migration() {
    let dir = directory();
    let mut conn = Connection::open(dir.path().join("hive.db")).expect("a database");
    conn.pragma_update(None, "journal_mode", "wal").expect("a log");
    migrate::make(&mut conn, 11, |conn, version| {
        // Numbers 3 to 130, and after a restored backup some that are far ahead.
        let rows = "WITH RECURSIVE n (i) AS (SELECT 3 UNION ALL SELECT i + 1 FROM n WHERE i < 130) \
             INSERT INTO event (sequence, kind, time, agent_id, message_id, detail) SELECT i, 1, i, 2 + i / 70, i, 'from ' || i FROM n; \
             INSERT INTO event (sequence, kind, time, code, number) VALUES (2000000, 35, 9, NULL, NULL), (2000001, 2, 8, 1, 4)";
        if version == 11 {
            conn.execute_batch(rows).expect("events");
        }
    });
    drop(conn);
    let (store, _) = open(dir.path());
    let read = store.read(|conn, _| {
        let sql = "SELECT first, last, time FROM event_page ORDER BY last";
        let pages: Vec<(u64, u64, i64)> = super::super::statement::all(conn, sql, [])?;
        let sql = "SELECT agents FROM event_page ORDER BY last";
        let agents: Vec<i64> = super::super::statement::all(conn, sql, [])?;
        let of_one = event::after(conn, 0, Some(AgentKey(3)), 1000)?;
        Ok::<_, Failed>((pages, agents, of_one.len(), event::after(conn, 0, None, 1000)?))
    });
    let (pages, agents, of_one, events) = read.await.expect("read");
    assert_eq!((agents, of_one), (vec![1 << 2, 1 << 2 | 1 << 3, 0], 61));
    assert_eq!(pages, [(3, 66, 66), (67, 130, 130), (2_000_000, 2_000_001, 9)]);
    let numbers: Vec<u64> = events.iter().map(|event| event.sequence).collect();
    assert_eq!(numbers, (3..=130).chain([2_000_000, 2_000_001]).collect::<Vec<_>>());
    let one = &events[7];
    assert_eq!((one.detail.as_str(), one.message_id.map(MessageId::get)), ("from 10", Some(10)));
    let last = events.last().expect("an event");
    assert!(matches!(last.facts, Facts::DeliveryLeased(Some(DeliveryLeased { attempt: 4, .. }))));
}
