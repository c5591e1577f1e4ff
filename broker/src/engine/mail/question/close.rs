//! Closing: the one outcome of a question and its notices, in one transaction.
//!
//! Invariant: closing a question that is not open changes nothing; the refusal names the outcome
//! that won.

use crate::engine::error::QuestionError;
use hive_core::delivery::State as DeliveryState;
use hive_core::event::Facts;
use hive_core::limits::Limits;
use hive_core::message::{OPERATOR, SystemKind};
use hive_core::name::AgentName;
use hive_core::question::{Answer, State};
use hive_core::trace::TraceContext;

use super::texts::{self, End};
use crate::engine::Refusal;
use crate::engine::mail::notice::{self, Notice, supersede};
use crate::engine::mail::send::settle_operators;
use crate::store::event::{Fact, log};
use crate::store::question::{self as questions, Close, QuestionRow};
use crate::store::{AgentKey, Tx, delivery, message};

/// The cause that ends a question.
#[derive(Clone, Debug)]
pub(crate) enum Closer<'a> {
    /// Its target, with an answer.
    Target { name: &'a str, answer: &'a Answer },
    /// The operator with an answer; in their own name, or in the target's place.
    OperatorAnswer { who: &'a str, answer: &'a Answer },
    /// The asker, by withdrawing it.
    Asker { name: &'a str },
    /// The operator, by withdrawing it.
    OperatorCancel { who: &'a str },
    /// The deadline of the question.
    Deadline,
    /// A grant of the asker, which allows the effect.
    Grant { answer: &'a Answer },
    /// The retirement of one of the two.
    Retired { agent: &'a str },
}

/// Ends an open question and notifies the others. `cause` is the span of what ends it.
pub(crate) fn close(
    tx: &Tx<'_>,
    limits: &Limits,
    row: &QuestionRow,
    closer: &Closer<'_>,
    cause: Option<TraceContext>,
) -> Result<(), Refusal> {
    let id = row.question.id;
    let (state, answer, closed_by, why) = match closer {
        Closer::Target { name, answer } => (State::Answered, Some(*answer), *name, String::new()),
        Closer::OperatorAnswer { who, answer } => {
            (State::Answered, Some(*answer), *who, String::new())
        }
        Closer::Grant { answer } => (State::Answered, Some(*answer), "", String::new()),
        Closer::Asker { name } => {
            (State::Cancelled, None, *name, format!("{name} does not need it any more"))
        }
        Closer::OperatorCancel { who } => {
            (State::Cancelled, None, *who, "the operator withdrew it".to_owned())
        }
        Closer::Deadline => (State::Expired, None, "", String::new()),
        Closer::Retired { agent } => {
            (State::Cancelled, None, "", format!("agent {agent} was retired"))
        }
    };
    let operator_override =
        matches!(closer, Closer::OperatorAnswer { .. }) && row.target != AgentKey::OPERATOR;
    let closed = questions::close(tx, id, &Close { state, answer, closed_by, operator_override })?;
    if !closed {
        return Err(already(tx, row)?);
    }
    let (event, kind) = match state {
        State::Answered | State::Open => (Facts::QuestionAnswered, SystemKind::QuestionAnswered),
        State::Expired => (Facts::QuestionExpired, SystemKind::QuestionExpired),
        State::Cancelled => (Facts::QuestionCancelled, SystemKind::QuestionCancelled),
    };
    let detail = texts::closed(state, closed_by);
    log(tx, Fact::about(event, row.asker).question(id).detail(&detail));
    let said = answer.map(texts::answer).unwrap_or_default();
    let parent = parent(tx, row, cause)?;
    let end = End { state, operator_override, answer: &said, why: &why, parent };
    send_to_target(tx, limits, row, kind, &end, closer)?;
    send_to_asker(tx, limits, row, kind, &end, closer)
}

/// Returns the parent of the notices: they are in the trace of the question, below the span that
/// ends it if that is in this trace, and otherwise below the ask.
fn parent(
    tx: &Tx<'_>,
    row: &QuestionRow,
    cause: Option<TraceContext>,
) -> Result<Option<TraceContext>, Refusal> {
    let asked = row.question.message_id.map(|id| message::trace_of(tx, id)).transpose()?.flatten();
    Ok(match (asked, cause) {
        (Some(asked), Some(cause)) if asked.trace_id == cause.trace_id => Some(cause),
        (Some(asked), _) => Some(asked),
        (None, cause) => cause,
    })
}

/// Returns the refusal for a question that is over: its outcome.
pub(super) fn already(tx: &Tx<'_>, row: &QuestionRow) -> Result<Refusal, Refusal> {
    let id = row.question.id;
    let now = questions::get(tx, id)?.ok_or(QuestionError::NotFound { id })?;
    // A model may read this: which account the operator used is in the event and in the question.
    let closed_by = match now.closed_by.as_str() {
        "" => "",
        name if AgentName::parse(name).is_ok() => name,
        _ => OPERATOR,
    };
    Ok(QuestionError::Closed { id, state: now.state, closed_by: closed_by.to_owned() }.into())
}

/// Notifies a target that has not answered that the question is over; the one that answered knows
/// it.
fn send_to_target(
    tx: &Tx<'_>,
    limits: &Limits,
    row: &QuestionRow,
    kind: SystemKind,
    end: &End<'_>,
    closer: &Closer<'_>,
) -> Result<(), Refusal> {
    match closer {
        Closer::Target { .. } => drop_undelivered(tx, row),
        Closer::OperatorAnswer { who, .. } | Closer::OperatorCancel { who }
            if row.target == AgentKey::OPERATOR =>
        {
            row.question.message_id.map_or(Ok(()), |message| settle_operators(tx, message, who))
        }
        Closer::Grant { .. } => row
            .question
            .message_id
            .map_or(Ok(()), |message| settle_operators(tx, message, "a grant of the asker")),
        Closer::Retired { agent } if *agent == row.question.target => drop_undelivered(tx, row),
        Closer::OperatorAnswer { .. }
        | Closer::Asker { .. }
        | Closer::OperatorCancel { .. }
        | Closer::Deadline
        | Closer::Retired { .. } => {
            let body =
                texts::over(row.question.id, &row.question.asker, &row.question.wording, end);
            let notice = Notice {
                question: Some(row.question.id),
                in_reply_to: row.question.message_id,
                parent: end.parent,
                ..Notice::about(&row.question.asker, row.target, kind, &body)
            };
            notice::send(tx, limits, notice).map(|_| ())
        }
    }
}

/// Drops the undelivered question, because it is answered already. A model would be confused by a
/// question that it has answered.
fn drop_undelivered(tx: &Tx<'_>, row: &QuestionRow) -> Result<(), Refusal> {
    let Some(message) = row.question.message_id else { return Ok(()) };
    match delivery::get(tx, row.target, message)? {
        Some(delivery) if delivery.progress.state == DeliveryState::Ready => {
            supersede(tx, row.target, message)
        }
        Some(_) | None => Ok(()),
    }
}

/// Sends the outcome to the asker, unless the asker withdrew the question or is retired.
fn send_to_asker(
    tx: &Tx<'_>,
    limits: &Limits,
    row: &QuestionRow,
    kind: SystemKind,
    end: &End<'_>,
    closer: &Closer<'_>,
) -> Result<(), Refusal> {
    match closer {
        Closer::Asker { .. } => return Ok(()),
        Closer::Retired { agent } if *agent == row.question.asker => return Ok(()),
        Closer::OperatorCancel { .. } if row.asker == AgentKey::OPERATOR => return Ok(()),
        Closer::Target { .. }
        | Closer::OperatorAnswer { .. }
        | Closer::OperatorCancel { .. }
        | Closer::Grant { .. }
        | Closer::Deadline
        | Closer::Retired { .. } => {}
    }
    let body = texts::outcome(row.question.id, &row.question.target, &row.question.wording, end);
    let notice = Notice {
        question: Some(row.question.id),
        parent: end.parent,
        ..Notice::about(&row.question.target, row.asker, kind, &body)
    };
    let message = notice::send(tx, limits, notice)?;
    if matches!(closer, Closer::Grant { .. }) {
        // The response of the call has the outcome already; a turn for it would be for nothing.
        supersede(tx, row.asker, message)?;
    }
    Ok(())
}
