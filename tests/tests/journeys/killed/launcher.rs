//! `hivectl up`, a launcher, is killed while it carries out an order: no harness stays behind, and
//! the next one has every agent as it is wanted, with each order carried out and reported once.

use std::cell::Cell;
use std::path::Path;

use hive_proto::connect::connect;
use hive_proto::v1::{Event, EventKind, HarnessState, SystemKind};
use hive_tests::rig::{Client, Rig, Watch, gone, soon, strays};
use rustix::process::{Pid, Signal, kill_process};

use crate::launcher::{hive, left, well};
use crate::steps::{acked, handled};
use crate::up::Up;

const PATH: &str = "/usr/bin:/bin";
/// SIGTERM in the sets of signals of `/proc/PID/status`.
const TERM_BIT: u64 = 1 << (15 - 1);

/// An order of ada about bob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Restart,
    Start,
    Stop,
}

/// When the launcher is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    /// The order is stored, and the launcher has not read it.
    Stored,
    /// The harness was asked to end, and runs.
    Ending,
    /// The harness has ended, and the launcher has not seen that.
    Ended,
    /// The next harness has a process.
    Begun,
    /// The next harness has attached.
    Attached,
}

impl Order {
    const fn words(self) -> &'static str {
        match self {
            Self::Restart => "Restart bob.",
            Self::Start => "Start bob.",
            Self::Stop => "Stop bob.",
        }
    }

    /// The notice to ada that it is carried out.
    const fn notice(self) -> (SystemKind, &'static str) {
        match self {
            Self::Restart => (SystemKind::Started, "bob was restarted."),
            Self::Start => (SystemKind::Started, "bob was started."),
            Self::Stop => {
                (SystemKind::Stopped, "bob is stopped. Its mail waits until it is started.")
            }
        }
    }
}

async fn up(rig: &Rig) -> Up {
    Up::start(rig, Path::new(PATH)).await
}

