//! Keeping a child running: restarted with backoff when it dies, ended when asked.
//!
//! Invariant: the pause before a restart doubles from half a second to thirty, and is reset after a
//! minute of life, so that a child that cannot start does not spin. A child that asks for a restart
//! is started at once.

use std::io;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hive_core::isolation::RESTART_CODE;
use rustix::process::{Pid, kill_process};
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
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

#[derive(Debug)]
pub(crate) struct Supervised {
    name: String,
    end: CancellationToken,
    kill: CancellationToken,
    pid: Arc<Mutex<Option<Pid>>>,
    task: JoinHandle<()>,
}

impl Supervised {
    /// Starts it; each end of it is sent to `reports`.
    pub(crate) fn start(
        spec: Spec,
        registry: Registry,
        reports: Option<UnboundedSender<Ended>>,
    ) -> Self {
        let (end, kill) = (CancellationToken::new(), CancellationToken::new());
        let name = spec.name.clone();
        let pid = Arc::default();
        let task = spawn(
            "process",
            keep_running(spec, registry, reports, Arc::clone(&pid), end.clone(), kill.clone()),
        );
        Self { name, end, kill, pid, task }
    }

    /// Sends SIGHUP to the process, if it runs.
    pub(crate) fn hang_up(&self) {
        if let Some(pid) = *self.pid.lock().unwrap_or_else(PoisonError::into_inner) {
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

async fn keep_running(
    spec: Spec,
    registry: Registry,
    reports: Option<UnboundedSender<Ended>>,
    running: Arc<Mutex<Option<Pid>>>,
    end: CancellationToken,
    kill: CancellationToken,
) {
    let mut pause = PAUSE_FIRST;
    loop {
        let started = Instant::now();
        let mut is_restart = false;
        let ending = match Child::start(&spec, &registry) {
            Ok(mut child) => {
                let set = |pid| *running.lock().unwrap_or_else(PoisonError::into_inner) = pid;
                set(Some(child.pid()));
                let ended = tokio::select! {
                    ended = child.wait() => ended,
                    () = end.cancelled() => return finish(child, &kill).await,
                };
                set(None);
                let code = ended.as_ref().ok().and_then(ExitStatus::code);
                is_restart = code == Some(i32::from(RESTART_CODE));
                ended.map_or_else(
                    |error| Ended::failed(&error),
                    |status| Ended { description: status.to_string(), is_clean: status.success() },
                )
            }
            Err(error) => Ended::failed(&error),
        };
        if registry.is_closed() {
            return;
        }
        // The restart was requested, but a child that always requests one must not spin.
        if is_restart && started.elapsed() >= PAUSE_FIRST {
            continue;
        }
        if let Some(reports) = &reports {
            // After the start there may be no receiver.
            let _ = reports.send(ending.clone());
        }
        if started.elapsed() >= WELL_AFTER {
            pause = PAUSE_FIRST;
        }
        note(&format!(
            "{} ended ({}); again in {:.1} s{}",
            spec.name,
            ending.description,
            pause.as_secs_f64(),
            last_words(&spec.log)
        ));
        tokio::select! {
            () = sleep(pause) => {}
            () = end.cancelled() => return,
        }
        pause = longer(pause);
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
