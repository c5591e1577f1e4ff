//! Keeping a child running: restarted with backoff when it dies, ended when asked.
//!
//! Invariant: the pause before a restart doubles from half a second to thirty, and is reset after a
//! minute of life, so that a child that cannot start does not spin. A child that asks for a restart
//! is started at once.

use std::io;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hive_core::agent::LEFT_CODE;
use hive_core::isolation::RESTART_CODE;
use rustix::process::{Pid, kill_process};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::output::note;
use crate::spawn::spawn;
use crate::supervise::process::child::{Child, Registry, Spec, last_words};

const PAUSE_FIRST: Duration = Duration::from_millis(500);
const PAUSE_LONGEST: Duration = Duration::from_secs(30);
/// A child that lives this long resets the pause.
const WELL_AFTER: Duration = Duration::from_secs(60);

#[derive(Clone, Debug)]
pub(crate) struct Ended {
    pub(crate) description: String,
    /// Whether it ended by itself with exit code 0.
    pub(crate) is_clean: bool,
}

impl Ended {
    fn failed(error: &io::Error) -> Self {
        Self { description: error.to_string(), is_clean: false }
    }
}

/// What happens to a child.
#[derive(Clone, Debug)]
pub(crate) enum Moment {
    /// Its process was started.
    Started,
    /// Its process has run for a minute.
    Steady,
    /// Its process ended by itself, and is started again after a pause.
    Ended(Ended),
    /// Its process has left, which it may, and is not started again.
    Left,
}

/// Called at each moment of a child.
pub(crate) type Observer = Box<dyn Fn(Moment) + Send + Sync>;

#[derive(Debug)]
pub(crate) struct Supervised {
    name: String,
    end: CancellationToken,
    kill: CancellationToken,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

/// What the owner and the task of a child share.
#[derive(Debug, Default)]
struct Shared {
    pid: Mutex<Option<Pid>>,
    may_leave: AtomicBool,
}

impl Shared {
    fn set_pid(&self, pid: Option<Pid>) {
        *self.pid.lock().unwrap_or_else(PoisonError::into_inner) = pid;
    }
}

impl Supervised {
    /// Starts it.
    pub(crate) fn start(spec: Spec, registry: Registry, observer: Observer) -> Self {
        let (end, kill) = (CancellationToken::new(), CancellationToken::new());
        let name = spec.name.clone();
        let shared = Arc::<Shared>::default();
        let process = Process { spec, registry, observer, shared: Arc::clone(&shared) };
        let task = spawn("process", process.keep_running(end.clone(), kill.clone()));
        Self { name, end, kill, shared, task }
    }

    /// Decides whether a process that leaves is not started again.
    pub(crate) fn let_leave(&self, may_leave: bool) {
        self.shared.may_leave.store(may_leave, Ordering::SeqCst);
    }

    /// Sends SIGHUP to the process, if it runs.
    pub(crate) fn hang_up(&self) {
        if let Some(pid) = *self.shared.pid.lock().unwrap_or_else(PoisonError::into_inner) {
            // The process may have ended by itself.
            let _ = kill_process(pid, rustix::process::Signal::HUP);
        }
    }

    /// Ends it, and kills it after this time; `None`: at once.
    pub(crate) async fn stop(mut self, time: Option<Duration>) {
        self.end.cancel();
        if let Some(time) = time {
            if timeout(time, &mut self.task).await.is_ok() {
                return;
            }
            note(&format!("{} did not end within {} s and is killed", self.name, time.as_secs()));
        }
        self.kill.cancel();
        // The task ends with the child, and a panic of it has dropped, that is killed, the child.
        let _ = self.task.await;
    }
}

struct Process {
    spec: Spec,
    registry: Registry,
    observer: Observer,
    shared: Arc<Shared>,
}

impl Process {
    async fn keep_running(self, end: CancellationToken, kill: CancellationToken) {
        let mut pause = PAUSE_FIRST;
        loop {
            let started = Instant::now();
            let mut is_restart = false;
            let start = Child::start(&self.spec, &self.registry);
            let Some(start) = end.run_until_cancelled(start).await else { return };
            let ending = match start {
                Ok(mut child) => {
                    self.shared.set_pid(Some(child.pid()));
                    (self.observer)(Moment::Started);
                    let ended = tokio::select! {
                        ended = self.watch(&mut child, started) => ended,
                        () = end.cancelled() => return finish(child, &kill).await,
                    };
                    self.shared.set_pid(None);
                    let code = ended.as_ref().ok().and_then(ExitStatus::code);
                    if self.may_leave() && code == Some(i32::from(LEFT_CODE)) {
                        return (self.observer)(Moment::Left);
                    }
                    is_restart = code == Some(i32::from(RESTART_CODE));
                    ended.map_or_else(
                        |error| Ended::failed(&error),
                        |status| Ended {
                            description: status.to_string(),
                            is_clean: status.success(),
                        },
                    )
                }
                Err(error) => Ended::failed(&error),
            };
            if self.registry.is_closed() {
                return;
            }
            // The restart was requested, but a child that always requests one must not spin.
            if is_restart && started.elapsed() >= PAUSE_FIRST {
                continue;
            }
            (self.observer)(Moment::Ended(ending.clone()));
            if started.elapsed() >= WELL_AFTER {
                pause = PAUSE_FIRST;
            }
            note(&format!(
                "{} ended ({}); again in {:.1} s{}",
                self.spec.name,
                ending.description,
                pause.as_secs_f64(),
                last_words(&self.spec.log)
            ));
            tokio::select! {
                () = sleep(pause) => {}
                () = end.cancelled() => return,
            }
            pause = longer(pause);
        }
    }

    /// Waits for the end of a child, and observes that it runs steadily.
    async fn watch(&self, child: &mut Child, started: Instant) -> io::Result<ExitStatus> {
        tokio::select! {
            ended = child.wait() => return ended,
            () = sleep_until(started + WELL_AFTER) => {}
        }
        (self.observer)(Moment::Steady);
        child.wait().await
    }

    fn may_leave(&self) -> bool {
        self.shared.may_leave.load(Ordering::SeqCst)
    }
}

async fn finish(mut child: Child, kill: &CancellationToken) {
    child.terminate();
    tokio::select! {
        _ = child.wait() => {}
        () = kill.cancelled() => {
            child.kill();
            let _ = child.wait().await;
        }
    }
}

fn longer(pause: Duration) -> Duration {
    (pause * 2).min(PAUSE_LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_thirty_seconds() {
        let pauses: Vec<u64> =
            std::iter::successors(Some(PAUSE_FIRST), |pause| Some(longer(*pause)))
                .take(8)
                .map(|p| p.as_millis() as u64)
                .collect();
        assert_eq!(pauses, [500, 1000, 2000, 4000, 8000, 16000, 30000, 30000]);
    }
}
