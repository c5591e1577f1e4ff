//! Notices: mail that the broker itself writes. It is never refused. In a full inbox it replaces an
//! undelivered notice of the same kind about the same agent. A notice with a key of its own, such
//! as one about turns that cannot run, replaces an undelivered one with that key at any time. So if
//! a question ends before its target saw it, only the end is delivered.

use hive_core::delivery::{Decision, Lane, State};
use hive_core::event::Facts;
use hive_core::id::{MessageId, QuestionId, ReminderId, TurnId};
use hive_core::limits::Limits;
use hive_core::message::{Origin, SystemKind};
use hive_core::trace::TraceContext;

use super::outbox;
use crate::engine::{Refusal, trace};
use crate::store::agent::AgentRow;
use crate::store::delivery as deliveries;
use crate::store::event::{Fact, log};
use crate::store::message::{self, NewMessage, To};
use crate::store::{AgentKey, Tx, agent, inbox};

/// A notice to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notice<'a> {
    /// The recipient.
    pub(crate) to: AgentKey,
    /// The name of the agent that it is about.
    pub(crate) about: &'a str,
    /// The kind of the notice.
    pub(crate) kind: SystemKind,
    /// The text of the notice.
    pub(crate) body: &'a str,
    /// The message it is about.
    pub(crate) in_reply_to: Option<MessageId>,
    /// The turn it is about.
    pub(crate) turn: Option<TurnId>,
    /// The question it is about.
    pub(crate) question: Option<QuestionId>,
    /// The reminder that it comes from.
    pub(crate) reminder: Option<ReminderId>,
    /// The subject of a problem.
    pub(crate) subject: Option<&'a str>,
    /// The span that causes it.
    pub(crate) parent: Option<TraceContext>,
}

impl<'a> Notice<'a> {
    /// Returns a notice about an agent that refers to nothing else.
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
            parent: None,
        }
    }

    /// Returns the key under which it coalesces, and whether it does so before the inbox is full.
    /// Each question and each reminder has a key of its own, and so does each subject of an agent's
    /// problems.
    pub(crate) fn key(&self) -> (String, bool) {
        match (self.question, self.reminder, self.subject) {
            (Some(question), _, _) => (format!("question:{question}"), true),
            (None, Some(reminder), _) => (format!("reminder:{reminder}"), true),
            (None, None, Some(subject)) => (format!("problem:{}:{subject}", self.about), true),
            // Of the state of an agent, only the newest notice of a kind counts.
            (None, None, None) => {
                (format!("{:?}:{}", self.kind, self.about), is_of_state(self.kind))
            }
        }
    }
}

/// Returns whether notices of this kind say how an agent is now.
fn is_of_state(kind: SystemKind) -> bool {
    match kind {
        SystemKind::Unavailable
        | SystemKind::Started
        | SystemKind::Stopped
        | SystemKind::Crashed
        | SystemKind::LoggedIn
        | SystemKind::Recovered => true,
        SystemKind::TurnFailed
        | SystemKind::DeadLetter
        | SystemKind::Restarted
        | SystemKind::QuestionAsked
        | SystemKind::QuestionAnswered
        | SystemKind::QuestionExpired
        | SystemKind::QuestionCancelled
        | SystemKind::Reminder
        | SystemKind::ActionEnded
        | SystemKind::ScheduleEnded
        | SystemKind::Heartbeat
        | SystemKind::Problem => false,
    }
}

/// Sends it. If it goes to the operator, the outbox gets an item; a notice of a question has that
/// item already.
pub(crate) fn send(tx: &Tx<'_>, limits: &Limits, notice: Notice<'_>) -> Result<MessageId, Refusal> {
    let id = put(tx, limits, notice)?;
    if tx.attention && notice.to == AgentKey::OPERATOR && notice.kind != SystemKind::QuestionAsked {
        let about = agent::by_name(tx, notice.about)?.map_or(AgentKey::OPERATOR, |row| row.key);
        outbox::add(tx, outbox::Kind::Mail, about, id.get(), notice.body)?;
    }
    Ok(id)
}

/// Sends it without an item in the operator outbox, because its cause has one.
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
            in_reply_to: notice.in_reply_to,
            system_kind: Some(notice.kind),
            coalescing_key: Some(&key),
            question: notice.question,
            reminder: notice.reminder,
            traced: trace::span(tx, notice.parent),
            ..NewMessage::new(id, &Origin::System, To::One(notice.to), notice.body)
        },
    )?;
    deliveries::insert(tx, notice.to, id, Lane::System, None, notice.body.len() as u64)?;
    let fact = Fact::about(Facts::MessageAccepted, notice.to)
        .message(id)
        .turn(notice.turn)
        .detail("from system")
        .question(notice.question)
        .reminder(notice.reminder);
    log(tx, fact);
    Ok(id)
}

/// Notifies the parent of an agent, the operator too.
pub(crate) fn to_parent(
    tx: &Tx<'_>,
    limits: &Limits,
    me: &AgentRow,
    kind: SystemKind,
    body: &str,
) -> Result<(), Refusal> {
    send(tx, limits, Notice::about(&me.name, parent(me), kind, body)).map(|_| ())
}

/// Notifies the parent of an agent, if that is an agent: the operator reads the states of roots
/// themselves, and has other notices of what needs a decision.
pub(crate) fn to_parent_agent(
    tx: &Tx<'_>,
    limits: &Limits,
    me: &AgentRow,
    kind: SystemKind,
    body: &str,
) -> Result<(), Refusal> {
    if me.parent.is_some() { to_parent(tx, limits, me, kind, body) } else { Ok(()) }
}

/// Returns the recipient of an agent's notices of trouble: its parent, or for a root the operator.
pub(crate) fn parent(me: &AgentRow) -> AgentKey {
    me.parent.unwrap_or(AgentKey::OPERATOR)
}

/// Returns a fresh message id.
pub(crate) fn new_id(tx: &Tx<'_>) -> MessageId {
    MessageId::new(tx.next_id()).expect("the sequence begins with 1")
}

/// Removes an undelivered delivery from the queue, because a newer one has replaced it.
pub(crate) fn supersede(tx: &Tx<'_>, agent: AgentKey, message: MessageId) -> Result<(), Refusal> {
    if hive_fault::planted!(SupersededServed) {
        return Ok(());
    }
    let Some(mut row) = deliveries::get(tx, agent, message)? else { return Ok(()) };
    let Some(progress) = row.progress.decide(Decision::Supersede) else { return Ok(()) };
    row.progress = progress;
    deliveries::save(tx, row, State::Ready)?;
    log(tx, Fact::about(Facts::DeliverySuperseded, agent).message(message));
    Ok(())
}
