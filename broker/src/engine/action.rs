//! Actions: the runs of the commands that the operator approved, one at a time.
//!
//! ```text
//!   approval ──► QUEUED ──► RUNNING ──► DONE or FAILED, with a notice to the asker
//!                              ╰── the broker ends itself: run again, at most 3 times
//! ```
//!
//! The engine decides what runs; it starts no program. Invariants: a run is counted before it
//! begins, so a broker that an action ends cannot run it without end. What runs is what the
//! configuration and the arguments say at that time, and only if the asker may still ask for it.

use std::borrow::Borrow as _;
use std::sync::Arc;
use std::time::Duration;

use hive_core::action::{Action, Actions};
use hive_core::agent::APPROVALS;
use hive_core::caller::Caller;
use hive_core::effect::{Effect, RunState};
use hive_core::event::Facts;
use hive_core::id::QuestionId;
use hive_core::limits::{Limits, OUTPUT_TAIL_BYTES_MAX};
use hive_core::message::SystemKind;

use super::approval::action as approved;
use super::mail::notice::{self, Notice};
use super::mail::text::{cut_start, printable, quoted};
use super::{Engine, Refusal, actor};
use crate::store::action_run;
use crate::store::agent::AgentRow;
use crate::store::event::{Fact, log};
use crate::store::{Tx, agent, question};

/// Runs of one action, in which the broker ended itself, after which it is not run again.
const RUNS_MAX: u32 = 3;

/// A run to carry out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// The approval.
    pub question: QuestionId,
    /// The name of the action.
    pub action: String,
    /// The name of the asker.
    pub agent: String,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The time limit.
    pub timeout: Duration,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Whether it ended well.
    pub is_well: bool,
    /// How it ended, on one line.
    pub how: String,
    /// The end of its output.
    pub output: String,
}

impl Ended {
    fn failed(how: impl Into<String>) -> Self {
        Self { is_well: false, how: how.into(), output: String::new() }
    }
}

impl Engine {
    /// Returns the actions that an agent may ask for, by name.
    pub async fn actions_of(&self, caller: Caller) -> Result<Actions, Refusal> {
        let (actions, by) = (Arc::clone(&self.actions), caller.clone());
        let listed = self.store.read(move |conn, _| {
            let me = actor::row(conn, &caller)?;
            let me: &AgentRow = me.borrow();
            actor::check_group(&caller, me, APPROVALS)?;
            let of_caller = |(_, action): &(&String, &Action)| {
                action.agents.iter().any(|agent| agent.as_str() == me.name)
            };
            let own = actions.iter().filter(of_caller);
            Ok(own.map(|(name, action)| (name.clone(), action.clone())).collect())
        });
        let listed = listed.await;
        self.noting(&by, "get actions", listed).await
    }

    /// Counts the next run and returns it; ends those that must not run. `None` if nothing waits.
    pub async fn next_action(&self) -> Result<Option<Run>, Refusal> {
        // Mostly there is none, and a read keeps nothing waiting.
        if self.store.read(|conn, _| Ok::<_, Refusal>(action_run::next(conn)?)).await?.is_none() {
            return Ok(None);
        }
        let (limits, actions) = (Arc::clone(&self.limits), Arc::clone(&self.actions));
        self.store
            .write(move |tx| {
                while let Some(row) = action_run::next(tx)? {
                    let (asker, effect) = asked(tx, row.question)?;
                    let refused = if row.runs >= RUNS_MAX {
                        Some(format!("the broker ended during each of {RUNS_MAX} runs"))
                    } else {
                        None
                    };
                    let run = refused.map_or_else(|| command(&actions, &asker, &effect), Err);
                    match run {
                        Ok((argv, timeout)) => {
                            action_run::begin(tx, row.question)?;
                            let action = effect.subject().into_owned();
                            let detail = format!("{action}, run {}", row.runs + 1);
                            let fact = Fact::about(Facts::ActionBegun, asker.key);
                            log(tx, fact.question(row.question).detail(&detail));
                            let (question, agent) = (row.question, asker.name.clone());
                            return Ok(Some(Run { question, action, agent, argv, timeout }));
                        }
                        Err(why) => end(tx, &limits, row.question, &Ended::failed(why))?,
                    }
                }
                Ok(None)
            })
            .await
    }

    /// Stores how a run ended, and notifies the asker.
    pub async fn end_action(&self, question: QuestionId, ended: Ended) -> Result<(), Refusal> {
        let limits = Arc::clone(&self.limits);
        self.store.write(move |tx| end(tx, &limits, question, &ended)).await
    }
}

/// Returns the asker of an approval, and what was approved.
fn asked(tx: &Tx<'_>, id: QuestionId) -> Result<(Arc<AgentRow>, Effect), Refusal> {
    let row = question::row(tx, id)?.ok_or(super::error::QuestionError::NotFound { id })?;
    let asker = agent::by_key(tx, row.asker)?;
    let approval = row.question.approval.ok_or(super::error::QuestionError::NotFound { id })?;
    Ok((asker, approval.effect))
}

/// Returns the command of an effect and its time limit, or why it must not run.
fn command(
    actions: &Actions,
    asker: &AgentRow,
    effect: &Effect,
) -> Result<(Vec<String>, Duration), String> {
    let Effect::RunAction { action, args, preview: _ } = effect else {
        return Err("it is no action".to_owned());
    };
    let (action, argv) = approved::resolve(actions, asker, action, args)?;
    Ok((argv, action.timeout))
}

/// Ends an action, once.
fn end(tx: &Tx<'_>, limits: &Limits, question: QuestionId, ended: &Ended) -> Result<(), Refusal> {
    let state = if ended.is_well { RunState::Done } else { RunState::Failed };
    let how = printable(&ended.how).replace(['\n', '\t'], " ");
    if !action_run::end(tx, question, state, &how)? {
        return Ok(());
    }
    let (asker, effect) = asked(tx, question)?;
    let name = effect.subject();
    let fact = Fact::about(Facts::ActionEnded, asker.key).question(question);
    log(tx, fact.detail(&format!("{name}: {how}")));
    if asker.retired {
        return Ok(());
    }
    let mut body =
        format!("The action {name} that you asked for (question {question}) has ended: {how}.");
    let mut output = printable(&ended.output);
    cut_start(&mut output, OUTPUT_TAIL_BYTES_MAX);
    if !output.trim().is_empty() {
        body.push_str(&format!(" The end of its output:\n\n{}", quoted(&output)));
    }
    let notice = Notice::about(&asker.name, asker.key, SystemKind::ActionEnded, &body);
    notice::send(tx, limits, notice)?;
    Ok(())
}

/// Ends what a restored backup had open: it may have run since the backup was made.
pub(crate) fn restored(tx: &Tx<'_>, limits: &Limits) -> Result<(), Refusal> {
    let why = "a backup has replaced the database, so it is not known whether it ran; ask again";
    for row in action_run::open(tx)? {
        end(tx, limits, row.question, &Ended::failed(why))?;
    }
    Ok(())
}
