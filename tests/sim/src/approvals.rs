//! Approvals: a question has one outcome, an effect is applied with the outcome "approved" and
//! never without it, once, and what it changed is what the operator that approved it had read.
//!
//! The log has the order of effects and outcomes: the event of an effect comes before that of its
//! outcome, with no other effect or outcome between them. The values that effects set are followed,
//! and compared with what each diff states as the value before it, and with the agents at the end.
//! Silent: about values that nothing has set since the agent was created. Invariant: it reads only
//! committed facts, and what clients were shown.

use std::collections::{BTreeMap, BTreeSet};

use hive_core::agent::{Agent, Policy, PolicyPart};
use hive_core::effect::{APPROVE, Approval, Effect};
use hive_core::event::{AgentChange, AgentChanged, Event, Facts, Kind};
use hive_core::question::{Question, State};
use hive_core::schedule::Schedule;
use hive_core::time::WallTime;
use hive_history::{self as history, Answer, History, Op, Reply};

use crate::seen;

/// The parts of policies that the simulation changes: each is a number.
pub(crate) const PARTS: [PolicyPart; 2] =
    [PolicyPart::SendsPerMinuteMax, PolicyPart::RemindersPendingMax];

/// What clients were shown and answered, in every branch of the history.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    /// The changes that a digest stands for, by question and digest.
    diffs: BTreeMap<(u64, String), Vec<String>>,
    /// The digests of answers, by their text.
    answers: BTreeMap<String, String>,
    problems: Vec<String>,
}

impl Shown {
    pub(crate) fn of(history: &History) -> Self {
        let mut shown = Self::default();
        for observation in &history.observations {
            if let history::Event::Invoked { op: Op::Answer { text, digest, .. }, .. } =
                &observation.event
            {
                shown.answers.insert(text.clone(), digest.clone());
            } else if let history::Event::Answered {
                answer: Answer::Ok(Reply::Question(seen)), ..
            } = &observation.event
                && let Some(approval) = seen.approval.as_deref()
            {
                shown.read(seen.id, approval);
            }
        }
        shown
    }

    fn read(&mut self, id: u64, approval: &history::ApprovalSeen) {
        let history::ApprovalSeen { changes, digest } = approval;
        // A closed question has none.
        if digest.is_empty() {
            return;
        }
        let known = self.diffs.entry((id, digest.clone())).or_insert_with(|| changes.clone());
        if known != changes {
            let what = format!(
                "Approvals: a digest of question {id} stands for {known:?} and for {changes:?}"
            );
            self.problems.push(what);
        }
    }
}

/// An effect in the log.
#[derive(Debug)]
struct Applied {
    /// Its question, or the agent that was retired: the log does not say why.
    cause: Cause,
    time: WallTime,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Cause {
    Question(u64),
    Retired(String),
}

/// A value of an agent, as the log has it up to here.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Value {
    Approved(String),
    ByOperator,
}

/// An agent at the end.
#[derive(Clone, Debug)]
pub(crate) struct AgentRow {
    name: String,
    role: String,
    policy: Policy,
    retired: bool,
}

impl From<Agent> for AgentRow {
    fn from(agent: Agent) -> Self {
        let Agent { name, role, policy, retired, .. } = agent;
        Self { name: name.to_string(), role, policy, retired }
    }
}

/// The agents and the schedules at the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows<'a> {
    pub(crate) agents: &'a [AgentRow],
    pub(crate) schedules: &'a [Schedule],
    /// Agents that an operator created or retired without an approval.
    pub(crate) by_hand: &'a BTreeSet<String>,
}

/// Follows the log.
#[derive(Debug)]
pub(crate) struct Approvals<'a> {
    questions: &'a [Question],
    rows: Rows<'a>,
    /// The outcomes so far.
    ended: BTreeMap<u64, Kind>,
    /// The effects since the last outcome.
    applied: Vec<Applied>,
    /// The values of agents, by agent and field.
    values: BTreeMap<(String, String), Value>,
    problems: Vec<String>,
}

