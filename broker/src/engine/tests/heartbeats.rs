//! Heartbeats: an idle agent gets one notice at each due time, and an agent with work gets none.
//! Nothing is sent later, whichever way the clock jumps.

use hive_core::delivery::Delivery;
use hive_core::heartbeat::{Heartbeat, Window};
use hive_core::schedule::Zone;

use super::*;
use crate::engine::launch::wanted::Wish;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

fn heartbeat(minutes: u64, between: &str) -> Heartbeat {
    Heartbeat {
        every: Duration::from_secs(minutes * MINUTE),
        window: (!between.is_empty()).then(|| Window::parse(between).expect("a window")),
        zone: Zone::parse("UTC").expect("a zone"),
    }
}

impl Hive {
    fn declare_heartbeats(&self, declared: &[(&str, &Heartbeat)]) {
        let declared = declared.iter().map(|(agent, one)| (name(agent), (*one).clone()));
        self.engine().declare_heartbeats(declared.collect());
    }

    async fn sweep_heartbeats(&self) -> Option<WallTime> {
        self.engine().sweep_heartbeats().await.expect("swept")
    }

    /// Time passes, and the heartbeats are swept.
    async fn beat(&self, seconds: u64) -> Option<WallTime> {
        self.pass(seconds);
        self.sweep_heartbeats().await
    }

    /// The number of heartbeats that an agent ever got.
    async fn heartbeats(&self, who: &str) -> usize {
        let inbox = self.inbox(who).await;
        let is_one = |kind: Option<SystemKind>| kind == Some(SystemKind::Heartbeat);
        inbox.iter().filter(|one| is_one(one.message.system_kind)).count()
    }

    async fn read_all(&self, who: &str) {
        for leased in self.receive(who, 50).await {
            self.ack(who, &leased).await.expect("settled");
        }
    }

    fn at(&self, hours: u64, minutes: u64) -> WallTime {
        START.after(Duration::from_secs(hours * HOUR + minutes * MINUTE))
    }
}

/// At eight in the morning: 2027-01-15T08:00:00Z.
const START: WallTime = WallTime(1_800_000_000_000);

/// A hive at [`START`] in which bob has a heartbeat each half hour from eight to ten.
async fn beating() -> Hive {
    let hive = Hive::new(&["alice", "bob"]).await;
    hive.clock.set_wall(START);
    hive.declare_heartbeats(&[("bob", &heartbeat(30, "08:00-10:00"))]);
    hive
}

#[tokio::test]
async fn an_idle_agent_gets_one_at_each_due_time_of_the_window() {
    let hive = beating().await;
    assert_eq!(hive.sweep_heartbeats().await, Some(hive.at(0, 30)));
    hive.beat(30 * MINUTE - 1).await;
    assert_eq!(hive.heartbeats("bob").await, 0, "a second too early");
    assert_eq!(hive.beat(1).await, Some(hive.at(1, 0)));
    let notices = hive.notices("bob").await;
    assert_eq!(notices.len(), 1);
    let Delivery { message, .. } = &notices[0];
    assert_eq!(message.system_kind, Some(SystemKind::Heartbeat));
    assert!(message.body.contains("HEARTBEAT.md"), "{}", message.body);
    assert!(message.body.contains("nothing needs to be done"), "{}", message.body);
    // It begins a turn, as any mail.
    let harness = hive.attach("bob").await;
    let run = hive.turn(&harness, Outcome::Ok).await;
    assert_eq!(run.message(), message.id);
    for (due, count) in [(hive.at(1, 30), 2), (hive.at(24, 0), 3)] {
        assert_eq!(hive.beat(30 * MINUTE).await, Some(due));
        assert_eq!(hive.heartbeats("bob").await, count);
        hive.turn(&harness, Outcome::Ok).await;
    }
    // The end of the window is not due, and the night is quiet.
    hive.beat(14 * HOUR).await;
    assert_eq!(hive.heartbeats("bob").await, 3);
    assert_eq!(hive.beat(8 * HOUR + 30 * MINUTE).await, Some(hive.at(24, 30)));
    assert_eq!(hive.heartbeats("bob").await, 4, "the next morning");
    assert_eq!(hive.heartbeats("alice").await, 0, "she has none");
}

#[tokio::test]
async fn one_that_was_not_read_is_not_doubled() {
    let hive = beating().await;
    for _ in 0..3 {
        hive.beat(30 * MINUTE).await;
    }
    assert_eq!(hive.heartbeats("bob").await, 1);
    // Taken, but not settled.
    let taken = hive.receive("bob", 1).await;
    hive.beat(24 * HOUR - 90 * MINUTE).await;
    assert_eq!(hive.heartbeats("bob").await, 1, "it is leased");
    hive.ack("bob", &taken[0]).await.expect("settled");
    hive.beat(30 * MINUTE).await;
    assert_eq!(hive.heartbeats("bob").await, 2);
}

