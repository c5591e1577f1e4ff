//! A kit, behind its driver: a program that does the verbs that it reads, a JSON object in a line
//! each, and writes what came of them.
//!
//! Invariant: each request has one answer; if the driver ends, all that wait fail.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{Mutex as AsyncMutex, oneshot};
use tokio::task::JoinSet;

use crate::wire::Outcome;

type Waiting = Arc<Mutex<HashMap<u64, oneshot::Sender<Value>>>>;

/// A running driver.
#[derive(Debug)]
pub(crate) struct Kit {
    stdin: AsyncMutex<ChildStdin>,
    waiting: Waiting,
    last: AtomicU64,
    version: String,
    _child: Child,
    _reading: JoinSet<()>,
}

impl Kit {
    /// Starts a driver, and waits until it says what it is.
    pub(crate) async fn start(mut command: Command) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let program = format!("{:?}", command.as_std());
        let mut child = command.spawn().with_context(|| format!("{program} does not start"))?;
        let stdin = child.stdin.take().context("a pipe")?;
        let mut stdout = BufReader::new(child.stdout.take().context("a pipe")?);
        let mut first = String::new();
        stdout.read_line(&mut first).await?;
        let version = first.trim().to_owned();
        if !version.contains("\"kit\"") {
            bail!("{program} does not say what it is: {version:?}");
        }
        let waiting = Waiting::default();
        let mut reading = JoinSet::new();
        reading.spawn(read(stdout, Arc::clone(&waiting)));
        Ok(Self {
            stdin: AsyncMutex::new(stdin),
            waiting,
            last: AtomicU64::new(0),
            version,
            _child: child,
            _reading: reading,
        })
    }

    /// Returns what the driver says it is.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Returns the number of a new request, for [`Kit::request`].
    pub(crate) fn number(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Does a verb, and waits for what came of it.
    pub(crate) async fn does(&self, verb: &str, args: Value) -> Result<Outcome> {
        self.ask(self.number(), verb, args).await?.outcome().await
    }

    /// Asks for a verb as the request of this number. Requests reach the driver in their order.
    pub(crate) async fn ask(&self, id: u64, verb: &str, args: Value) -> Result<Asked> {
        let (sender, answer) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(id, sender);
        let line = format!("{}\n", json!({"id": id, "verb": verb, "args": args}));
        self.stdin.lock().await.write_all(line.as_bytes()).await?;
        Ok(Asked(answer))
    }
}

/// A verb that a driver does.
#[derive(Debug)]
pub(crate) struct Asked(oneshot::Receiver<Value>);

impl Asked {
    /// Waits for what came of it.
    pub(crate) async fn outcome(self) -> Result<Outcome> {
        let mut answer = self.0.await.context("the driver ended")?;
        if answer.get("error").is_some() {
            return Ok(Err(answer["error"].take()));
        }
        Ok(Ok(answer["ok"].take()))
    }
}

async fn read(stdout: BufReader<ChildStdout>, waiting: Waiting) {
    let mut lines = stdout.lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let Ok(answer) = serde_json::from_str::<Value>(&line) else {
            // Verbs that wait for an answer end.
            break;
        };
        let id = answer.get("id").and_then(Value::as_u64).unwrap_or(0);
        let waiter = waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        if let Some(waiter) = waiter {
            // A case that has failed waits no longer.
            let _ = waiter.send(answer);
        }
    }
    waiting.lock().unwrap_or_else(PoisonError::into_inner).clear();
}
