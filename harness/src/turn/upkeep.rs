//! Between turns: what comes after one, and keeping the conversation small.
//!
//! Invariant: upkeep is done only right after a turn or by the operator's order, so a fleet that
//! does nothing costs nothing.

use hive_core::time::Now;
use hive_core::turn::{Kind, Outcome};

use crate::turn::input::Answer;
use crate::turn::machine::Machine;
use crate::turn::output::Output;
use crate::turn::phase::Phase;

impl Machine {
    /// What comes after a turn that is settled.
    pub(crate) fn after_turn(
        &mut self,
        kind: Kind,
        outcome: Outcome,
        error: &str,
        answer: &Answer,
        now: Now,
    ) {
        let is_work = matches!(kind, Kind::Mail | Kind::Continue);
        if is_work {
            self.wants_next = outcome == Outcome::Ok && answer.next_turn_requested;
        }
        if kind == Kind::Compact {
            self.close_compacts(outcome, error);
        }
        if self.is_leaving() {
            self.rest(now);
            return;
        }
        let may_run = answer.park.is_none();
        // A conversation that is to be left is not tidied up.
        let is_due = || {
            self.new_session.is_empty()
                && self.context.is_due_for_compaction(&self.watermarks, &self.next_model())
        };
        if may_run && is_work && outcome == Outcome::Ok && is_due() {
            self.open(Kind::Checkpoint);
        } else if may_run && kind == Kind::Checkpoint && outcome != Outcome::Cancelled {
            if outcome != Outcome::Ok {
                self.note(format!("the notes before the compaction failed: {error}"));
            }
            self.open(Kind::Compact);
        } else if !self.compacts.is_empty() {
            self.open(Kind::Compact);
        } else if should_continue(self.wants_next, answer) {
            self.wants_next = false;
            self.open(Kind::Continue);
        } else {
            self.rest(now);
        }
    }

    pub(crate) fn open(&mut self, kind: Kind) {
        self.phase = Phase::Opening(kind);
        self.put(Output::Open(kind));
    }

    /// The operator wants the conversation compacted: now, where nothing runs, else after the turn.
    pub(crate) fn compact(&mut self, command_id: u64) {
        if !self.compacts.contains(&command_id) {
            self.compacts.push(command_id);
        }
        if matches!(self.phase, Phase::Beginning) && !self.is_leaving() {
            self.open(Kind::Compact);
        }
    }

    fn close_compacts(&mut self, outcome: Outcome, error: &str) {
        let words = match (outcome, error) {
            (Outcome::Ok, _) => String::new(),
            (outcome, "") => format!("the compaction ended {outcome}"),
            (_, error) => format!("the conversation was not compacted: {error}"),
        };
        if outcome == Outcome::Failed {
            self.note(words.clone());
        }
        if outcome == Outcome::Drained {
            // The next harness finds the orders open.
            self.compacts.clear();
            return;
        }
        for command_id in std::mem::take(&mut self.compacts) {
            self.close(command_id, words.clone());
        }
    }
}

/// Whether the next turn is one that the agent asked for: the turn in which it did went well, no
/// mail is there to wake the agent anyway, and nothing keeps it from running.
pub(crate) fn should_continue(wanted: bool, answer: &Answer) -> bool {
    wanted && answer.pending_count == 0 && answer.park.is_none()
}
