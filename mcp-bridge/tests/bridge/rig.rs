//! A bridge as claude starts it: nothing in its environment but what the harness gives.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use hive_in_process::Broker;
use hive_proto::v1::TurnOutcome;
use hive_tests::mcp::Client;
use hive_tests::rig;
use serde_json::Value;
use tokio::process::Command;

/// Longer than any pause after a failed turn.
const BACKOFF: Duration = Duration::from_secs(3600);

/// The process token of the turn.
pub(crate) const TOKEN: &str = "process-token-of-turn-1";

/// Alice, whose bridge it is; carol, her child; and bob.
pub(crate) const HIVE: &str = "[agents.alice]\n[agents.bob]\n[agents.carol]\nparent = \"alice\"\n";

/// A broker in which alice has an open turn.
pub(crate) async fn hive() -> Broker {
    Broker::in_turn(HIVE, "alice", TOKEN).await
}

/// A broker in which alice has a turn for a message of bob, whose earlier attempts have failed;
/// `first` is what alice did in the first of them.
pub(crate) async fn retried(failures: usize, first: impl AsyncFnOnce(rig::Client)) -> Broker {
    let broker = Broker::start(HIVE, "alice");
    broker.mail("bob", "work").await;
    let harness = broker.harness("alice").await;
    let mut first = Some(first);
    for _ in 0..failures {
        let (begun, process_token) = harness.begin().await;
        if let Some(first) = first.take() {
            first(broker.client("alice").await.with_process(&process_token)).await;
        }
        harness.end(begun.turn.expect("a turn").id, TurnOutcome::Failed).await;
        broker.advance(BACKOFF);
    }
    harness.begin_as(TOKEN).await;
    broker.keep(harness)
}

/// A client of alice's process in her open turn.
pub(crate) async fn alice(broker: &Broker) -> rig::Client {
    broker.client("alice").await.with_process(TOKEN)
}

/// A broker that does not run.
pub(crate) fn stopped() -> Broker {
    Broker::stopped(HIVE, "alice")
}

/// The program with the harness's environment, not started.
pub(crate) fn command(socket: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hive-mcp"));
    command
        .env_clear()
        .env("HIVE_SOCKET", socket)
        .env("HIVE_PROCESS_TOKEN", TOKEN)
        .env("HIVE_LABEL", "alice");
    command.stderr(Stdio::piped());
    command
}

/// A bridge past its handshake.
pub(crate) async fn connected(broker: &Broker) -> Client {
    let mut client = Client::spawn(&mut command(&broker.socket())).expect("hive-mcp starts");
    client.handshake().await.expect("the handshake works");
    client
}

/// Calls a tool and gives its text and whether it is an error.
pub(crate) async fn call(
    client: &mut Client,
    tool: &str,
    input: Value,
    tool_use_id: &str,
) -> (String, bool) {
    let pending = client.start_tool(tool, input, tool_use_id).await.expect("the bridge reads");
    pending.tool_result().await.expect("the bridge answers")
}

/// Calls a tool that works and gives its text.
pub(crate) async fn good(
    client: &mut Client,
    tool: &str,
    input: Value,
    tool_use_id: &str,
) -> String {
    let (text, is_error) = call(client, tool, input, tool_use_id).await;
    assert!(!is_error, "{text}");
    text
}
