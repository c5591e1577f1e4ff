//! Sending: accepting a message and adding it to every recipient's inbox, in one transaction.
//!
//! Invariant: a refused message leaves no trace; an accepted message is on disk before its receipt
//! exists.

use crate::engine::error::MailError;
use crate::engine::once::once;
use hive_core::caller::Caller;
use hive_core::delivery::{Decision, Lane, State};
use hive_core::event::Facts;
use hive_core::id::{MessageId, TurnId};
use hive_core::message::{Origin, Recipient};
use hive_core::name::AgentName;
use hive_core::trace::Traced;

use super::admission::{Admission, check_body};
use super::decision::acked_by_operator;
use super::notice::new_id;
use super::outbox;
pub use super::receipt::Receipt;
use crate::engine::actor::Actor;
use crate::engine::{Engine, Refusal, trace};
use crate::store::agent::{Addressee, AgentRow};
use crate::store::event::{Fact, log};
use crate::store::message::{self, NewMessage, To};
use crate::store::request::RequestKey;
use crate::store::{AgentKey, Tx, delivery, inbox};

/// A message to accept.
#[derive(Clone, Debug)]
pub struct Send {
    /// The recipients.
    pub to: Recipient,
    /// The text.
    pub body: String,
    /// The message that it answers.
    pub in_reply_to: Option<MessageId>,
}

impl Send {
    /// Returns a message that answers no other.
    pub fn new(to: Recipient, body: impl Into<String>) -> Self {
        Self { to, body: body.into(), in_reply_to: None }
    }
}

impl Engine {
    /// Accepts a message.
    pub async fn send(
        &self,
        actor: Actor,
        request: RequestKey,
        send: Send,
    ) -> Result<Receipt, Refusal> {
        self.check_open()?;
        check_body(&send.body, &self.limits)?;
        let (caller_limits, caller) = (self.caller_limits(), actor.caller.clone());
        let write = self.store.write_after_checks(move |tx| {
            let me = actor.row(tx)?;
            let work = || accept(&caller_limits.admission(tx, &actor, &me), &send);
            once(tx, me.key, &request, work)
        });
        self.noting(&caller, "send", write.await).await
    }
}

pub(super) fn accept(admission: &Admission<'_, '_>, send: &Send) -> Result<Receipt, Refusal> {
    let &Admission { tx, actor, me, .. } = admission;
    let is_agent = admission.is_agent();
    let turn = admission.turn("messaging")?;
    let parent = actor.cause.parent(turn.as_ref());
    let turn = turn.map(|turn| turn.id);
    if let Some(id) = send.in_reply_to {
        let known = if is_agent {
            message::concerns(tx, id, me.key)?
        } else {
            message::get(tx, id)?.is_some()
        };
        if !known {
            return Err(Refusal::from(MailError::MessageNotFound { id }));
        }
    }
    let (to, recipients) = admission.recipients(&send.to)?;
    if let Some(turn) = turn
        && let Some(receipt) = sent_before(tx, turn, to, send, &recipients)?
    {
        return Ok(receipt);
    }
    let mut skipped = Vec::new();
    let mut open = Vec::new();
    for recipient in recipients {
        match admission.check_inbox(recipient.key, &recipient.name) {
            Ok(()) => open.push(recipient),
            Err(Refusal::Mail(MailError::InboxFull { agent, .. })) if to == To::Everyone => {
                skipped.push(agent);
            }
            Err(refusal) => return Err(refusal),
        }
    }
    if is_agent {
        // Each inbox stores it until it is settled there.
        admission.take_send(send.body.len().saturating_mul(open.len()))?;
    }
    let origin = origin(&actor.caller);
    let ahead = match to {
        To::One(recipient) => Some(inbox::get(tx, recipient)?.open_count),
        To::Everyone => None,
    };
    let sent = Sent { turn, traced: trace::span(tx, parent) };
    let id = write(tx, &origin, me, to, &open, send, sent)?;
    if let (Caller::Operator(who), Some(replied)) = (&actor.caller, send.in_reply_to) {
        settle_operators(tx, replied, who.as_str())?;
    }
    let recipients = u32::try_from(open.len()).unwrap_or(u32::MAX);
    Ok(Receipt {
        message: id,
        already_sent: false,
        skipped,
        recipients,
        accept_time: tx.now.wall,
        ahead,
    })
}

