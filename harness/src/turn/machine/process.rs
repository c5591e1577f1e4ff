//! The inputs of claude: its start, its events, its end.

use hive_core::agent::HarnessState;
use hive_core::time::Now;
use hive_core::turn::Outcome;

use crate::claude::event::{Event, Init};
use crate::claude::fences::{Breach, Expected, missing_extras};
use crate::claude::outcome::{Exit, StopCause, Verdict};
use crate::claude::transcript::Transcript;
use crate::turn::input::Found;
use crate::turn::job::Step;
use crate::turn::machine::Machine;
use crate::turn::output::{Ending, Launch, Output, Signal};
use crate::turn::phase::{After, Cli, Phase, Run, Stop};
use crate::turn::plan::TurnPlan;

impl Machine {
    /// Starts claude for a step of a turn.
    pub(super) fn launch(&mut self, plan: TurnPlan, step: Step, now: Now) {
        // Notes and a summary concern the current conversation.
        let continues = step != Step::Work || !(self.orders.wants_new_session() || plan.resets);
        let launch = Launch {
            turn_id: plan.job.turn_id,
            model: self.next_model(),
            continues,
            identity: self.identity(),
            trigger: plan.job.trigger.clone(),
            trace: plan.job.trace,
            step,
            tool_groups: self.tool_groups(),
            retry: plan.login_retried,
            made_room: plan.made_room,
            resets: plan.resets && step == Step::Work,
        };
        self.report(
            if step == Step::Compact { HarnessState::Compacting } else { HarnessState::Thinking },
            None,
        );
        self.phase = Phase::Running(Box::new(Run {
            plan,
            step,
            model: launch.model.clone(),
            fresh: !continues,
            was_fresh: !continues,
            expected: Expected::for_agent(&self.defaults.mcp_server_name, &launch.tool_groups),
            transcript: Transcript::default(),
            stop: None,
            idle_at: self.spans.turn_idle.map(|span| now.boot.after(span)),
        }));
        self.emit(Output::Start(Box::new(launch)));
    }

    pub(super) fn event(&mut self, event: &Event, now: Now) {
        let Phase::Running(run) = &mut self.phase else { return };
        // A tool's heartbeat shows that it runs, not that it makes progress.
        if !matches!(event, Event::ToolHeartbeat) {
            run.idle_at = self.spans.turn_idle.map(|span| now.boot.after(span));
        }
        let unannounced = matches!(event, Event::Assistant(answer) if answer.error.is_none())
            && run.transcript.init.is_none();
        run.transcript.absorb(event);
        let breach = if let Event::Init(init) = event {
            run.expected.check(init).err()
        } else {
            unannounced.then_some(Breach::NoInit)
        };
        let is_replaced = matches!(event, Event::Init(_)) && std::mem::take(&mut run.fresh);
        if is_replaced {
            run.plan.resets = false;
            self.upkeep.context().replaced();
            // The conversation is new from here on, for any outcome of the turn.
            for command_id in self.orders.take_new_session() {
                self.close(command_id, String::new());
            }
        }
        if let (Event::Init(init), None) = (event, &breach) {
            self.report_broken_servers(init);
        }
        if let Some(breach) = breach {
            self.note(format!("stopped: {breach}"));
            self.stop(StopCause::Unfenced(breach), Signal::Kill, now);
        }
    }

    /// Reports own servers of the agent that do not work to its parent, once per server and state.
    /// The turn continues without them.
    fn report_broken_servers(&mut self, init: &Init) {
        for server in missing_extras(&self.defaults.extra_servers, init) {
            let (name, state) = &server;
            // A server that still starts may be ready in a moment.
            if state == "pending" || self.missing.contains(&server) {
                continue;
            }
            let text =
                format!("The MCP server `{name}` is {state}; turns go on without its tools.");
            self.emit(Output::Problem(format!("mcp:{name}"), text));
            self.missing.push(server);
        }
    }

    pub(super) fn stderr(&mut self, text: &str) {
        if let Phase::Running(run) = &mut self.phase {
            run.transcript.absorb_stderr(text);
        }
    }

