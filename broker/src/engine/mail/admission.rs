//! Admission: the checks before a message, a question, a reminder or a wake is accepted.
//!
//! An agent is bounded by its policy, and by the limits of the hive for what the policy does not
//! state. The operator is bounded by the room in an inbox alone. Invariant: a check that fails
//! changes nothing, and the rate is taken last, so a refused call costs no message of the minute.

use crate::engine::error::{MailError, QuestionError, ReminderError};
use std::sync::Arc;

use hive_core::caller::Caller;
use hive_core::limits::Limits;
use hive_core::message::{OPERATOR, Recipient};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::engine::actor::{self, Actor};
use crate::engine::once::once;
use crate::engine::rate::Buckets;
use crate::engine::{Engine, Refusal};
use crate::store::agent::{self, Addressee, AgentRow};
use crate::store::message::To;
use crate::store::request::RequestKey;
use crate::store::turn::TurnRow;
use crate::store::{AgentKey, Answer, Tx, inbox};

/// The limits of the callers of a hive.
#[derive(Clone)]
pub(crate) struct CallerLimits {
    limits: Arc<Limits>,
    buckets: Arc<Buckets>,
}

impl CallerLimits {
    /// Returns the admission of one command.
    pub(crate) fn admission<'a, 'tx>(
        &'a self,
        tx: &'a Tx<'tx>,
        actor: &'a Actor,
        me: &'a AgentRow,
    ) -> Admission<'a, 'tx> {
        Admission { tx, limits: &self.limits, buckets: &self.buckets, actor, me }
    }
}

impl Engine {
    pub(crate) fn caller_limits(&self) -> CallerLimits {
        CallerLimits { limits: Arc::clone(&self.limits), buckets: Arc::clone(&self.buckets) }
    }

    /// Does work for an actor in one transaction, once for each request. The log notes under the
    /// name of the `call` if the actor's policy refuses it.
    pub(crate) fn act<T, F>(
        &self,
        call: &'static str,
        actor: Actor,
        request: RequestKey,
        work: F,
    ) -> impl Future<Output = Result<T, Refusal>> + Send
    where
        T: Serialize + DeserializeOwned + Send + 'static,
        F: FnOnce(Admission<'_, '_>) -> Result<T, Refusal> + Send + 'static,
    {
        self.act_and_read(call, actor, request, work, |_, answer| Ok(answer))
    }

    /// Does the same, and then reads the present state of what the answer names.
    pub(crate) fn act_and_read<T, F, R, G>(
        &self,
        call: &'static str,
        actor: Actor,
        request: RequestKey,
        work: F,
        read: G,
    ) -> impl Future<Output = Result<R, Refusal>> + Send
    where
        T: Serialize + DeserializeOwned,
        F: FnOnce(Admission<'_, '_>) -> Result<T, Refusal> + Send + 'static,
        R: Send + 'static,
        G: FnOnce(&Tx<'_>, T) -> Result<R, Refusal> + Send + 'static,
    {
        let (caller_limits, caller) = (self.caller_limits(), actor.caller.clone());
        let write = self.store.write(move |tx| {
            let me = actor.row(tx)?;
            let answer =
                once(tx, me.key, &request, || work(caller_limits.admission(tx, &actor, &me)))?;
            read(tx, answer)
        });
        self.noted(caller, call, write)
    }

    /// Waits for an answer, and has the log note a refusal by the caller's policy.
    async fn noted<R>(
        &self,
        caller: Caller,
        call: &'static str,
        answer: Answer<'_, R, Refusal>,
    ) -> Result<R, Refusal> {
        let done = answer.await;
        self.noting(&caller, call, done).await
    }
}

/// The admission of one command: its transaction, its caller, and the caller's limits.
#[derive(Clone, Copy)]
pub(crate) struct Admission<'a, 'tx> {
    pub(crate) tx: &'a Tx<'tx>,
    pub(crate) limits: &'a Limits,
    buckets: &'a Buckets,
    pub(crate) actor: &'a Actor,
    pub(crate) me: &'a AgentRow,
}

impl Admission<'_, '_> {
    /// Returns whether the caller is an agent.
    pub(crate) fn is_agent(&self) -> bool {
        self.actor.caller.agent().is_some()
    }

    /// Checks the tool group, and returns the turn that the call belongs to, if there is one.
    pub(crate) fn turn(&self, group: &'static str) -> Result<Option<TurnRow>, Refusal> {
        actor::check_group(&self.actor.caller, self.me, group)?;
        if !self.is_agent() {
            return Ok(None);
        }
        self.actor.turn(self.tx, self.me)
    }

    /// Checks that an inbox has room for one more message.
    pub(crate) fn check_inbox(&self, to: AgentKey, name: &str) -> Result<(), Refusal> {
        let (depth, max) = (inbox::get(self.tx, to)?.open_count, self.limits.inbox_depth_max);
        if depth >= max {
            return Err(Refusal::from(MailError::InboxFull { agent: name.to_owned(), depth, max }));
        }
        Ok(())
    }

