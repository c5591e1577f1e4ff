//! Approvals: questions to the operator whose answer `approve` is the change itself.
//!
//! Invariants: an effect is applied in the transaction that answers its question, or not at all.
//! What is applied is what the digest of the answer stands for: the changes are computed again from
//! the rows of that transaction. An agent asks for changes of itself and of its children alone, and
//! for actions that the configuration lets it ask for.

pub(crate) mod action;
mod agent;
mod create;
mod policy;
mod retire;
mod rights;
mod schedule;
mod texts;

use std::borrow::Borrow as _;
use std::sync::Arc;

use hive_core::action::{Actions, GRANT_PREFIX};
use hive_core::agent::{CREATE_AGENT, OWN_SCHEDULES};
use hive_core::effect::{ActionRun, Change, Effect};
use hive_core::id::QuestionId;
use hive_core::limits::Limits;
use hive_core::name::AgentName;
use hive_core::question::{Question, State};
use hive_core::time::WallTime;

use super::error::{AgentError, QuestionError};
use super::mail::question::{AskedEffect, Effects, Preview, Reply};
use super::operator::etag::Etags;
use super::{Engine, Refusal, actor};
use crate::files::Shortage;
use crate::store::action_run::{self, ActionRunRow};
use crate::store::agent::{AgentRow, Agents};
use crate::store::question::{self as questions, QuestionRow};
use crate::store::{AgentKey, CommandError as _, Tx, agent as agents};

/// What an effect would change now.
#[derive(Clone, Debug)]
struct Plan {
    /// The row that it changes; `None` for a new agent.
    pub(crate) key: Option<AgentKey>,
    /// The changed values.
    pub(crate) changes: Vec<Change>,
    /// Whether it only narrows what the operator has approved before, and so needs no approval.
    pub(crate) narrows: bool,
}

/// Who approved an effect.
#[derive(Clone, Copy, Debug)]
struct Approved<'a> {
    /// The question.
    pub(crate) id: QuestionId,
    /// The asker.
    pub(crate) asker: &'a AgentRow,
    /// The operator, or the asker itself by a grant.
    pub(crate) who: &'a str,
    /// The files that a new agent's socket lacks.
    pub(crate) short: Option<Shortage>,
}

impl Approved<'_> {
    /// Returns who made the change, for the log.
    fn detail(&self) -> String {
        format!("for {}, question {}", self.asker.name, self.id)
    }
}

/// Computes and applies effects.
#[derive(Clone, Debug)]
pub(crate) struct Approvals {
    limits: Arc<Limits>,
    log_id: Arc<str>,
    actions: Arc<Actions>,
    /// The time by which due times of schedules are in the past.
    now: WallTime,
}

impl Engine {
    pub(crate) fn approvals(&self) -> Approvals {
        Approvals {
            limits: Arc::clone(&self.limits),
            log_id: Arc::clone(&self.log_id),
            actions: Arc::clone(&self.actions),
            now: self.clock.now().wall,
        }
    }
}

impl Approvals {
    /// Returns what an effect would change now, or why it is not possible. The one map from an
    /// effect to its changes; [`Self::apply`] is the one to its function.
    fn plan<A: Agents>(
        &self,
        conn: &A,
        asker: &AgentRow,
        effect: &Effect,
    ) -> Result<Plan, Refusal> {
        let limits = &self.limits;
        match effect {
            Effect::CreateAgent { name, role, model, policy } => create::plan(
                conn,
                limits,
                asker,
                &create::wanted(asker, name, role, model, policy)?,
            ),
            Effect::RetireAgent { name } => retire::plan(conn, asker, name),
            Effect::SetAgent { name, role, model } => {
                agent::plan(conn, asker, name, role.as_deref(), model.as_deref())
            }
            Effect::SetPolicy { name, policy, parts } => {
                policy::plan(conn, limits, asker, name, policy, parts)
            }
            Effect::RunAction { action, args, preview } => {
                action::plan(&self.actions, asker, action, args, preview.as_deref())
            }
            Effect::CreateSchedule { terms } => {
                schedule::plan_create(conn, limits, asker, terms, self.now)
            }
            Effect::ChangeSchedule { id, edit } => {
                schedule::plan_change(conn, limits, asker, *id, edit, self.now)
            }
        }
    }

