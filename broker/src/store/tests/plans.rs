//! Query plans: open rows are found by an index of their own, whatever the length of the history.

use hive_core::delivery::State;
use rusqlite::Connection;

use super::super::{delivery, level, tree, turn_stats, turn_tool};

/// Returns the plan of SQLite for a statement, a line for each table.
fn plan(sql: &str) -> Vec<String> {
    let mut conn = Connection::open_in_memory().expect("a database");
    super::super::file::migrate::migrate(&mut conn, &Default::default()).expect("the schema");
    let mut explain = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("a statement");
    let steps = explain.raw_query().mapped(|row| row.get(3));
    steps.collect::<rusqlite::Result<_>>().expect("its steps")
}

#[test]
fn deliveries_in_a_state_are_counted_by_its_own_index() {
    for (state, reads_deliveries) in
        [(State::Ready, 0), (State::Leased, 0), (State::Held, 1), (State::Dead, 1)]
    {
        for whose in ["= 5", "<> 1"] {
            let plan = plan(&delivery::count_sql(whose, state));
            let reads = plan.iter().filter(|step| step.contains("delivery"));
            assert!(
                reads.clone().all(|step| {
                    step.contains("USING COVERING INDEX")
                        || step.contains("USING PRIMARY KEY (agent_id=? AND queue=?)")
                }),
                "{state} {whose}: {plan:?}"
            );
            assert_eq!(reads.count(), reads_deliveries, "{state} {whose}: {plan:?}");
        }
    }
}

#[test]
fn children_are_read_in_order_from_their_index() {
    for sql in [tree::first_children(), tree::children_after()] {
        let plan = plan(&sql);
        assert!(plan.len() == 1 && plan[0].contains("agent_by_parent"), "{plan:?}");
    }
    let below = plan(&tree::below());
    assert!(below.iter().any(|step| step.contains("agent_by_parent")), "{below:?}");
    assert!(!below.iter().any(|step| step.contains("SCAN agent")), "{below:?}");
}

#[test]
fn the_turns_of_a_window_are_read_by_the_index_of_ends() {
    for of_one_agent in [false, true] {
        let sums = plan(&turn_stats::sql(of_one_agent));
        let tools = plan(&turn_tool::sql(of_one_agent, 20));
        let has = |plan: &[String], beginning: &str| {
            assert!(plan.iter().any(|step| step.starts_with(beginning)), "{plan:?}");
        };
        let by_end = "(agent_id=? AND end_time>? AND end_time<?)";
        has(&sums, &format!("SEARCH t USING INDEX turn_ended {by_end}"));
        has(&sums, "SEARCH m USING INTEGER PRIMARY KEY");
        // The row of a turn is not read for its tools.
        has(&tools, &format!("SEARCH t USING COVERING INDEX turn_ended {by_end}"));
        has(&tools, "SEARCH u USING PRIMARY KEY (turn_id=?)");
        // Only the agents are scanned, and they are few.
        let scans = sums.iter().chain(&tools).filter(|step| step.contains("SCAN"));
        assert!(
            scans.clone().all(|step| step.starts_with("SCAN a") || step == "SCAN CONSTANT ROW"),
            "{sums:?} {tools:?}"
        );
    }
}

#[test]
fn the_levels_scan_agents_alone() {
    let plan = plan(level::sql());
    let scans: Vec<_> = plan.iter().filter(|step| step.starts_with("SCAN")).collect();
    assert!(scans.len() == 1 && scans[0].starts_with("SCAN "), "{plan:?}");
    assert!(["SCAN a", "SCAN i"].contains(&scans[0].as_str()), "{plan:?}");
    let oldest = "SEARCH open_delivery USING PRIMARY KEY (agent_id=? AND queue=?)";
    assert_eq!(plan.iter().filter(|step| *step == oldest).count(), 2, "{plan:?}");
}
