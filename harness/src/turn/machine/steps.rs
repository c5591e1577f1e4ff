//! The steps of a turn: the runs of claude, and the effect of their ends on the turn.
//!
//! Invariant: a turn has a limited number of runs: a login is tried twice, room is made once, and a
//! checkpoint runs only before the work.

use hive_core::time::{Now, WallTime};
use hive_core::turn::Outcome;

use crate::claude::outcome::{
    Evidence, Exit, StopCause, Verdict, classify, classify_compaction, is_nothing_to_compact,
    stopped,
};
use crate::claude::transcript::Transcript;
use crate::turn::job::{Job, Step, Trigger};
use crate::turn::machine::Machine;
use crate::turn::output::Ending;
use crate::turn::phase::Run;
use crate::turn::plan::TurnPlan;

impl Machine {
    /// Begins the first step of a turn. A heartbeat for which the agent has noted nothing needs
    /// none, and no model call.
    pub(super) fn start(&mut self, job: Job, now: Now) {
        self.upkeep.was_quiet = job.needs_no_claude();
        if self.upkeep.was_quiet {
            self.end_unrun(&job, Verdict::new(Outcome::Ok, ""), now);
            return;
        }
        let mut plan = TurnPlan::new(job, self.spans.turn_max.map(|span| now.boot.after(span)));
        let mut step = plan.job.trigger.step();
        if matches!(plan.job.trigger, Trigger::Mail(_)) {
            let reset = self.upkeep.reset_reason(&self.next_model(), now.wall);
            if !self.orders.wants_new_session()
                && let Some((why, with_notes)) = reset
            {
                self.note(format!("a new conversation is started: {why}"));
                plan.resets = true;
                if with_notes {
                    step = Step::Checkpoint;
                }
            }
            self.upkeep.context().turn_begins(now.wall);
        }
        self.launch(plan, step, now);
    }

    /// Judges a run that is over.
    pub(super) fn judge(&mut self, run: Run, exit: Exit, now: Now) {
        let Run { mut plan, step, model, was_fresh, transcript, stop, .. } = run;
        let retry_fallback = self.spans.rate_limit_sleep.map(|span| now.wall.after(span));
        let evidence = Evidence {
            exit,
            transcript: &transcript,
            stop: stop.as_ref().map(|stop| &stop.cause),
            retry_fallback,
        };
        let verdict = if step == Step::Compact {
            classify_compaction(&evidence)
        } else {
            classify(&evidence)
        };
        plan.absorb(&transcript, self.cost_before);
        if let Some(result) = &transcript.result {
            self.cost_before = result.cost_of_session.or(self.cost_before);
        }
        self.measure(&transcript, step, now);
        if verdict.outcome == Outcome::AuthFailed && !plan.login_retried && !self.is_leaving() {
            // One immediate retry, because a token that was refreshed a moment ago works now.
            self.note("the login failed, trying once more");
            plan.login_retried = true;
            self.launch(plan, step, now);
            return;
        }
        let is_work = plan.job.trigger.step() == Step::Work;
        let after = match step {
            Step::Work if verdict.too_long => self.outgrown(&plan, was_fresh, verdict),
            Step::Compact if is_work => self.after_making_room(&mut plan, verdict),
            Step::Checkpoint if is_work => self.after_last_notes(verdict),
            // Notes that do not fit any more must not delay the step that makes room.
            Step::Checkpoint if verdict.too_long => {
                After::End(Verdict { outcome: Outcome::Failed, too_long: false, ..verdict })
            }
            Step::Work | Step::Compact | Step::Checkpoint => After::End(verdict),
        };
        // A cause that stopped one run stops the turn.
        let after = match (after, &stop) {
            (After::Run(_), Some(stop)) => After::End(stopped(&stop.cause)),
            (after, _) => after,
        };
        match after {
            After::Run(step) => self.launch(plan, step, now),
            After::End(verdict) => self.finish(plan, verdict, &transcript, model, now),
        }
    }

    fn measure(&mut self, transcript: &Transcript, step: Step, now: Now) {
        let window =
            transcript.result.as_ref().and_then(|result| result.context_window).unwrap_or(0);
        self.upkeep.context().measured(transcript.context_tokens, window, now.wall);
        if step == Step::Compact || transcript.compacted {
            self.upkeep.context().compacted(transcript.post_tokens, now.wall);
        }
    }