    /// Makes the change; returns what it has made that has a number of its own.
    fn apply(
        &self,
        tx: &Tx<'_>,
        approved: Approved<'_>,
        effect: &Effect,
    ) -> Result<Option<Change>, Refusal> {
        match effect {
            Effect::CreateSchedule { terms } => {
                let id = schedule::create(tx, approved, terms)?;
                return Ok(Some(change("schedule.id", "", &id.to_string(), String::new())));
            }
            Effect::ChangeSchedule { id, edit } => {
                schedule::apply_change(tx, &self.limits, approved, *id, edit)
            }
            Effect::CreateAgent { name, role, model, policy } => {
                let wanted = create::wanted(approved.asker, name, role, model, policy)?;
                create::apply(tx, approved, &wanted)
            }
            Effect::RetireAgent { name } => retire::apply(tx, &self.limits, name),
            Effect::SetAgent { name, role, model } => {
                agent::apply(tx, approved, name, role.as_deref(), model.as_deref())
            }
            Effect::SetPolicy { name, policy, parts } => {
                policy::apply(tx, approved, name, policy, parts)
            }
            Effect::RunAction { .. } => action::apply(tx, approved.id),
        }?;
        Ok(None)
    }

    fn digest(&self, id: QuestionId, effect: &Effect, plan: &Plan) -> String {
        let Plan { key, changes, narrows: _ } = plan;
        Etags::new(&self.log_id).of_values(&(
            "diff",
            id.get(),
            effect,
            key.map(|key| key.0),
            changes,
        ))
    }
}

impl Effects for Approvals {
    fn shown<A: Agents>(&self, conn: &A, row: QuestionRow) -> Result<Question, Refusal> {
        let QuestionRow { mut question, asker, target: _ } = row;
        let Some(approval) = question.approval.as_mut() else { return Ok(question) };
        if question.state != State::Open {
            if matches!(approval.effect, Effect::RunAction { .. }) {
                let row = action_run::get(conn, question.id)?;
                approval.run = row.map(|ActionRunRow { question: _, state, runs, detail }| {
                    ActionRun { state, runs, detail }
                });
            }
            return Ok(question);
        }
        let asker = agents::by_key(conn, asker)?;
        match self.plan(conn, asker.borrow(), &approval.effect) {
            Ok(plan) => {
                approval.diff_digest = self.digest(question.id, &approval.effect, &plan);
                approval.changes = plan.changes;
            }
            Err(refusal) if refusal.storage().is_some() => return Err(refusal),
            Err(refusal) => approval.problem = refusal.to_string(),
        }
        Ok(question)
    }

    fn preview(
        &self,
        tx: &Tx<'_>,
        asker: &AgentRow,
        effect: &Effect,
    ) -> Result<Option<Preview>, Refusal> {
        let Effect::RunAction { action, args, preview: _ } = effect else { return Ok(None) };
        let plan = self.plan(tx, asker, effect)?;
        // A preview is for the one that decides, and a grant has decided.
        if granted(asker, effect, &plan) {
            return Ok(None);
        }
        action::preview(&self.actions, asker, action, args)
    }

    fn asked(
        &self,
        tx: &Tx<'_>,
        asker: &AgentRow,
        id: QuestionId,
        effect: &Effect,
        why: &str,
        deadline: Option<WallTime>,
    ) -> Result<AskedEffect, Refusal> {
        let plan = self.plan(tx, asker, effect)?;
        if plan.changes.is_empty() {
            let problem = format!("`{}` is as you want it already", effect.subject());
            return Err(Refusal::Field { field: "effect", problem });
        }
        let is_granted = granted(asker, effect, &plan);
        // The grant, or the configuration, may have changed since it was decided not to run it.
        let has_preview = !matches!(effect, Effect::RunAction { preview: None, .. });
        if !is_granted && !has_preview && self.preview(tx, asker, effect)?.is_some() {
            let problem = "its preview has not run yet; ask again".to_owned();
            return Err(Refusal::Field { field: "effect", problem });
        }
        let body = texts::asked(id, &asker.name, effect, &plan.changes, why, deadline);
        let granted = is_granted.then_some(plan.changes);
        Ok(AskedEffect { body, granted })
    }

