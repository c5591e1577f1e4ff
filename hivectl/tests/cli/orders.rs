//! Commands to a harness, and waiting for their end.

use hive_proto::v1::{Event, EventKind};
use rustix::process::Signal;
use tokio::process::Child;

use super::fake::Broker;
use super::run::{Ran, hivectl, ran, run, signal};

fn event(sequence: u64, kind: EventKind, detail: &str) -> Event {
    Event {
        sequence,
        kind: kind.into(),
        agent: "ada".to_owned(),
        detail: detail.to_owned(),
        ..Event::default()
    }
}

/// Begins a command with --wait, and waits until it watches.
async fn waiting(broker: &mut Broker, args: &[&str]) -> Child {
    let child =
        hivectl(&broker.socket()).args(args).arg("--wait").spawn().expect("the binary runs");
    broker.watched().await;
    child
}

async fn ended(child: Child) -> Ran {
    ran(child.wait_with_output().await.expect("it ends"))
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_is_told_what_goes_on_and_that_it_is_done() {
    let mut broker = Broker::start();
    for args in [
        &["turn", "compact", "ada"][..],
        &["turn", "cancel", "ada"],
        &["turn", "model", "ada", "haiku"],
        &["turn", "restart", "ada"],
    ] {
        let child = waiting(&mut broker, args).await;
        broker.happens(event(14, EventKind::CommandClosed, "command 3: refused: another's"));
        broker.happens(Event { turn_id: 21, ..event(15, EventKind::TurnEnded, "ok") });
        broker.happens(event(16, EventKind::CommandClosed, "command 30: done"));
        let ran = ended(child).await;
        assert_eq!(
            (ran.code, ran.out.as_str()),
            (0, "ada has done it (command 30)\n"),
            "{args:?}: {}",
            ran.err
        );
        assert!(
            ran.err.ends_with(" (command 30); waiting until it is done\nturn 21 has ended: ok\n"),
            "{args:?}: {}",
            ran.err
        );
    }
    assert_eq!(
        broker.changes(),
        ["ada: compact", "ada: cancel turn 0", "ada: model haiku", "ada: restart"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_get_one_object_when_it_is_done() {
    let mut broker = Broker::start();
    let child = waiting(&mut broker, &["turn", "compact", "ada", "--json"]).await;
    broker.happens(event(14, EventKind::CommandClosed, "command 30: done"));
    let ran = ended(child).await;
    let done: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(
        (done["schema"].as_str(), done["done"].as_str()),
        (Some("hive.done.v1"), Some("carried_out"))
    );
    assert_eq!((done["agent"].as_str(), done["command_id"].as_u64()), (Some("ada"), Some(30)));
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_1_what_the_harness_refuses_is_told_in_its_words() {
    let mut broker = Broker::start();
    let child = waiting(&mut broker, &["turn", "compact", "ada"]).await;
    broker.happens(event(
        14,
        EventKind::CommandClosed,
        "command 30: refused: nothing to compact\u{1b}[2J",
    ));
    insta::assert_snapshot!(ended(child).await.all());
    let child = waiting(&mut broker, &["turn", "compact", "ada", "--json"]).await;
    broker.happens(event(14, EventKind::AgentRetired, ""));
    let ran = ended(child).await;
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    assert!(ran.err.contains("the agent was retired"), "{}", ran.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_6_what_takes_too_long_stays_given() {
    let broker = Broker::start();
    insta::assert_snapshot!(
        run(&broker.socket(), &["turn", "compact", "ada", "--wait", "--timeout", "0.5"])
            .await
            .all()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn who_interrupts_the_waiting_is_told_that_it_stays_given() {
    let mut broker = Broker::start();
    let mut child = hivectl(&broker.socket())
        .args(["turn", "restart", "ada", "--wait"])
        .spawn()
        .expect("the binary runs");
    broker.watched().await;
    // It says so when it waits; before that Ctrl-C would just end it.
    let mut err = tokio::io::BufReader::new(child.stderr.take().expect("stderr is a pipe"));
    let mut told = String::new();
    tokio::io::AsyncBufReadExt::read_line(&mut err, &mut told).await.expect("text");
    assert!(told.ends_with("waiting until it is done\n"), "{told}");
    broker.happens(event(14, EventKind::HarnessLost, ""));
    tokio::io::AsyncBufReadExt::read_line(&mut err, &mut told).await.expect("text");
    signal(&child, Signal::INT);
    assert_eq!(child.wait().await.expect("it ends").code(), Some(1));
    tokio::io::AsyncReadExt::read_to_string(&mut err, &mut told).await.expect("text");
    assert!(
        told.contains("the harness is gone\nerror: interrupted; command 30 of ada stays given\nhint: `hivectl events"),
        "{told}"
    );
}
