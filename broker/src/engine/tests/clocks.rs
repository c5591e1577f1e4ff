//! Clocks: a wall clock that jumps moves no lease, no grace time and no backoff.

use super::*;

/// Years, both ways.
const JUMPS: [i64; 2] = [-10 * 365 * 86_400_000, 10 * 365 * 86_400_000];

fn jump(hive: &Hive, milliseconds: i64) {
    let now = hive.now().wall;
    hive.clock.set_wall(WallTime(now.0 + milliseconds));
}

#[tokio::test]
async fn consumers_leases_last_as_long_as_they_should() {
    for by in JUMPS {
        let hive = Hive::new(&["alice", "bob"]).await;
        hive.send("alice", "bob", "hello").await;
        hive.receive("bob", 1).await;
        jump(&hive, by);
        hive.pass_and_sweep(59).await;
        assert_eq!(hive.state("bob", message(1)).await, (State::Leased, 1));
        hive.pass_and_sweep(1).await;
        assert_eq!(hive.state("bob", message(1)).await, (State::Ready, 1));
    }
}

#[tokio::test]
async fn the_grace_time_of_a_harness_survives_a_restart() {
    for by in JUMPS {
        let hive = Hive::new(&["alice", "bob"]).await;
        hive.send("alice", "bob", "hello").await;
        let harness = hive.attach("bob").await;
        let run = hive.begin(&harness).await;
        drop(harness);
        jump(&hive, by);
        let outcome =
            async || hive.engine().get_turn(caller("bob"), run.id).await.expect("the turn").outcome;
        hive.pass_and_sweep(59).await;
        assert_eq!(outcome().await, None);
        hive.pass_and_sweep(1).await;
        assert_eq!(outcome().await, Some(Outcome::Vanished));
    }
}

#[tokio::test]
async fn backoffs_of_deliveries_and_agents_survive_a_restart() {
    for by in JUMPS {
        let hive = Hive::new(&["alice", "bob"]).await;
        hive.send("alice", "bob", "hello").await;
        let harness = hive.attach("bob").await;
        hive.turn(&harness, Outcome::Failed).await;
        jump(&hive, by);
        let waiting = hive.begin_waits(&harness).await;
        hive.pass(4);
        hive.hint("bob").await;
        hive.still_waits(&waiting).await;
        hive.pass(1);
        hive.hint("bob").await;
        let begun = done(waiting).await.expect("a turn begins");
        hive.engine().heartbeat(caller("bob"), harness.token.clone()).await.expect("alive");
        assert_eq!(begun.delivery().attempt, 2);
    }
    for by in JUMPS {
        let hive = Hive::new(&["alice", "bob"]).await;
        hive.send("alice", "bob", "hello").await;
        let harness = hive.attach("bob").await;
        hive.turn(&harness, Outcome::Unavailable).await;
        jump(&hive, by);
        let waiting = hive.begin_waits(&harness).await;
        hive.clock.advance(Duration::from_millis(9_999));
        hive.hint("bob").await;
        hive.still_waits(&waiting).await;
        hive.clock.advance(Duration::from_millis(1));
        hive.hint("bob").await;
        done(waiting).await.expect("a turn begins");
    }
}

#[tokio::test]
async fn rates_are_counted_by_the_boot_clock() {
    for by in JUMPS {
        let limits = Limits { sends_per_minute_max: 1, ..Default::default() };
        let hive = Hive::with_limits(&["alice", "bob"], limits).await;
        hive.send("alice", "bob", "hello").await;
        jump(&hive, by);
        assert!(hive.try_send("alice", "bob", "hello").await.is_err());
        hive.pass(60);
        hive.send("alice", "bob", "hello").await;
    }
}