    fn grant(
        &self,
        tx: &Tx<'_>,
        asker: &AgentRow,
        id: QuestionId,
        effect: &Effect,
        short: Option<Shortage>,
    ) -> Result<Option<Change>, Refusal> {
        self.apply(tx, Approved { id, asker, who: &asker.name, short }, effect)
    }

    fn approve(
        &self,
        tx: &Tx<'_>,
        row: &QuestionRow,
        effect: &Effect,
        reply: &Reply,
        who: &str,
    ) -> Result<(), Refusal> {
        let id = row.question.id;
        let asker = agents::by_key(tx, row.asker)?;
        let plan = self.plan(tx, &asker, effect)?;
        let given = &reply.diff_digest;
        if given.is_empty() {
            return Err(Refusal::Field {
                field: "diff_digest",
                problem: format!(
                    "approving needs the digest of the changes that were shown; read question {id}, and send its `diff_digest`"
                ),
            });
        }
        if *given != self.digest(id, effect, &plan) && !hive_fault::planted!(DigestUnchecked) {
            if hive_fault::planted!(ApprovedUnapplied) {
                return Ok(());
            }
            return Err(QuestionError::DiffChanged { id }.into());
        }
        let approved = Approved { id, asker: &asker, who, short: reply.short };
        let mut changes = plan.changes;
        changes.extend(self.apply(tx, approved, effect)?);
        Ok(questions::set_changes(tx, id, &changes)?)
    }
}

/// Returns whether an effect needs no approval: it only narrows what was approved, or the asker has
/// a grant for it, and nothing in it exceeds what the asker has.
fn granted(asker: &AgentRow, effect: &Effect, plan: &Plan) -> bool {
    if plan.narrows {
        return true;
    }
    let grant = match effect {
        Effect::CreateAgent { .. } => CREATE_AGENT,
        Effect::RunAction { action, .. } => &format!("{GRANT_PREFIX}{action}"),
        Effect::CreateSchedule { .. } | Effect::ChangeSchedule { .. } => OWN_SCHEDULES,
        Effect::RetireAgent { .. } | Effect::SetAgent { .. } | Effect::SetPolicy { .. } => {
            return false;
        }
    };
    asker.policy.has_grant(grant) && plan.changes.iter().all(|change| change.exceeds.is_empty())
}

/// Returns the active agent of this name, if it is a child of the asker.
fn child<A: Agents>(conn: &A, asker: &AgentRow, name: &AgentName) -> Result<A::Row, Refusal> {
    let row = actor::active(conn, name.as_str())?;
    if row.borrow().parent == Some(asker.key) { Ok(row) } else { Err(not_the_askers(asker, name)) }
}

/// Returns the active agent of this name, if it is the asker or a child of it.
fn asker_or_child<A: Agents>(
    conn: &A,
    asker: &AgentRow,
    name: &AgentName,
) -> Result<A::Row, Refusal> {
    if asker.name == name.as_str() {
        return actor::active(conn, name.as_str());
    }
    child(conn, asker, name)
}

fn not_the_askers(asker: &AgentRow, name: &AgentName) -> Refusal {
    AgentError::NotTheAskers { agent: name.to_string(), asker: asker.name.clone() }.into()
}

/// Returns a changed value.
fn change(field: &str, before: &str, after: &str, exceeds: String) -> Change {
    Change { field: field.to_owned(), before: before.to_owned(), after: after.to_owned(), exceeds }
}
