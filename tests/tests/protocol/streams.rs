//! The examples of streams.

use std::fs::File;
use std::path::Path;

use hive_proto::v1::{DeliveryState, EventKind, RedeliveryCause};
use hive_tests::rig::Wire;
use rustix::process::Signal;

use crate::python;
use crate::workshop::{Language, Workshop};

/// Begins a consumer of ada's mail that runs this shell command for each message.
fn consume(workshop: &mut Workshop, file: &str, script: &str) {
    let command = workshop.example(file, &["sh", "-c", script]);
    workshop.rig.spawn("consumer", command);
}

/// Asks the consumer to end, and waits for it.
async fn end(workshop: &mut Workshop) {
    workshop.rig.harness("consumer").signal(Signal::TERM);
    workshop.ended("consumer").await;
}

pub(crate) async fn commands_settle_their_messages(file: &str) {
    let Some(mut workshop) = python::workshop().await else { return };
    let script = "body=$(cat); echo \"got $body\"; test \"$body\" != bad";
    consume(&mut workshop, file, script);
    let (bob, operator) = (workshop.rig.agent("bob").await, workshop.rig.operator().await);
    let mut watch = workshop.rig.watch().await;
    let bad = bob.send("ada", "bad").await;
    let good = bob.send("ada", "good").await;
    watch.kind("ada", EventKind::DeliveryDead).await;
    let good = operator.delivery("ada", good).await;
    assert_eq!((good.state(), good.attempt), (DeliveryState::Acked, 1));
    let bad = operator.delivery("ada", bad).await;
    assert_eq!((bad.state(), bad.attempt), (DeliveryState::Dead, 5));
    assert_eq!(bad.last_error, "exit code 1");
    let said = workshop.rig.read("consumer.log");
    assert_eq!(said.matches("got bad").count(), 5, "{said}");
    assert_eq!(said.matches("got good").count(), 1, "{said}");
    end(&mut workshop).await;
    workshop.rig.end().await;
}

pub(crate) async fn leases_survive_the_broker(file: &str) {
    let Some(mut workshop) = python::workshop().await else { return };
    let dir = workshop.dir();
    let fifo = dir.join("gate").display().to_string();
    workshop.succeeds(workshop.command("mkfifo", &[&fifo])).await;
    // A command ends when the gate is opened for writing.
    let script = format!("body=$(cat); echo \"begun $body\"; cat '{fifo}'; echo \"ended $body\"");
    consume(&mut workshop, file, &script);
    let mut watch = workshop.rig.watch().await;
    let first = workshop.rig.agent("bob").await.send("ada", "first").await;
    workshop.rig.harness("consumer").says("begun first").await;
    workshop.rig.crash_broker().await;
    // The consumer is there again when it gets the next one, and still works on the first.
    let second = workshop.rig.agent("bob").await.send("ada", "second").await;
    workshop.rig.harness("consumer").says("begun second").await;
    // The commands end while no broker can take their results.
    workshop.rig.kill_broker().await;
    let gate = tokio::task::spawn_blocking(move || File::options().write(true).open(fifo));
    drop(gate.await.expect("no panic").expect("the commands read it"));
    for body in ["first", "second"] {
        workshop.rig.harness("consumer").says(&format!("ended {body}")).await;
    }
    workshop.rig.start_broker().await;
    watch.kinds(EventKind::DeliveryAcked, 2).await;
    let operator = workshop.rig.operator().await;
    for message in [first, second] {
        let delivery = operator.delivery("ada", message).await;
        assert_eq!(delivery.state(), DeliveryState::Acked);
        assert_eq!((delivery.attempt, delivery.redelivery_cause), (1, None));
    }
    end(&mut workshop).await;
    let said = workshop.rig.read("consumer.log");
    assert_eq!(said.matches("begun").count(), 2, "{said}");
    workshop.rig.end().await;
}

pub(crate) async fn an_end_releases(file: &str) {
    let Some(mut workshop) = python::workshop().await else { return };
    // `exec`, so that no child of the shell outlives it.
    consume(&mut workshop, file, "echo begun; exec tail -f /dev/null");
    let message = workshop.rig.agent("bob").await.send("ada", "hello").await;
    workshop.rig.harness("consumer").says("begun").await;
    end(&mut workshop).await;
    let delivery = workshop.rig.operator().await.delivery("ada", message).await;
    assert_eq!(delivery.state(), DeliveryState::Ready);
    assert_eq!(delivery.redelivery_cause(), RedeliveryCause::NotReceived);
    workshop.rig.end().await;
}

/// Begins to send these lines to bob.
fn send_lines(workshop: &mut Workshop, file: &str, lines: &[String], socket: &Path) {
    let input = workshop.dir().join("lines");
    std::fs::write(&input, lines.join("\n")).expect("the input is written");
    let mut command = workshop.example(file, &["bob"]);
    command.env("HIVE_SOCKET", socket).stdin(File::open(input).expect("the input is there"));
    workshop.rig.spawn("lines", command);
}

/// Returns the bodies of bob's mail, in order.
async fn bodies(workshop: &Workshop) -> Vec<String> {
    let deliveries = workshop.rig.operator().await.deliveries("bob", &[]).await;
    deliveries.into_iter().filter_map(|delivery| Some(delivery.message?.body)).collect()
}

pub(crate) async fn lines_arrive_in_order(file: &str) {
    let limits = "[broker.limits]\nbody_bytes_max = 1000\n";
    let Some(mut workshop) = Workshop::with(Language::Node, limits).await else { return };
    let mut lines: Vec<String> = (0..300).map(|number| format!("line {number}")).collect();
    lines[50] = "long ".repeat(250);
    let socket = workshop.rig.agent_socket("ada");
    send_lines(&mut workshop, file, &lines, &socket);
    workshop.rig.harness("lines").says("sent").await;
    workshop.rig.crash_broker().await;
    let said = workshop.ended("lines").await;
    assert_eq!(said.matches("refused REASON_BODY_TOO_LARGE").count(), 1, "{said}");
    assert_eq!(said.matches("sent").count(), 299, "{said}");
    lines.remove(50);
    assert_eq!(bodies(&workshop).await, lines);
    workshop.rig.end().await;
}

pub(crate) async fn rates_and_lost_answers_lose_no_line(file: &str) {
    // One a second after the first sixty.
    let limits = "[broker.limits]\nsends_per_minute_max = 60\n";
    let Some(mut workshop) = Workshop::with(Language::Node, limits).await else { return };
    let lines: Vec<String> = (0..80).map(|number| format!("line {number}")).collect();
    let socket = workshop.rig.path("wire.sock");
    let wire = Wire::lay(&socket, &workshop.rig.agent_socket("ada"));
    let mut watch = workshop.rig.watch().await;
    send_lines(&mut workshop, file, &lines, &socket);
    workshop.rig.harness("lines").says("again soon").await;
    wire.lose_replies(true);
    // After the pause the program goes on, and an answer from the 61st on does not arrive.
    watch.kinds(EventKind::MessageAccepted, 61).await;
    workshop.rig.kill_broker().await;
    wire.lose_replies(false);
    workshop.rig.start_broker().await;
    workshop.ended("lines").await;
    assert_eq!(bodies(&workshop).await, lines);
    workshop.rig.end().await;
}