    /// Begins to end claude, or sends the next stronger signal if that has begun. The first cause
    /// stays, except that broken fences replace it.
    pub(super) fn stop(&mut self, cause: StopCause, signal: Signal, now: Now) {
        let grace = self.spans.kill_grace;
        let Phase::Running(run) = &mut self.phase else { return };
        let next_at = (signal < Signal::Kill).then(|| now.boot.after(grace));
        match &mut run.stop {
            Some(stop) => {
                if matches!(cause, StopCause::Unfenced(_)) {
                    stop.cause = cause;
                }
                if signal <= stop.sent {
                    return;
                }
                (stop.sent, stop.next_at) = (signal, next_at);
            }
            None => run.stop = Some(Stop { cause, sent: signal, next_at }),
        }
        self.emit(Output::Signal(signal));
    }

    pub(super) fn probed(&mut self, found: Result<Found, String>, now: Now) {
        self.probing = false;
        let failures = match &self.cli {
            Cli::Broken { failures, .. } => *failures,
            Cli::Unknown | Cli::Ready => 0,
        };
        self.cli = match &found {
            Ok(_) => Cli::Ready,
            Err(error) => {
                let failures = failures.saturating_add(1);
                let pause = self.facts.park_backoff.after(failures);
                Cli::Broken { error: error.clone(), next_at: now.boot.after(pause), failures }
            }
        };
        for (subject, text) in found.iter().flat_map(|found| &found.problems) {
            self.emit(Output::Problem(subject.clone(), text.clone()));
        }
        if self.login.take_outdated_probe() {
            self.probe();
            return;
        }
        if self.login.is_open() && !matches!(self.phase, Phase::Starting) {
            // The end of the dialogue starts another probe.
            return;
        }
        let has_login = found.as_ref().map_or(true, |found| found.logged_in);
        if let Phase::Probing(job) = &self.phase {
            let job = job.clone();
            match found {
                Ok(_) if has_login => self.start(job, now),
                Ok(_) => {
                    let verdict = Verdict::new(Outcome::AuthFailed, "claude is not logged in");
                    self.end_unrun(&job, verdict, now);
                }
                Err(error) => {
                    self.end_unrun(&job, Verdict::new(Outcome::Unavailable, error), now);
                }
            }
            return;
        }
        if !has_login {
            self.without_login(now);
        } else if found.is_ok() && self.waits_for_login() {
            self.logged_in(now);
        }
        if matches!(self.phase, Phase::Starting) {
            self.await_turn(now);
        } else if matches!(self.phase, Phase::Beginning) {
            self.report_idle(now);
        }
    }

    pub(super) fn not_started(&mut self, why: String, now: Now) {
        if let Some(run) = self.claude_is_gone(now) {
            // The CLI is probed again before the next turn.
            self.cli = Cli::Unknown;
            let outcome = match run.stop.map(|stop| stop.cause) {
                Some(StopCause::Cancelled) => Outcome::Cancelled,
                Some(StopCause::Drained) => Outcome::Drained,
                Some(StopCause::Idle { .. } | StopCause::Overlong(_) | StopCause::Unfenced(_))
                | None => Outcome::Unavailable,
            };
            let kind = run.plan.job.trigger.kind();
            let ending = Ending { error: why, model: run.model, ..run.plan.ending() };
            self.end(ending, kind, outcome, now);
        }
    }

    pub(super) fn exited(&mut self, exit: Exit, now: Now) {
        if let Some(run) = self.claude_is_gone(now) {
            self.judge(run, exit, now);
        }
    }

    /// Returns the run that is over, if the session still has its turn.
    #[expect(clippy::wildcard_enum_match_arm, reason = "in every other phase no claude runs")]
    fn claude_is_gone(&mut self, now: Now) -> Option<Run> {
        match std::mem::replace(&mut self.phase, Phase::Detached) {
            Phase::Running(run) => return Some(*run),
            Phase::Discarding(after) => self.discarded(after, now),
            other => self.phase = other,
        }
        None
    }

    fn discarded(&mut self, after: After, now: Now) {
        match after {
            After::Attach => self.attach_again(),
            After::Rest => self.await_turn(now),
        }
    }
}