/// Returns the receipt of the equal message of an earlier run of the turn's delivery. Recipients
/// that the message skipped, or that were created later, have not received it.
fn sent_before(
    tx: &Tx<'_>,
    turn: TurnId,
    to: To,
    send: &Send,
    recipients: &[Addressee],
) -> Result<Option<Receipt>, Refusal> {
    let earlier = message::equal_in_earlier_runs(tx, turn, to, send.in_reply_to, &send.body)?;
    let Some((message, accept_time)) = earlier else { return Ok(None) };
    message::absorb(tx, turn, message.get())?;
    let (mut reached, mut skipped) = (0, Vec::new());
    for recipient in recipients {
        match delivery::get(tx, recipient.key, message)? {
            Some(_) => reached += 1,
            None => skipped.push(recipient.name.clone()),
        }
    }
    let (already_sent, ahead) = (true, None);
    Ok(Some(Receipt { message, already_sent, skipped, recipients: reached, accept_time, ahead }))
}

/// Marks a message in the operator's inbox as read, because they have reacted to it.
pub(crate) fn settle_operators(tx: &Tx<'_>, message: MessageId, who: &str) -> Result<(), Refusal> {
    let Some(mut row) = delivery::get(tx, AgentKey::OPERATOR, message)? else { return Ok(()) };
    let before = row.progress.state;
    if before != State::Ready {
        return Ok(());
    }
    let Some(progress) = row.progress.decide(Decision::Ack) else { return Ok(()) };
    row.progress = progress;
    who.clone_into(&mut row.settled_by);
    delivery::save(tx, row, before)?;
    let (acked, detail) = (acked_by_operator(progress), format!("by {who}"));
    log(tx, Fact::about(acked, AgentKey::OPERATOR).message(message).detail(&detail));
    Ok(())
}

fn origin(caller: &Caller) -> Origin {
    match caller {
        Caller::Agent(name) => Origin::Agent(name.clone()),
        Caller::Operator(name) => Origin::Operator(name.as_str().to_owned()),
    }
}

/// Sends a message of a schedule in the name of its owner.
pub(crate) fn write_scheduled(
    tx: &Tx<'_>,
    owner: &AgentRow,
    to: &AgentRow,
    body: &str,
) -> Result<MessageId, Refusal> {
    let name = AgentName::parse(&owner.name)
        .map_err(|_| Refusal::Fault("a row of an agent has no agent's name"))?;
    let recipient = Addressee { key: to.key, name: to.name.clone() };
    let send = Send::new(Recipient::Everyone, body);
    let sent = Sent { turn: None, traced: trace::span(tx, None) };
    write(tx, &Origin::Agent(name), owner, To::One(to.key), &[recipient], &send, sent)
}

/// Where a message is sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    turn: Option<TurnId>,
    traced: Option<Traced>,
}

fn write(
    tx: &Tx<'_>,
    origin: &Origin,
    me: &AgentRow,
    to: To,
    recipients: &[Addressee],
    send: &Send,
    Sent { turn, traced }: Sent,
) -> Result<MessageId, Refusal> {
    let id = new_id(tx);
    let counted = (me.key != AgentKey::OPERATOR).then_some(me.key);
    let new = NewMessage {
        origin_key: Some(me.key),
        recipient_count: u32::try_from(recipients.len()).unwrap_or(u32::MAX),
        in_reply_to: send.in_reply_to,
        turn,
        traced,
        ..NewMessage::new(id, origin, to, &send.body)
    };
    message::insert(tx, &new)?;
    let detail = format!("from {origin}");
    for recipient in recipients {
        delivery::insert(tx, recipient.key, id, Lane::Normal, counted, send.body.len() as u64)?;
        log(
            tx,
            Fact::about(Facts::MessageAccepted, recipient.key)
                .message(id)
                .turn(turn)
                .detail(&detail),
        );
        if recipient.key == AgentKey::OPERATOR {
            outbox::add(tx, outbox::Kind::Mail, me.key, id.get(), &send.body)?;
        }
    }
    if recipients.is_empty() {
        log(
            tx,
            Fact::about(Facts::MessageAccepted, me.key).message(id).turn(turn).detail("to nobody"),
        );
    }
    Ok(id)
}
