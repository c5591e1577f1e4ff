//! The operator's orders: commands, and shutdowns.
//!
//! Invariant: a command is closed once its effect cannot be lost any more. If a harness dies before
//! that, the next one finds it open.

use std::collections::VecDeque;
use std::time::Duration;

use hive_core::command::{Command, Order};
use hive_core::limits::ERROR_BYTES_MAX;
use hive_core::time::{BootTime, Now};
use hive_core::turn::Outcome;

use crate::claude::line;
use crate::claude::outcome::{StopCause, stopped};
use crate::turn::machine::{IDLE_LEAVE_PATIENCE, LEAVE_PATIENCE, Machine};
use crate::turn::output::{Leaving, Output, Signal};
use crate::turn::phase::Phase;

/// Maximum closed commands that are remembered.
const CLOSED_MAX: usize = 64;

/// The operator's orders, and the end of the program.
#[derive(Debug, Default)]
pub(super) struct Orders {
    /// The command to restart.
    restart: Option<u64>,
    /// When a running turn is ended, if the program must shut down.
    drain: Option<BootTime>,
    /// Whether the program drains because its agent was stopped: it restarts afterwards, and waits.
    halting: bool,
    /// Commands that request a new conversation.
    new_session: Vec<u64>,
    /// Commands that request a compaction.
    compacts: Vec<u64>,
    /// Cancels that wait for their turn: ids of command and turn.
    cancels: Vec<(u64, u64)>,
    /// Recently closed commands, with their error; a new stream shows them again.
    closed: VecDeque<(u64, String)>,
    model: Option<String>,
}

impl Orders {
    /// Returns whether no further turn may be run.
    pub(super) fn is_leaving(&self) -> bool {
        self.drain.is_some() || self.restart.is_some()
    }

    /// Returns whether an order is not carried out yet.
    pub(super) fn is_any_open(&self) -> bool {
        let commands = self.new_session.len() + self.compacts.len() + self.cancels.len();
        commands > 0 || self.is_leaving()
    }

    /// Returns the command to restart, if there is one.
    pub(super) fn restart(&self) -> Option<u64> {
        self.restart
    }

    /// Returns whether the program ends because its agent was stopped.
    pub(super) fn is_halting(&self) -> bool {
        self.halting
    }

    /// Returns why the program ends. A requested shutdown takes precedence over a restart.
    pub(super) fn leaving(&self) -> Leaving {
        let restarts = self.restart.is_some() && self.drain.is_none();
        let halts = self.restart.is_none() && self.halting;
        if restarts || halts { Leaving::Restart } else { Leaving::Drained }
    }

    /// Returns when a running turn is ended because the program must shut down.
    pub(super) fn grace_at(&self) -> Option<BootTime> {
        self.drain
    }

    /// Returns whether the next turn begins a new conversation.
    pub(super) fn wants_new_session(&self) -> bool {
        !self.new_session.is_empty()
    }

    /// Takes the commands that request a new conversation.
    pub(super) fn take_new_session(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.new_session)
    }

    /// Returns whether a compaction is requested.
    pub(super) fn wants_compaction(&self) -> bool {
        !self.compacts.is_empty()
    }

    /// Adds a command that requests a compaction.
    pub(super) fn add_compaction(&mut self, command_id: u64) {
        add(&mut self.compacts, command_id);
    }

    /// Takes the commands that request a compaction.
    pub(super) fn take_compactions(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.compacts)
    }

    /// Returns whether this turn must be cancelled.
    pub(super) fn cancels(&self, turn_id: u64) -> bool {
        self.cancels.iter().any(|(_, cancelled)| *cancelled == turn_id)
    }

    /// Forgets the cancels; the broker shows open ones again.
    pub(super) fn forget_cancels(&mut self) {
        self.cancels.clear();
    }

    /// Returns the ordered model.
    pub(super) fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Forgets the ordered model.
    pub(super) fn forget_model(&mut self) {
        self.model = None;
    }
}

fn add(commands: &mut Vec<u64>, command_id: u64) {
    if !commands.contains(&command_id) {
        commands.push(command_id);
    }
}

impl Machine {
    pub(super) fn command(&mut self, command: Command, now: Now) {
        let Command { id, order, create_time: _ } = command;
        let id = id.get();
        if self.is_closed(id) {
            return;
        }
        match order {
            Order::CancelTurn(turn_id) => self.cancel(id, turn_id.get(), now),
            Order::StartNewSession => add(&mut self.orders.new_session, id),
            Order::SetModel(model) => {
                self.orders.model = Some(model);
                self.upkeep.context().forget_window();
                self.close(id, String::new());
            }
            Order::RestartHarness => self.restart(id, now),
            Order::CompactSession => self.compact(id),
        }
    }

    pub(super) fn unknown_command(&mut self, id: u64) {
        if !self.is_closed(id) {
            self.close(id, "this harness does not know the command; update hive".to_owned());
        }
    }

