//! Keeping a child running: restarted with backoff when it dies, ended when asked.
//!
//! Invariant: the pause before a restart doubles from half a second to thirty, and begins anew
//! after a minute of life, so that a child that cannot start does not spin. A child that asks for a
//! restart is started at once.

use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hive_core::isolation::RESTART_CODE;
use hive_proto::connect::connect;
use rustix::process::{Pid, kill_process};
use tokio::signal::unix::Signal;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::child::{Child, Registry, Spec, last_words};
use super::plan::Plan;
use super::{BROKER_START_MAX, UpError};
use crate::output::note;

const PAUSE_FIRST: Duration = Duration::from_millis(500);
const PAUSE_LONGEST: Duration = Duration::from_secs(30);
/// A child that lived so long was well.
const WELL_AFTER: Duration = Duration::from_secs(60);
/// How often the broker's socket is tried while it starts.
const ANSWER_PAUSE: Duration = Duration::from_millis(20);

/// The signals that end a hive.
#[derive(Debug)]
pub(super) struct Stop {
    pub(super) interrupt: Signal,
    pub(super) terminate: Signal,
}

/// How a child ended.
#[derive(Clone, Debug)]
pub(super) struct Ended {
    /// In words.
    pub(super) words: String,
    /// Whether it ended by itself with exit code 0.
    pub(super) is_clean: bool,
}

impl Stop {
    /// Ends when the next of them comes.
    pub(super) async fn asked(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

/// How long a child may take to end.
#[derive(Clone, Copy, Debug)]
pub(super) enum Deadline {
    Now,
    After(Duration),
}

/// A child that is kept running.
#[derive(Debug)]
pub(super) struct Supervised {
    name: String,
    end: CancellationToken,
    kill: CancellationToken,
    pid: Arc<Mutex<Option<Pid>>>,
    task: JoinHandle<()>,
}

impl Supervised {
    /// Starts it; each end of it is told to `told`.
    pub(super) fn start(
        spec: Spec,
        registry: Registry,
        told: Option<UnboundedSender<Ended>>,
    ) -> Self {
        let (end, kill) = (CancellationToken::new(), CancellationToken::new());
        let name = spec.name.clone();
        let pid = Arc::default();
        let task = tokio::spawn(keep_running(
            spec,
            registry,
            told,
            Arc::clone(&pid),
            end.clone(),
            kill.clone(),
        ));
        Self { name, end, kill, pid, task }
    }

    /// Sends SIGHUP to the process, if it runs.
    pub(super) fn hang_up(&self) {
        if let Some(pid) = *self.pid.lock().unwrap_or_else(PoisonError::into_inner) {
            // It may have ended by itself.
            let _ = kill_process(pid, rustix::process::Signal::HUP);
        }
    }

    /// Ends it.
    pub(super) async fn stop(mut self, deadline: Deadline) {
        self.end.cancel();
        if let Deadline::After(span) = deadline
            && timeout(span, &mut self.task).await.is_ok()
        {
            return;
        }
        if let Deadline::After(span) = deadline {
            note(&format!("{} did not end within {} s and is killed", self.name, span.as_secs()));
        }
        self.kill.cancel();
        // The task ends with the child, and a panic of it has dropped, that is killed, the child.
        let _ = self.task.await;
    }
}

async fn keep_running(
    spec: Spec,
    registry: Registry,
    told: Option<UnboundedSender<Ended>>,
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
                is_restart = ended
                    .as_ref()
                    .is_ok_and(|status| status.code() == Some(i32::from(RESTART_CODE)));
                let is_clean = ended.as_ref().is_ok_and(ExitStatus::success);
                Ended {
                    words: ended
                        .map_or_else(|error| error.to_string(), |status| status.to_string()),
                    is_clean,
                }
            }
            Err(error) => Ended { words: error.to_string(), is_clean: false },
        };
        if registry.is_closed() {
            return;
        }
        // It was asked for, but a child that does nothing else does not spin.
        if is_restart && started.elapsed() >= PAUSE_FIRST {
            continue;
        }
        if let Some(told) = &told {
            // Nobody listens after the start, and nobody has to.
            let _ = told.send(ending.clone());
        }
        if started.elapsed() >= WELL_AFTER {
            pause = PAUSE_FIRST;
        }
        let Ended { words: ending, .. } = ending;
        note(&format!(
            "{} ended ({ending}); again in {:.1} s{}",
            spec.name,
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

/// Whether a hive runs there already.
pub(super) async fn refuse_second(plan: &Plan) -> Result<(), UpError> {
    let socket = plan.operator_socket();
    match connect(&socket).await {
        Ok(_) => Err(UpError::AlreadyUp { socket }),
        Err(_) => Ok(()),
    }
}

/// Waits for the broker's first answer.
pub(super) async fn first_answer(
    plan: &Plan,
    ended: &mut UnboundedReceiver<Ended>,
    stop: &mut Stop,
) -> Result<(), UpError> {
    let socket = plan.operator_socket();
    let log = plan.log_file("hived");
    let answered = async {
        while connect(&socket).await.is_err() {
            sleep(ANSWER_PAUSE).await;
        }
    };
    tokio::select! {
        answered = timeout(BROKER_START_MAX, answered) => answered.map_err(|_| UpError::BrokerSilent {
            seconds: BROKER_START_MAX.as_secs(),
            last_words: last_words(&log),
        }),
        Some(ended) = ended.recv() => Err(UpError::BrokerEnded { ending: ended.words, last_words: last_words(&log) }),
        () = stop.asked() => Err(UpError::Interrupted),
    }
}

/// Waits until a broker that has ended is started again and answers; no longer than it may take to
/// start.
pub(super) async fn answers_again(plan: &Plan, ended: &mut UnboundedReceiver<Ended>) {
    let socket = plan.operator_socket();
    let answered = async {
        while connect(&socket).await.is_err() {
            sleep(ANSWER_PAUSE).await;
        }
    };
    tokio::select! {
        // Where it stays away, the harnesses end without it.
        _ = timeout(BROKER_START_MAX, answered) => {}
        Some(_) = ended.recv() => note("the broker cannot be started again"),
    }
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
