//! The broker's inputs: sessions, turns to run, settled turns.

use std::sync::Arc;
use std::time::Duration;

use hive_core::agent::{Agent, HarnessState};
use hive_core::park;
use hive_core::time::Now;
use hive_core::turn::{Kind, Outcome};

use crate::claude::outcome::{StopCause, Verdict, stopped};
use crate::turn::input::{Attachment, Begun, EndTurnAnswer, Opened};
use crate::turn::job::{Job, Trigger};
use crate::turn::machine::{LEAVE_PATIENCE, Machine};
use crate::turn::output::{Ending, Output, Signal};
use crate::turn::phase::{After, Cli, Parked, Phase};

/// Pause before a new session is tried after an unexpected refusal; doubles up to a minute.
const RECOVERY_BASE: Duration = Duration::from_secs(1);

impl Machine {
    pub(super) fn attached(&mut self, facts: Attachment, now: Now) {
        // Only the turn that runs here counts: another one of the session is another harness's
        // conversation, which this version does not have.
        let resumed = facts.resumed;
        let is_open = self.running_turn_id().is_some_and(|id| facts.open_turns.contains(&id));
        self.facts = facts;
        if !resumed {
            self.on_demand.close();
        }
        // The broker shows open commands again.
        self.orders.forget_cancels();
        match &self.phase {
            Phase::Detached | Phase::Recovering(_) | Phase::Stopped => self.begin_session(now),
            Phase::Unsure(_) if !resumed => self.begin_session(now),
            Phase::Starting | Phase::Discarding(_) | Phase::Gone => {}
            Phase::Running(_) | Phase::Probing(_) if !resumed || !is_open => {
                self.lose_turn(now);
            }
            // Calls of the old session will not be answered any more.
            Phase::Beginning | Phase::Opening(_) | Phase::Ending { .. } | Phase::Leaving
                if !resumed =>
            {
                self.await_turn(now);
            }
            Phase::Running(_)
            | Phase::Probing(_)
            | Phase::Beginning
            | Phase::Opening(_)
            | Phase::Ending { .. }
            | Phase::Unsure(_)
            | Phase::Leaving => {}
        }
    }

    /// Begins work in a new session, or waits if the agent is stopped.
    fn begin_session(&mut self, now: Now) {
        if self.facts.agent.as_ref().is_some_and(|agent| agent.stopped) {
            self.phase = Phase::Stopped;
        } else {
            self.first_probe(now);
        }
    }

    fn first_probe(&mut self, now: Now) {
        let agent = self.facts.agent.as_ref();
        if let Some(agent) = agent {
            self.upkeep.context().remembered(agent);
        }
        // A probe shows whether there is a login: the operator may have logged in before the
        // harness started.
        let park = agent
            .and_then(|agent| agent.park.clone())
            .filter(|park| !park::ends_by_login(park.cause));
        // A wait for a login continues in the new session.
        if !self.waits_for_login() {
            self.parked = park.map(|park| Parked::new(park, now));
        }
        if self.cli == Cli::Unknown {
            self.phase = Phase::Starting;
            self.report(HarnessState::Starting, None);
            self.probe();
        } else {
            self.await_turn(now);
        }
    }

    pub(super) fn probe(&mut self) {
        if !self.probing {
            self.probing = true;
            self.emit(Output::Probe);
        }
    }

    pub(super) fn agent_changed(&mut self, agent: Agent, now: Now) {
        if !agent.model.is_empty() {
            self.orders.forget_model();
        }
        if self.facts.agent.as_ref().is_none_or(|old| old.model != agent.model) {
            self.upkeep.context().forget_window();
        }
        let is_stopped = agent.stopped;
        self.facts.agent = Some(agent);
        if is_stopped {
            self.halt(now);
        } else if matches!(self.phase, Phase::Stopped) {
            self.first_probe(now);
        }
    }

    /// Ends claude first, because the session is lost.
    pub(super) fn fenced(&mut self, why: &str, _now: Now) {
        let why = format!("the session is lost: {why}");
        self.orders.forget_cancels();
        if self.hold_for_answer(&why) {
            return;
        }
        self.note(why);
        if matches!(self.phase, Phase::Running(_)) {
            self.emit(Output::Signal(Signal::Kill));
        }
        if matches!(self.phase, Phase::Running(_) | Phase::Discarding(_)) {
            self.phase = Phase::Discarding(After::Attach);
        } else {
            self.attach_again();
        }
    }

    pub(super) fn attach_again(&mut self) {
        if self.is_leaving() {
            self.end_program();
        } else {
            self.phase = Phase::Detached;
            self.emit(Output::Attach);
        }
    }

    /// Discards the turn, which the broker took away, but keeps the session.
    fn lose_turn(&mut self, now: Now) {
        self.note("the turn is no longer ours");
        if matches!(self.phase, Phase::Running(_)) {
            self.emit(Output::Signal(Signal::Kill));
            self.phase = Phase::Discarding(After::Rest);
        } else {
            self.await_turn(now);
        }
    }

    pub(super) fn turn_gone(&mut self, turn_id: u64, now: Now) {
        if self.running_turn_id() == Some(turn_id) {
            self.lose_turn(now);
        }
    }

