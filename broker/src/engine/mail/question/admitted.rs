//! Whether a question may be asked: what is checked before anything of it is written.
//!
//! Invariant: these checks change nothing, and take nothing of the asker's rate. So they can be
//! made before a preview runs, and again when its question is asked.

use std::sync::Arc;

use hive_core::agent::{APPROVALS, SCHEDULING};
use hive_core::effect::Effect;
use hive_core::id::QuestionId;
use hive_core::limits::{DUE_SPAN_MIN, QUESTION_TTL_MAX};
use hive_core::message::Recipient;

use super::{Ask, Effects, Preview, approval};
use crate::engine::actor::Actor;
use crate::engine::mail::admission::Admission;
use crate::engine::{Engine, Refusal};
use crate::store::agent::AgentRow;
use crate::store::question as questions;
use crate::store::request::{self, RequestKey};
use crate::store::turn::TurnRow;

/// A question that may be asked.
pub(super) struct Admitted {
    /// The turn of the asker.
    pub(super) turn: Option<TurnRow>,
    /// The one that is asked.
    pub(super) target: Arc<AgentRow>,
    /// An equal question of an earlier run, which stands for it.
    pub(super) earlier: Option<QuestionId>,
}

impl Engine {
    /// Returns the preview that must run before this question is asked; `None` if there is none, or
    /// if the question would be a repeat or allowed by a grant.
    pub async fn preview_of(
        &self,
        actor: &Actor,
        request: &RequestKey,
        ask: &Ask,
    ) -> Result<Option<Preview>, Refusal> {
        let Some(Effect::RunAction { action, .. }) = &ask.effect else { return Ok(None) };
        if self.actions.get(action).is_none_or(|action| action.preview.is_none()) {
            return Ok(None);
        }
        self.check_open()?;
        let (mut ask, effects) = (ask.clone(), self.approvals());
        check(&mut ask)?;
        let (caller, limits) = (actor.caller.clone(), self.caller_limits());
        let (actor, request) = (actor.clone(), request.clone());
        let wanted = self.store.write(move |tx| {
            let me = actor.row(tx)?;
            if request::find(tx, me.key, &request)?.is_some() {
                return Ok(None);
            }
            let admitted = admitted(&limits.admission(tx, &actor, &me), &ask)?;
            match &ask.effect {
                Some(effect) if admitted.earlier.is_none() => effects.preview(tx, &me, effect),
                Some(_) | None => Ok(None),
            }
        });
        let wanted = wanted.await;
        self.noting(&caller, "ask", wanted).await
    }
}

/// Checks what does not depend on the state of the hive, and sets the options of an approval.
pub(super) fn check(ask: &mut Ask) -> Result<(), Refusal> {
    if let Some(effect) = &ask.effect {
        ask.wording.options = approval::options(effect, &ask.wording)?;
    }
    ask.wording.check()?;
    if let Some(ttl) = ask.ttl
        && !(DUE_SPAN_MIN..=QUESTION_TTL_MAX).contains(&ttl)
    {
        let problem = format!("it must be between 1 s and {} s", QUESTION_TTL_MAX.as_secs());
        return Err(Refusal::Field { field: "ttl", problem });
    }
    Ok(())
}

/// Checks that the caller may ask a question now.
pub(super) fn admitted(admission: &Admission<'_, '_>, ask: &Ask) -> Result<Admitted, Refusal> {
    let &Admission { tx, me, .. } = admission;
    let turn = admission.turn(group(ask.effect.as_ref()))?;
    let target = match &ask.effect {
        Some(_) => approval::approver(admission, &ask.to)?,
        None => target(admission, &ask.to)?,
    };
    let effect = ask.effect.as_ref();
    let earlier = match &turn {
        Some(turn) => {
            questions::equal_in_earlier_runs(tx, turn.id, target.key, &ask.wording, effect)?
        }
        None => None,
    };
    if earlier.is_none() && admission.is_agent() {
        admission.check_questions(questions::open_asked(tx, me.key)?)?;
    }
    Ok(Admitted { turn, target, earlier })
}

/// Returns the tool group of the question with this effect.
fn group(effect: Option<&Effect>) -> &'static str {
    match effect {
        None => "messaging",
        Some(Effect::CreateSchedule { .. } | Effect::ChangeSchedule { .. }) => SCHEDULING,
        Some(
            Effect::CreateAgent { .. }
            | Effect::RetireAgent { .. }
            | Effect::SetAgent { .. }
            | Effect::SetPolicy { .. }
            | Effect::RunAction { .. },
        ) => APPROVALS,
    }
}

/// Returns the target of a question: exactly one, and not the asker.
fn target(admission: &Admission<'_, '_>, to: &Recipient) -> Result<Arc<AgentRow>, Refusal> {
    let refuse = |problem: &str| Err(Refusal::Field { field: "to", problem: problem.to_owned() });
    match to {
        Recipient::Everyone => {
            return refuse("a question goes to one; name an agent, or ask the operator");
        }
        Recipient::Operator | Recipient::Parent if !admission.is_agent() => {
            return refuse("the operator asks agents; name one");
        }
        Recipient::Agent(_) | Recipient::Operator | Recipient::Parent => {}
    }
    match admission.recipient(to)? {
        Some(target) if target.key == admission.me.key => {
            refuse("nobody asks themselves; remind yourself instead")
        }
        Some(target) => Ok(target),
        None => refuse("a question goes to one; name an agent, or ask the operator"),
    }
}
