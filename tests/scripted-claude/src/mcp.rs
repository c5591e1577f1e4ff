//! A client for an MCP server over stdio, written by hand so that tests see the raw frames.
//!
//! What it is not: forgiving. If a server answers with anything but JSON-RPC, the connection ends.

use std::collections::HashMap;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::{mpsc, oneshot};

/// The protocol version that the real claude asks for.
pub const PROTOCOL_VERSION: &str = "2025-11-25";
/// The protocol version of the probe that it sends first.
pub const PROBE_PROTOCOL_VERSION: &str = "2026-07-28";
/// The key under which claude sends the id of the tool use.
pub const TOOL_USE_ID_KEY: &str = "claudecode/toolUseId";

type Waiting = Arc<Mutex<HashMap<String, oneshot::Sender<Value>>>>;

/// The reason that a request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server has closed its stdout.
    #[error("the MCP server has closed its stdout")]
    Closed,
    /// The server cannot be written to.
    #[error("the MCP server does not take a frame")]
    Write(#[source] io::Error),
    /// The server answered with a JSON-RPC error.
    #[error("the MCP server answered with an error: {0}")]
    Refused(Value),
}

/// A running MCP server and its connection.
#[derive(Debug)]
pub struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    waiting: Waiting,
    closed: Arc<AtomicBool>,
    notifications: mpsc::UnboundedReceiver<Value>,
    stderr: Option<tokio::task::JoinHandle<String>>,
    next_id: u64,
}

impl Client {
    /// Starts a server. Its stderr is kept if `command` pipes it.
    pub fn spawn(command: &mut Command) -> io::Result<Self> {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().expect("stdout is piped");
        let stderr = child.stderr.take().map(|mut stderr| {
            tokio::spawn(async move {
                let mut bytes = Vec::new();
                // Output before an error is still useful.
                let _ = stderr.read_to_end(&mut bytes).await;
                String::from_utf8_lossy(&bytes).into_owned()
            })
        });
        let waiting = Waiting::default();
        let closed = Arc::new(AtomicBool::new(false));
        let (notify, notifications) = mpsc::unbounded_channel();
        tokio::spawn(read(
            BufReader::new(stdout),
            Arc::clone(&waiting),
            Arc::clone(&closed),
            notify,
        ));
        Ok(Self { child, stdin, waiting, closed, notifications, stderr, next_id: 0 })
    }

    /// Returns whether the server has closed its stdout, so that no further answer can arrive.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Returns the server's process id, while it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    pub async fn write(&mut self, frame: &Value) -> Result<(), ClientError> {
        let stdin = self.stdin.as_mut().ok_or(ClientError::Closed)?;
        stdin.write_all(format!("{frame}\n").as_bytes()).await.map_err(ClientError::Write)?;
        stdin.flush().await.map_err(ClientError::Write)
    }

    /// Sends a request; the caller awaits the answer on the returned value.
    pub async fn start(&mut self, method: &str, params: Value) -> Result<Pending, ClientError> {
        self.next_id += 1;
        let id = json!(self.next_id);
        self.start_as(id, method, params).await
    }

    /// Sends a request with an id that the caller chose.
    pub async fn start_as(
        &mut self,
        id: Value,
        method: &str,
        params: Value,
    ) -> Result<Pending, ClientError> {
        let (answer, receiver) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_string(), answer);
        // Checked after the answer was registered, so that an end between the two is not missed.
        if self.is_closed() {
            return Err(ClientError::Closed);
        }
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .await?;
        Ok(Pending { id, receiver })
    }

    /// Sends a request and waits for its result.
    pub async fn request(&mut self, method: &str, params: Value) -> Result<Value, ClientError> {
        self.start(method, params).await?.result().await
    }

    /// Sends a notification.
    pub async fn notify(&mut self, method: &str, params: Value) -> Result<(), ClientError> {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await
    }

    /// Runs the first steps of the real claude: a probe for a newer protocol, then the handshake.
    /// Returns the `initialize` result.
    pub async fn handshake(&mut self) -> Result<Value, ClientError> {
        let capabilities = json!({"roots": {"listChanged": true}, "elicitation": {}});
        let info = json!({"name": "claude-code", "version": crate::VERSION});
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": PROBE_PROTOCOL_VERSION,
            "io.modelcontextprotocol/clientInfo": info,
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        let probe = self
            .start_as(json!("server-discover-probe-1"), "server/discover", json!({"_meta": meta}))
            .await?;
        // Any answer will do: only its arrival counts.
        match probe.result().await {
            Ok(_) | Err(ClientError::Refused(_)) => {}
            Err(error) => return Err(error),
        }
        let hello = json!({"protocolVersion": PROTOCOL_VERSION, "capabilities": capabilities, "clientInfo": info});
        let result = self.request("initialize", hello).await?;
        self.notify("notifications/initialized", json!({})).await?;
        Ok(result)
    }

    /// Returns the tools that the server lists.
    pub async fn list_tools(&mut self) -> Result<Vec<Value>, ClientError> {
        let mut result = self.request("tools/list", json!({})).await?;
        match result.get_mut("tools").map(Value::take) {
            Some(Value::Array(tools)) => Ok(tools),
            other => Err(ClientError::Refused(json!({"tools": other}))),
        }
    }

    /// Calls a tool as claude does; the caller awaits the answer on the returned value.
    pub async fn start_tool(
        &mut self,
        name: &str,
        input: Value,
        tool_use_id: &str,
    ) -> Result<Pending, ClientError> {
        let meta = json!({TOOL_USE_ID_KEY: tool_use_id, "progressToken": self.next_id + 1});
        self.start("tools/call", json!({"name": name, "arguments": input, "_meta": meta})).await
    }

    /// Returns the next notification of the server.
    pub async fn notification(&mut self) -> Option<Value> {
        self.notifications.recv().await
    }

    /// Closes the server's stdin and waits for its end; returns its exit status and its stderr.
    pub async fn close(mut self) -> io::Result<(ExitStatus, String)> {
        drop(self.stdin.take());
        self.wait().await
    }

    /// Waits for the server's end for any reason.
    pub async fn wait(mut self) -> io::Result<(ExitStatus, String)> {
        let status = self.child.wait().await?;
        let stderr = match self.stderr.take() {
            Some(reader) => reader.await.unwrap_or_default(),
            None => String::new(),
        };
        Ok((status, stderr))
    }
}