    /// Checks that the caller may ask one more question; it has this many open.
    pub(crate) fn check_questions(&self, open: u32) -> Result<(), Refusal> {
        let max = self.me.policy.questions_open_max.unwrap_or(self.limits.questions_open_max);
        if open >= max { Err(Refusal::from(QuestionError::Limit { open, max })) } else { Ok(()) }
    }

    /// Checks that the caller may set one more reminder; it has this many pending.
    pub(crate) fn check_reminders(&self, pending: u32) -> Result<(), Refusal> {
        let policy = &self.me.policy;
        let max = policy.reminders_pending_max.unwrap_or(self.limits.reminders_pending_max);
        if pending >= max {
            Err(Refusal::from(ReminderError::Limit { pending, max }))
        } else {
            Ok(())
        }
    }

    /// Checks that this many bytes may be stored in inboxes for the caller, and takes one message
    /// of its minute.
    pub(crate) fn take_send(&self, bytes: usize) -> Result<(), Refusal> {
        let policy = &self.me.policy;
        let max = policy.sender_stored_bytes_max.unwrap_or(self.limits.sender_stored_bytes_max);
        let stored = inbox::get(self.tx, self.me.key)?.stored_bytes;
        if stored + bytes as u64 > max {
            return Err(Refusal::from(MailError::StorageFull { bytes: stored, max }));
        }
        self.take_rate()
    }

    /// Takes one message of the caller's minute.
    pub(crate) fn take_rate(&self) -> Result<(), Refusal> {
        let policy = &self.me.policy;
        let per_minute = policy.sends_per_minute_max.unwrap_or(self.limits.sends_per_minute_max);
        self.buckets
            .take(self.me.key, per_minute, self.tx.now.boot)
            .map_err(|retry_after| MailError::RateLimited { per_minute, retry_after }.into())
    }

    /// Returns the one recipient, if the caller may write to it; `None` if all are meant.
    pub(crate) fn recipient(&self, to: &Recipient) -> Result<Option<Arc<AgentRow>>, Refusal> {
        let (tx, me, is_agent) = (self.tx, self.me, self.is_agent());
        let row = match to {
            Recipient::Agent(name) => actor::active(tx, name.as_str())?,
            Recipient::Operator if is_agent => agent::by_key(tx, AgentKey::OPERATOR)?,
            Recipient::Parent if is_agent => {
                agent::by_key(tx, me.parent.unwrap_or(AgentKey::OPERATOR))?
            }
            Recipient::Operator | Recipient::Parent => {
                return Err(Refusal::Field {
                    field: "to",
                    problem: "the operator cannot write to themselves; name an agent".to_owned(),
                });
            }
            Recipient::Everyone => return Ok(None),
        };
        if is_agent && !is_allowed(me, &row) {
            return Err(not_allowed(me, &row.name));
        }
        Ok(Some(row))
    }

    /// Returns the recipients, if the caller may write to each of them.
    pub(crate) fn recipients(&self, to: &Recipient) -> Result<(To, Vec<Addressee>), Refusal> {
        if let Some(row) = self.recipient(to)? {
            return Ok((
                To::One(row.key),
                vec![Addressee { key: row.key, name: row.name.clone() }],
            ));
        }
        if self.is_agent() && !is_named(self.me, "*") {
            return Err(not_allowed(self.me, "*"));
        }
        Ok((To::Everyone, agent::others(self.tx, self.me.key)?))
    }
}

/// Checks a body by itself.
pub(crate) fn check_body(body: &str, limits: &Limits) -> Result<(), Refusal> {
    if body.is_empty() {
        return Err(Refusal::Field { field: "body", problem: "a message needs a text".to_owned() });
    }
    if body.len() > limits.body_bytes_max as usize {
        return Err(Refusal::from(MailError::BodyTooLarge {
            field: "body",
            bytes: body.len(),
            max: limits.body_bytes_max,
        }));
    }
    Ok(())
}

/// Returns whether an agent may send to another: it has the tools, and its policy allows this
/// recipient.
pub(crate) fn may_write(me: &AgentRow, to: &AgentRow) -> bool {
    me.policy.has_group("messaging") && is_allowed(me, to)
}

/// Returns whether a policy allows this recipient; the parent is always allowed.
fn is_allowed(me: &AgentRow, to: &AgentRow) -> bool {
    to.key == me.parent.unwrap_or(AgentKey::OPERATOR) || is_named(me, &to.name)
}

fn is_named(me: &AgentRow, recipient: &str) -> bool {
    let allowed = &me.policy.allowed_recipients;
    allowed.is_empty() || allowed.iter().any(|name| name == recipient)
}

/// Returns the refusal of a recipient that the policy of an agent does not allow.
pub(crate) fn not_allowed(me: &AgentRow, recipient: &str) -> Refusal {
    let mut allowed = me.policy.allowed_recipients.clone();
    allowed.push(me.parent.map_or(OPERATOR, |_| "<parent>").to_owned());
    MailError::RecipientNotAllowed { recipient: recipient.to_owned(), allowed }.into()
}