#[tokio::test]
async fn mail_of_others_and_an_open_turn_skip_it() {
    let hive = beating().await;
    hive.send("alice", "bob", "hello").await;
    assert_eq!(hive.beat(30 * MINUTE).await, Some(hive.at(1, 0)));
    assert_eq!(hive.heartbeats("bob").await, 0, "mail is ready");
    let harness = hive.attach("bob").await;
    let run = hive.begin(&harness).await;
    hive.beat(30 * MINUTE).await;
    assert_eq!(hive.heartbeats("bob").await, 0, "mail is leased by a turn");
    hive.end(&run, Outcome::Ok).await;
    let run = hive.open(&harness, Kind::Continue).await.expect("opened");
    hive.beat(30 * MINUTE).await;
    assert_eq!(hive.heartbeats("bob").await, 0, "a turn without mail is open");
    hive.end(&run, Outcome::Ok).await;
    // None of them is sent later.
    hive.sweep_heartbeats().await;
    assert_eq!(hive.heartbeats("bob").await, 0);
}

#[tokio::test]
async fn an_agent_that_can_run_no_turn_gets_none() {
    let hive = beating().await;
    let wish = |wish| {
        let request = hive.request("Wish");
        hive.engine().wish(caller("operator"), request, name("bob"), wish)
    };
    wish(Wish::Stop).await.expect("stopped");
    hive.beat(30 * MINUTE).await;
    assert_eq!(hive.heartbeats("bob").await, 0, "it is stopped");
    wish(Wish::Start { on_demand: None }).await.expect("started");
    // Parked, after its mail was dropped.
    let sent = hive.send("alice", "bob", "hello").await;
    let harness = hive.attach("bob").await;
    let run = hive.begin(&harness).await;
    let until = Some(hive.at(1, 10));
    hive.try_end(&run, Ended { retry_time: until, ..ended(Outcome::RateLimited) })
        .await
        .expect("ended");
    hive.decide("bob", sent, Decision::Drop).await.expect("dropped");
    assert_eq!(hive.numbers("bob").await.ready_count, 0);
    hive.beat(30 * MINUTE).await;
    assert_eq!(hive.heartbeats("bob").await, 0, "it is parked");
    hive.beat(30 * MINUTE).await;
    assert_eq!(hive.heartbeats("bob").await, 1, "the park is over");
    hive.turn(&harness, Outcome::Ok).await;
    hive.retire("bob").await;
    hive.beat(24 * HOUR).await;
    assert_eq!(hive.heartbeats("bob").await, 1, "it is retired");
}

#[tokio::test]
async fn nothing_is_sent_for_the_time_in_which_no_broker_ran() {
    let mut hive = beating().await;
    hive.pass(40 * MINUTE);
    hive.restart().await;
    hive.declare_heartbeats(&[("bob", &heartbeat(30, "08:00-10:00"))]);
    assert_eq!(hive.sweep_heartbeats().await, Some(hive.at(1, 0)));
    assert_eq!(hive.heartbeats("bob").await, 0);
    // An unread one is still one after a crash.
    hive.beat(20 * MINUTE).await;
    hive.crash().await;
    hive.declare_heartbeats(&[("bob", &heartbeat(30, "08:00-10:00"))]);
    assert_eq!(hive.beat(30 * MINUTE).await, Some(hive.at(24, 0)));
    assert_eq!(hive.heartbeats("bob").await, 1);
}

#[tokio::test]
async fn a_clock_that_jumps_forward_sends_one_and_none_after_the_window() {
    let hive = beating().await;
    hive.clock.set_wall(hive.at(1, 45));
    assert_eq!(hive.sweep_heartbeats().await, Some(hive.at(24, 0)));
    assert_eq!(hive.heartbeats("bob").await, 1, "one for three due times");
    hive.read_all("bob").await;
    // The host was asleep from the morning of the next day to its noon.
    hive.clock.set_wall(hive.at(28, 0));
    assert_eq!(hive.sweep_heartbeats().await, Some(hive.at(48, 0)));
    assert_eq!(hive.heartbeats("bob").await, 1, "the window is over");
}

#[tokio::test]
async fn a_clock_that_jumps_back_repeats_no_due_time() {
    let hive = beating().await;
    hive.beat(30 * MINUTE).await;
    hive.read_all("bob").await;
    hive.clock.set_wall(hive.at(0, 0));
    assert_eq!(hive.sweep_heartbeats().await, Some(hive.at(1, 0)));
    assert_eq!(hive.beat(30 * MINUTE).await, Some(hive.at(1, 0)));
    assert_eq!(hive.heartbeats("bob").await, 1, "half past eight was sent");
    assert_eq!(hive.beat(30 * MINUTE).await, Some(hive.at(1, 30)));
    assert_eq!(hive.heartbeats("bob").await, 2);
    hive.read_all("bob").await;
    // A reload in between changes nothing of that.
    hive.clock.set_wall(hive.at(0, 0));
    hive.declare_heartbeats(&[("bob", &heartbeat(30, "08:00-10:00"))]);
    assert_eq!(hive.beat(HOUR).await, Some(hive.at(1, 30)));
    assert_eq!(hive.heartbeats("bob").await, 2);
}

