//! Refusals in the log: a refusal by policy is an event, so that the operator sees it.
//!
//! Invariant: an agent that is refused all the time cannot fill the log. Per minute the log gets a
//! limited number of refused rights, and one refusal by a quota.

use hive_core::caller::Caller;
use hive_core::event::CallRefused;
use hive_core::reason::Reason;

use super::rate::Buckets;
use super::{Engine, Refusal, actor};
use crate::store::event::{Fact, log};

/// Logged refusals of a right, per agent and minute.
const RIGHTS_PER_MINUTE: u32 = 60;
/// Logged refusals by a quota, per agent and minute.
const QUOTAS_PER_MINUTE: u32 = 1;

/// The buckets that limit logged refusals.
#[derive(Debug, Default)]
pub(crate) struct Refusals {
    rights: Buckets,
    quotas: Buckets,
}

/// The part of an agent's policy that refused a call.
enum Ground {
    Right,
    Quota,
}

/// Returns the part of the policy behind a reason. The match lists every reason, so that the author
/// of a new one decides.
fn ground(reason: Reason) -> Option<Ground> {
    match reason {
        Reason::RecipientNotAllowed
        | Reason::CapabilityMissing
        | Reason::NotTheTarget
        | Reason::NotYourChild
        | Reason::NotYours => Some(Ground::Right),
        Reason::RateLimited
        | Reason::StorageFull
        | Reason::QuestionLimit
        | Reason::ReminderLimit
        | Reason::ScheduleLimit => Some(Ground::Quota),
        Reason::MethodNotServed
        | Reason::RequestCompressed
        | Reason::FieldInvalid
        | Reason::AgentNotFound
        | Reason::AgentRetired
        | Reason::MessageNotFound
        | Reason::DeliveryNotFound
        | Reason::QuestionNotFound
        | Reason::ReminderNotFound
        | Reason::ScheduleNotFound
        | Reason::TurnNotFound
        | Reason::CommandNotFound
        | Reason::RequestIdReused
        | Reason::AgentExists
        | Reason::EtagMismatch
        | Reason::DiffChanged
        | Reason::SocketLimit
        | Reason::NotAnAgent
        | Reason::PeerNotTrusted
        | Reason::LeaseLost
        | Reason::StreamReplaced
        | Reason::StreamSilent
        | Reason::SessionLost
        | Reason::TurnEnded
        | Reason::HarnessAttached
        | Reason::TurnOpen
        | Reason::AlreadyAttached
        | Reason::LauncherAttached
        | Reason::LauncherOffline
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
    /// Returns the result of a call; a refusal by policy is logged first.
    pub(crate) async fn noting<T>(
        &self,
        caller: &Caller,
        call: &'static str,
        given: Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        if let Err(refusal) = &given {
            self.note(caller, call, refusal).await;
        }
        given
    }

    /// Logs a refusal, if it is one by policy.
    pub(crate) async fn note(&self, caller: &Caller, call: &'static str, refusal: &Refusal) {
        let (buckets, per_minute) = match ground(refusal.reason()) {
            Some(Ground::Right) => (&self.refusals.rights, RIGHTS_PER_MINUTE),
            Some(Ground::Quota) => (&self.refusals.quotas, QUOTAS_PER_MINUTE),
            None => return,
        };
        if caller.agent().is_none() {
            return;
        }
        let now = self.clock.now().boot;
        // The refusal holds, even if it could not be logged.
        let Ok(key) = self.key_of(caller).await else { return };
        if buckets.take(key, per_minute, now).is_ok() {
            let (caller, detail) = (caller.clone(), format!("{call}: {refusal}"));
            let refused = CallRefused { reason: refusal.reason() };
            let logged = self.store.write(move |tx| {
                let me = actor::row(tx, &caller)?;
                log(tx, Fact::about(refused, me.key).detail(&detail));
                Ok::<_, Refusal>(())
            });
            if let Err(error) = logged.await {
                tracing::warn!(%error, "a refusal could not be logged");
            }
        }
    }
}
