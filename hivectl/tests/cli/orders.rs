//! Commands to a harness, and waiting for their end.

use std::time::Duration;

use hive_proto::v1::command::Command as Order;
use hive_proto::v1::{EndTurnRequest, TurnKind, TurnOutcome};
use rustix::process::Signal;

use super::hive::Hive;
use super::play::Player;
use super::run::{assert_contains, assert_ends, ended, signal};

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_reports_progress_and_completion() {
    let mut hive = Hive::attended("[agents.ada]").await;
    let mut orders = Vec::new();
    let mut turns = Vec::new();
    for args in [
        &["turn", "compact", "ada"][..],
        &["turn", "cancel", "ada"],
        &["turn", "model", "ada", "haiku"],
        &["turn", "restart", "ada"],
    ] {
        let turn = hive.ada().open(TurnKind::Continue).await.turn;
        turns.push(turn);
        let child = hive.spawn(&[args, &["--wait"]].concat());
        let (command, order) = hive.ada().order().await;
        orders.push(order);
        assert_eq!(hive.run(&["turn", "new-session", "ada"]).await.code, 0);
        let (other, _) = hive.ada().order().await;
        hive.ada().closes(other, "another's").await;
        hive.ada().end(TurnOutcome::Ok, EndTurnRequest::default()).await;
        hive.ada().closes(command, "").await;
        let ran = ended(child).await;
        assert_eq!(
            (ran.code, ran.out),
            (0, format!("ada has done it (command {command})\n")),
            "{args:?}: {}",
            ran.err
        );
        let output = format!(
            " (command {command}); waiting until it is done\nturn {turn} has ended: ok: 0 acked, 0 returned, 0 dead, 0 held\n"
        );
        assert!(ran.err.ends_with(&output), "{args:?}: {}", ran.err);
    }
    let [
        Order::CompactSession(_),
        Order::CancelTurn(cancel),
        Order::SetModel(model),
        Order::RestartHarness(_),
    ] = &orders[..]
    else {
        panic!("{orders:?}")
    };
    assert_eq!((cancel.turn_id, model.model.as_str()), (turns[1], "haiku"));
}

#[tokio::test(flavor = "multi_thread")]
async fn json_is_one_object_at_the_end() {
    let mut hive = Hive::attended("[agents.ada]").await;
    let child = hive.spawn(&["turn", "compact", "ada", "--json", "--wait"]);
    let (command, _) = hive.ada().order().await;
    hive.ada().closes(command, "").await;
    let ran = ended(child).await;
    let done: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(
        (done["schema"].as_str(), done["done"].as_str()),
        (Some("hive.done.v1"), Some("carried_out"))
    );
    assert_eq!((done["agent"].as_str(), done["command_id"].as_u64()), (Some("ada"), Some(command)));
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_1_a_refusal_of_the_harness_is_reported() {
    let mut hive = Hive::attended("[agents.ada]").await;
    let child = hive.spawn(&["turn", "compact", "ada", "--wait"]);
    let (command, _) = hive.ada().order().await;
    hive.ada().closes(command, "nothing to compact\u{1b}[2J").await;
    insta::assert_snapshot!(ended(child).await.all());
    assert_eq!(hive.run(&["agent", "create", "bob"]).await.code, 0);
    let mut bob = Player::attach(&hive, "bob").await;
    let child = hive.spawn(&["turn", "compact", "bob", "--json", "--wait"]);
    bob.order().await;
    hive.operate(&["agent", "retire", "bob"]).await;
    let ran = ended(child).await;
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    assert_contains(&ran.err, "the agent was retired");
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_6_what_takes_too_long_stays_given() {
    let hive = Hive::attended("[agents.ada]").await;
    insta::assert_snapshot!(
        hive.run(&["turn", "compact", "ada", "--wait", "--timeout", "0.5"]).await.all()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_wait_reports_that_the_command_remains() {
    let mut hive = Hive::attended("[agents.ada]").await;
    let mut child = hive.spawn(&["turn", "restart", "ada", "--wait"]);
    let (command, _) = hive.ada().order().await;
    // The note is printed before the wait; an earlier Ctrl-C would only end the program.
    let mut err = tokio::io::BufReader::new(child.stderr.take().expect("stderr is a pipe"));
    let mut output = String::new();
    tokio::io::AsyncBufReadExt::read_line(&mut err, &mut output).await.expect("text");
    assert_ends(&output, "waiting until it is done\n");
    hive.ada = None;
    let operator = hive.operator().await;
    while operator.get_agent("ada").await.running {
        tokio::task::yield_now().await;
    }
    hive.advance(Duration::from_secs(3600));
    tokio::io::AsyncBufReadExt::read_line(&mut err, &mut output).await.expect("text");
    signal(&child, Signal::INT);
    assert_eq!(child.wait().await.expect("it ends").code(), Some(1));
    tokio::io::AsyncReadExt::read_to_string(&mut err, &mut output).await.expect("text");
    let end = format!(
        "the harness is gone: stayed away\nerror: interrupted; command {command} of ada stays queued\nhint: `hivectl events"
    );
    assert_contains(&output, &end);
}
