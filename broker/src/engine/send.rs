//! Sending: a message is accepted, and lies in every recipient's inbox, in one transaction.
//!
//! Invariant: what is refused leaves nothing behind; what is accepted is on disk before the receipt
//! exists.

use hive_core::caller::Caller;
use hive_core::delivery::{Decision, Lane, State};
use hive_core::event::Kind;
use hive_core::id::{MessageId, TurnId};
use hive_core::limits::Limits;
use hive_core::message::{OPERATOR, Origin, Recipient};
use hive_core::time::WallTime;
use serde::{Deserialize, Serialize};

use super::actor::{self, Actor};
use super::attention::{self, wait_on_operator};
use super::notice::new_id;
use super::once::once;
use super::quota::Quotas;
use super::rate::Buckets;
use super::{Engine, Refusal};
use crate::store::agent::{self, AgentRow};
use crate::store::event::{Fact, log};
use crate::store::message::{self, NewMessage, To};
use crate::store::request::RequestKey;
use crate::store::{AgentKey, Tx, delivery, inbox};

/// A message to be accepted.
#[derive(Clone, Debug)]
pub struct Send {
    /// To whom.
    pub to: Recipient,
    /// The text.
    pub body: String,
    /// What it answers.
    pub in_reply_to: Option<MessageId>,
}

impl Send {
    /// A message that answers nothing.
    pub fn new(to: Recipient, body: impl Into<String>) -> Self {
        Self { to, body: body.into(), in_reply_to: None }
    }
}

/// The receipt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    /// The message.
    pub message: MessageId,
    /// Whether an earlier run had sent it already.
    pub already_sent: bool,
    /// Full inboxes that a broadcast left out.
    pub skipped: Vec<String>,
    /// How many recipients it has.
    pub recipients: u32,
    /// When it was accepted.
    pub accept_time: WallTime,
    /// Unsettled deliveries that the one recipient had then.
    #[serde(default)]
    pub ahead: Option<u32>,
}

/// Checks a body on its own.
pub(crate) fn check_body(body: &str, limits: &Limits) -> Result<(), Refusal> {
    if body.is_empty() {
        return Err(Refusal::Field { field: "body", problem: "a message needs a text".to_owned() });
    }
    if body.len() > limits.body_bytes_max as usize {
        return Err(Refusal::BodyTooLarge { bytes: body.len(), max: limits.body_bytes_max });
    }
    Ok(())
}

/// Checks what the sender may still send, now.
pub(crate) fn check_sender(
    tx: &Tx<'_>,
    limits: &Limits,
    buckets: &Buckets,
    sender: &AgentRow,
    bytes: usize,
) -> Result<(), Refusal> {
    let quotas = Quotas::of(&sender.policy, limits);
    quotas.check_stored(tx, sender, bytes)?;
    quotas.take_send(tx, buckets, sender)
}

/// Checks that an inbox takes one more.
pub(crate) fn check_inbox(tx: &Tx<'_>, limits: &Limits, to: &AgentRow) -> Result<(), Refusal> {
    let depth = inbox::get(tx, to.key)?.open_count;
    if depth >= limits.inbox_depth_max {
        return Err(Refusal::InboxFull {
            agent: to.name.clone(),
            depth,
            max: limits.inbox_depth_max,
        });
    }
    Ok(())
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
        let (limits, buckets) =
            (std::sync::Arc::clone(&self.limits), std::sync::Arc::clone(&self.buckets));
        let sender = actor.caller.clone();
        let sent = self
            .store
            .write(move |tx| {
                let me = actor.row(tx)?;
                once(tx, me.key, &request, || accept(tx, &limits, &buckets, &actor, &me, &send))
            })
            .await;
        self.noting(&sender, "send", sent).await
    }
}

fn accept(
    tx: &Tx<'_>,
    limits: &Limits,
    buckets: &Buckets,
    actor: &Actor,
    me: &AgentRow,
    send: &Send,
) -> Result<Receipt, Refusal> {
    let is_agent = actor.caller.agent().is_some();
    actor::check_group(&actor.caller, me, "messaging")?;
    let turn = if is_agent { actor.turn(tx, me)?.map(|turn| turn.id) } else { None };
    if let Some(id) = send.in_reply_to {
        let known = if is_agent {
            message::concerns(tx, id, me.key)?
        } else {
            message::get(tx, id)?.is_some()
        };
        if !known {
            return Err(Refusal::MessageNotFound { id });
        }
    }
    let (to, recipients) = resolve(tx, me, is_agent, &send.to)?;
    if let Some(turn) = turn
        && let Some((earlier, accept_time)) =
            message::equal_in_earlier_runs(tx, turn, to, send.in_reply_to, &send.body)?
    {
        message::absorb(tx, turn, earlier.get())?;
        // The receipt is that of the earlier message: who was left out then, or came later, has not
        // got it.
        let (mut reached, mut skipped) = (0, Vec::new());
        for recipient in recipients {
            match delivery::get(tx, recipient.key, earlier)? {
                Some(_) => reached += 1,
                None => skipped.push(recipient.name),
            }
        }
        return Ok(Receipt {
            message: earlier,
            already_sent: true,
            skipped,
            recipients: reached,
            accept_time,
            ahead: None,
        });
    }
    let mut skipped = Vec::new();
    let mut open = Vec::new();
    for recipient in recipients {
        match check_inbox(tx, limits, &recipient) {
            Ok(()) => open.push(recipient),
            Err(Refusal::InboxFull { agent, .. }) if to == To::Everyone => skipped.push(agent),
            Err(refusal) => return Err(refusal),
        }
    }
    if is_agent {
        // Each inbox keeps it until it is settled there.
        check_sender(tx, limits, buckets, me, send.body.len().saturating_mul(open.len()))?;
    }
    let origin = origin(&actor.caller);
    let ahead = match to {
        To::One(recipient) => Some(inbox::get(tx, recipient)?.open_count),
        To::Everyone => None,
    };
    let id = write(tx, &origin, me, to, &open, send, turn)?;
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
    delivery::save(tx, &mut row, before)?;
    let detail = format!("by {who}");
    Ok(log(
        tx,
        Fact {
            message: Some(message),
            detail: &detail,
            ..Fact::about(Kind::DeliveryAcked, AgentKey::OPERATOR)
        },
    )?)
}

