//! Work between turns: the choice of the next one, and the size of the conversation.
//!
//! Invariant: upkeep runs only right after a turn or by the operator's order, so an idle fleet
//! costs nothing.

use hive_core::time::{Now, WallTime};
use hive_core::turn::{Kind, Outcome};

use crate::turn::context::{Context, Watermarks};
use crate::turn::input::EndTurnAnswer;
use crate::turn::machine::Machine;
use crate::turn::output::Output;
use crate::turn::phase::Phase;

/// The state that decides how the conversation continues.
#[derive(Debug)]
pub(super) struct Upkeep {
    context: Context,
    watermarks: Watermarks,
    /// Whether the agent requested another turn in the last one that was not upkeep.
    wants_next: bool,
    /// Whether the last turn ended without a model call, because the agent had noted nothing.
    pub(super) was_quiet: bool,
}

impl Upkeep {
    pub(super) fn new(watermarks: Watermarks) -> Self {
        Self { context: Context::default(), watermarks, wants_next: false, was_quiet: false }
    }

    /// Applies other watermarks.
    pub(super) fn configure(&mut self, watermarks: Watermarks) {
        self.watermarks = watermarks;
    }

    /// Returns the size of the conversation, for measurements.
    pub(super) fn context(&mut self) -> &mut Context {
        &mut self.context
    }

    /// Returns the window of a model for which claude reported `reported` tokens.
    pub(super) fn window(&self, model: &str, reported: u64) -> u64 {
        self.watermarks.windows.effective(model, reported)
    }

    /// Returns why the conversation is not continued, and whether the agent first writes its notes
    /// in it.
    pub(super) fn reset_reason(&self, model: &str, now: WallTime) -> Option<(&'static str, bool)> {
        if let Some(why) = self.context.reset_reason(&self.watermarks, now) {
            return Some((why, self.watermarks.reset_rule.notes));
        }
        let is_cold = self.context.is_due_for_reset(&self.watermarks, model, now);
        is_cold.then_some((
            "the old one is large and the cache is cold",
            self.watermarks.reset_checkpoint,
        ))
    }
}

impl Machine {
    /// Decides the next step after a settled turn.
    pub(super) fn after_turn(
        &mut self,
        kind: Kind,
        outcome: Outcome,
        error: &str,
        answer: &EndTurnAnswer,
        now: Now,
    ) {
        let is_work = matches!(kind, Kind::Mail | Kind::Continue);
        if is_work {
            self.upkeep.wants_next = outcome == Outcome::Ok && answer.next_turn_requested;
        }
        if kind == Kind::Compact {
            self.close_compacts(outcome, error);
        }
        if self.is_leaving() {
            self.await_turn(now);
            return;
        }
        let may_run = answer.park.is_none();
        // A conversation that will be replaced is not compacted.
        let is_due = || {
            let Upkeep { context, watermarks, .. } = &self.upkeep;
            !self.orders.wants_new_session()
                && context.is_due_for_compaction(watermarks, &self.next_model())
        };
        // A turn without a model call causes none.
        let has_run = is_work && !self.upkeep.was_quiet;
        if may_run && has_run && outcome == Outcome::Ok && is_due() {
            self.open(Kind::Checkpoint);
        } else if may_run && kind == Kind::Checkpoint && outcome != Outcome::Cancelled {
            if outcome != Outcome::Ok {
                self.note(format!("the notes before the compaction failed: {error}"));
            }
            self.open(Kind::Compact);
        } else if self.orders.wants_compaction() {
            self.open(Kind::Compact);
        } else if should_continue(self.upkeep.wants_next, answer) {
            self.upkeep.wants_next = false;
            self.open(Kind::Continue);
        } else {
            self.await_turn(now);
        }
    }

    pub(super) fn open(&mut self, kind: Kind) {
        self.phase = Phase::Opening(kind);
        self.emit(Output::Open(kind));
    }

    /// Compacts the conversation by the operator's order: now, if no turn runs, else after the
    /// turn.
    pub(super) fn compact(&mut self, command_id: u64) {
        self.orders.add_compaction(command_id);
        if matches!(self.phase, Phase::Beginning) && !self.is_leaving() {
            self.open(Kind::Compact);
        }
    }

    fn close_compacts(&mut self, outcome: Outcome, error: &str) {
        let text = match (outcome, error) {
            (Outcome::Ok, _) => String::new(),
            (outcome, "") => format!("the compaction ended {outcome}"),
            (_, error) => format!("the conversation was not compacted: {error}"),
        };
        if outcome == Outcome::Failed {
            self.note(text.clone());
        }
        for command_id in self.orders.take_compactions() {
            // After a shutdown the next harness finds the orders open.
            if outcome != Outcome::Drained {
                self.close(command_id, text.clone());
            }
        }
    }
}

/// Returns whether the agent's requested turn is next: the requesting turn succeeded, no ready mail
/// starts a turn anyway, and no park prevents it.
fn should_continue(wanted: bool, answer: &EndTurnAnswer) -> bool {
    wanted && answer.pending_count == 0 && answer.park.is_none()
}
