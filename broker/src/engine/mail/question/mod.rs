//! Questions: asking, answering and withdrawing, with exactly one outcome each.
//!
//! `core::question` checks the wording of a question and of an answer. Invariant: a question and
//! the message that delivers it are one transaction, and so are its outcome and the notices of it.

mod admitted;
mod approval;
mod close;
mod read;
mod texts;

use crate::engine::error::{MailError, QuestionError};
use std::sync::Arc;
use std::time::Duration;

use hive_core::caller::Caller;
use hive_core::effect::{APPROVE, Effect};
use hive_core::event::Facts;
use hive_core::id::QuestionId;
use hive_core::limits::Limits;
use hive_core::message::{Recipient, SystemKind};
use hive_core::question::{Answer, Fault, Question, State, Wording};
use hive_core::time::WallTime;
use serde::{Deserialize, Serialize};

use super::admission::Admission;
use super::notice::{self, Notice};
use super::outbox;
use crate::engine::actor::{self, Actor};
use crate::engine::{Engine, Refusal};
use crate::files::Shortage;
use crate::store::agent::AgentRow;
use crate::store::event::{Fact, log};
pub use crate::store::question::bytes_of;
use crate::store::question::{self as questions, Filter, NewQuestion, QuestionRow};
use crate::store::request::RequestKey;
use crate::store::{AgentKey, Tx, message};
use admitted::Admitted;
pub use approval::Preview;
pub(crate) use approval::{AskedEffect, Effects};
pub(crate) use close::{Closer, close};
pub use read::Which;

/// Most questions that one sweep closes, so that it never stalls a send.
const STEP_ROWS: u32 = 100;

/// A question to ask.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The agent or the operator that is asked.
    pub to: Recipient,
    /// The text and the options.
    pub wording: Wording,
    /// The time for which it stays open.
    pub ttl: Option<Duration>,
    /// What the operator is asked to approve; `None` for a plain question.
    pub effect: Option<Effect>,
    /// The files that the socket of an agent to create lacks.
    pub short: Option<Shortage>,
}

/// A reply to a question.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The answer.
    pub answer: Answer,
    /// The digest of the changes that were shown to who approves them.
    pub diff_digest: String,
    /// The files that the socket of an agent to create lacks.
    pub short: Option<Shortage>,
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        Self { answer, diff_digest: String::new(), short: None }
    }
}

/// The stored answer for a replay.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Asked {
    id: QuestionId,
    already: bool,
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::AnswerTooLong(bytes) => MailError::BodyTooLarge {
                field: "text",
                bytes,
                max: saturated(hive_core::limits::ANSWER_BYTES_MAX),
            }
            .into(),
            Fault::TextTooLong(bytes) => MailError::BodyTooLarge {
                field: "text",
                bytes,
                max: saturated(hive_core::limits::QUESTION_BYTES_MAX),
            }
            .into(),
            Fault::NoText
            | Fault::TooManyOptions(_)
            | Fault::BadOption(_)
            | Fault::DoubleOption(_)
            | Fault::MultiWithoutOptions
            | Fault::EmptyAnswer
            | Fault::NotOffered { .. }
            | Fault::NothingOffered
            | Fault::OneChoice(_) => {
                Self::Field { field: fault.field(), problem: fault.to_string() }
            }
        }
    }
}

