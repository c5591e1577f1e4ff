//! Refusals in the log: what policy did not allow is an event, so that the operator sees it.
//!
//! Invariant: an agent that is refused all the time cannot fill the log: of refused rights a
//! bounded number a minute is kept, of quotas one.

use hive_core::caller::Caller;
use hive_core::event::Kind;

use super::rate::Buckets;
use super::{Engine, Refusal, actor};
use crate::store::event::{Fact, log};

/// Refusals of a right that are kept, per agent and minute.
const RIGHTS_PER_MINUTE: u32 = 60;
/// Refusals by a quota that are kept, per agent and minute.
const QUOTAS_PER_MINUTE: u32 = 1;

/// How many refusals may still be logged.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    rights: Buckets,
    quotas: Buckets,
}

/// What of an agent's policy refused it.
enum Ground {
    Right,
    Quota,
}

fn ground(refusal: &Refusal) -> Option<Ground> {
    use hive_core::reason::Reason;
    match refusal.reason() {
        Reason::RecipientNotAllowed
        | Reason::CapabilityMissing
        | Reason::NotTheTarget
        | Reason::NotYourChild
        | Reason::NotYours => Some(Ground::Right),
        Reason::RateLimited
        | Reason::StorageFull
        | Reason::QuestionLimit
        | Reason::ReminderLimit => Some(Ground::Quota),
        Reason::FieldInvalid
        | Reason::AgentNotFound
        | Reason::AgentRetired
        | Reason::MessageNotFound
        | Reason::DeliveryNotFound
        | Reason::QuestionNotFound
        | Reason::ReminderNotFound
        | Reason::TurnNotFound
        | Reason::CommandNotFound
        | Reason::RequestIdReused
        | Reason::AgentExists
        | Reason::NotAnAgent
        | Reason::PeerNotTrusted
        | Reason::LeaseLost
        | Reason::TurnEnded
        | Reason::TurnOpen
        | Reason::AlreadyAttached
        | Reason::AgentParked
        | Reason::AgentStopped
        | Reason::AgentPurging
        | Reason::HarnessOffline
        | Reason::LoginOpen
        | Reason::LoginNotFound
        | Reason::WrongState
        | Reason::QuestionClosed
        | Reason::TopologyCycle
        | Reason::StatusTooLong
        | Reason::InboxFull
        | Reason::BodyTooLarge
        | Reason::CallLimit
        | Reason::Starting
        | Reason::Draining
        | Reason::StorageUnavailable
        | Reason::Internal => None,
    }
}

impl Engine {
    /// Hands on what a call gave; where policy refused it, that is logged first.
    pub(crate) async fn noting<T>(
        &self,
        caller: &Caller,
        call: &'static str,
        given: Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        if let Err(refusal) = &given
            && caller.agent().is_some()
            && let Some(ground) = ground(refusal)
        {
            let (key, now) = (self.key_of(caller).await?, self.clock.now().boot);
            let kept = match ground {
                Ground::Right => self.refusals.rights.take(key, RIGHTS_PER_MINUTE, now),
                Ground::Quota => self.refusals.quotas.take(key, QUOTAS_PER_MINUTE, now),
            };
            if kept.is_ok() {
                let (caller, detail) = (caller.clone(), format!("{call}: {refusal}"));
                let logged = self.store.write(move |tx| {
                    let me = actor::row(tx, &caller)?;
                    Ok::<_, Refusal>(log(
                        tx,
                        Fact { detail: &detail, ..Fact::about(Kind::Refused, me.key) },
                    )?)
                });
                // That it was refused stands, whether or not that could be written.
                if let Err(error) = logged.await {
                    tracing::warn!(%error, "a refusal could not be logged");
                }
            }
        }
        given
    }
}