    /// Decides the next step if the conversation exceeds the window.
    fn outgrown(&mut self, plan: &TurnPlan, was_fresh: bool, verdict: Verdict) -> After {
        if self.is_leaving() {
            return After::drained();
        }
        if was_fresh || plan.made_room {
            // No other content is left in it that could take up room.
            return too_large(if was_fresh { "a new" } else { "a compacted" }, verdict);
        }
        self.note("the conversation is too long for the model: compacting it, then once more");
        After::Run(Step::Compact)
    }

    fn after_making_room(&mut self, plan: &mut TurnPlan, verdict: Verdict) -> After {
        if verdict.outcome == Outcome::Ok && self.is_leaving() {
            After::drained()
        } else if verdict.outcome == Outcome::Ok {
            plan.made_room = true;
            After::Run(Step::Work)
        } else if verdict.outcome != Outcome::Failed {
            After::End(verdict)
        } else if is_nothing_to_compact(&verdict.error) {
            too_large("an empty", verdict)
        } else {
            let error = format!(
                "the conversation is too long for the model's window, and compacting it failed: {}; \
                 `hivectl turn new-session {}` begins a new one",
                verdict.error,
                self.identity().label
            );
            After::End(Verdict { outcome: Outcome::Unavailable, error, ..verdict })
        }
    }

    /// Decides the next step after the notes in the old conversation. They are optional: if the
    /// model could not write them, the work is done without them.
    fn after_last_notes(&mut self, verdict: Verdict) -> After {
        let Verdict { outcome, error, too_long, .. } = &verdict;
        if matches!(outcome, Outcome::Ok | Outcome::Failed | Outcome::Unavailable)
            && self.is_leaving()
        {
            return After::drained();
        }
        let is_failure =
            *outcome == Outcome::Failed || (*outcome == Outcome::Unavailable && *too_long);
        if is_failure {
            self.note(format!("the notes before the new conversation failed: {error}"));
        } else if *outcome != Outcome::Ok {
            return After::End(verdict);
        }
        After::Run(Step::Work)
    }

    fn finish(
        &mut self,
        plan: TurnPlan,
        verdict: Verdict,
        transcript: &Transcript,
        model: String,
        now: Now,
    ) {
        let Verdict { outcome, error, retry_time, too_long: _ } = verdict;
        let (turn_id, kind) = (plan.job.turn_id, plan.job.trigger.kind());
        let reported = transcript
            .result
            .as_ref()
            .and_then(|result| result.context_window)
            .filter(|window| *window > 0);
        let ending = Ending {
            error,
            output_tail: if outcome == Outcome::Ok { String::new() } else { transcript.tail() },
            context_tokens: transcript.context_tokens,
            context_window_tokens: reported
                .map_or(0, |reported| self.upkeep.window(&model, reported)),
            model: transcript
                .init
                .as_ref()
                .map(|init| init.model.clone())
                .filter(|m| !m.is_empty())
                .unwrap_or(model),
            retry_time: retry_time.map(|time| spread(time, turn_id)),
            ..plan.ending()
        };
        self.end(ending, kind, outcome, now);
    }
}

/// Returns a failure that blames the message, because no room can be made for it.
fn too_large(what: &str, verdict: Verdict) -> After {
    let error = format!(
        "the message does not fit into the model's window, even in {what} conversation: {}",
        verdict.error
    );
    After::End(Verdict { outcome: Outcome::Failed, error, too_long: false, ..verdict })
}

/// The step after a run.
enum After {
    /// Another run.
    Run(Step),
    /// The end of the turn.
    End(Verdict),
}

impl After {
    fn drained() -> Self {
        Self::End(stopped(&StopCause::Drained))
    }
}

/// Adds a delay that differs for each turn, so that agents of one account do not resume at the same
/// moment.
fn spread(time: WallTime, turn_id: u64) -> WallTime {
    WallTime(time.0.saturating_add(i64::try_from(turn_id.wrapping_mul(7919) % 10_000).unwrap_or(0)))
}
