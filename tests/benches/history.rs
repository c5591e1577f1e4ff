//! History: a hive that stores a million messages, half of them settled and too old to be kept,
//! while W1 runs in it, and in a hive that stores nothing.
//!
//! The old half is made old in the file, while the broker is stopped; the retention of its next
//! start deletes it in steps, which the log then folds into the database. Invariant: rounds of the
//! two hives take turns, and retention runs during each round of the first, or the run fails.
//! `HIVE_BENCH_HISTORY` sets the number of messages.

use std::path::Path;

use rusqlite::Connection;
use rustix::process::Signal;

use crate::report::{Bounds, Report};
use crate::rival::{Kind, Server};
use crate::rounds::{number, rounds};
use crate::sample::Sample;
use crate::w1::Pair;
use crate::w4;

const MESSAGES: usize = 1_000_000;
/// Inboxes with messages; one more is that of W1.
const INBOXES: usize = 100;
/// More than the broker keeps by default, in milliseconds.
const OLD: i64 = 60 * 24 * 3600 * 1000;

pub(crate) async fn run(report: &mut Report) -> anyhow::Result<()> {
    let kind = Kind::Unary;
    if !Kind::available().contains(&kind) {
        return Ok(());
    }
    let half = number("HIVE_BENCH_HISTORY").unwrap_or(MESSAGES) / 2;
    let mut server = Server::start(kind, INBOXES + 1).await?;
    let mut each = [half / INBOXES; INBOXES + 1];
    each[INBOXES] = 0;
    w4::fill(&server, &each).await?;
    w4::drain_all(&server, &each).await?;
    w4::fill(&server, &each).await?;
    server.end(Signal::TERM).await?;
    let database = server.database()?;
    age(&database)?;
    server.restart().await?;

    let mut full = Pair::on(server, INBOXES).await?;
    let mut empty = Pair::on(Server::start(kind, 1).await?, 0).await?;
    let (mut ratio, mut longest) = (Sample::default(), [0.0_f64; 2]);
    for round in 0..rounds() {
        let old = settled(&database)?;
        crate::progress(&format!("history: round {}, {old} old messages", round + 1));
        anyhow::ensure!(old > 0, "the retention has ended before the rounds");
        let mut medians = [0.0; 2];
        for at in if round % 2 == 0 { [0, 1] } else { [1, 0] } {
            let sample = if at == 0 { full.round().await? } else { empty.round().await? };
            medians[at] = sample.median();
            longest[at] = longest[at].max(sample.quantile(1.0));
        }
        ratio.push(medians[0] / medians[1]);
    }
    full.stop().await?;
    empty.stop().await?;
    let bounds = Some(Bounds::most(1.1, 1.05, 1.0));
    report.figure("history", "W1 p50, a million messages / none", "", ratio, bounds);
    let longest = longest.map(|micros| Sample::from_iter([micros / 1e3]));
    let [full, empty] = longest;
    let beyond = Sample::from_iter([full.median() - empty.median()]);
    report.figure("history", "longest send to hand, a million messages", "ms", full, None);
    report.figure("history", "longest send to hand, none", "ms", empty, None);
    let bounds = Some(Bounds::most(50.0, 20.0, 5.0));
    report.figure("history", "difference of the two", "ms", beyond, bounds);
    Ok(())
}

/// Makes all that is settled too old to be kept.
fn age(database: &Path) -> anyhow::Result<()> {
    let conn = Connection::open(database)?;
    let last: i64 =
        conn.query_row("SELECT max(message_id) FROM settled_delivery", [], |row| row.get(0))?;
    let end: i64 =
        conn.query_row("SELECT min(accept_time) FROM message WHERE id > ?1", [last], |row| {
            row.get(0)
        })?;
    conn.execute_batch(&format!(
        "UPDATE message SET accept_time = accept_time - {OLD} WHERE id <= {last}; \
         UPDATE settled_delivery SET state_time = state_time - {OLD}; \
         UPDATE event_page SET time = time - {OLD} WHERE time < {end}; \
         UPDATE request SET time = time - {OLD} WHERE time < {end};"
    ))?;
    Ok(())
}

/// Returns how many old settled deliveries there still are.
fn settled(database: &Path) -> anyhow::Result<u32> {
    let conn = Connection::open_with_flags(database, rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let sql = format!(
        "SELECT count(*) FROM settled_delivery WHERE state_time < (SELECT max(accept_time) FROM message) - {OLD} / 2"
    );
    Ok(conn.query_row(&sql, [], |row| row.get(0))?)
}
