//! The MCP servers of a turn. As with the real claude, each is a child process.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::process::Command;

use super::files::Server;
use crate::mcp::{Client, ClientError};

/// Maximum duration of a server's handshake.
const START_MAX: Duration = Duration::from_secs(27);
/// The time between the signals that end a server.
const END_STEP: Duration = Duration::from_millis(100);

#[derive(Debug, Default)]
pub struct Servers {
    running: BTreeMap<String, Running>,
    failed: Vec<String>,
    /// The call under way: its server, and the request's id.
    called: Option<(String, Value)>,
}

#[derive(Debug)]
struct Running {
    client: Client,
    tools: Vec<String>,
    server: Server,
}

impl Servers {
    /// Starts all servers; the tools of one that does not start are missing.
    pub async fn start(servers: &BTreeMap<String, Server>) -> Self {
        let mut started = Self::default();
        for (name, server) in servers {
            match tokio::time::timeout(START_MAX, connect(server)).await {
                Ok(Ok(running)) => {
                    started.running.insert(name.clone(), running);
                }
                Ok(Err(_)) | Err(_) => started.failed.push(name.clone()),
            }
        }
        started
    }

    /// Returns each server's name, and whether it is connected.
    pub fn states(&self) -> Vec<(String, bool)> {
        let running = self.running.keys().map(|name| (name.clone(), true));
        running.chain(self.failed.iter().map(|name| (name.clone(), false))).collect()
    }

    /// Returns the full names of all tools.
    pub fn tools(&self) -> Vec<String> {
        let tools = self.running.iter().flat_map(|(server, running)| {
            running.tools.iter().map(move |tool| full_name(server, tool))
        });
        tools.collect()
    }

    /// Returns the full name of a tool given by its short name, or the name unchanged if no server
    /// has it.
    pub fn resolve(&self, tool: &str) -> String {
        let owner =
            self.running.iter().find(|(_, running)| running.tools.iter().any(|name| name == tool));
        owner.map_or_else(|| tool.to_owned(), |(server, _)| full_name(server, tool))
    }

    /// Calls a tool by its full name; returns its text, and whether it is an error. Returns `None`
    /// if there is no such tool.
    ///
    /// If a server dies during a call, the call fails, and the next call starts the server again.
    /// The real claude does the same. The file `sent_marker` is created when the call was sent.
    pub async fn call(
        &mut self,
        tool: &str,
        input: Value,
        tool_use_id: &str,
        sent_marker: Option<&Path>,
    ) -> Option<(String, bool)> {
        let (server, name) = tool.strip_prefix("mcp__")?.split_once("__")?;
        let running = self
            .running
            .get_mut(server)
            .filter(|running| running.tools.iter().any(|tool| tool == name))?;
        let answered = async {
            let pending = match running.client.start_tool(name, input.clone(), tool_use_id).await {
                Err(ClientError::Closed | ClientError::Write(_)) => {
                    *running = connect(&running.server).await?;
                    running.client.start_tool(name, input, tool_use_id).await?
                }
                started => started?,
            };
            self.called = Some((server.to_owned(), pending.id().clone()));
            if let Some(marker) = sent_marker {
                std::fs::write(marker, b"").map_err(ClientError::Write)?;
            }
            pending.tool_result().await
        };
        let answered = answered.await;
        self.called = None;
        Some(match answered {
            Ok(result) => result,
            Err(ClientError::Closed | ClientError::Write(_)) => {
                ("Connection closed".to_owned(), true)
            }
            Err(ClientError::Refused(error)) => {
                (error["message"].as_str().unwrap_or("the tool failed").to_owned(), true)
            }
        })
    }

    /// Notifies the server that its call is cancelled.
    pub async fn cancel(&mut self) {
        let Some((server, request)) = self.called.take() else { return };
        if let Some(running) = self.running.get_mut(&server) {
            let params = serde_json::json!({"requestId": request, "reason": "AbortError: The operation was aborted."});
            // A server that has ended needs no notification.
            let _ = running.client.notify("notifications/cancelled", params).await;
        }
    }

    /// Sends SIGINT to all and does not wait.
    pub fn interrupt(&self) {
        for running in self.running.values() {
            signal(&running.client, Signal::INT);
        }
    }

    /// Ends all servers: SIGINT, then SIGTERM, then SIGKILL.
    pub async fn stop(self) {
        self.interrupt();
        let ends: Vec<_> =
            self.running.into_values().map(|running| tokio::spawn(end(running.client))).collect();
        for end in ends {
            // If no signal ends a server, the drop of its client kills it (`kill_on_drop`).
            let _ = end.await;
        }
    }
}

fn full_name(server: &str, tool: &str) -> String {
    format!("mcp__{server}__{tool}")
}

async fn connect(server: &Server) -> Result<Running, ClientError> {
    // Like the real claude's, a server inherits the environment of this process, with the
    // variables of its configuration.
    let mut command = Command::new(&server.command);
    command.args(&server.args).envs(&server.env).stderr(Stdio::null());
    let mut client = Client::spawn(&mut command).map_err(ClientError::Write)?;
    client.handshake().await?;
    let tools = client.list_tools().await?;
    let tools = tools.iter().filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect();
    Ok(Running { client, tools, server: server.clone() })
}

async fn end(client: Client) {
    let pid = client.pid();
    let ended = client.wait();
    tokio::pin!(ended);
    if tokio::time::timeout(END_STEP, &mut ended).await.is_err() {
        if let Some(pid) = pid {
            signal_pid(pid, Signal::TERM);
        }
        let _ = tokio::time::timeout(END_STEP, &mut ended).await;
    }
}

fn signal(client: &Client, signal: Signal) {
    if let Some(pid) = client.pid() {
        signal_pid(pid, signal);
    }
}

fn signal_pid(pid: u32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
        // The process may have ended by itself.
        let _ = kill_process(pid, signal);
    }
}