    pub(super) fn begun(&mut self, begun: Arc<Begun>, now: Now) {
        let turn_id = begun.turn_id;
        if !matches!(self.phase, Phase::Beginning | Phase::Leaving) {
            return;
        }
        self.on_demand.close();
        let job = Job { turn_id, trace: begun.trace, trigger: Trigger::Mail(Arc::clone(&begun)) };
        self.highest_turn_id = self.highest_turn_id.max(turn_id);
        self.forget_status();
        self.phase = Phase::Probing(job.clone());
        // The operator gave them before the turn began, so they apply to it, even if the stream
        // delivers them later.
        for command in &begun.commands {
            self.command(command.clone(), now);
        }
        if matches!(self.phase, Phase::Probing(_)) {
            self.accept(job, now);
        }
    }

    pub(super) fn opened(&mut self, Opened { turn_id, trace }: Opened, now: Now) {
        let Phase::Opening(kind) = self.phase else { return };
        self.on_demand.close();
        let trigger = match kind {
            Kind::Checkpoint => Trigger::Checkpoint,
            Kind::Compact => Trigger::Compact,
            Kind::Mail | Kind::Continue => Trigger::Continue,
        };
        self.accept(Job { turn_id, trace, trigger }, now);
    }

    pub(super) fn not_opened(&mut self, now: Now) {
        if !matches!(self.phase, Phase::Opening(_)) {
            return;
        }
        // Mail may have started a turn in between, which must first be run or ended.
        if self.is_leaving() {
            self.leave_within(LEAVE_PATIENCE, now);
        } else {
            self.begin_first = true;
            self.await_turn(now);
        }
    }

    /// Processes an open turn: ends it at once if it must not run, probes the CLI if that is in
    /// doubt, else starts claude.
    fn accept(&mut self, job: Job, now: Now) {
        self.highest_turn_id = self.highest_turn_id.max(job.turn_id);
        self.forget_status();
        self.parked = None;
        if self.is_leaving() {
            self.end_unrun(&job, stopped(&StopCause::Drained), now);
        } else if self.orders.cancels(job.turn_id) {
            self.end_unrun(&job, stopped(&StopCause::Cancelled), now);
        } else if self.login.is_open() {
            // The end of the dialogue probes the CLI.
            self.phase = Phase::Probing(job);
        } else if self.cli == Cli::Ready && !self.probing {
            self.start(job, now);
        } else {
            self.phase = Phase::Probing(job);
            self.probe();
        }
    }

    /// Ends a turn for which no claude was started.
    pub(super) fn end_unrun(&mut self, job: &Job, verdict: Verdict, now: Now) {
        let Verdict { outcome, error, .. } = verdict;
        let ending =
            Ending { turn_id: job.turn_id, error, model: self.next_model(), ..Ending::default() };
        self.end(ending, job.trigger.kind(), outcome, now);
    }

    pub(super) fn end(&mut self, ending: Ending, kind: Kind, outcome: Outcome, now: Now) {
        self.login.turn_ends();
        if outcome == Outcome::AuthFailed {
            // The failed claude is dead now, so only a login changes the files.
            self.emit(Output::WatchLogin);
        }
        self.phase =
            Phase::Ending { turn_id: ending.turn_id, kind, outcome, error: ending.error.clone() };
        if self.is_leaving() {
            self.leave_by = Some(now.boot.after(LEAVE_PATIENCE));
        }
        self.emit(Output::End(Box::new(Ending { outcome: Some(outcome), ..ending })));
    }

    pub(super) fn ended(&mut self, answer: EndTurnAnswer, now: Now) {
        let Phase::Ending { turn_id, kind, outcome, error } = &self.phase else { return };
        let (turn_id, kind, outcome, error) = (*turn_id, *kind, *outcome, error.clone());
        self.recoveries = 0;
        self.leave_by = None;
        self.close_cancels(turn_id, outcome);
        let park = answer.park.clone();
        self.parked = park
            .filter(|park| !park::ends_by_login(park.cause) || !self.login.is_made())
            .map(|park| Parked::new(park, now));
        if outcome != Outcome::AuthFailed && self.waits_for_login() {
            // A compaction by order ran in the meantime, and its claude wrote to the same files as
            // a login.
            self.emit(Output::WatchLogin);
        }
        self.after_turn(kind, outcome, &error, &answer, now);
    }

    /// Begins a new session after an unexpected refusal, later each time.
    pub(super) fn refused(&mut self, why: &str, now: Now) {
        let why = format!("the broker refused: {why}");
        if self.hold_for_answer(&why) {
            return;
        }
        self.note(why);
        if self.is_leaving() {
            self.end_program();
            return;
        }
        let rest =
            RECOVERY_BASE.saturating_mul(1 << self.recoveries.min(6)).min(Duration::from_secs(60));
        self.recoveries = self.recoveries.saturating_add(1);
        self.phase = Phase::Recovering(now.boot.after(rest));
    }

    /// Ends the turn that is open without running here, or the program. The harness begins one
    /// turn at a time, so a second one is not its own: the broker ends it with the session.
    pub(super) fn left(&mut self, open_turns: &[u64], now: Now) {
        if !matches!(self.phase, Phase::Leaving) {
            return;
        }
        let Some((&turn_id, others)) = open_turns.split_first() else {
            return self.end_program();
        };
        if !others.is_empty() {
            self.note(format!("turns {others:?} are open too, and were not begun here"));
        }
        let Verdict { outcome, error, .. } = stopped(&StopCause::Drained);
        self.end(Ending { turn_id, error, ..Ending::default() }, Kind::Mail, outcome, now);
    }
}
