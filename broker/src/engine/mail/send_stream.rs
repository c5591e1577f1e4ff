//! Streams of messages: sends in order, many in one commit.
//!
//! One group of messages is written at a time. Invariant: once a message was not accepted and may
//! be accepted later, or its outcome is not known, no message behind it is accepted. So a client
//! that repeats all unanswered messages keeps their order.

use std::sync::Arc;

use hive_core::reason::{Reason, Retry};

use super::admission::check_body;
use super::send::{Receipt, Send, accept};
use crate::engine::actor::Actor;
use crate::engine::once::once;
use crate::engine::{Engine, Refusal};
use crate::store::CommandError as _;
use crate::store::request::RequestKey;

/// The answer to one message.
pub type Answer = Result<Receipt, Refusal>;

/// An open stream of messages.
#[derive(Debug)]
pub struct SendStream {
    engine: Arc<Engine>,
    actor: Actor,
    is_over: bool,
}

impl SendStream {
    /// Returns the stream of a caller.
    #[must_use]
    pub fn new(engine: Arc<Engine>, actor: Actor) -> Self {
        Self { engine, actor, is_over: false }
    }

    /// Accepts messages in order, in one commit. Returns an answer for each up to the one that ends
    /// the stream, and the refusal that ends it.
    pub async fn send(&mut self, group: Vec<(RequestKey, Send)>) -> (Vec<Answer>, Option<Refusal>) {
        if self.is_over {
            return (Vec::new(), Some(Refusal::Draining));
        }
        let mut answers = match self.write(group).await {
            Ok(answers) => answers,
            Err(_) if hive_fault::planted!(SentBehindUnknown) => return (Vec::new(), None),
            Err(unknown) => {
                self.is_over = true;
                return (Vec::new(), Some(unknown));
            }
        };
        let ends = answers.last().is_some_and(|last| last.as_ref().is_err_and(ends));
        self.is_over = ends;
        let end = if ends { answers.pop().and_then(Result::err) } else { None };
        // Each refusal by policy is in the log, as that of a unary send.
        for refused in answers.iter().filter_map(|answer| answer.as_ref().err()).chain(&end) {
            self.engine.note(&self.actor.caller, "send", refused).await;
        }
        (answers, end)
    }

    async fn write(&self, group: Vec<(RequestKey, Send)>) -> Result<Vec<Answer>, Refusal> {
        self.engine.check_open()?;
        let (actor, limits) = (self.actor.clone(), Arc::clone(&self.engine.limits));
        let caller_limits = self.engine.caller_limits();
        let work = move |tx: &crate::store::Tx<'_>| {
            let me = actor.row(tx)?;
            let admission = caller_limits.admission(tx, &actor, &me);
            let mut answers = Vec::with_capacity(group.len());
            for (request, send) in &group {
                let accepted = check_body(&send.body, &limits)
                    .and_then(|()| once(tx, me.key, request, || accept(&admission, send)));
                match accepted {
                    Err(refusal) if refusal.storage().is_some() => return Err(refusal),
                    answer => answers.push(answer),
                }
                if answers.last().is_some_and(|last| last.as_ref().is_err_and(ends)) {
                    break;
                }
            }
            Ok(answers)
        };
        self.engine.store.write_after_checks(work).await
    }
}

/// Returns whether a refusal ends the stream.
fn ends(refusal: &Refusal) -> bool {
    let reason = refusal.reason();
    reason.retry() != Retry::Never || reason == Reason::TurnEnded
}