/// A request that waits for its answer.
#[derive(Debug)]
pub struct Pending {
    id: Value,
    receiver: oneshot::Receiver<Value>,
}

impl Pending {
    /// Returns the request's id.
    pub fn id(&self) -> &Value {
        &self.id
    }

    /// Returns the result, or the JSON-RPC error.
    pub async fn result(self) -> Result<Value, ClientError> {
        let mut frame = self.receiver.await.map_err(|_| ClientError::Closed)?;
        match (frame.get_mut("result").map(Value::take), frame.get_mut("error").map(Value::take)) {
            (Some(result), _) => Ok(result),
            (None, error) => Err(ClientError::Refused(error.unwrap_or_default())),
        }
    }

    /// Returns a tool's answer: its text, and whether it is an error.
    pub async fn tool_result(self) -> Result<(String, bool), ClientError> {
        let result = self.result().await?;
        let blocks = result["content"].as_array().cloned().unwrap_or_default();
        let text: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
        Ok((text.join("\n"), result["isError"].as_bool().unwrap_or(false)))
    }
}

async fn read(
    stdout: BufReader<tokio::process::ChildStdout>,
    waiting: Waiting,
    closed: Arc<AtomicBool>,
    notify: mpsc::UnboundedSender<Value>,
) {
    let mut lines = stdout.lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let Ok(frame) = serde_json::from_str::<Value>(&line) else { break };
        if frame.get("method").is_some() {
            // The scripted claude has no receiver for it; that is no reason to stop.
            let _ = notify.send(frame);
        } else if let Some(id) = frame.get("id") {
            let answer =
                waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&id.to_string());
            if let Some(answer) = answer {
                let _ = answer.send(frame);
            }
        }
    }
    closed.store(true, Ordering::SeqCst);
    // Pending requests fail, because no further answer can arrive.
    waiting.lock().unwrap_or_else(PoisonError::into_inner).clear();
}

/// Runs a bridge through a turn without calls: started, greeted, asked for its tools, ended.
/// Benches measure its cost.
pub async fn one_turn(
    program: &std::path::Path,
    socket: &std::path::Path,
) -> Result<(), ClientError> {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("HIVE_SOCKET", socket)
        .env("HIVE_PROCESS_TOKEN", "no-process-of-any-turn")
        .stderr(Stdio::null());
    let mut client = Client::spawn(&mut command).map_err(ClientError::Write)?;
    client.handshake().await?;
    client.request("tools/list", json!({})).await?;
    // Refused, because the token belongs to no turn; but sent and answered over the socket like a
    // valid one.
    client
        .request(
            "tools/call",
            json!({"name": "send", "arguments": {"to": "operator", "body": "done"}}),
        )
        .await?;
    drop(client.stdin.take());
    client.child.wait().await.map_err(ClientError::Write)?;
    Ok(())
}