impl<'a> Approvals<'a> {
    pub(crate) fn new(questions: &'a [Question], rows: Rows<'a>) -> Self {
        Self {
            questions,
            rows,
            ended: BTreeMap::new(),
            applied: Vec::new(),
            values: BTreeMap::new(),
            problems: Vec::new(),
        }
    }

    fn question(&self, id: u64) -> Option<&'a Question> {
        self.questions.iter().find(|question| question.id.get() == id)
    }

    pub(crate) fn follow(&mut self, event: &Event) {
        if let Some(cause) = applied(event) {
            self.applied.push(Applied { cause, time: event.time });
        }
        self.follow_agent(event);
        if let Some(question) = event.question_id
            && is_outcome(event.kind())
        {
            self.end(question.get(), event);
        }
    }

    /// Follows what changes an agent without an approval.
    fn follow_agent(&mut self, event: &Event) {
        let of_file = AgentChanged { change: AgentChange::File };
        if event.kind() == Kind::AgentCreated || event.facts == of_file.into() {
            self.values.retain(|(agent, _), _| *agent != event.agent);
        }
        if event.kind() == Kind::AgentChanged && question_of(event).is_none() {
            for part in PARTS.into_iter().filter(|part| event.detail.contains(part.name())) {
                let field = format!("{}.policy.{}", event.agent, part.name());
                self.values.insert((event.agent.clone(), field), Value::ByOperator);
            }
        }
    }

    /// Follows an outcome, which has the effects before it, or none.
    fn end(&mut self, id: u64, event: &Event) {
        let kind = event.kind();
        if let Some(first) = self.ended.insert(id, kind) {
            self.problems
                .push(format!("Approvals: question {id} ended as {first:?} and as {kind:?}"));
        }
        let question = self.question(id);
        let approval = question.and_then(|question| question.approval.as_deref());
        let is_approved = kind == Kind::QuestionAnswered && question.is_some_and(approves);
        // An operator may have retired the agent just before the outcome of another kind.
        let retires = approval.map(|approval| &approval.effect).filter(|_| is_approved);
        let is_own = |applied: &Applied| match &applied.cause {
            Cause::Question(question) => *question == id,
            Cause::Retired(agent) => {
                matches!(retires, Some(Effect::RetireAgent { name }) if name.as_str() == agent)
            }
        };
        let (own, others): (Vec<Applied>, Vec<Applied>) =
            std::mem::take(&mut self.applied).into_iter().partition(is_own);
        self.alone(&others);
        if let Some(late) = own.iter().find(|applied| applied.time != event.time) {
            let what = format!(
                "Approvals: question {id} ended at {:?}, and its effect is of {:?}",
                event.time, late.time
            );
            self.problems.push(what);
        }
        let Some(approval) = approval else { return };
        if own.len() != usize::from(is_approved) {
            let what = format!(
                "Approvals: question {id} ended as {kind:?}, approved: {is_approved}, and its effect was applied {} times: {:?}",
                own.len(),
                approval.effect
            );
            self.problems.push(what);
        }
        if is_approved {
            self.change(id, approval);
        }
    }

    /// Reports effects without an outcome.
    fn alone(&mut self, applied: &[Applied]) {
        for Applied { cause, .. } in applied {
            let problem = match cause {
                Cause::Question(id) => {
                    format!(
                        "Approvals: the effect of question {id} was applied without its outcome"
                    )
                }
                Cause::Retired(agent) if is_by_approval_only(self.rows, agent) => {
                    format!("Approvals: {agent} was retired without an approval")
                }
                Cause::Retired(_) => continue,
            };
            self.problems.push(problem);
        }
    }

    /// Follows the values that an effect sets.
    fn change(&mut self, id: u64, approval: &Approval) {
        for (agent, field, value) in values(&approval.effect) {
            let Some(change) = approval.changes.iter().find(|change| change.field == field) else {
                self.problems.push(format!(
                    "Approvals: question {id} set {field}, which its diff does not have: {:?}",
                    approval.changes
                ));
                continue;
            };
            let before = self.values.insert((agent, field.clone()), Value::Approved(value.clone()));
            let expected = match &before {
                Some(Value::Approved(before)) => before,
                Some(Value::ByOperator) | None => &change.before,
            };
            if (&change.before, &change.after) != (expected, &value) {
                self.problems.push(format!(
                    "Approvals: question {id} changed {field} from {expected:?} to {value:?}, and its diff is {change:?}"
                ));
            }
        }
    }

    /// Returns the problems found, with those of the rows at the end.
    pub(crate) fn finish(mut self, mut shown: Shown) -> Vec<String> {
        let left = std::mem::take(&mut self.applied);
        self.alone(&left);
        self.problems.append(&mut shown.problems);
        for question in self.questions {
            self.same_outcome(question);
            if let Some(approval) = question.approval.as_deref() {
                self.as_shown(question, approval, &shown);
                self.not_there(question, approval);
            }
        }
        self.values_at_the_end();
        self.problems
    }

    /// Checks that the row of a question has the outcome of the log.
    fn same_outcome(&mut self, question: &Question) {
        let (id, state) = (question.id.get(), question.state);
        let wanted = match state {
            State::Open => None,
            State::Answered => Some(Kind::QuestionAnswered),
            State::Expired => Some(Kind::QuestionExpired),
            State::Cancelled => Some(Kind::QuestionCancelled),
        };
        let ended = self.ended.get(&id).copied();
        if ended != wanted {
            self.problems
                .push(format!("Approvals: question {id} is {state:?}, and the log has {ended:?}"));
        }
        let asker = self.rows.agents.iter().find(|agent| agent.name == question.asker);
        if state == State::Open && asker.is_some_and(|agent| agent.retired) {
            self.problems.push(format!(
                "Approvals: question {id} is open, and {} is retired",
                question.asker
            ));
        }
    }

    /// Checks that what was applied is what the operator that approved it had read.
    fn as_shown(&mut self, question: &Question, approval: &Approval, shown: &Shown) {
        // A grant has no digest.
        if !approves(question) || question.closed_by.is_empty() {
            return;
        }
        let id = question.id.get();
        let text = question.answer.as_ref().map(|answer| answer.text.as_str()).unwrap_or_default();
        let digest = shown.answers.get(text).cloned().unwrap_or_default();
        let applied = seen::changes(&approval.changes);
        let diff = shown.diffs.get(&(id, digest));
        if diff != Some(&applied) {
            self.problems.push(format!(
                "Approvals: question {id} was approved by {text:?} for {diff:?}, and changed {applied:?}"
            ));
        }
    }

    /// Checks that an effect without an approval left nothing.
    fn not_there(&mut self, question: &Question, approval: &Approval) {
        if approves(question) {
            return;
        }
        let Rows { agents, schedules, by_hand } = self.rows;
        let is_there = match &approval.effect {
            Effect::CreateAgent { name, .. } => {
                !by_hand.contains(name.as_str())
                    && agents.iter().any(|agent| agent.name == name.as_str())
            }
            Effect::CreateSchedule { terms } => {
                schedules.iter().any(|schedule| schedule.terms.body == terms.body)
            }
            Effect::ChangeSchedule { id, edit } => schedules.iter().any(|schedule| {
                schedule.id == *id && edit.body.as_ref() == Some(&schedule.terms.body)
            }),
            Effect::SetAgent { .. } | Effect::SetPolicy { .. } => {
                let is_value = |(_, field, value): (String, String, String)| {
                    agents.iter().any(|agent| value_at(agent, &field).as_ref() == Some(&value))
                };
                values(&approval.effect).into_iter().any(is_value)
            }
            // The log has each retirement.
            Effect::RetireAgent { .. } | Effect::RunAction { .. } => false,
        };
        if is_there {
            self.problems.push(format!(
                "Approvals: question {} is {:?}, and its effect is there: {:?}",
                question.id, question.state, approval.effect
            ));
        }
    }

    /// Checks that the agents have the values that were approved last.
    fn values_at_the_end(&mut self) {
        for ((agent, field), value) in &self.values {
            let Value::Approved(value) = value else { continue };
            let row = self.rows.agents.iter().find(|row| row.name == *agent);
            let there = row.and_then(|row| value_at(row, field));
            if there.as_ref() != Some(value) {
                self.problems.push(format!(
                    "Approvals: {field} was approved to be {value:?}, and is {there:?}"
                ));
            }
        }
    }
}

