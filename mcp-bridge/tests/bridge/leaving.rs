//! Early ends of a call and of the bridge itself.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use hive_in_process::Broker;
use hive_tests::mcp::Client;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::rig::{self, connected, good, hive, stopped};

/// Claude gives a server 0.1 s between SIGINT and SIGTERM; the limit allows for a busy machine, not
/// for an uncancelled wait.
const LEAVING_MAX: Duration = Duration::from_secs(2);

async fn waiting(broker: &Broker) -> Client {
    let mut client = connected(broker).await;
    client
        .start_tool("recv", json!({"wait_seconds": 180}), "toolu_1")
        .await
        .expect("the bridge reads");
    broker.wait_for_calls(1).await;
    client
}

async fn left(broker: &Broker, since: Instant, end: (ExitStatus, String)) {
    assert!(end.0.success(), "{end:?}");
    assert!(since.elapsed() < LEAVING_MAX, "{:?}: {}", since.elapsed(), end.1);
    broker.wait_until("the waiting call is dropped", |state| state.dropped_count == 1).await;
}

#[tokio::test]
async fn a_cancelled_recv_stops_at_once_and_the_bridge_goes_on() {
    let broker = hive().await;
    let mut client = connected(&broker).await;
    let pending = client
        .start_tool("recv", json!({"wait_seconds": 180}), "toolu_1")
        .await
        .expect("the bridge reads");
    broker.wait_for_calls(1).await;
    let cancel = json!({"requestId": pending.id(), "reason": "the user interrupted"});
    client.notify("notifications/cancelled", cancel).await.expect("the bridge reads");
    broker.wait_until("the call is dropped", |state| state.dropped_count == 1).await;
    let message = broker.mail("bob", "still there").await;
    assert_eq!(
        // The broker may give the mail to the cancelled call first, and then gets it back.
        good(&mut client, "recv", json!({"wait_seconds": 180}), "toolu_2").await,
        format!("#{message} from bob\n| still there\n")
    );
    let (_, log) = client.close().await.expect("it ends");
    assert!(log.contains("outcome=\"cancelled\""), "{log}");
}

#[tokio::test]
async fn the_end_of_stdin_ends_a_waiting_bridge() {
    let broker = hive().await;
    let client = waiting(&broker).await;
    let since = Instant::now();
    left(&broker, since, client.close().await.expect("it ends")).await;
}

#[tokio::test]
async fn signals_end_a_waiting_bridge() {
    for signal in [Signal::INT, Signal::TERM] {
        let broker = hive().await;
        let client = waiting(&broker).await;
        let since = Instant::now();
        let pid = client.pid().and_then(|pid| Pid::from_raw(pid.cast_signed())).expect("it runs");
        kill_process(pid, signal).expect("it takes signals");
        left(&broker, since, client.wait().await.expect("it ends")).await;
    }
}

#[tokio::test]
async fn a_signal_ends_a_bridge_whose_stdin_is_a_socket_and_stays_open() {
    let broker = stopped();
    // Claude gives its servers sockets, not pipes; a thread reads those, and no signal interrupts
    // it.
    let (mut ours, theirs) = UnixStream::pair().expect("a pair of sockets");
    let mut command = rig::command(&broker.socket());
    let stdout = theirs.try_clone().expect("a socket can be shared");
    command.stdin(OwnedFd::from(theirs)).stdout(OwnedFd::from(stdout)).kill_on_drop(true);
    let mut child = command.spawn().expect("hive-mcp starts");
    drop(command);
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    let frame = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello});
    writeln!(ours, "{frame}").expect("the bridge reads");
    // After its answer it handles signals.
    let mut answer = String::new();
    BufReader::new(&ours).read_line(&mut answer).expect("the bridge answers");
    let since = Instant::now();
    let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())).expect("it runs");
    kill_process(pid, Signal::INT).expect("it takes signals");
    assert!(child.wait().await.expect("it ends").success());
    assert!(since.elapsed() < LEAVING_MAX, "{:?}", since.elapsed());
}

#[tokio::test]
async fn a_client_that_leaves_before_the_handshake_is_no_fault() {
    let broker = stopped();
    let client = Client::spawn(&mut rig::command(&broker.socket())).expect("hive-mcp starts");
    let (status, log) = client.close().await.expect("it ends");
    assert!(status.success() && !log.contains("ERROR"), "{log}");
}

#[tokio::test]
async fn a_call_before_the_end_of_stdin_is_still_answered() {
    let broker = hive().await;
    let mut client = connected(&broker).await;
    let pending = client
        .start_tool("send", json!({"to": "bob", "body": "last words"}), "toolu_1")
        .await
        .expect("the bridge reads");
    let (end, answer) = tokio::join!(client.close(), pending.tool_result());
    assert!(end.expect("it ends").0.success());
    let [message] = broker.inbox("bob").await[..] else { panic!("one message") };
    assert_eq!(answer.expect("an answer").0, format!("Sent #{message} to bob."));
}