#[tokio::test]
async fn a_clock_that_was_years_ahead_does_not_silence_it_for_years() {
    let hive = beating().await;
    let far = hive.at(10_000 * 24, 0);
    hive.clock.set_wall(far);
    hive.declare_heartbeats(&[
        ("alice", &heartbeat(20, "")),
        ("bob", &heartbeat(30, "08:00-10:00")),
    ]);
    hive.sweep_heartbeats().await;
    hive.read_all("bob").await;
    hive.clock.set_wall(START);
    assert_eq!(hive.sweep_heartbeats().await, Some(hive.at(0, 20)));
    assert_eq!(hive.beat(20 * MINUTE).await, Some(hive.at(0, 30)));
    let before = hive.heartbeats("bob").await;
    hive.beat(10 * MINUTE).await;
    assert_eq!(hive.heartbeats("alice").await, 1);
    assert_eq!(hive.heartbeats("bob").await, before + 1);
}

#[tokio::test]
async fn a_reload_applies_changed_added_and_removed_ones() {
    let hive = beating().await;
    let (bobs, hourly) = (heartbeat(30, "08:00-10:00"), heartbeat(60, ""));
    hive.pass(10 * MINUTE);
    hive.declare_heartbeats(&[("bob", &bobs), ("alice", &heartbeat(15, ""))]);
    assert_eq!(hive.sweep_heartbeats().await, Some(hive.at(0, 15)), "added");
    hive.declare_heartbeats(&[("bob", &bobs), ("alice", &hourly)]);
    assert_eq!(hive.beat(5 * MINUTE).await, Some(hive.at(0, 30)), "changed");
    assert_eq!(hive.heartbeats("alice").await, 0);
    // A reload at the due time itself does not lose it.
    hive.pass(15 * MINUTE);
    hive.declare_heartbeats(&[("bob", &bobs), ("alice", &hourly)]);
    assert_eq!(hive.sweep_heartbeats().await, Some(hive.at(1, 0)));
    assert_eq!((hive.heartbeats("bob").await, hive.heartbeats("alice").await), (1, 0));
    hive.read_all("bob").await;
    hive.declare_heartbeats(&[("alice", &hourly)]);
    hive.beat(HOUR).await;
    assert_eq!((hive.heartbeats("bob").await, hive.heartbeats("alice").await), (1, 1), "removed");
    hive.declare_heartbeats(&[]);
    assert_eq!(hive.beat(48 * HOUR).await, None);
}

#[tokio::test]
async fn a_reload_wakes_the_sweeper() {
    let hive = beating().await;
    let woken = hive.engine().hints().wall_due.notified();
    hive.declare_heartbeats(&[("bob", &heartbeat(1, ""))]);
    tokio::time::timeout(Duration::from_secs(30), woken).await.expect("it is notified");
}

#[tokio::test]
async fn many_agents_are_served_in_steps_and_names_without_an_agent_are_left_out() {
    let names: Vec<String> = (0..120).map(|number| format!("agent-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let hive = Hive::new(&names).await;
    hive.clock.set_wall(START);
    let hourly = heartbeat(60, "");
    let absent = [("nemo", &hourly)];
    let declared: Vec<_> = names.iter().map(|name| (*name, &hourly)).chain(absent).collect();
    hive.declare_heartbeats(&declared);
    hive.pass(HOUR);
    let commits = hive.commits();
    let mut steps = 0;
    while hive.sweep_heartbeats().await == Some(hive.at(1, 0)) {
        steps += 1;
        assert!(steps < 10, "it does not end");
    }
    assert_eq!((steps, hive.commits() - commits), (2, 3), "50, 50 and 21 of them");
    for name in names {
        assert_eq!(hive.heartbeats(name).await, 1, "{name}");
    }
}

#[tokio::test]
async fn one_whose_commit_failed_is_sent_by_the_next_sweep() {
    let hive = beating().await;
    hive.pass(30 * MINUTE);
    let engine = Arc::clone(hive.engine());
    let swept = hive.voided(async move { engine.sweep_heartbeats().await }).await;
    assert_eq!(reason(swept), Reason::StorageUnavailable);
    assert_eq!(hive.sweep_heartbeats().await, Some(hive.at(1, 0)));
    assert_eq!(hive.heartbeats("bob").await, 1);
}
