//! The only loop: executes the machine's outputs, and returns their results as inputs.
//!
//! It makes no decisions. A task executes each output, so the loop never waits for a broker, a disk
//! or claude; all results arrive over one channel. Invariant: results of a session that has ended
//! never reach the machine.

pub mod backoff;
pub mod call_log;
pub mod calls;
pub mod check;
pub mod launch;
pub mod link;
pub mod login;
pub mod perform;
pub mod prepare;
pub mod report;
pub mod session;
pub mod shell;
pub mod status;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use hive_core::time::{BootTime, Now, WallTime};
use hive_proto::handshake::{ADDITIONS, Handshake};
use sd_notify::NotifyState;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::register_conditional_default;
use tokio::signal::unix::{Signal as UnixSignal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::config::{Config, Spans};
use crate::confine;
use crate::driver::perform::Performer;
use crate::driver::session::SessionEvent;
use crate::exit::{self, Failure};
use crate::process::child::Printed;
use crate::process::family::Family;
use crate::settings::Source;
use crate::turn::input::Input;
use crate::turn::machine::{Defaults, LEAVE_PATIENCE, Machine};
use crate::turn::output::{Leaving, Output};
use crate::wire;

/// Maximum results that wait for the loop. Tasks wait when it is full, the loop never does.
const INBOX_MAX: usize = 1024;

/// What the end of the program takes besides waiting.
const MARGIN: Duration = Duration::from_secs(10);

/// The result of a task.
#[derive(Debug)]
pub enum LoopEvent {
    /// News of the stream with this number.
    Session(u64, SessionEvent),
    /// A call of this session was answered.
    Call(u64, Input),
    /// claude printed a line.
    Printed(Printed),
    /// A remark for the turn's output.
    Noted(String),
    /// An input that belongs to no session.
    Local(Input),
}

/// Runs the harness until it receives the order to end.
pub async fn run(config: Config, source: Source) -> Result<Leaving, Failure> {
    let mut signals =
        Signals::new().map_err(|error| host_failure("signals cannot be received", &error))?;
    let family = Family::found()
        .map_err(|error| host_failure("processes cannot be watched over", &error))?;
    let channel = hive_proto::connect::connect_lazy_as(
        Handshake::new(wire::PROGRAM, ADDITIONS),
        &config.socket,
    )
    .map_err(|error| Failure::unreachable(&error))?;
    let (sender, mut inbox) = mpsc::channel(INBOX_MAX);
    let clock = Clock::start();
    // It must run until the last claude has ended, which is before this returns.
    let _servers = confine::service::start(&config, &family);
    let spans = config.spans;
    let mut machine = Machine::new(spans, defaults(&config));
    let mut performer = Performer::new(Arc::new(config), source, channel, Arc::new(family), sender);
    loop {
        while let Some(output) = machine.poll() {
            if let Output::Exit(leaving) = output {
                if leaving == Leaving::NoWork {
                    performer.detach();
                    tracing::info!("the agent runs on demand and has no work, so its harness ends");
                }
                performer.finish().await;
                return Ok(signals.settle(leaving).await);
            }
            performer.perform(output, machine.running_turn_id());
        }
        performer.running(machine.running_turn_id());
        let due = machine.deadline().map(|deadline| clock.instant(deadline));
        let input = tokio::select! {
            biased;
            () = signals.recv() => {
                ask_for_time(&spans);
                Some(Input::Drain)
            }
            Some(event) = inbox.recv() => match performer.to_input(event) {
                Ok(input) => input,
                Err(failure) => {
                    performer.finish().await;
                    return Err(failure);
                }
            },
            () = sleep_until(due) => Some(Input::Tick),
        };
        if let Some(input) = input {
            if matches!(input, Input::Begun(_) | Input::Opened(_))
                && let Some(configured) = performer.configure(machine.running_turn_id())
            {
                machine.handle(configured, clock.now());
            }
            machine.handle(input, clock.now());
        }
    }
}

/// Asks systemd, if it started this program, to let it end its turn before it is killed: the spans
/// can be longer than the `TimeoutStopSec` of the unit, which cannot know them.
fn ask_for_time(spans: &Spans) {
    // Two signals to claude before it is killed, and then the broker confirms the end.
    let most = spans.drain_grace + 2 * spans.kill_grace + LEAVE_PATIENCE + MARGIN;
    let extended = format!("EXTEND_TIMEOUT_USEC={}", most.as_micros());
    if let Err(error) = sd_notify::notify(&[NotifyState::Custom(&extended)]) {
        tracing::debug!(%error, "the service manager was not notified");
    }
}

/// Returns the machine's defaults for values that the broker does not set.
pub(crate) fn defaults(config: &Config) -> Defaults {
    Defaults {
        label: config.label.clone(),
        model: config.default_model.clone(),
        operator_pronouns: config.operator_pronouns.clone(),
        mcp_server_name: config.mcp_server_name.clone(),
        watermarks: config.watermarks.clone(),
        extra_servers: config.extra_servers.keys().cloned().collect(),
    }
}

fn host_failure(what: &str, error: &std::io::Error) -> Failure {
    Failure::new(exit::FAILURE, what, error.to_string(), "check what the host allows this process")
}

/// Waits until then; forever without a time.
pub(crate) async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// How long to wait for a signal that was received already.
const SIGNAL_PATIENCE: Duration = Duration::from_millis(5);

/// The signals SIGTERM and SIGINT.
struct Signals {
    terminate: UnixSignal,
    interrupt: UnixSignal,
    /// Once it is set, they end the process as they do by default.
    by_default: Arc<AtomicBool>,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        let by_default = Arc::new(AtomicBool::new(false));
        for number in [SIGTERM, SIGINT] {
            register_conditional_default(number, Arc::clone(&by_default))?;
        }
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            by_default,
        })
    }

    /// Returns how the program ends. One that starts again keeps its process, so a signal that it
    /// does not look at any more would be lost, and the new program would run on.
    async fn settle(mut self, leaving: Leaving) -> Leaving {
        if leaving != Leaving::Restart {
            return leaving;
        }
        self.by_default.store(true, Ordering::SeqCst);
        // A signal that came before is passed on when the runtime looks at its events.
        match tokio::time::timeout(SIGNAL_PATIENCE, self.recv()).await {
            Ok(()) => Leaving::Drained,
            Err(_) => Leaving::Restart,
        }
    }

    async fn recv(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Both clocks; the boot clock counts from the start of the program.
#[derive(Clone, Copy, Debug)]
struct Clock {
    start: Instant,
}

impl Clock {
    fn start() -> Self {
        Self { start: Instant::now() }
    }

    fn now(self) -> Now {
        Now { wall: wall_now(), boot: BootTime(millis(self.start.elapsed())) }
    }

    fn instant(self, time: BootTime) -> Instant {
        self.start + Duration::from_millis(u64::try_from(time.0).unwrap_or(0))
    }
}

/// Returns the time of the wall clock.
#[expect(clippy::disallowed_methods, reason = "the one place where the harness reads it")]
pub(crate) fn wall_now() -> WallTime {
    WallTime(millis(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()))
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}
