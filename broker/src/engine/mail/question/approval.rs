//! Questions with an effect: how they are asked and answered.
//!
//! Invariant: only agents ask the operator for an approval, and an answer to one chooses. What an
//! effect changes is not known here: [`Effects`] is the seam to it.

use std::sync::Arc;
use std::time::Duration;

use hive_core::effect::{APPROVE, Approval, Change, DENY, Effect};
use hive_core::id::QuestionId;
use hive_core::message::Recipient;
use hive_core::question::{Answer, Question, Wording};
use hive_core::time::WallTime;

use super::Reply;
use crate::engine::Refusal;
use crate::engine::mail::admission::Admission;
use crate::files::Shortage;
use crate::store::agent::{self, AgentRow, Agents};
use crate::store::question::QuestionRow;
use crate::store::{AgentKey, Tx};

/// A question with an effect, as it is asked.
#[derive(Clone, Debug)]
pub(crate) struct AskedEffect {
    /// The message to the operator.
    pub(crate) body: String,
    /// What it changes, if it needs no approval.
    pub(crate) granted: Option<Vec<Change>>,
}

/// A program of the operator whose output is part of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preview {
    /// The name of the action.
    pub action: String,
    /// The name of the asker.
    pub agent: String,
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The time limit of the action.
    pub timeout: Duration,
}

/// What questions need of the effects.
pub(crate) trait Effects: Clone + Send + 'static {
    /// Returns a question as it is shown. An open approval has what it would change now.
    fn shown<A: Agents>(&self, conn: &A, row: QuestionRow) -> Result<Question, Refusal>;

    /// Returns the preview that the question with this effect must have, or why it cannot be asked;
    /// `None` if it needs none.
    fn preview(
        &self,
        tx: &Tx<'_>,
        asker: &AgentRow,
        effect: &Effect,
    ) -> Result<Option<Preview>, Refusal>;

    /// Returns the question with this effect, or why it cannot be asked.
    fn asked(
        &self,
        tx: &Tx<'_>,
        asker: &AgentRow,
        id: QuestionId,
        effect: &Effect,
        why: &str,
        deadline: Option<WallTime>,
    ) -> Result<AskedEffect, Refusal>;

    /// Applies an effect that needs no approval; returns what it has made that has a number of its
    /// own.
    fn grant(
        &self,
        tx: &Tx<'_>,
        asker: &AgentRow,
        id: QuestionId,
        effect: &Effect,
        short: Option<Shortage>,
    ) -> Result<Option<Change>, Refusal>;

    /// Applies the effect of an open question that `who` approves, if it still changes what the
    /// digest of the reply stands for.
    fn approve(
        &self,
        tx: &Tx<'_>,
        row: &QuestionRow,
        effect: &Effect,
        reply: &Reply,
        who: &str,
    ) -> Result<(), Refusal>;
}

/// Returns the options of a question with an effect.
pub(super) fn options(effect: &Effect, wording: &Wording) -> Result<Vec<String>, Refusal> {
    effect
        .check()
        .map_err(|fault| Refusal::Field { field: "effect", problem: fault.to_string() })?;
    if !wording.options.is_empty() || wording.multi {
        let problem =
            format!("a question with an effect offers `{APPROVE}` and `{DENY}` by itself");
        return Err(Refusal::Field { field: "options", problem });
    }
    Ok(vec![APPROVE.to_owned(), DENY.to_owned()])
}

/// Carries out the operator's decision about an approval.
pub(super) fn decide(
    tx: &Tx<'_>,
    effects: &impl Effects,
    row: &QuestionRow,
    approval: &Approval,
    answer: &Answer,
    reply: &Reply,
    who: &str,
) -> Result<(), Refusal> {
    match answer.choices.first().map(String::as_str) {
        Some(APPROVE) => effects.approve(tx, row, &approval.effect, reply, who),
        Some(_) if hive_fault::planted!(DeniedApplied) => {
            effects.approve(tx, row, &approval.effect, reply, who)
        }
        Some(_) => Ok(()),
        None => Err(Refusal::Field {
            field: "choices",
            problem: format!("choose `{APPROVE}` or `{DENY}`; a text is a note beside it"),
        }),
    }
}

/// Returns the target of a question with an effect: the operator. The tool group alone decides who
/// may ask for approvals, and not the allowed recipients.
pub(super) fn approver(
    admission: &Admission<'_, '_>,
    to: &Recipient,
) -> Result<Arc<AgentRow>, Refusal> {
    if !admission.is_agent() {
        let problem = "the operator changes agents directly; only agents ask for approvals";
        return Err(Refusal::Field { field: "effect", problem: problem.to_owned() });
    }
    let is_operator = match to {
        Recipient::Operator => true,
        Recipient::Parent => admission.me.parent.is_none(),
        Recipient::Agent(_) | Recipient::Everyone => false,
    };
    if !is_operator {
        let problem = "only the operator approves; ask the operator".to_owned();
        return Err(Refusal::Field { field: "to", problem });
    }
    Ok(agent::by_key(admission.tx, AgentKey::OPERATOR)?)
}
