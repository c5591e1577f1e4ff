//! Reading logs: of the harnesses below an agent, and of the host's journal. The launcher reads
//! them, because the broker may be allowed to read neither.
//!
//! Invariants: an agent reads what it may start and stop, never its own log, and of the journal
//! only units that the operator named; its rights count when it asks and when it is answered. A
//! call is an event, and one message of the caller's minute.

use std::sync::Arc;
use std::time::Duration;

use hive_core::agent::{DIAGNOSTICS, READ_HOST_JOURNAL};
use hive_core::event::Facts;

use super::lines::{self, LINES_DEFAULT, LINES_MAX, Lines};
use super::wanted::check_below;
use crate::engine::actor::{self, Actor};
use crate::engine::error::HarnessError;
use crate::engine::mail::admission::Admission;
use crate::engine::mail::text::printable;
use crate::engine::{Engine, Refusal, permit};
use crate::launches::asked::{Answer, Asked, NoPlace, Source};
use crate::store::AgentKey;
use crate::store::event::{Fact, log};

/// Maximum time for the launcher to answer.
const ANSWER_MAX: Duration = Duration::from_secs(15);
/// Characters of a problem of the launcher that are passed on.
const PROBLEM_CHARS_MAX: usize = 300;

/// Returns the name of the call, for the log.
fn call(source: &Source) -> &'static str {
    match source {
        Source::Harness(_) => "get logs",
        Source::Journal { .. } => "get host journal",
    }
}

/// Checks that the caller may read a source; returns the agent that it is about.
fn check(
    admission: Admission<'_, '_>,
    source: &Source,
    units: &[String],
) -> Result<AgentKey, Refusal> {
    let (tx, me) = (admission.tx, admission.me);
    admission.turn(DIAGNOSTICS)?;
    match source {
        Source::Harness(name) => {
            let row = actor::active(tx, name.as_str())?;
            check_below(tx, me, &row)?;
            Ok(row.key)
        }
        Source::Journal { unit, .. } => {
            if !me.policy.has_capability(READ_HOST_JOURNAL) {
                return Err(Refusal::CapabilityMissing { capability: READ_HOST_JOURNAL });
            }
            if !units.contains(unit) {
                return Err(Refusal::Field { field: "unit", problem: not_named(units) });
            }
            Ok(me.key)
        }
    }
}

/// Returns the words of the event.
fn detail(source: &Source, lines: u32, who: &str) -> String {
    match source {
        Source::Harness(_) => format!("{lines} lines of its log, by {who}"),
        Source::Journal { unit, .. } => format!("{lines} lines of the journal of {unit}"),
    }
}

fn not_named(units: &[String]) -> String {
    if units.is_empty() {
        return "names a unit, and the operator has named none in `journal_units`".to_owned();
    }
    let names: Vec<String> = units.iter().map(|unit| format!("`{unit}`")).collect();
    format!("must be one of those that the operator named in `journal_units`: {}", names.join(", "))
}

impl Engine {
    /// Passes on the answer of the launcher.
    pub fn answer_logs(&self, id: u64, answer: Answer) {
        self.hints.launches.answer(id, answer);
    }

    /// Returns the last lines of a log; 0 lines are the default number of them.
    pub async fn read_logs(
        &self,
        actor: Actor,
        source: Source,
        lines: u32,
    ) -> Result<Lines, Refusal> {
        self.check_open()?;
        actor.check_agent()?;
        let lines = match lines {
            0 => LINES_DEFAULT,
            1..=LINES_MAX => lines,
            _ => {
                let problem = format!("must be at most {LINES_MAX}");
                return Err(Refusal::Field { field: "lines", problem });
            }
        };
        let asked = self.ask_launcher(&actor, &source, lines).await?;
        permit::release();
        let answer = tokio::select! {
            answer = tokio::time::timeout(ANSWER_MAX, asked.answer()) => answer,
            () = self.draining().cancelled() => return Err(Refusal::Draining),
        };
        // A right that was taken away in the meantime is no right to the answer.
        self.admitted(&actor, &source, |_, _| Ok(())).await?;
        let offline = |problem: &str| HarnessError::LauncherOffline { problem: problem.to_owned() };
        let answer = answer
            .map_err(|_| offline("it has not answered within 15 seconds"))?
            .ok_or_else(|| offline("it has ended before it answered"))?;
        if answer.problem.is_empty() {
            Ok(lines::last(&answer.text, lines, answer.truncated))
        } else {
            let problem: String =
                printable(&answer.problem).chars().take(PROBLEM_CHARS_MAX).collect();
            Err(offline(&problem.replace(['\n', '\t'], " ")).into())
        }
    }

    /// Passes the request on to the launcher, with its event.
    async fn ask_launcher(
        &self,
        actor: &Actor,
        source: &Source,
        lines: u32,
    ) -> Result<Asked, Refusal> {
        let (launches, wanted) = (Arc::clone(&self.hints.launches), source.clone());
        self.admitted(actor, source, move |admission, about| {
            let me = admission.me;
            let asked = launches.ask(me.key, wanted.clone(), lines).map_err(|no_place| {
                let problem = match no_place {
                    NoPlace::Offline => "none is attached; `hivectl up` is one",
                    NoPlace::Busy => "it has not answered earlier requests yet; ask again later",
                };
                HarnessError::LauncherOffline { problem: problem.to_owned() }
            })?;
            admission.take_rate()?;
            let detail = detail(&wanted, lines, &me.name);
            log(admission.tx, Fact::about(Facts::LogsRead, about).detail(&detail));
            Ok(asked)
        })
        .await
    }

    /// Does work if the actor may read the source.
    async fn admitted<T: Send + 'static>(
        &self,
        actor: &Actor,
        source: &Source,
        work: impl FnOnce(Admission<'_, '_>, AgentKey) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let (limits, units) = (self.caller_limits(), Arc::clone(&self.journal_units));
        let (asking, wanted) = (actor.clone(), source.clone());
        let done = self.store.write(move |tx| {
            let me = asking.row(tx)?;
            let admission = limits.admission(tx, &asking, &me);
            let about = check(admission, &wanted, &units)?;
            work(admission, about)
        });
        let done = done.await;
        self.noting(&actor.caller, call(source), done).await
    }
}