/// Waits until the kernel shows this of a process.
async fn shows(what: &str, pid: Pid, is_so: impl Fn(&str) -> bool) {
    let file = format!("/proc/{}/status", pid.as_raw_nonzero());
    soon(what, async {
        while !is_so(&std::fs::read_to_string(&file).expect("it runs")) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Stops a process that is no child of this one.
async fn suspend(pid: Pid) {
    kill_process(pid, Signal::STOP).expect("it runs");
    shows("the process stops", pid, |status| status.contains("\nState:\tT")).await;
}

/// Returns whether a process has a SIGTERM that it has not handled.
fn is_asked_to_end(status: &str) -> bool {
    let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:\t"));
    let pending = u64::from_str_radix(pending.expect("the kernel shows it").trim(), 16);
    pending.expect("a number") & TERM_BIT != 0
}

/// Waits until there is a process that `fits`.
async fn process(what: &str, fits: impl Fn() -> bool) {
    soon(what, async {
        while !fits() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Lets the launcher act up to this moment; `old` is bob's harness before the order.
async fn reach(moment: Moment, rig: &Rig, up: &Up, watch: &mut Watch, old: Option<Pid>) {
    match moment {
        Moment::Stored => {}
        Moment::Ending | Moment::Ended => {
            let old = old.expect("a harness that is to end");
            suspend(old).await;
            up.signal(Signal::CONT);
            shows("the harness is asked to end", old, is_asked_to_end).await;
            if moment == Moment::Ended {
                up.suspend().await;
                kill_process(old, Signal::CONT).expect("it runs");
                gone(old).await;
            }
        }
        Moment::Begun => {
            up.signal(Signal::CONT);
            let is_new = |pid: &Pid| Some(*pid) != old;
            process("the next harness begins", || rig.running("bob", "hive").iter().any(is_new))
                .await;
        }
        Moment::Attached => {
            up.signal(Signal::CONT);
            watch.kind("bob", EventKind::HarnessAttached).await;
        }
    }
}

/// Returns how many notices of this order ada has got.
async fn notices(operator: &Client, order: Order) -> usize {
    let (kind, body) = order.notice();
    let all = operator.messages().await;
    all.iter().filter(|message| message.system_kind() == kind && message.body == body).count()
}

/// Waits until ada is notified that an order is carried out.
async fn notified(operator: &Client, order: Order) {
    soon("ada is notified", async { while notices(operator, order).await == 0 {} }).await;
}

async fn killed_at(order: Order, moment: Moment) {
    let rig = hive();
    let killed = up(&rig).await;
    let operator = rig.operator().await;
    operator.does("ada", HarnessState::Idle).await;
    operator.does("bob", HarnessState::Idle).await;
    if order == Order::Start {
        well(&rig, &["agent", "stop", "bob"]).await;
        notified(&operator, Order::Stop).await;
    }
    let old = (order != Order::Start).then(|| rig.the_one("bob", "hive"));
    // It reads the order when the test lets it.
    killed.suspend().await;
    let mut watch = rig.watch_from_now().await;
    let asked = operator.send("ada", order.words()).await;
    acked(&rig, "ada", asked).await;
    reach(moment, &rig, &killed, &mut rig.watch_from_now().await, old).await;
    killed.killed_anywhere(&rig).await;

    let hive = up(&rig).await;
    let operator = rig.operator().await;
    let wanted = if order == Order::Stop { HarnessState::Stopped } else { HarnessState::Idle };
    operator.does("bob", wanted).await;
    notified(&operator, order).await;
    let now = rig.running("bob", "hive");
    // It looks at all agents for a new one, so by then it has nothing left to do about bob.
    well(&rig, &["agent", "create", "cy"]).await;
    let attached = Cell::new(0);
    let counts = |event: &Event| {
        let is_attached = event.kind() == EventKind::HarnessAttached;
        attached.set(attached.get() + u32::from(is_attached && event.agent == "bob"));
        is_attached && event.agent == "cy"
    };
    watch.until("cy is attached", counts).await;
    assert_eq!(rig.running("bob", "hive"), now);
    assert_eq!(now.len(), usize::from(order != Order::Stop));
    let expected = match (order, moment) {
        // The harness obeys the mark, too: it begins afresh and attaches, until it is ended.
        (Order::Stop, _) => 0..=1,
        (_, Moment::Stored | Moment::Ending | Moment::Ended) => 1..=1,
        // The process of the first launcher may have been killed before it attached.
        (_, Moment::Begun) => 1..=2,
        (_, Moment::Attached) => 2..=2,
    };
    assert!(expected.contains(&attached.get()), "{} harnesses attached", attached.get());
    assert_eq!(notices(&operator, order).await, 1);
    let restarts = operator.get_agent("bob").await.restart_count;
    assert_eq!(restarts, u64::from(order == Order::Restart));
    if order != Order::Stop {
        handled(&rig, &operator, "bob", "Hello bob.").await;
    }
    hive.interrupted(rig).await;
}

cases! {
    before_it_reads_a_restart => killed_at(Order::Restart, Moment::Stored),
    while_the_old_harness_ends => killed_at(Order::Restart, Moment::Ending),
    after_the_old_harness_has_ended => killed_at(Order::Restart, Moment::Ended),
    as_the_next_harness_begins => killed_at(Order::Restart, Moment::Begun),
    after_the_next_harness_has_attached => killed_at(Order::Restart, Moment::Attached),
    before_it_reads_a_start => killed_at(Order::Start, Moment::Stored),
    as_a_started_harness_begins => killed_at(Order::Start, Moment::Begun),
    after_a_started_harness_has_attached => killed_at(Order::Start, Moment::Attached),
    before_it_reads_a_stop => killed_at(Order::Stop, Moment::Stored),
    while_a_stopped_harness_ends => killed_at(Order::Stop, Moment::Ending),
    after_a_stopped_harness_has_ended => killed_at(Order::Stop, Moment::Ended),
}

/// Mail that came after the harness left, and before the launcher saw that, is in no process.
#[tokio::test]
async fn after_a_harness_on_demand_has_left() {
    let rig = hive();
    let killed = up(&rig).await;
    let operator = rig.operator().await;
    operator.does("bob", HarnessState::Idle).await;
    let mut watch = rig.watch_from_now().await;
    killed.suspend().await;
    well(&rig, &["agent", "start", "bob", "--on-demand"]).await;
    left(&mut watch, "bob").await;
    let mail = operator.send("bob", "Hello bob.").await;
    killed.killed_anywhere(&rig).await;
    let hive = up(&rig).await;
    // The watch has seen all before: one harness comes, and goes when the mail is handled.
    watch.kind("bob", EventKind::HarnessAttached).await;
    acked(&rig, "bob", mail).await;
    left(&mut watch, "bob").await;
    hive.interrupted(rig).await;
}

/// From the begin of the program to the first harness.
#[tokio::test]
async fn while_the_hive_starts() {
    let rig = hive();
    let start = || Up::spawn(&rig, Path::new(PATH), &[]);
    start().killed_anywhere(&rig).await;

    let killed = start();
    let is_broker = |pid: &Pid| {
        std::fs::read_to_string(format!("/proc/{}/comm", pid.as_raw_nonzero()))
            .is_ok_and(|name| name.trim_end() == "hived")
    };
    process("the broker begins", || strays(rig.dir()).iter().any(is_broker)).await;
    killed.killed_anywhere(&rig).await;

    let killed = start();
    let mut mail = Vec::new();
    soon("the broker answers", async { while connect(&rig.operator_socket()).await.is_err() {} })
        .await;
    mail.push(rig.operator().await.send("bob", "first").await);
    killed.killed_anywhere(&rig).await;

    let killed = start();
    process("a harness begins", || !rig.running("bob", "hive").is_empty()).await;
    mail.push(rig.operator().await.send("bob", "second").await);
    killed.killed_anywhere(&rig).await;

    let killed = start();
    let mut watch = rig.watch().await;
    watch.kind("bob", EventKind::HarnessAttached).await;
    mail.push(rig.operator().await.send("bob", "third").await);
    killed.killed_anywhere(&rig).await;

    let hive = up(&rig).await;
    let operator = rig.operator().await;
    for mail in mail {
        acked(&rig, "bob", mail).await;
    }
    operator.does("bob", HarnessState::Idle).await;
    operator.does("ada", HarnessState::Idle).await;
    for agent in ["ada", "bob"] {
        rig.the_one(agent, "hive");
    }
    hive.interrupted(rig).await;
}
