//! Schedules over weeks: the clock jumps both ways, the broker is down, targets read, fail or do
//! nothing, and the hours of a day change. Each due time is fired or counted once.

use std::collections::BTreeMap;

use hive_core::agent::{OWN_SCHEDULES, SCHEDULING};
use hive_core::delivery::State as DeliveryState;
use hive_core::id::{MessageId, ScheduleId};
use hive_core::schedule::Terms;
use hive_core::time::WallTime;
use proptest::prelude::*;

use super::*;
use crate::clock::Clock as _;

const HOUR: u64 = 3600;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Time passes, and what is due is swept.
    Pass(u64),
    /// Time passes while the broker is down.
    Down(u64),
    /// The clock is set by this many seconds.
    Jump(i64),
    Crash,
    /// The target takes its mail, and acks or nacks it.
    Read(bool),
    /// The target takes its mail and keeps it, until the lease ends.
    Keep,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1..60 * HOUR).prop_map(Step::Pass),
        2 => (1..200 * HOUR).prop_map(Step::Down),
        1 => (-50_000_i64..50_000).prop_map(Step::Jump),
        1 => Just(Step::Crash),
        3 => any::<bool>().prop_map(Step::Read),
        1 => Just(Step::Keep),
    ]
}

fn terms(now: WallTime) -> impl Strategy<Value = Terms> {
    let interval = prop_oneof![(60..3 * HOUR), (1..5_u64).prop_map(|days| days * 24 * HOUR)];
    let zone = prop_oneof![Just(""), Just("Europe/Berlin"), Just("Australia/Lord_Howe")];
    let late = proptest::option::of(60..100 * HOUR);
    (1..40 * HOUR, interval, zone, late).prop_map(move |(first, interval, zone, late)| Terms {
        body: "Report.".to_owned(),
        targets: vec![name("bob")],
        first_time: now.after(Duration::from_secs(first)),
        interval: Some(Duration::from_secs(interval)),
        zone: zone.to_owned(),
        late_max: late.map(Duration::from_secs),
    })
}

/// The messages of the schedule that the target got, with what each states.
async fn states(hive: &Hive) -> BTreeMap<MessageId, (DeliveryState, u32, u64)> {
    let inbox = hive.inbox("bob").await.into_iter();
    let stated = |body: &str| {
        let words: Vec<&str> = body.lines().next().unwrap_or_default().split(' ').collect();
        let at = words.iter().position(|word| *word == "earlier");
        at.map_or(0, |at| words[at - 1].parse().expect("a number"))
    };
    inbox
        .map(|one| {
            let stated = stated(&one.message.body);
            (one.message.id, (one.state, one.attempt, stated))
        })
        .collect()
}

struct World {
    hive: Hive,
    id: ScheduleId,
    terms: Terms,
    start: WallTime,
    /// The latest time that the broker swept at.
    latest: WallTime,
}

impl World {
    async fn new(terms: Terms, start: WallTime) -> Self {
        let hive = Hive::new(&["bob"]).await;
        hive.clock.set_wall(start);
        let mut policy = Policy::default();
        policy.tool_groups.push(SCHEDULING.to_owned());
        policy.grants.push(OWN_SCHEDULES.to_owned());
        hive.create("alice", None, policy).await;
        let id = hive.scheduled("alice", terms.clone()).await;
        Self { hive, id, terms, start, latest: start }
    }

    async fn sweep(&mut self) {
        // An idle wakeup would be a fault of its own.
        while let Some(next) = self.hive.sweep_schedules().await {
            if next > self.hive.clock.now().wall {
                break;
            }
        }
        self.latest = self.latest.max(self.hive.clock.now().wall);
        self.check().await;
    }

    async fn take(&mut self, step: Step) {
        match step {
            Step::Pass(seconds) => {
                self.hive.pass(seconds);
                self.hive.sweep().await;
                self.sweep().await;
            }
            Step::Down(seconds) => {
                self.hive.pass(seconds);
                self.hive.crash().await;
                self.hive.sweep().await;
                self.sweep().await;
            }
            Step::Jump(seconds) => {
                let now = self.hive.clock.now().wall;
                let by = Duration::from_secs(seconds.unsigned_abs());
                self.hive.clock.set_wall(if seconds < 0 { now.before(by) } else { now.after(by) });
                self.sweep().await;
            }
            Step::Crash => self.hive.crash().await,
            Step::Read(is_well) => {
                for leased in self.hive.receive("bob", 9).await {
                    if is_well {
                        self.hive.ack("bob", &leased).await.expect("settled");
                    } else {
                        self.hive.nack("bob", &leased, false).await.expect("returned");
                    }
                }
            }
            Step::Keep => drop(self.hive.receive("bob", 9).await),
        }
    }

    /// Every due time up to now is in exactly one place: a message that stands, what that one
    /// states, or the count of those that were skipped since.
    async fn check(&self) {
        let timetable = self.terms.timetable().expect("a zone");
        let due = timetable.last(self.latest).map_or(0, |due| due.number + 1);
        let listed = self.hive.schedules("alice").await;
        let schedule = listed.iter().find(|schedule| schedule.id == self.id).expect("it exists");
        let messages = states(&self.hive).await;
        let standing = messages.values().filter(|(state, ..)| *state != DeliveryState::Superseded);
        let counted: u64 = standing.map(|(_, _, stated)| 1 + stated).sum();
        let skipped = schedule.targets[0].skipped_count;
        assert_eq!(counted + skipped, due, "{schedule:?}: {messages:?}, since {:?}", self.start);
        let unread = messages
            .values()
            .filter(|(state, attempt, _)| *state == DeliveryState::Ready && *attempt <= 1);
        assert!(unread.count() <= 1, "{messages:?}");
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// Ten days before the end of summer time in Berlin.
const START: WallTime = WallTime(1_792_000_000_000);

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn each_due_time_is_fired_or_counted_once(
        terms in terms(START), steps in proptest::collection::vec(step(), 1..30),
    ) {
        runtime().block_on(async {
            let mut world = World::new(terms, START).await;
            for step in steps {
                world.take(step).await;
            }
            world.take(Step::Pass(100 * HOUR)).await;
        });
    }
}
