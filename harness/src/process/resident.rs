//! A claude that stays between turns: one process, one user line a turn.
//!
//! A task owns the process: it feeds it, reads it, and ends it after too long a pause or too much
//! growth. Invariants: a turn is over when claude reports its result, and then claude is the only
//! process left. A turn that failed ends the process too, so that no late tool call of it can reach
//! the next one. Without a [`Resident`] there is no such process.

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
use crate::driver::sleep_until;
use crate::process::child::{self, Printed, RunError, Spec};
use crate::process::family::Family;
use crate::process::lock::StateLock;
use crate::spawn::spawn;
use crate::turn::output::Signal;

/// Maximum time for claude to end when its input does, and again after each stronger signal.
const END_PATIENCE: Duration = Duration::from_secs(3);

/// Conditions under which a resident claude is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResidentLimits {
    /// Maximum time without a turn; `None`: no limit.
    pub idle: Option<Duration>,
    /// Maximum bytes of memory between turns; `None`: no limit.
    pub memory_bytes: Option<u64>,
}

/// One turn for a resident claude.
#[derive(Debug)]
pub struct Turn {
    /// The prompt.
    pub text: String,
    /// The signals that stop it.
    pub signals: mpsc::UnboundedReceiver<Signal>,
    /// The receiver of its lines.
    pub printed: mpsc::Sender<Printed>,
}

#[derive(Debug)]
struct TurnOrder {
    turn: Turn,
    over: oneshot::Sender<Result<Exit, Turn>>,
}

/// A claude that stays between turns.
#[derive(Debug)]
pub struct Resident {
    orders: mpsc::Sender<TurnOrder>,
    task: JoinHandle<()>,
    /// The inputs of its start; another turn may need others.
    pub fingerprint: String,
    /// The process token that its tools send to the broker.
    pub process_token: String,
}

impl Resident {
    /// Starts claude, without a turn.
    pub fn start(
        spec: Spec,
        lock: StateLock,
        family: Arc<Family>,
        limits: ResidentLimits,
        fingerprint: String,
        process_token: String,
    ) -> Result<Self, RunError> {
        let mut child = child::start(spec, lock)?;
        let (pipes, lines) = child::read(&mut child);
        let feed = child.stdin.take().map(feed);
        let (orders, inbox) = mpsc::channel(1);
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
        let claude = Claude { child, pid, feed, lines, pipes, family, limits };
        let task = spawn("resident claude", claude.live(inbox));
        Ok(Self { orders, task, fingerprint, process_token })
    }

    /// Returns whether it can take another turn.
    pub fn is_alive(&self) -> bool {
        !self.orders.is_closed()
    }

    /// Runs a turn to its end; returns the turn if the process is gone and never began it.
    pub async fn turn(&self, turn: Turn) -> Result<Exit, Turn> {
        let (over, ended) = oneshot::channel();
        self.orders
            .send(TurnOrder { turn, over })
            .await
            .map_err(|mpsc::error::SendError(order)| order.turn)?;
        ended.await.unwrap_or(Ok(Exit::Signal(0)))
    }

    /// Ends claude and all its descendants.
    pub async fn end(self) {
        drop(self.orders);
        // The task limits its own waits.
        let _ = self.task.await;
    }
}

/// The process, owned by its task.
struct Claude {
    child: Child,
    pid: Option<i32>,
    /// The lines to write; the input ends when this is dropped.
    feed: Option<mpsc::UnboundedSender<String>>,
    lines: mpsc::Receiver<Printed>,
    pipes: Vec<JoinHandle<()>>,
    family: Arc<Family>,
    limits: ResidentLimits,
}

impl Claude {
    async fn live(mut self, mut inbox: mpsc::Receiver<TurnOrder>) {
        loop {
            let due = self.limits.idle.map(|idle| Instant::now() + idle);
            let order = loop {
                tokio::select! {
                    order = inbox.recv() => break order,
                    () = sleep_until(due) => {
                        tracing::info!("the resident claude has rested long enough and is ended");
                        // A turn that arrives at this moment is still run.
                        inbox.close();
                        break inbox.recv().await;
                    }
                    // Output between turns belongs to no turn.
                    Some(_) = self.lines.recv() => {}
                    _ = self.child.wait() => break None,
                }
            };
            let Some(TurnOrder { turn, over }) = order else { break };
            let Turn { text, signals, printed } = turn;
            let exit = self.turn(&text, signals, &printed).await;
            let stays = exit == Some(Exit::Code(0)) && !inbox.is_closed() && !self.has_grown();
            if !stays {
                inbox.close();
            }
            let exit = match exit {
                Some(exit) if stays => exit,
                Some(exit) => {
                    self.end().await;
                    exit
                }
                None => self.end_and_forward(&printed).await,
            };
            drop(printed);
            let _ = over.send(Ok(exit));
            if !stays {
                return;
            }
        }
        inbox.close();
        self.end().await;
        // A turn that came too late runs in another process.
        while let Some(TurnOrder { turn, over }) = inbox.recv().await {
            let _ = over.send(Err(turn));
        }
    }

