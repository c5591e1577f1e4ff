//! Questions: asking, answering and withdrawing, with exactly one outcome each.
//!
//! `core::question` checks the wording of a question and of an answer. Invariant: a question and
//! the message that delivers it are one transaction, and so are its outcome and the notices of it.

mod close;
mod read;
mod texts;

use crate::engine::error::{MailError, QuestionError};
use std::sync::Arc;
use std::time::Duration;

use hive_core::caller::Caller;
use hive_core::event::Facts;
use hive_core::id::QuestionId;
use hive_core::limits::{DUE_SPAN_MIN, Limits, QUESTION_TTL_MAX};
use hive_core::message::{Recipient, SystemKind};
use hive_core::question::{Answer, Fault, Question, State, Wording};
use hive_core::time::WallTime;
use serde::{Deserialize, Serialize};

use super::admission::Admission;
use super::notice::{self, Notice};
use super::outbox;
use crate::engine::actor::{self, Actor};
use crate::engine::{Engine, Refusal};
use crate::store::agent::AgentRow;
use crate::store::event::{Fact, log};
pub use crate::store::question::bytes_of;
use crate::store::question::{self as questions, Filter, NewQuestion, QuestionRow};
use crate::store::request::RequestKey;
use crate::store::{AgentKey, Tx, message};
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
        ask.wording.check()?;
        if let Some(ttl) = ask.ttl
            && !(DUE_SPAN_MIN..=QUESTION_TTL_MAX).contains(&ttl)
        {
            let problem = format!("it must be between 1 s and {} s", QUESTION_TTL_MAX.as_secs());
            return Err(Refusal::Field { field: "ttl", problem });
        }
        let put = move |admission: Admission<'_, '_>| put(&admission, &ask);
        self.act_and_read("ask", actor, request, put, |tx, asked: Asked| {
            Ok((get(tx, asked.id)?, asked.already))
        })
        .await
    }

    /// Answers an open question.
    pub async fn answer(
        &self,
        actor: Actor,
        request: RequestKey,
        id: QuestionId,
        answer: Answer,
    ) -> Result<Question, Refusal> {
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
                let answer = &checked(tx, row, &answer)?;
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
        self.act_and_read(call, actor, request, close, move |tx, ()| get(tx, id)).await
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

fn get(tx: &Tx<'_>, id: QuestionId) -> Result<Question, Refusal> {
    questions::get(tx, id)?.ok_or(Refusal::from(QuestionError::NotFound { id }))
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
    let planted = [hive_fault::planted!(AnswerAfterExpiry), hive_fault::planted!(TwoOutcomes)]
        .contains(&true);
    if row.question.state != State::Open && !planted {
        return Err(close::already(tx, row)?);
    }
    Ok(row.question.wording.accept(answer)?)
}

fn put(admission: &Admission<'_, '_>, ask: &Ask) -> Result<Asked, Refusal> {
    let &Admission { tx, limits, me, .. } = admission;
    let turn = admission.turn("messaging")?;
    let parent = admission.actor.cause.parent(turn.as_ref());
    let turn = turn.map(|turn| turn.id);
    let target = target(admission, &ask.to)?;
    if let Some(turn) = turn
        && let Some(id) = questions::equal_in_earlier_runs(tx, turn, target.key, &ask.wording)?
    {
        message::absorb(tx, turn, id.get())?;
        return Ok(Asked { id, already: true });
    }
    if admission.is_agent() {
        admission.check_questions(questions::open_asked(tx, me.key)?)?;
        admission.take_rate()?;
    }
    let id = QuestionId::new(tx.next_id()).expect("the sequence begins with 1");
    let deadline_time = ask.ttl.map(|ttl| tx.now.wall.after(ttl));
    let body = texts::asked(id, &me.name, &ask.wording, deadline_time);
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
        },
    )?;
    if target.key == AgentKey::OPERATOR {
        outbox::add(tx, outbox::Kind::Question, me.key, id.get(), &ask.wording.text)?;
    }
    let detail = format!("to {}", target.name);
    let fact = Fact::about(Facts::QuestionAsked, me.key)
        .message(message)
        .turn(turn)
        .question(id)
        .detail(&detail);
    log(tx, fact);
    Ok(Asked { id, already: false })
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

/// Ends the open questions that a retired agent asked or has to answer.
pub(crate) fn retire(tx: &Tx<'_>, limits: &Limits, me: &AgentRow) -> Result<(), Refusal> {
    for row in questions::open_of(tx, me.key)? {
        close(tx, limits, &row, &Closer::Retired { agent: &me.name }, None)?;
    }
    Ok(())
}
