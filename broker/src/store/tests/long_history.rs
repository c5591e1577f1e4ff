//! The cost of finding the next row does not depend on the length of the history: counted in steps
//! of SQLite's machine.

use std::sync::atomic::{AtomicU64, Ordering};

use hive_core::id::TurnId;
use hive_core::time::{BootTime, Now, WallTime};
use rusqlite::Connection;

use super::super::{AgentKey, delivery, turn};
use super::*;

const AGENT: AgentKey = AgentKey(2);
const NOW: Now = Now { wall: WallTime(1_000_000), boot: BootTime(1_000) };

/// Returns the database of a hive with one agent, `past` settled deliveries and ended turns, and
/// after them a delivery that waits and a turn that runs.
fn database(past: u32) -> Connection {
    let mut conn = Connection::open_in_memory().expect("a database");
    super::super::file::migrate::migrate(&mut conn).expect("the schema");
    conn.execute(
        "INSERT INTO agent (id, name, source, harness_state_time) VALUES (2, 'ann', 1, 0)",
        [],
    )
    .expect("an agent");
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

/// Returns the number of steps of SQLite that the work takes.
fn steps<T>(conn: &mut Connection, work: impl Fn(&Connection) -> rusqlite::Result<T>) -> u64 {
    let count = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&count);
    let handler = move || {
        counted.fetch_add(1, Ordering::Relaxed);
        false
    };
    // The second time it is prepared already.
    work(conn).expect("it can be read");
    conn.progress_handler(1, Some(handler)).expect("it counts");
    work(conn).expect("it can be read");
    conn.progress_handler(1, None::<fn() -> bool>).expect("it stops");
    count.load(Ordering::Relaxed)
}

#[test]
fn the_next_delivery_is_found_without_reading_the_history() {
    let (mut short, mut long) = (database(10), database(2_000));
    let open = |conn: &Connection| {
        turn::open_of_process(conn, AGENT, "token").map(|open| open.expect("one is open").id)
    };
    type Work<'a> = (&'a str, &'a dyn Fn(&Connection) -> rusqlite::Result<()>);
    let all: [Work<'_>; 7] = [
        ("due", &|conn| {
            delivery::due(conn, AGENT, None, NOW, 5, 8).map(|due| assert_eq!(due.len(), 1))
        }),
        ("next due", &|conn| delivery::next_due(conn, AGENT, NOW).map(drop)),
        ("oldest", &|conn| {
            delivery::oldest_ready(conn, AGENT).map(|oldest| assert!(oldest.is_some()))
        }),
        ("open", &|conn| turn::open_of(conn, AGENT, "").map(|open| assert!(open.is_some()))),
        ("all open", &|conn| turn::open_all(conn, AGENT).map(|open| assert_eq!(open.len(), 1))),
        ("open of a process", &|conn| open(conn).map(drop)),
        ("leased", &|conn| {
            delivery::leased_by(conn, AGENT, TurnId::new(1_000_001).expect("an id")).map(drop)
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
