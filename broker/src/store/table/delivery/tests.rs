//! Tests of the table of deliveries.

use super::*;

/// The count of what is open must not read the history, which grows without end.
#[test]
fn open_work_is_counted_by_its_own_index() {
    let conn = Connection::open_in_memory().expect("a database");
    conn.execute_batch(include_str!("../../file/sql/0001_init.sql")).expect("the schema");
    for state in [State::Ready, State::Leased, State::Held, State::Dead] {
        for whose in ["= 5", "<> 1"] {
            let sql = format!("EXPLAIN QUERY PLAN {}", count_sql(whose, state));
            let mut explain = conn.prepare(&sql).expect("a statement");
            let plan: Vec<String> = explain
                .query_map([], |row| row.get(3))
                .expect("a plan")
                .collect::<Result<_>>()
                .expect("its steps");
            let reads = plan.iter().filter(|step| step.contains("delivery"));
            assert!(
                reads.clone().all(|step| step.contains("USING COVERING INDEX")),
                "{state} {whose}: {plan:?}"
            );
            assert_eq!(reads.count(), in_state(state).len());
        }
    }
}
