//! A bridge as claude starts it: nothing in its environment but what the harness gives.

use std::path::Path;
use std::process::Stdio;

use hive_tests::fake_broker::FakeBroker;
use hive_tests::mcp::Client;
use serde_json::Value;
use tokio::process::Command;

/// The process token of the turn.
pub(crate) const TOKEN: &str = "process-token-of-turn-1";

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
pub(crate) async fn connected(broker: &FakeBroker) -> Client {
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
