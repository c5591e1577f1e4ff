//! Wakes: a co-process of an agent adds mail to that agent's inbox.
//!
//! Invariant: a label never looks like an agent, the operator or the broker, so a co-process cannot
//! imitate them.

use hive_core::delivery::Lane;
use hive_core::event::Facts;
use hive_core::id::MessageId;
use hive_core::limits::COALESCING_KEY_CHARS_MAX;
use hive_core::message::Origin;
use hive_core::name::Label;
use serde::{Deserialize, Serialize};

use super::admission::{Admission, check_body};
use super::notice::{new_id, supersede};
use crate::engine::actor::Actor;
use crate::engine::actor::session;
use crate::engine::once::once;
use crate::engine::{Engine, Refusal, trace};
use crate::store::agent::Agents;
use crate::store::event::{Fact, log};
use crate::store::message::{self, NewMessage, To};
use crate::store::request::RequestKey;
use crate::store::{agent, delivery};

/// The request of a co-process to start a turn.
#[derive(Clone, Debug)]
pub struct Wake {
    /// The label of the co-process.
    pub label: Label,
    /// The text.
    pub body: String,
    /// The key with which it replaces an undelivered wake that has the same key.
    pub coalescing_key: Option<String>,
    /// The token that proves that the agent's harness sends it; its wake gets the lane `system`.
    pub session_token: Option<String>,
}

/// The receipt of a wake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Woken {
    /// The id of the message.
    pub message: MessageId,
    /// The undelivered message that it replaced.
    pub superseded: Option<MessageId>,
}

/// Refuses a label that looks like the name of a present or retired agent, or like a reserved word.
pub(crate) fn label_of_nobody(conn: &impl Agents, label: &Label) -> Result<(), Refusal> {
    let refused = |problem| Err(Refusal::Field { field: "label", problem });
    if let Some(word) = label.looks_reserved() {
        return refused(format!("`{word}` is a reserved word; a label must not look like one"));
    }
    for name in label.looks_like() {
        if agent::by_name(conn, name)?.is_some() {
            return refused(format!(
                "`{name}` is the name of an agent; a label must not look like one"
            ));
        }
    }
    Ok(())
}

impl Engine {
    /// Accepts a wake for the caller's own inbox.
    pub async fn wake(
        &self,
        actor: Actor,
        request: RequestKey,
        wake: Wake,
    ) -> Result<Woken, Refusal> {
        self.check_open()?;
        check_body(&wake.body, &self.limits)?;
        if let Some(key) = &wake.coalescing_key
            && key.chars().count() > COALESCING_KEY_CHARS_MAX
        {
            let problem =
                format!("a coalescing key has at most {COALESCING_KEY_CHARS_MAX} characters");
            return Err(Refusal::Field { field: "coalescing_key", problem });
        }
        let (caller_limits, caller) = (self.caller_limits(), actor.caller.clone());
        let woken = self
            .store
            .write(move |tx| {
                let me = match &wake.session_token {
                    Some(token) => session(tx, &actor.caller, token)?,
                    None => actor.row(tx)?,
                };
                once(tx, me.key, &request, || put(&caller_limits.admission(tx, &actor, &me), &wake))
            })
            .await;
        self.noting(&caller, "wake", woken).await
    }
}

fn put(admission: &Admission<'_, '_>, wake: &Wake) -> Result<Woken, Refusal> {
    let Admission { tx, actor, me, .. } = *admission;
    label_of_nobody(tx, &wake.label)?;
    let origin = Origin::External(wake.label.clone());
    let superseded = match &wake.coalescing_key {
        Some(key) => message::coalescable(tx, me.key, &origin, key)?,
        None => None,
    };
    if let Some(older) = superseded {
        supersede(tx, me.key, older)?;
    }
    admission.check_inbox(me.key, &me.name)?;
    admission.take_send(wake.body.len())?;
    let id = new_id(tx);
    let new = NewMessage {
        origin_key: Some(me.key),
        coalescing_key: wake.coalescing_key.as_deref(),
        traced: trace::span(tx, actor.cause.parent(None)),
        ..NewMessage::new(id, &origin, To::One(me.key), &wake.body)
    };
    message::insert(tx, &new)?;
    let lane = if wake.session_token.is_some() { Lane::System } else { Lane::Normal };
    delivery::insert(tx, me.key, id, lane, Some(me.key), wake.body.len() as u64)?;
    let detail = format!("from {origin}");
    log(tx, Fact::about(Facts::MessageAccepted, me.key).message(id).detail(&detail));
    Ok(Woken { message: id, superseded })
}
