//! The cost of finding the next row does not depend on the length of the history: counted in steps
//! of SQLite's machine.

use std::sync::atomic::{AtomicU64, Ordering};

use hive_core::id::TurnId;
use hive_core::time::{BootTime, Now, WallTime};
use rusqlite::Connection;

use super::super::write::cache::Cache;
use super::super::write::tx::{Counters, Tx};
use super::super::{AgentKey, delivery, turn};
use super::*;

const AGENT: AgentKey = AgentKey(2);
const NOW: Now = Now { wall: WallTime(1_000_000), boot: BootTime(1_000) };

/// Returns the database of a hive with one agent, `past` settled deliveries and ended turns, and
/// after them a delivery that waits and a turn that runs.
fn database(past: u32) -> Connection {
    let mut conn = Connection::open_in_memory().expect("a database");
    super::super::file::migrate::migrate(&mut conn, &Default::default()).expect("the schema");
    conn.execute(
        "INSERT INTO agent (id, name, source, harness_state_time) VALUES (2, 'ann', 1, 0)",
        [],
    )
    .expect("an agent");
    conn.execute(
        "INSERT INTO inbox (agent_id, open_count, ready_count, leased_count) VALUES (2, 1, 1, 1)",
        [],
    )
    .expect("its inbox");
    for number in 1..=past + 1 {
        let outcome = (number <= past).then_some(1);
        conn.execute(
            "INSERT INTO message (id, origin_kind, origin_name, to_id, body, accept_time) VALUES (?1, 2, 'operator', 2, 'x', 0)",
            [number],
        )
        .expect("a message");
        let sql = if number <= past {
            "INSERT INTO settled_delivery (agent_id, message_id, lane, state, state_time, body_bytes) VALUES (2, ?1, 2, 5, 0, 1)"
        } else {
            "INSERT INTO open_delivery (agent_id, queue, message_id, lane, state, state_time, body_bytes) VALUES (2, 2, ?1, 2, 1, 0, 1)"
        };
        conn.execute(sql, [number]).expect("a delivery");
        conn.execute(
            "INSERT INTO turn (id, agent_id, kind, conversation, session_epoch, process_token, boot_id, start_time, outcome, end_time) \
             VALUES (?1, 2, 1, '', 1, 'token', 'boot', 0, ?2, ?2)",
            (1_000_000 + number, outcome),
        )
        .expect("a turn");
    }
    conn
}

/// Returns the number of steps of SQLite that the work takes in a transaction with nothing in
/// memory.
fn steps<T>(conn: &mut Connection, work: impl Fn(&Tx<'_>) -> rusqlite::Result<T>) -> u64 {
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    let handler = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        false
    };
    let once = |conn: &Connection| {
        let (counters, cache) = (Counters::default(), Cache::default());
        work(&Tx::new(conn, &counters, &cache, NOW, false)).expect("it can be read");
    };
    // The second time it is prepared already.
    once(conn);
    conn.progress_handler(1, Some(handler)).expect("it counts");
    once(conn);
    conn.progress_handler(1, None::<fn() -> bool>).expect("it stops");
    count.load(Ordering::Relaxed)
}

#[test]
fn the_next_delivery_is_found_without_reading_the_history() {
    let (mut short, mut long) = (database(10), database(2_000));
    let open = |tx: &Tx<'_>| {
        turn::open_of_process(tx, AGENT, "token").map(|open| open.expect("one is open").id)
    };
    type Work<'a> = (&'a str, &'a dyn Fn(&Tx<'_>) -> rusqlite::Result<()>);
    let all: [Work<'_>; 7] = [
        ("due", &|tx| delivery::due(tx, AGENT, None, 5, 8).map(|due| assert_eq!(due.len(), 1))),
        ("next due", &|tx| delivery::next_due(tx, AGENT, NOW).map(drop)),
        ("oldest", &|tx| delivery::oldest_ready(tx, AGENT).map(|oldest| assert!(oldest.is_some()))),
        ("open", &|tx| turn::open_of(tx, AGENT, "").map(|open| assert!(open.is_some()))),
        ("all open", &|tx| turn::open_all(tx, AGENT).map(|open| assert_eq!(open.len(), 1))),
        ("open of a process", &|tx| open(tx).map(drop)),
        ("leased", &|tx| {
            delivery::leased_by(tx, AGENT, TurnId::new(1_000_001).expect("an id")).map(drop)
        }),
    ];
    for (name, work) in all {
        let (few, many) = (steps(&mut short, work), steps(&mut long, work));
        assert!(
            few > 0 && few == many,
            "{name}: {few} steps over a short history, {many} over a long one"
        );
    }
}
