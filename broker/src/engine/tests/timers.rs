//! Timers: a call that waits for a time is woken by that time alone, without mail, hints or
//! polling.
//!
//! These tests run on the runtime's paused time: it jumps to the next timer whenever all tasks
//! wait, and the broker's clock follows it. So a missing timer hangs the test, and one that fires
//! again and again would show in the number of polls. The writer's thread is no part of that time.
//! Only one task of a test may have a timer, because the timer of another would fire while it is
//! being answered.

use hive_core::time::{BootTime, Now};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::super::Engine;
use super::super::background::LEASES;
use super::*;
use crate::clock::{Clock, ManualClock};

/// A clock that follows the runtime's.
#[derive(Debug)]
struct RuntimeClock {
    runtime: tokio::runtime::Handle,
    start: Instant,
}

impl Clock for RuntimeClock {
    fn now(&self) -> Now {
        // The writer's thread is no part of the runtime, and would read the host's clock.
        let _entered = self.runtime.enter();
        let passed = i64::try_from(self.start.elapsed().as_millis()).expect("a short test");
        Now { wall: WallTime(1_800_000_000_000 + passed), boot: BootTime(1_000_000 + passed) }
    }

    fn boot_id(&self) -> &'static str {
        "boot-0"
    }
}

async fn hive() -> Hive {
    let clock = RuntimeClock { runtime: tokio::runtime::Handle::current(), start: Instant::now() };
    Hive::on(
        &["alice", "bob"],
        Limits::default(),
        Arc::new(ManualClock::new("boot-0")),
        Arc::new(clock),
    )
    .await
}

/// Begins a turn, however long that takes.
async fn begin(hive: &Hive, session_token: &str) -> Run {
    let wish = hive.wish(session_token);
    let process_token = wish.process_token.clone();
    let begun = hive
        .engine()
        .begin_turn(caller("bob"), hive.request("BeginTurn"), wish)
        .await
        .expect("a turn");
    let (agent, session_token) = ("bob".to_owned(), session_token.to_owned());
    Run { agent, session_token, process_token, id: begun.turn.id, begun: Some(begun) }
}

/// The time between two moments of the boot clock, in seconds.
fn seconds(hive: &Hive, since: BootTime) -> u64 {
    hive.now().boot.since(since).as_secs()
}

#[tokio::test(start_paused = true)]
async fn a_delivery_in_backoff_is_served_when_its_time_has_come() {
    let hive = hive().await;
    hive.send("alice", "bob", "hello").await;
    let harness = hive.attach("bob").await;
    let run = begin(&hive, &harness.token).await;
    let before = hive.now().boot;
    hive.end(&run, Outcome::Failed).await;
    let commits = hive.commits();
    assert_eq!(begin(&hive, &harness.token).await.begun().delivery().attempt, 2);
    assert_eq!(seconds(&hive, before), 5);
    assert!(hive.commits() - commits <= 3, "it looked once before and once after");
}

#[tokio::test(start_paused = true)]
async fn a_parked_agent_goes_on_when_its_park_is_over() {
    let hive = hive().await;
    hive.send("alice", "bob", "hello").await;
    let harness = hive.attach("bob").await;
    let run = begin(&hive, &harness.token).await;
    let before = hive.now().boot;
    hive.end(&run, Outcome::Unavailable).await;
    let run = begin(&hive, &harness.token).await;
    assert_eq!(seconds(&hive, before), 10);
    let before = hive.now();
    let limited = Ended {
        retry_time: Some(before.wall.after(Duration::from_secs(1800))),
        ..ended(Outcome::RateLimited)
    };
    hive.try_end(&run, limited).await.expect("it ends");
    let commits = hive.commits();
    begin(&hive, &harness.token).await;
    assert_eq!(seconds(&hive, before.boot), 1800);
    assert!(
        hive.commits() - commits <= 35,
        "about once a minute, because the wall clock may be set meanwhile"
    );
}

#[tokio::test(start_paused = true)]
async fn a_consumer_that_waits_in_vain_gets_an_empty_answer_in_time() {
    let hive = hive().await;
    let before = hive.now().boot;
    let commits = hive.commits();
    let ask = Receive { wait: Duration::from_secs(180), ..up_to(1) };
    let received = hive.try_receive("bob", ask).await.expect("answered");
    assert!(received.deliveries.is_empty());
    assert_eq!(seconds(&hive, before), 180);
    assert_eq!(hive.commits() - commits, 1, "it looked at the beginning, and nothing woke it");
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_waits_for_mail_does_not_spin_over_a_delivery_that_is_served_alone() {
    let hive = hive().await;
    hive.send("alice", "bob", "poison").await;
    let harness = hive.attach("bob").await;
    for _ in 0..2 {
        let run = begin(&hive, &harness.token).await;
        hive.end(&run, Outcome::Failed).await;
    }
    // Its backoff runs out while another turn waits, and that turn may not have it.
    let run = hive.open(&harness, Kind::Continue).await.expect("it opens");
    let commits = hive.commits();
    let ask =
        Receive { wait: Duration::from_secs(180), tool_use: Some("tool-1".to_owned()), ..up_to(1) };
    let received = receive(hive.engine(), run.actor(), hive.request("ReceiveMessages"), ask)
        .await
        .expect("answered");
    assert!(received.deliveries.is_empty());
    assert!(hive.commits() - commits <= 3, "{} looks", hive.commits() - commits);
}

#[tokio::test(start_paused = true)]
async fn the_reconciler_ends_due_leases_by_itself() {
    let hive = hive().await;
    let stop = CancellationToken::new();
    let reconciler = tokio::spawn(crate::task::due(Arc::clone(hive.engine()), stop.clone()));
    // A consumer that forgets its lease.
    hive.send("alice", "alice", "for the consumer").await;
    let before = hive.now().boot;
    hive.receive("alice", 1).await;
    let mut newest = hive.engine().hints().last_event();
    while hive.count_events(EventKind::DeliveryReturned).await == 0 {
        newest.changed().await.expect("the broker runs");
    }
    assert_eq!(seconds(&hive, before), 60);
    // A harness that stays attached in mid-turn and says nothing any more.
    hive.send("alice", "bob", "hello").await;
    let harness = hive.attach("bob").await;
    let before = hive.now().boot;
    begin(&hive, &harness.token).await;
    harness.attachment().ended().cancelled().await;
    assert!((60..=61).contains(&seconds(&hive, before)), "{}", seconds(&hive, before));
    stop.cancel();
    reconciler.await.expect("it ends");
}

#[tokio::test(start_paused = true)]
async fn a_reconciler_that_panics_starts_again_and_shows_it() {
    let hive = hive().await;
    let (engine, stop) = (Arc::clone(hive.engine()), CancellationToken::new());
    let (starts, mut started) = tokio::sync::mpsc::unbounded_channel();
    let reconciler = move |engine: Arc<Engine>, stop: CancellationToken| {
        let failures = engine.background_tasks().first().map_or(0, |task| task.failure_count);
        starts.send(failures).expect("the test waits");
        async move {
            assert!(failures == 2, "planted");
            engine.task_succeeded(LEASES);
            stop.cancelled().await;
        }
    };
    let keeper = crate::task::keep_running(LEASES, Arc::clone(&engine), stop.clone(), reconciler);
    let keeper = tokio::spawn(keeper);
    for failures in 0..=2 {
        assert_eq!(started.recv().await, Some(failures));
    }
    stop.cancel();
    keeper.await.expect("it ends");
    let status = engine.background_tasks();
    assert_eq!((status[0].name, status[0].failure_count), (LEASES, 0));
}