/// Returns whether the answer of a question is the approval.
fn approves(question: &Question) -> bool {
    let chosen = question.answer.as_ref().is_some_and(|answer| answer.choices == [APPROVE]);
    question.state == State::Answered && chosen
}

fn is_outcome(kind: Kind) -> bool {
    matches!(kind, Kind::QuestionAnswered | Kind::QuestionExpired | Kind::QuestionCancelled)
}

/// Returns the question that the text of an event names.
fn question_of(event: &Event) -> Option<u64> {
    event.detail.rsplit_once(", question ")?.1.parse().ok()
}

/// Returns the cause of the effect that an event records.
fn applied(event: &Event) -> Option<Cause> {
    if event.facts == Facts::AgentRetired {
        return Some(Cause::Retired(event.agent.clone()));
    }
    let may = matches!(
        event.kind(),
        Kind::AgentCreated | Kind::AgentChanged | Kind::ScheduleCreated | Kind::ScheduleChanged
    );
    question_of(event).filter(|_| may).map(Cause::Question)
}

/// Returns whether only an approval may retire an agent: whether it is not one that operators move.
fn is_by_approval_only(rows: Rows<'_>, agent: &str) -> bool {
    agent.starts_with("kid") && !rows.by_hand.contains(agent)
}

/// Returns the values that an effect sets: the agent, the field as a diff names it, and the value.
fn values(effect: &Effect) -> Vec<(String, String, String)> {
    match effect {
        Effect::SetAgent { name, role, model: _ } => {
            let role =
                role.iter().map(|role| (name.to_string(), format!("{name}.role"), role.clone()));
            role.collect()
        }
        Effect::SetPolicy { name, policy, parts } => {
            let value = |part: PolicyPart| {
                let field = format!("{name}.policy.{}", part.name());
                Some((name.to_string(), field, number(part, policy)?.to_string()))
            };
            parts.iter().copied().filter_map(value).collect()
        }
        Effect::CreateAgent { .. }
        | Effect::RetireAgent { .. }
        | Effect::RunAction { .. }
        | Effect::CreateSchedule { .. }
        | Effect::ChangeSchedule { .. } => Vec::new(),
    }
}

/// Returns the value of a field of an agent, as a diff shows it.
fn value_at(agent: &AgentRow, field: &str) -> Option<String> {
    let field = field.strip_prefix(&agent.name)?;
    if field == ".role" {
        return Some(agent.role.clone());
    }
    let field = field.strip_prefix(".policy.")?;
    let part = PARTS.into_iter().find(|part| part.name() == field)?;
    number(part, &agent.policy).map(|number| number.to_string())
}

fn number(part: PolicyPart, policy: &Policy) -> Option<u32> {
    match part {
        PolicyPart::SendsPerMinuteMax => policy.sends_per_minute_max,
        PolicyPart::RemindersPendingMax => policy.reminders_pending_max,
        PolicyPart::ToolGroups
        | PolicyPart::AllowedRecipients
        | PolicyPart::Capabilities
        | PolicyPart::SenderStoredBytesMax
        | PolicyPart::QuestionsOpenMax
        | PolicyPart::Grants
        | PolicyPart::ChildrenMax
        | PolicyPart::SchedulesMax => None,
    }
}

#[cfg(test)]
mod tests;