fn origin(caller: &Caller) -> Origin {
    match caller {
        Caller::Agent(name) => Origin::Agent(name.clone()),
        Caller::Operator(name) => Origin::Operator(name.as_str().to_owned()),
    }
}

fn write(
    tx: &Tx<'_>,
    origin: &Origin,
    me: &AgentRow,
    to: To,
    recipients: &[AgentRow],
    send: &Send,
    turn: Option<TurnId>,
) -> Result<MessageId, Refusal> {
    let id = new_id(tx);
    let counted = (me.key != AgentKey::OPERATOR).then_some(me.key);
    let new = NewMessage {
        id,
        origin,
        origin_key: Some(me.key),
        to,
        body: &send.body,
        in_reply_to: send.in_reply_to,
        system_kind: None,
        turn,
        coalescing_key: None,
        question: None,
        reminder: None,
    };
    message::insert(tx, &new)?;
    let detail = format!("from {origin}");
    for recipient in recipients {
        delivery::insert(tx, recipient.key, id, Lane::Normal, counted, send.body.len() as u64)?;
        log(
            tx,
            Fact {
                message: Some(id),
                turn,
                detail: &detail,
                ..Fact::about(Kind::MessageAccepted, recipient.key)
            },
        )?;
        if recipient.key == AgentKey::OPERATOR {
            wait_on_operator(tx, attention::Kind::Mail, me.key, id.get(), &send.body)?;
        }
    }
    if recipients.is_empty() {
        log(
            tx,
            Fact {
                message: Some(id),
                turn,
                detail: "to nobody",
                ..Fact::about(Kind::MessageAccepted, me.key)
            },
        )?;
    }
    Ok(id)
}

/// Who is meant, and whether the sender may write to them.
pub(crate) fn resolve(
    tx: &Tx<'_>,
    me: &AgentRow,
    is_agent: bool,
    to: &Recipient,
) -> Result<(To, Vec<AgentRow>), Refusal> {
    let parent = me.parent.unwrap_or(AgentKey::OPERATOR);
    let one = |row: AgentRow| {
        if is_agent && !is_allowed(me, &row) {
            return Err(not_allowed(me, &row.name));
        }
        Ok((To::One(row.key), vec![row]))
    };
    match to {
        Recipient::Agent(name) => one(actor::active(tx, name.as_str())?),
        Recipient::Operator if is_agent => one(agent::by_key(tx, AgentKey::OPERATOR)?),
        Recipient::Parent if is_agent => one(agent::by_key(tx, parent)?),
        Recipient::Operator | Recipient::Parent => Err(Refusal::Field {
            field: "to",
            problem: "the operator cannot write to themselves; name an agent".to_owned(),
        }),
        Recipient::Everyone => {
            if is_agent && !is_named(me, "*") {
                return Err(not_allowed(me, "*"));
            }
            let mut everyone = agent::active(tx)?;
            everyone.retain(|row| row.key != me.key);
            Ok((To::Everyone, everyone))
        }
    }
}

/// Whether an agent may send to another: it has the tools to, and its policy allows this recipient.
pub(super) fn may_write(me: &AgentRow, to: &AgentRow) -> bool {
    me.policy.has_group("messaging") && is_allowed(me, to)
}

/// Whether a policy allows this recipient; the parent is always allowed.
fn is_allowed(me: &AgentRow, to: &AgentRow) -> bool {
    to.key == me.parent.unwrap_or(AgentKey::OPERATOR) || is_named(me, &to.name)
}

fn is_named(me: &AgentRow, recipient: &str) -> bool {
    let allowed = &me.policy.allowed_recipients;
    allowed.is_empty() || allowed.iter().any(|name| name == recipient)
}

fn not_allowed(me: &AgentRow, recipient: &str) -> Refusal {
    let mut allowed = me.policy.allowed_recipients.clone();
    allowed.push(me.parent.map_or(OPERATOR, |_| "<parent>").to_owned());
    Refusal::RecipientNotAllowed { recipient: recipient.to_owned(), allowed }
}
