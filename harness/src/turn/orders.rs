//! What the operator wants: commands, and shutting down.
//!
//! Invariant: a command is closed once its effect cannot be lost any more, so a harness that dies
//! before finds it open again.

use hive_core::command::{Command, Order};
use hive_core::limits::ERROR_BYTES_MAX;
use hive_core::time::Now;
use hive_core::turn::Outcome;

use crate::claude::line;
use crate::claude::outcome::StopCause;
use crate::turn::machine::{IDLE_LEAVE_PATIENCE, LEAVE_PATIENCE, Machine};
use crate::turn::output::{Output, Signal};
use crate::turn::phase::{Drain, Phase};

/// How many closed commands are remembered.
const CLOSED_MAX: usize = 64;

impl Machine {
    pub(crate) fn command(&mut self, command: Command, now: Now) {
        let Command { id, order, create_time: _ } = command;
        let id = id.get();
        if self.is_closed(id) {
            return;
        }
        match order {
            Order::CancelTurn(turn_id) => self.cancel(id, turn_id.get(), now),
            Order::StartNewSession => {
                if !self.new_session.contains(&id) {
                    self.new_session.push(id);
                }
            }
            Order::SetModel(model) => {
                self.model = Some(model);
                self.context.forget_window();
                self.close(id, String::new());
            }
            Order::RestartHarness => self.restart(id, now),
            Order::CompactSession => self.compact(id),
        }
    }

    pub(crate) fn unknown_command(&mut self, id: u64) {
        if !self.is_closed(id) {
            self.close(id, "this harness does not know the command; update hive".to_owned());
        }
    }

    /// Whether the command was closed lately; then it is closed again, in the same way.
    fn is_closed(&mut self, id: u64) -> bool {
        let Some((_, error)) = self.closed.iter().find(|(closed, _)| *closed == id) else {
            return false;
        };
        let error = error.clone();
        self.put(Output::Ack(id, error));
        true
    }

    pub(crate) fn close(&mut self, command_id: u64, error: String) {
        let error = line::beginning(&error, ERROR_BYTES_MAX).to_owned();
        self.closed.push_back((command_id, error.clone()));
        if self.closed.len() > CLOSED_MAX {
            self.closed.pop_front();
        }
        self.put(Output::Ack(command_id, error));
    }

    fn cancel(&mut self, command_id: u64, turn_id: u64, now: Now) {
        if self.cancels.iter().any(|(known, _)| *known == command_id) {
            return;
        }
        let not_running = || format!("turn {turn_id} is not running");
        match &self.phase {
            Phase::Running(run) if run.course.job.turn_id == turn_id => {
                self.cancels.push((command_id, turn_id));
                self.stop(StopCause::Cancelled, Signal::Interrupt, now);
            }
            Phase::Probing(job) if job.turn_id == turn_id => {
                let job = job.clone();
                self.cancels.push((command_id, turn_id));
                self.end_unrun(
                    &job,
                    Outcome::Cancelled,
                    "cancelled by the operator".to_owned(),
                    now,
                );
            }
            Phase::Ending { turn_id: ending, .. } if *ending == turn_id => {
                self.cancels.push((command_id, turn_id));
            }
            // It may overtake the answer that tells us of its turn.
            Phase::Beginning | Phase::Opening(_) if turn_id > self.highest_turn_id => {
                self.cancels.push((command_id, turn_id));
            }
            Phase::Detached
            | Phase::Starting
            | Phase::Stopped
            | Phase::Beginning
            | Phase::Opening(_)
            | Phase::Probing(_)
            | Phase::Running(_)
            | Phase::Discarding(_)
            | Phase::Ending { .. }
            | Phase::Recovering(_)
            | Phase::Leaving
            | Phase::Gone => self.close(command_id, not_running()),
        }
    }

    /// The turn is settled: its cancels came in time, or not; and those of older turns never will.
    pub(crate) fn close_cancels(&mut self, turn_id: u64, outcome: Outcome) {
        let (due, later): (Vec<_>, Vec<_>) =
            self.cancels.drain(..).partition(|(_, cancelled)| *cancelled <= turn_id);
        self.cancels = later;
        for (command_id, cancelled) in due {
            let in_time = outcome == Outcome::Cancelled && cancelled == turn_id;
            let error =
                if in_time { String::new() } else { format!("turn {cancelled} had ended already") };
            self.close(command_id, error);
        }
    }

    fn restart(&mut self, command_id: u64, now: Now) {
        if self.restart.is_none() {
            self.restart = Some(command_id);
            self.hand_back(now);
            self.stop(StopCause::Drained, Signal::Interrupt, now);
        }
    }

    /// The agent was stopped: drains as for a shutdown, then starts again to wait until the agent
    /// is started.
    pub(crate) fn halt(&mut self, now: Now) {
        if self.is_leaving() || matches!(self.phase, Phase::Stopped) {
            return;
        }
        self.halting = true;
        self.drain = Some(Drain { grace_at: now.boot.after(self.spans.drain_grace) });
        self.hand_back(now);
    }

    pub(crate) fn drain(&mut self, now: Now) {
        // A shutdown of a program that drains already: it keeps its grace and does not start again.
        if std::mem::take(&mut self.halting) {
            return;
        }
        if self.drain.is_some() {
            self.drain_at_once(now);
            return;
        }
        self.drain = Some(Drain { grace_at: now.boot.after(self.spans.drain_grace) });
        self.hand_back(now);
    }

    /// Does what leads to the end where no claude runs; a running one is left to its grace.
    fn hand_back(&mut self, now: Now) {
        let patience = Some(now.boot.after(LEAVE_PATIENCE));
        match &self.phase {
            Phase::Detached | Phase::Starting | Phase::Stopped | Phase::Recovering(_) => self.go(),
            Phase::Beginning => {
                self.phase = Phase::Leaving;
                self.leave_by = Some(now.boot.after(IDLE_LEAVE_PATIENCE));
                self.put(Output::Leave);
            }
            Phase::Opening(_) | Phase::Ending { .. } => self.leave_by = patience,
            Phase::Probing(job) => {
                let job = job.clone();
                self.end_unrun(&job, Outcome::Drained, "the harness was shut down".to_owned(), now);
            }
            Phase::Running(_) | Phase::Discarding(_) | Phase::Leaving | Phase::Gone => {}
        }
    }

    fn drain_at_once(&mut self, now: Now) {
        match &self.phase {
            Phase::Running(_) => self.stop(StopCause::Drained, Signal::Kill, now),
            Phase::Discarding(_) => {}
            Phase::Detached
            | Phase::Starting
            | Phase::Stopped
            | Phase::Beginning
            | Phase::Opening(_)
            | Phase::Probing(_)
            | Phase::Ending { .. }
            | Phase::Recovering(_)
            | Phase::Leaving
            | Phase::Gone => self.go_unanswered(),
        }
    }
}