fn saturated(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

impl Engine {
    /// Asks a question; returns it, and whether an earlier run of the same delivery had asked it
    /// already.
    pub async fn ask(
        &self,
        actor: Actor,
        request: RequestKey,
        ask: Ask,
    ) -> Result<(Question, bool), Refusal> {
        self.check_open()?;
        let mut ask = ask;
        admitted::check(&mut ask)?;
        let approvals = self.approvals();
        let shown = approvals.clone();
        let put = move |admission: Admission<'_, '_>| put(&admission, &approvals, &ask);
        self.act_and_read("ask", actor, request, put, move |tx, asked: Asked| {
            Ok((get(tx, &shown, asked.id)?, asked.already))
        })
        .await
    }

    /// Answers an open question.
    pub async fn answer(
        &self,
        actor: Actor,
        request: RequestKey,
        id: QuestionId,
        reply: impl Into<Reply>,
    ) -> Result<Question, Refusal> {
        let (approvals, reply) = (self.approvals(), reply.into());
        self.close_by(
            actor,
            request,
            id,
            "answer",
            move |Admission { tx, limits, actor, me, .. }, row| {
                actor::check_group(&actor.caller, me, "messaging")?;
                let mut turn = None;
                if let Caller::Agent(_) = &actor.caller {
                    if row.target != me.key {
                        let target = row.question.target.clone();
                        return Err(Refusal::from(QuestionError::NotTheTarget { id, target }));
                    }
                    turn = actor.turn(tx, me)?;
                }
                let answer = &checked(tx, row, &reply.answer)?;
                if let Some(approval) = &row.question.approval {
                    approval::decide(
                        tx,
                        &approvals,
                        row,
                        approval,
                        answer,
                        &reply,
                        actor.caller.name(),
                    )?;
                }
                if hive_fault::planted!(EffectAppliedAgain) && row.question.state != State::Open {
                    return Ok(());
                }
                let closer = match &actor.caller {
                    Caller::Agent(name) => Closer::Target { name: name.as_str(), answer },
                    Caller::Operator(who) => Closer::OperatorAnswer { who: who.as_str(), answer },
                };
                close(tx, limits, row, &closer, actor.cause.parent(turn.as_ref()))
            },
        )
        .await
    }

    /// Withdraws an open question.
    pub async fn cancel_question(
        &self,
        actor: Actor,
        request: RequestKey,
        id: QuestionId,
    ) -> Result<Question, Refusal> {
        self.close_by(actor, request, id, "cancel question", |admission, row| {
            cancel(&admission, row)
        })
        .await
    }

    async fn close_by<F>(
        &self,
        actor: Actor,
        request: RequestKey,
        id: QuestionId,
        call: &'static str,
        close: F,
    ) -> Result<Question, Refusal>
    where
        F: FnOnce(Admission<'_, '_>, &QuestionRow) -> Result<(), Refusal> + Send + 'static,
    {
        self.check_open()?;
        let close = move |admission: Admission<'_, '_>| {
            let row = visible(&admission, id)?;
            close(admission, &row.ok_or(QuestionError::NotFound { id })?)
        };
        let shown = self.approvals();
        self.act_and_read(call, actor, request, close, move |tx, ()| get(tx, &shown, id)).await
    }

    /// Ends questions whose deadline has passed; returns the next deadline.
    pub async fn sweep_questions(&self) -> Result<Option<WallTime>, Refusal> {
        let limits = Arc::clone(&self.limits);
        self.store
            .write(move |tx| {
                for row in questions::expired(tx, tx.now.wall, STEP_ROWS)? {
                    close(tx, &limits, &row, &Closer::Deadline, None)?;
                }
                Ok(questions::next_deadline(tx)?)
            })
            .await
    }
}

fn get(tx: &Tx<'_>, effects: &impl Effects, id: QuestionId) -> Result<Question, Refusal> {
    let row = questions::row(tx, id)?.ok_or(Refusal::from(QuestionError::NotFound { id }))?;
    effects.shown(tx, row)
}

/// Withdraws a question in the name of its asker, or of the operator.
pub(crate) fn cancel(admission: &Admission<'_, '_>, row: &QuestionRow) -> Result<(), Refusal> {
    let Admission { tx, limits, actor, me, .. } = *admission;
    actor::check_group(&actor.caller, me, "inbox")?;
    let mut turn = None;
    let closer = match &actor.caller {
        Caller::Agent(name) => {
            if row.asker != me.key {
                let asker = row.question.asker.clone();
                return Err(Refusal::from(QuestionError::NotTheAsker {
                    id: row.question.id,
                    asker,
                }));
            }
            turn = actor.turn(tx, me)?;
            Closer::Asker { name: name.as_str() }
        }
        Caller::Operator(who) => Closer::OperatorCancel { who: who.as_str() },
    };
    close(tx, limits, row, &closer, actor.cause.parent(turn.as_ref()))
}

/// Returns a question that the caller may read. For any other caller it does not exist; so this
/// comes before every other check.
pub(crate) fn visible(
    admission: &Admission<'_, '_>,
    id: QuestionId,
) -> Result<Option<QuestionRow>, Refusal> {
    let concerns = admission.is_agent().then_some(admission.me.key);
    let filter = Filter { concerns, ..Filter::default() };
    Ok(questions::row(admission.tx, id)?.filter(|row| filter.shows(row)))
}

/// Returns the answer as it is stored. If the question is over, the refusal says so, whatever the
/// answer.
fn checked(tx: &Tx<'_>, row: &QuestionRow, answer: &Answer) -> Result<Answer, Refusal> {
    let approves = |answer: &Answer| answer.choices == [APPROVE];
    let planted = [
        hive_fault::planted!(AnswerAfterExpiry),
        hive_fault::planted!(TwoOutcomes),
        hive_fault::planted!(EffectAppliedAgain)
            && approves(answer)
            && row.question.answer.as_ref().is_some_and(approves),
    ]
    .contains(&true);
    if row.question.state != State::Open && !planted {
        return Err(close::already(tx, row)?);
    }
    Ok(row.question.wording.accept(answer)?)
}

fn put(admission: &Admission<'_, '_>, effects: &impl Effects, ask: &Ask) -> Result<Asked, Refusal> {
    let &Admission { tx, limits, me, .. } = admission;
    let Admitted { turn, target, earlier } = admitted::admitted(admission, ask)?;
    let parent = admission.actor.cause.parent(turn.as_ref());
    let turn = turn.map(|turn| turn.id);
    let effect = ask.effect.as_ref();
    if let Some((turn, id)) = turn.zip(earlier) {
        message::absorb(tx, turn, id.get())?;
        return Ok(Asked { id, already: true });
    }
    if admission.is_agent() {
        admission.take_rate()?;
    }
    let id = QuestionId::new(tx.next_id()).expect("the sequence begins with 1");
    let deadline_time = ask.ttl.map(|ttl| tx.now.wall.after(ttl));
    let text = &ask.wording.text;
    let (body, granted) = match effect {
        Some(effect) => {
            let asked = effects.asked(tx, me, id, effect, text, deadline_time)?;
            (asked.body, asked.granted)
        }
        None => (texts::asked(id, &me.name, &ask.wording, deadline_time), None),
    };
    let notice = Notice {
        turn,
        question: Some(id),
        parent,
        ..Notice::about(&me.name, target.key, SystemKind::QuestionAsked, &body)
    };
    let message = notice::send(tx, limits, notice)?;
    questions::insert(
        tx,
        &NewQuestion {
            id,
            asker: me.key,
            target: target.key,
            wording: &ask.wording,
            deadline_time,
            turn,
            message,
            effect,
        },
    )?;
    if target.key == AgentKey::OPERATOR && granted.is_none() {
        let text = match effect {
            Some(effect) => format!("{}: {text}", effect.summary()),
            None => text.clone(),
        };
        outbox::add(tx, outbox::Kind::Question, me.key, id.get(), &text)?;
    }
    let detail = format!("to {}", target.name);
    let fact = Fact::about(Facts::QuestionAsked, me.key)
        .message(message)
        .turn(turn)
        .question(id)
        .detail(&detail);
    log(tx, fact);
    if let Some((effect, mut changes)) = effect.zip(granted) {
        changes.extend(effects.grant(tx, me, id, effect, ask.short)?);
        questions::set_changes(tx, id, &changes)?;
        let row = questions::row(tx, id)?.ok_or(QuestionError::NotFound { id })?;
        let choices = vec![APPROVE.to_owned()];
        let answer = &Answer { choices, text: "allowed by a grant of the asker".to_owned() };
        close(tx, limits, &row, &Closer::Grant { answer }, parent)?;
    }
    Ok(Asked { id, already: false })
}

/// Ends the open questions that a retired agent asked or has to answer.
pub(crate) fn retire(tx: &Tx<'_>, limits: &Limits, me: &AgentRow) -> Result<(), Refusal> {
    for row in questions::open_of(tx, me.key)? {
        close(tx, limits, &row, &Closer::Retired { agent: &me.name }, None)?;
    }
    Ok(())
}
