//! Notices: mail that the broker itself writes. It is never refused; past an inbox's bound it takes
//! the place of an undelivered notice of the same kind about the same agent. A notice with a key of
//! its own, as any about turns that cannot run, takes the place of an undelivered one with that key
//! at any time: of a question that is over before its target saw it, only its end is told.

use hive_core::delivery::{Decision, Lane, State};
use hive_core::event::Kind;
use hive_core::id::{MessageId, QuestionId, ReminderId, TurnId};
use hive_core::limits::Limits;
use hive_core::message::{Origin, SystemKind};

use super::Refusal;
use super::attention::{self, wait_on_operator};
use crate::store::delivery as deliveries;
use crate::store::event::{Fact, log};
use crate::store::message::{self, NewMessage, To};
use crate::store::{AgentKey, Tx, agent, inbox};

/// A notice to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notice<'a> {
    /// To whom.
    pub(crate) to: AgentKey,
    /// About which agent.
    pub(crate) about: &'a str,
    /// What it tells.
    pub(crate) kind: SystemKind,
    /// The text.
    pub(crate) body: &'a str,
    /// The message it is about.
    pub(crate) in_reply_to: Option<MessageId>,
    /// The turn it is about.
    pub(crate) turn: Option<TurnId>,
    /// The question it is about.
    pub(crate) question: Option<QuestionId>,
    /// The reminder it comes from.
    pub(crate) reminder: Option<ReminderId>,
    /// What a problem is about.
    pub(crate) subject: Option<&'a str>,
}

impl<'a> Notice<'a> {
    /// A notice about an agent, and about nothing else in particular.
    pub(crate) fn about(about: &'a str, to: AgentKey, kind: SystemKind, body: &'a str) -> Self {
        Self {
            to,
            about,
            kind,
            body,
            in_reply_to: None,
            turn: None,
            question: None,
            reminder: None,
            subject: None,
        }
    }

    /// Under which key it coalesces, and whether it does so before the inbox is full. Of questions
    /// and reminders each counts for itself, of problems each subject of an agent.
    pub(super) fn key(&self) -> (String, bool) {
        match (self.question, self.reminder, self.subject) {
            (Some(question), _, _) => (format!("question:{question}"), true),
            (None, Some(reminder), _) => (format!("reminder:{reminder}"), true),
            (None, None, Some(subject)) => (format!("problem:{}:{subject}", self.about), true),
            // Of an agent that cannot run turns, and of its recovery, only the newest counts.
            (None, None, None) => {
                (format!("{:?}:{}", self.kind, self.about), self.kind == SystemKind::Unavailable)
            }
        }
    }
}

/// Sends it. One to the operator draws their attention; that of a question does so by the question.
pub(crate) fn send(tx: &Tx<'_>, limits: &Limits, notice: Notice<'_>) -> Result<MessageId, Refusal> {
    let id = put(tx, limits, notice)?;
    if tx.attention && notice.to == AgentKey::OPERATOR && notice.kind != SystemKind::QuestionAsked {
        let about = agent::by_name(tx, notice.about)?.map_or(AgentKey::OPERATOR, |row| row.key);
        wait_on_operator(tx, attention::Kind::Mail, about, id.get(), notice.body)?;
    }
    Ok(id)
}

/// Sends it quietly: what it tells waits on the operator by itself.
pub(crate) fn put(tx: &Tx<'_>, limits: &Limits, notice: Notice<'_>) -> Result<MessageId, Refusal> {
    let (key, always) = notice.key();
    if (always || inbox::get(tx, notice.to)?.open_count >= limits.inbox_depth_max)
        && let Some(older) = message::coalescable(tx, notice.to, &Origin::System, &key)?
    {
        supersede(tx, notice.to, older)?;
    }
    let id = new_id(tx);
    message::insert(
        tx,
        &NewMessage {
            id,
            origin: &Origin::System,
            origin_key: None,
            to: To::One(notice.to),
            body: notice.body,
            in_reply_to: notice.in_reply_to,
            system_kind: Some(notice.kind),
            turn: None,
            coalescing_key: Some(&key),
            question: notice.question,
            reminder: notice.reminder,
        },
    )?;
    deliveries::insert(tx, notice.to, id, Lane::System, None, notice.body.len() as u64)?;
    let fact = Fact {
        message: Some(id),
        turn: notice.turn,
        detail: "from system",
        question: notice.question,
        reminder: notice.reminder,
        ..Fact::about(Kind::MessageAccepted, notice.to)
    };
    log(tx, fact)?;
    Ok(id)
}

/// A fresh message id.
pub(crate) fn new_id(tx: &Tx<'_>) -> MessageId {
    MessageId::new(tx.next_id()).expect("the sequence begins with 1")
}

/// Takes an undelivered delivery out of the queue, because a newer one has come in its place.
pub(crate) fn supersede(tx: &Tx<'_>, agent: AgentKey, message: MessageId) -> Result<(), Refusal> {
    if hive_fault::planted!(SupersededServed) {
        return Ok(());
    }
    let Some(mut row) = deliveries::get(tx, agent, message)? else { return Ok(()) };
    let Some(progress) = row.progress.decide(Decision::Supersede) else { return Ok(()) };
    row.progress = progress;
    deliveries::save(tx, &mut row, State::Ready)?;
    log(tx, Fact { message: Some(message), ..Fact::about(Kind::DeliverySuperseded, agent) })?;
    Ok(())
}
