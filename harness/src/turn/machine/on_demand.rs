//! An agent that runs on demand: the time without work, and the question whether the harness may
//! end.
//!
//! Invariant: at most one question is open, and no new session is attached while one is. The begin
//! of a turn closes it: the session then goes on, so a later answer says nothing new.

use std::time::Duration;

use hive_core::agent::Agent;
use hive_core::time::{BootTime, Now};

use crate::turn::input::LeaveAnswer;
use crate::turn::machine::Machine;
use crate::turn::output::{Leaving, Output};
use crate::turn::phase::Phase;

/// Minimum time without work, so that no broker makes the harness ask in a tight loop.
const REST_MIN: Duration = Duration::from_millis(100);

/// The rest of an agent on demand.
#[derive(Debug, Default)]
pub(super) struct OnDemand {
    /// Since when there is no work; `None` while there is some, and while a question is open.
    rests_since: Option<BootTime>,
    /// Whether a question is open.
    is_asked: bool,
    /// Whether the broker does not serve the question.
    is_unserved: bool,
    /// Whether shell tasks run.
    has_tasks: bool,
}

impl OnDemand {
    /// Closes the open question; its answer is ignored.
    pub(super) fn close(&mut self) {
        self.is_asked = false;
    }
}

impl Machine {
    pub(super) fn tasks_run(&mut self, has_tasks: bool) {
        self.on_demand.has_tasks = has_tasks;
    }

    /// Returns when the broker is asked whether the harness may end, if ever.
    pub(super) fn ask_at(&self) -> Option<BootTime> {
        let rest = self.facts.leave_after?.max(REST_MIN);
        Some(self.on_demand.rests_since?.after(rest))
    }

    /// Measures the time without work, and asks after enough of it.
    pub(super) fn rest(&mut self, now: Now) {
        if !self.is_resting() {
            self.on_demand.rests_since = None;
            return;
        }
        self.on_demand.rests_since.get_or_insert(now.boot);
        if self.ask_at().is_some_and(|at| at <= now.boot) {
            self.on_demand.rests_since = None;
            self.on_demand.is_asked = true;
            self.emit(Output::AskToLeave);
        }
    }

    /// Returns whether the agent runs on demand and there is no work for its harness.
    fn is_resting(&self) -> bool {
        let OnDemand { rests_since: _, is_asked, is_unserved, has_tasks } = self.on_demand;
        let may_leave = |agent: &Agent| agent.on_demand && !agent.stopped;
        matches!(self.phase, Phase::Beginning)
            && self.facts.agent.as_ref().is_some_and(may_leave)
            && !(is_asked || is_unserved || has_tasks)
            && !self.orders.is_any_open()
            // Only a harness can notice a login, or hold the dialogue that makes one.
            && !self.login.is_open()
            && !self.waits_for_login()
    }

    /// Waits for the answer instead of a new session if a question is open, and returns whether it
    /// is: the session may be lost because the broker has ended it as the answer.
    pub(super) fn hold_for_answer(&mut self, why: &str) -> bool {
        let is_open = self.on_demand.is_asked && !self.is_leaving();
        if is_open && !matches!(self.phase, Phase::Unsure(_)) {
            self.phase = Phase::Unsure(why.to_owned());
        }
        is_open
    }

    pub(super) fn leave_answered(&mut self, answer: LeaveAnswer) {
        self.on_demand.is_unserved |= answer == LeaveAnswer::Unserved;
        if !std::mem::take(&mut self.on_demand.is_asked) {
            return;
        }
        if answer == LeaveAnswer::Left {
            if self.is_leaving() {
                self.end_program();
            } else {
                self.leave(Leaving::NoWork);
            }
        } else if let Phase::Unsure(why) = &self.phase {
            let why = why.clone();
            self.note(why);
            self.attach_again();
        }
    }
}
