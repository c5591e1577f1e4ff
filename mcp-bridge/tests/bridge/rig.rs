//! A bridge as claude starts it: its environment has only the harness's variables.

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

/// Alice, the agent of the bridge; carol, her child; and bob.
pub(crate) const HIVE: &str = "[agents.alice]\n[agents.bob]\n[agents.carol]\nparent = \"alice\"\n";

/// Starts a broker in which alice has an open turn.
pub(crate) async fn hive() -> Broker {
    Broker::in_turn(HIVE, "alice", TOKEN).await
}

/// Starts a broker in which alice has a turn for a message of bob, after failed attempts; `first`
/// runs alice's calls in the first attempt.
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

/// Returns a client of alice's process in her open turn.
pub(crate) async fn alice(broker: &Broker) -> rig::Client {
    broker.client("alice").await.with_process(TOKEN)
}

/// Returns a broker that does not run.
pub(crate) fn stopped() -> Broker {
    Broker::stopped(HIVE, "alice")
}

/// Returns the program with the harness's environment, not started.
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

/// Returns a bridge after its handshake.
pub(crate) async fn connected(broker: &Broker) -> Client {
    let mut client = Client::spawn(&mut command(&broker.socket())).expect("hive-mcp starts");
    client.handshake().await.expect("the handshake works");
    client
}

/// Calls a tool; returns its text and whether it is an error.
pub(crate) async fn call(
    client: &mut Client,
    tool: &str,
    input: Value,
    tool_use_id: &str,
) -> (String, bool) {
    let pending = client.start_tool(tool, input, tool_use_id).await.expect("the bridge reads");
    pending.tool_result().await.expect("the bridge answers")
}

/// Calls a tool successfully; returns its text.
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
