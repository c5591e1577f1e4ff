//! A fleet that has nothing to do, for a day: the broker's engine on a real database and fifty of
//! the harness's machines, on one clock that is moved by hand.
//!
//! Only claude talks to the model's API, and only a started claude does. So a machine that starts
//! none causes no request.

#![allow(
    clippy::disallowed_methods,
    reason = "the runtime of a test ends the tasks that it spawned"
)]

mod fleet;

use std::time::Duration;

use hive_core::turn::Outcome;

use crate::fleet::Fleet;

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn fifty_idle_agents_start_no_claude_in_a_day() {
    let mut fleet = Fleet::of(50).await;
    fleet.live(24 * HOUR).await;
    assert_eq!(fleet.starts(), 0);
    // The agents still work: a message starts one turn at once.
    fleet.send("a7").await;
    assert_eq!(fleet.starts(), 1);
    fleet.live(HOUR).await;
    assert_eq!(fleet.starts(), 1);
}

#[tokio::test]
async fn agents_that_may_not_run_cost_nothing_either() {
    let mut fleet = Fleet::of(50).await;
    for (agent, outcome) in [("a1", Outcome::RateLimited), ("a2", Outcome::AuthFailed)] {
        fleet.answer_with(agent, outcome);
        fleet.send(agent).await;
    }
    assert_eq!(fleet.starts(), 2);
    // The limit is of ten hours; the login is never made.
    fleet.live(9 * HOUR).await;
    assert_eq!(fleet.starts(), 2);
    fleet.live(2 * HOUR).await;
    assert_eq!(fleet.starts(), 3, "the limit is over, and its message is handled");
    fleet.live(13 * HOUR).await;
    assert_eq!(fleet.starts(), 3);
}

#[tokio::test]
async fn a_large_conversation_at_rest_is_left_at_rest() {
    let mut fleet = Fleet::of(3).await;
    fleet.context_of("a1", 190_000);
    fleet.send("a1").await;
    // The message, the notes and the compaction.
    assert_eq!(fleet.starts(), 3);
    fleet.live(24 * HOUR).await;
    assert_eq!(fleet.starts(), 3);
}