    /// Feeds a turn and reads it to its end. `None`: the process ends, or must be ended.
    async fn turn(
        &mut self,
        text: &str,
        mut signals: mpsc::UnboundedReceiver<Signal>,
        printed: &mpsc::Sender<Printed>,
    ) -> Option<Exit> {
        let line = json!({"type": "user", "message": {"role": "user", "content": text}});
        self.write(&line)?;
        let mut well = true;
        loop {
            tokio::select! {
                line = self.lines.recv() => {
                    let line = line?;
                    let meaning = meaning(&line);
                    // The driver's loop takes every line, or the program ends.
                    let _ = printed.send(line).await;
                    match meaning {
                        LineMeaning::TurnSucceeded if well => {
                            self.family.end_strays(child::group(&self.child).as_slice()).await;
                            return Some(Exit::Code(0));
                        }
                        LineMeaning::TurnSucceeded | LineMeaning::TurnFailed => return None,
                        LineMeaning::StepFailed => well = false,
                        LineMeaning::Other => {}
                    }
                }
                // The caller ends the process and reads its last output. The pipes alone do not
                // show its end: another process may hold them.
                _ = self.child.wait() => return None,
                Some(signal) = signals.recv() => {
                    well = false;
                    match signal {
                        Signal::Interrupt => {
                            let interrupt = json!({"type": "control_request", "request_id": "stop", "request": {"subtype": "interrupt"}});
                            self.write(&interrupt)?;
                        }
                        Signal::Terminate | Signal::Kill => self.signal(signal),
                    }
                }
            }
        }
    }

    /// Queues a line. It never waits, because a claude that does not read its input must be ended
    /// anyway.
    fn write(&self, line: &serde_json::Value) -> Option<()> {
        self.feed.as_ref()?.send(format!("{line}\n")).ok()
    }

    fn signal(&self, signal: Signal) {
        child::send(child::group(&self.child), signal);
    }

    /// Ends the process, with the gentlest signal first, while its last lines are read.
    async fn end_and_forward(&mut self, printed: &mpsc::Sender<Printed>) -> Exit {
        self.feed = None;
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
        self.clear(printed).await;
        status.map_or(Exit::Signal(0), child::exit)
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

    /// Ends all descendants; the last output is forwarded.
    async fn clear(&mut self, printed: &mpsc::Sender<Printed>) {
        child::end_leftovers(&self.family).await;
        let pipes = std::mem::take(&mut self.pipes);
        let forward = async {
            while let Some(line) = self.lines.recv().await {
                let _ = printed.send(line).await;
            }
        };
        let read = async {
            tokio::join!(forward, child::finish(pipes));
        };
        // The pipes close with the last process; a process that cannot be ended must not delay the
        // harness.
        let _ = timeout(child::PIPE_PATIENCE * 2, read).await;
    }

    fn has_grown(&self) -> bool {
        let Some((pid, limit)) = self.pid.zip(self.limits.memory_bytes) else { return false };
        let used = memory_of(pid);
        if used > limit {
            tracing::info!(used, limit, "the resident claude has grown too large and is replaced");
        }
        used > limit
    }
}

/// Writes lines one after the other, and ends the input after the last one.
fn feed(mut stdin: ChildStdin) -> mpsc::UnboundedSender<String> {
    let (lines, mut inbox) = mpsc::unbounded_channel::<String>();
    spawn("claude stdin", async move {
        while let Some(line) = inbox.recv().await {
            if stdin.write_all(line.as_bytes()).await.is_err() || stdin.flush().await.is_err() {
                return;
            }
        }
    });
    lines
}

/// Returns the resident memory of a process, in bytes; 0 if it is not visible.
fn memory_of(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    kib.unwrap_or(0).saturating_mul(1024)
}

/// The meaning of a line for the turn.
enum LineMeaning {
    Other,
    /// A step failed, although the end will report success.
    StepFailed,
    TurnSucceeded,
    TurnFailed,
}

fn meaning(line: &Printed) -> LineMeaning {
    let Printed::Stdout(line) = line else { return LineMeaning::Other };
    // This check precedes the full parse, because most lines are of other kinds. The text is in
    // `result` and in `compact_result`.
    if line.cut || !line.text.contains("result\"") {
        return LineMeaning::Other;
    }
    match event::parse(&line.text) {
        Some(Event::Result(result)) if !result.is_error && result.subtype == "success" => {
            LineMeaning::TurnSucceeded
        }
        Some(Event::Result(_)) => LineMeaning::TurnFailed,
        Some(Event::CompactResult(Err(_))) => LineMeaning::StepFailed,
        Some(
            Event::Init(_)
            | Event::Assistant(_)
            | Event::ToolResults(_)
            | Event::RateLimit(_)
            | Event::Error(_)
            | Event::Compacted { .. }
            | Event::CompactResult(Ok(()))
            | Event::ToolHeartbeat
            | Event::Other,
        )
        | None => LineMeaning::Other,
    }
}
