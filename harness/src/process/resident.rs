//! A claude that stays between turns: one process, one user line a turn.
//!
//! The process belongs to a task of its own, which feeds it, reads it, and ends it when it has rested or grown too much. Invariants: a turn is
//! over when claude says so, and then nothing that the turn started beside claude is left; a turn that did not go well takes the process
//! with it, so that no late tool call of it can reach the next one; and whoever holds no [`Resident`] has no claude.

use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, ChildStdin};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::claude::event::{self, Event};
use crate::claude::outcome::Exit;
use crate::process::child::{self, Printed, RunError, Spec};
use crate::process::family::Family;
use crate::process::lock::StateLock;
use crate::turn::output::Signal;

/// How long claude has to end when its input does, and again after each stronger signal.
const END_PATIENCE: Duration = Duration::from_secs(3);

/// When a claude that stays is ended all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// After so long without a turn; `None`: never.
    pub idle: Option<Duration>,
    /// When it has grown beyond so many bytes, between turns; `None`: never.
    pub memory_bytes: Option<u64>,
}

/// One turn for it.
#[derive(Debug)]
struct Order {
    text: String,
    signals: mpsc::UnboundedReceiver<Signal>,
    printed: mpsc::Sender<Printed>,
    over: oneshot::Sender<Exit>,
}

/// A claude that stays between turns.
#[derive(Debug)]
pub struct Resident {
    orders: mpsc::Sender<Order>,
    task: JoinHandle<()>,
    /// What it was started with; another turn may need something else.
    pub fingerprint: String,
    /// The secret that its tools show to the broker.
    pub process_token: String,
}

impl Resident {
    /// Starts claude. Its first turn is still to come.
    pub fn start(
        spec: Spec,
        lock: StateLock,
        family: Arc<Family>,
        bounds: Bounds,
        fingerprint: String,
        process_token: String,
    ) -> Result<Self, RunError> {
        let mut child = child::start(spec, lock)?;
        let (pipes, lines) = child::read(&mut child);
        let stdin = child.stdin.take();
        let (orders, inbox) = mpsc::channel(1);
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
        let claude = Claude { child, pid, stdin, lines, pipes, family, bounds };
        let task = tokio::spawn(claude.live(inbox));
        Ok(Self { orders, task, fingerprint, process_token })
    }

    /// Whether it can take another turn.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        !self.orders.is_closed()
    }

    /// Runs a turn to its end.
    pub async fn turn(&self, text: String, signals: mpsc::UnboundedReceiver<Signal>, printed: mpsc::Sender<Printed>) -> Exit {
        let (over, ended) = oneshot::channel();
        // A process that ends at this very moment takes the turn no more, and has shown nothing: that is nobody's fault.
        let _ = self.orders.send(Order { text, signals, printed, over }).await;
        ended.await.unwrap_or(Exit::Signal(0))
    }

    /// Ends it and everything that it started.
    pub async fn end(self) {
        drop(self.orders);
        // The task has bounds of its own.
        let _ = self.task.await;
    }
}

/// The process, as its task has it.
struct Claude {
    child: Child,
    pid: Option<i32>,
    stdin: Option<ChildStdin>,
    lines: mpsc::Receiver<Printed>,
    pipes: Vec<JoinHandle<()>>,
    family: Arc<Family>,
    bounds: Bounds,
}

impl Claude {
    async fn live(mut self, mut inbox: mpsc::Receiver<Order>) {
        loop {
            let due = self.bounds.idle.map(|idle| Instant::now() + idle);
            let order = loop {
                tokio::select! {
                    order = inbox.recv() => break order,
                    () = sleep_until(due) => {
                        tracing::info!("the resident claude has rested long enough and is ended");
                        break None;
                    }
                    // Nobody's turn: what is printed now belongs to none. The end of the output is the end of the process.
                    line = self.lines.recv() => if line.is_none() { break None },
                }
            };
            let Some(Order { text, signals, printed, over }) = order else { break };
            // From here on the next order waits for a process that may end now.
            if let Some(exit) = self.turn(&text, signals, &printed).await {
                let stays = exit == Exit::Code(0) && !self.has_grown();
                if !stays {
                    inbox.close();
                    self.end().await;
                }
                drop(printed);
                let _ = over.send(exit);
                if !stays {
                    return;
                }
            } else {
                inbox.close();
                let exit = self.end_and_forward(&printed).await;
                drop(printed);
                let _ = over.send(exit);
                return;
            }
        }
        inbox.close();
        self.end().await;
    }