    /// Returns whether the command was closed recently; then closes it again, in the same way.
    fn is_closed(&mut self, id: u64) -> bool {
        let Some((_, error)) = self.orders.closed.iter().find(|(closed, _)| *closed == id) else {
            return false;
        };
        let error = error.clone();
        self.emit(Output::Ack(id, error));
        true
    }

    pub(super) fn close(&mut self, command_id: u64, error: String) {
        let error = line::beginning(&error, ERROR_BYTES_MAX).to_owned();
        let closed = &mut self.orders.closed;
        closed.push_back((command_id, error.clone()));
        if closed.len() > CLOSED_MAX {
            closed.pop_front();
        }
        self.emit(Output::Ack(command_id, error));
    }

    fn cancel(&mut self, command_id: u64, turn_id: u64, now: Now) {
        if self.orders.cancels.iter().any(|(known, _)| *known == command_id) {
            return;
        }
        let is_ending =
            matches!(self.phase, Phase::Ending { turn_id: ending, .. } if ending == turn_id);
        // The command may overtake the answer that names its turn.
        let is_early = matches!(self.phase, Phase::Beginning | Phase::Opening(_))
            && turn_id > self.highest_turn_id;
        let is_running = self.running_turn_id() == Some(turn_id);
        if !(is_running || is_ending || is_early) {
            self.close(command_id, format!("turn {turn_id} is not running"));
            return;
        }
        self.orders.cancels.push((command_id, turn_id));
        if is_running {
            self.stop_turn(StopCause::Cancelled, now);
        }
    }

    /// Stops the turn whose claude runs, or ends the one that is probed.
    fn stop_turn(&mut self, cause: StopCause, now: Now) {
        if let Phase::Probing(job) = &self.phase {
            let job = job.clone();
            self.end_unrun(&job, stopped(&cause), now);
        } else {
            self.stop(cause, Signal::Interrupt, now);
        }
    }

    /// Closes the cancels of a settled turn and of older turns, each with its result.
    pub(super) fn close_cancels(&mut self, turn_id: u64, outcome: Outcome) {
        let (due, later): (Vec<_>, Vec<_>) =
            self.orders.cancels.drain(..).partition(|(_, cancelled)| *cancelled <= turn_id);
        self.orders.cancels = later;
        for (command_id, cancelled) in due {
            let in_time = outcome == Outcome::Cancelled && cancelled == turn_id;
            let error =
                if in_time { String::new() } else { format!("turn {cancelled} had ended already") };
            self.close(command_id, error);
        }
    }

    fn restart(&mut self, command_id: u64, now: Now) {
        if self.orders.restart.is_none() {
            self.orders.restart = Some(command_id);
            self.begin_leaving(now);
            self.stop(StopCause::Drained, Signal::Interrupt, now);
        }
    }

    /// Drains as for a shutdown because the agent was stopped, then restarts to wait until the
    /// agent is started.
    pub(super) fn halt(&mut self, now: Now) {
        if self.is_leaving() || matches!(self.phase, Phase::Stopped) {
            return;
        }
        self.orders.halting = true;
        self.orders.drain = Some(now.boot.after(self.spans.drain_grace));
        self.begin_leaving(now);
    }

    pub(super) fn drain(&mut self, now: Now) {
        // A shutdown of a program that drains already: it keeps its grace and does not restart.
        if std::mem::take(&mut self.orders.halting) {
            return;
        }
        if self.orders.drain.is_some() {
            self.drain_at_once(now);
            return;
        }
        self.orders.drain = Some(now.boot.after(self.spans.drain_grace));
        self.begin_leaving(now);
    }

    /// Starts the end if no claude runs; a running one has its grace.
    fn begin_leaving(&mut self, now: Now) {
        match &self.phase {
            Phase::Detached
            | Phase::Starting
            | Phase::Stopped
            | Phase::Recovering(_)
            | Phase::Unsure(_) => self.end_program(),
            Phase::Beginning => self.leave_within(IDLE_LEAVE_PATIENCE, now),
            Phase::Opening(_) | Phase::Ending { .. } => {
                self.leave_by = Some(now.boot.after(LEAVE_PATIENCE));
            }
            Phase::Probing(_) => self.stop_turn(StopCause::Drained, now),
            Phase::Running(_) | Phase::Discarding(_) | Phase::Leaving | Phase::Gone => {}
        }
    }

    /// Waits for the broker's confirmation that no turn is open, and then ends the program.
    pub(super) fn leave_within(&mut self, patience: Duration, now: Now) {
        self.phase = Phase::Leaving;
        self.leave_by = Some(now.boot.after(patience));
        self.emit(Output::Leave);
    }

    fn drain_at_once(&mut self, now: Now) {
        if matches!(self.phase, Phase::Running(_)) {
            self.stop(StopCause::Drained, Signal::Kill, now);
        } else if !matches!(self.phase, Phase::Discarding(_)) {
            self.end_unanswered();
        }
    }
}
