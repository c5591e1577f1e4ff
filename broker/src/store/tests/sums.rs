//! Sums of turns: what they cost goes by the turns of their window.

use rusqlite::Connection;

use super::super::{turn_stats, turn_tool};
use super::{Failed, directory, open};

/// How SQLite goes about a statement, a line for each table.
fn plan(conn: &Connection, sql: &str) -> rusqlite::Result<Vec<String>> {
    let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}"))?;
    let lines = explain.query_map((0, 1, Some(2)), |row| row.get(3))?;
    lines.collect()
}

#[tokio::test]
async fn a_window_is_read_by_the_index_of_ends_whatever_else_there_is() {
    let dir = directory();
    let (store, _) = open(dir.path());
    for of_one_agent in [false, true] {
        let plans = store.read(move |conn, _| {
            let sums = plan(conn, &turn_stats::sql(of_one_agent))?;
            let tools = plan(conn, &turn_tool::sql(of_one_agent, 20))?;
            Ok::<_, Failed>((sums, tools))
        });
        let (sums, tools) = plans.await.expect("explained");
        let by_end = "SEARCH t USING INDEX turn_ended (agent_id=? AND end_time>? AND end_time<?)";
        assert!(sums.iter().any(|line| line == by_end), "{sums:?}");
        assert!(
            sums.iter().any(|line| line.starts_with("SEARCH m USING INTEGER PRIMARY KEY")),
            "{sums:?}"
        );
        // Of a turn's row its tools need nothing.
        let by_end = by_end.replace("INDEX", "COVERING INDEX");
        assert!(tools.contains(&by_end), "{tools:?}");
        assert!(
            tools.iter().any(|line| line.starts_with("SEARCH u USING PRIMARY KEY (turn_id=?)")),
            "{tools:?}"
        );
        // Agents are few; nothing else is gone through.
        let scans = sums.iter().chain(&tools).filter(|line| line.contains("SCAN"));
        assert!(
            scans.clone().all(|line| line.starts_with("SCAN a") || line == "SCAN CONSTANT ROW"),
            "{sums:?} {tools:?}"
        );
    }
}