    /// Feeds a turn and reads it to its end. `None`: the process is ending, or has to.
    async fn turn(
        &mut self,
        text: &str,
        mut signals: mpsc::UnboundedReceiver<Signal>,
        printed: &mpsc::Sender<Printed>,
    ) -> Option<Exit> {
        let line = json!({"type": "user", "message": {"role": "user", "content": text}});
        self.write(&line).await?;
        let mut stopped = false;
        loop {
            tokio::select! {
                line = self.lines.recv() => {
                    let line = line?;
                    let result = result_of(&line);
                    // The driver's loop takes every line, or the program ends.
                    let _ = printed.send(line).await;
                    match result {
                        Some(true) if !stopped => {
                            self.family.end_strays(child::group(&self.child).as_slice()).await;
                            return Some(Exit::Code(0));
                        }
                        Some(_) => return None,
                        None => {}
                    }
                }
                Some(signal) = signals.recv() => {
                    stopped = true;
                    match signal {
                        Signal::Interrupt => {
                            let interrupt = json!({"type": "control_request", "request_id": "stop", "request": {"subtype": "interrupt"}});
                            self.write(&interrupt).await?;
                        }
                        Signal::Terminate | Signal::Kill => self.signal(signal),
                    }
                }
            }
        }
    }

    async fn write(&mut self, line: &serde_json::Value) -> Option<()> {
        let stdin = self.stdin.as_mut()?;
        let mut bytes = line.to_string().into_bytes();
        bytes.push(b'\n');
        // A claude that does not read its input any more is ended by who waits for it.
        stdin.write_all(&bytes).await.ok()?;
        stdin.flush().await.ok()
    }

    fn signal(&self, signal: Signal) {
        child::send(child::group(&self.child), signal);
    }

    /// Ends the process, kindly first, while its last lines are read.
    async fn end_and_forward(&mut self, printed: &mpsc::Sender<Printed>) -> Exit {
        self.stdin = None;
        let mut status = None;
        for signal in [None, Some(Signal::Terminate), Some(Signal::Kill)] {
            if let Some(signal) = signal {
                self.signal(signal);
            }
            let wait = async {
                loop {
                    tokio::select! {
                        status = self.child.wait() => return status.ok(),
                        Some(line) = self.lines.recv() => {
                            let _ = printed.send(line).await;
                        }
                    }
                }
            };
            if let Ok(found) = timeout(END_PATIENCE, wait).await {
                status = found;
                break;
            }
        }
        self.clear(Some(printed)).await;
        status.map_or(Exit::Signal(0), exit_of)
    }

    async fn end(&mut self) {
        let (nowhere, mut drain) = mpsc::channel(16);
        let ending = self.end_and_forward(&nowhere);
        tokio::pin!(ending);
        loop {
            tokio::select! {
                _ = &mut ending => return,
                _ = drain.recv() => {}
            }
        }
    }

    /// Nothing of it is left after this; what it printed last is forwarded.
    async fn clear(&mut self, printed: Option<&mpsc::Sender<Printed>>) {
        let stuck = self.family.end_all().await;
        if stuck > 0 {
            tracing::error!(stuck, "processes of the turn cannot be ended; no further claude starts before they are gone");
        }
        let pipes = std::mem::take(&mut self.pipes);
        let forward = async {
            while let Some(line) = self.lines.recv().await {
                if let Some(printed) = printed {
                    let _ = printed.send(line).await;
                }
            }
        };
        let read = async {
            tokio::join!(forward, child::finish(pipes));
        };
        // The pipes close with the last process; one that cannot be ended must not hold us up.
        let _ = timeout(child::PIPE_PATIENCE * 2, read).await;
    }

    fn has_grown(&self) -> bool {
        let Some((pid, bound)) = self.pid.zip(self.bounds.memory_bytes) else { return false };
        let used = memory_of(pid);
        if used > bound {
            tracing::info!(used, bound, "the resident claude has grown too large and is replaced");
        }
        used > bound
    }
}

/// Resident memory of a process, in bytes; 0 if it cannot be seen.
fn memory_of(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0).saturating_mul(1024)
}

fn exit_of(status: ExitStatus) -> Exit {
    child::exit(status)
}

/// Whether a line ends the turn, and whether well.
fn result_of(line: &Printed) -> Option<bool> {
    let Printed::Stdout(line) = line else { return None };
    // A look before the whole line is parsed, for most are of other kinds.
    if line.cut || !line.text.contains("\"result\"") {
        return None;
    }
    match event::parse(&line.text)? {
        Event::Result(result) => Some(!result.is_error && result.subtype == "success"),
        Event::Init(_)
        | Event::Assistant(_)
        | Event::ToolResults(_)
        | Event::RateLimit(_)
        | Event::Error(_)
        | Event::Compacted { .. }
        | Event::CompactResult(_)
        | Event::ToolHeartbeat
        | Event::Other => None,
    }
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
