//! What claude does: starting, events, its end.

use hive_core::time::{Now, WallTime};
use hive_core::turn::Outcome;
use hive_proto::v1::HarnessState;

use crate::claude::event::Event;
use crate::claude::fences::{Breach, Expected};
use crate::claude::outcome::{Evidence, Exit, StopCause, Verdict, classify};
use crate::claude::transcript::Transcript;
use crate::turn::job::Job;
use crate::turn::machine::Machine;
use crate::turn::output::{Ending, Launch, Output, Signal};
use crate::turn::phase::{After, Cli, Phase, Run, Stop};

impl Machine {
    pub(crate) fn launch(&mut self, job: Job, retry: bool, now: Now) {
        let tool_groups = self.tool_groups();
        let launch = Launch {
            turn_id: job.turn_id,
            model: self.next_model(),
            continues: self.new_session.is_empty(),
            identity: self.identity(),
            occasion: job.occasion.clone(),
            tool_groups,
            retry,
        };
        self.report(HarnessState::Thinking, None);
        self.phase = Phase::Running(Box::new(Run {
            retry,
            model: launch.model.clone(),
            fresh: !launch.continues,
            expected: Expected::of(&self.defaults.mcp_server_name, &launch.tool_groups),
            transcript: Transcript::default(),
            stop: None,
            idle_at: self.spans.turn_idle.map(|span| now.boot.after(span)),
            overlong_at: self.spans.turn_max.map(|span| now.boot.after(span)),
            job,
        }));
        self.put(Output::Start(Box::new(launch)));
    }

    pub(crate) fn event(&mut self, event: &Event, now: Now) {
        let Phase::Running(run) = &mut self.phase else { return };
        // A tool's heartbeat says that it runs, not that it gets on.
        if !matches!(event, Event::ToolHeartbeat) {
            run.idle_at = self.spans.turn_idle.map(|span| now.boot.after(span));
        }
        let unannounced = matches!(event, Event::Assistant(answer) if answer.error.is_none()) && run.transcript.init.is_none();
        run.transcript.absorb(event);
        let breach =
            if let Event::Init(init) = event { run.expected.check(init).err() } else { unannounced.then_some(Breach::NoInit) };
        let begun_anew = matches!(event, Event::Init(_)) && std::mem::take(&mut run.fresh);
        if begun_anew {
            // The conversation is new from here on, whatever becomes of the turn.
            for command_id in std::mem::take(&mut self.new_session) {
                self.close(command_id, String::new());
            }
        }
        if let Some(breach) = breach {
            self.note(format!("stopped: {breach}"));
            self.stop(StopCause::Unfenced(breach), Signal::Kill, now);
        }
    }

    pub(crate) fn stderr(&mut self, text: &str) {
        if let Phase::Running(run) = &mut self.phase {
            run.transcript.absorb_stderr(text);
        }
    }

    /// Begins to end claude, or goes on with a stronger signal where that has begun. The first cause stays, but for broken fences.
    pub(crate) fn stop(&mut self, cause: StopCause, signal: Signal, now: Now) {
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
        self.put(Output::Signal(signal));
    }

    pub(crate) fn probed(&mut self, found: Result<(), String>, now: Now) {
        self.probing = false;
        let failures = match &self.cli {
            Cli::Broken { failures, .. } => *failures,
            Cli::Unknown | Cli::Ready => 0,
        };
        self.cli = match &found {
            Ok(()) => Cli::Ready,
            Err(error) => {
                let rest = hive_core::limits::Limits::default().park_backoff(failures.saturating_add(1));
                Cli::Broken { error: error.clone(), next_at: now.boot.after(rest), failures: failures.saturating_add(1) }
            }
        };
        if matches!(self.phase, Phase::Starting) {
            self.rest(now);
        } else if matches!(self.phase, Phase::Beginning) {
            self.report_resting(now);
        } else if let Phase::Probing(job) = &self.phase {
            let job = job.clone();
            match found {
                Ok(()) => self.launch(job, false, now),
                Err(error) => self.end_unrun(&job, Outcome::Unavailable, error, now),
            }
        }
    }

    pub(crate) fn not_started(&mut self, why: String, now: Now) {
        if let Some(run) = self.claude_is_gone(now) {
            // Look again before the next turn.
            self.cli = Cli::Unknown;
            let outcome = match run.stop.map(|stop| stop.cause) {
                Some(StopCause::Cancelled) => Outcome::Cancelled,
                Some(StopCause::Drained) => Outcome::Drained,
                Some(StopCause::Idle { .. } | StopCause::Overlong(_) | StopCause::Unfenced(_)) | None => Outcome::Unavailable,
            };
            self.end_unrun(&run.job, outcome, why, now);
        }
    }

    pub(crate) fn exited(&mut self, exit: Exit, now: Now) {
        if let Some(run) = self.claude_is_gone(now) {
            self.judge(run, exit, now);
        }
    }

    /// The run that is over, where its turn is still ours.
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
            After::Attach => self.attach_anew(),
            After::Rest => self.rest(now),
        }
    }

    fn judge(&mut self, run: Run, exit: Exit, now: Now) {
        let retry_fallback = self.spans.rate_limit_sleep.map(|span| now.wall.after(span));
        let stop = run.stop.as_ref().map(|stop| &stop.cause);
        let verdict = classify(&Evidence { exit, transcript: &run.transcript, stop, retry_fallback });
        if verdict.outcome == Outcome::AuthFailed && !run.retry && !self.is_leaving() {
            // Once, at once: a token that was refreshed a moment ago works now.
            self.note("the login failed, trying once more");
            self.launch(run.job, true, now);
            return;
        }
        let usage = run.transcript.usage(self.cost_before);
        if let Some(result) = &run.transcript.result {
            self.cost_before = result.cost_of_session.or(self.cost_before);
        }
        let Verdict { outcome, error, retry_time, too_long: _ } = verdict;
        let ending = Ending {
            turn_id: run.job.turn_id,
            outcome: None,
            error,
            output_tail: if outcome == Outcome::Ok { String::new() } else { run.transcript.tail() },
            returned_tool_use_ids: run.transcript.returned_tool_use_ids().to_vec(),
            usage,
            model: run.transcript.init.as_ref().map(|init| init.model.clone()).filter(|m| !m.is_empty()).unwrap_or(run.model),
            context_tokens: run.transcript.context_tokens,
            context_window_tokens: run.transcript.result.as_ref().and_then(|result| result.context_window).unwrap_or(0),
            retry_time: retry_time.map(|time| spread(time, run.job.turn_id)),
        };
        self.end(ending, outcome, now);
    }
}

/// A little later, differently for each turn, so that agents of one account do not come back at the same moment.
fn spread(time: WallTime, turn_id: u64) -> WallTime {
    WallTime(time.0.saturating_add(i64::try_from(turn_id.wrapping_mul(7919) % 10_000).unwrap_or(0)))
}
