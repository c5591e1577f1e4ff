//! Leaving: the harness of an agent that runs on demand ends when there is no work.
//!
//! Invariant: the look for work and the end of the session are one transaction. Mail that is
//! accepted before it keeps the harness; mail that is accepted after it finds no harness, so a
//! launcher starts one.

use std::sync::Arc;

use hive_core::agent::Wanted;
use hive_core::caller::Caller;
use hive_core::event::{HarnessLoss, HarnessLost};
use hive_core::park;
use hive_core::time::BootTime;

use crate::engine::actor::session;
use crate::engine::mail::serving::is_due;
use crate::engine::{Engine, Refusal};
use crate::store::agent::{self, AgentRow};
use crate::store::event::{Fact, log};
use crate::store::{Effect, PresenceChange, Tx, command, delivery, turn};

/// The work that an agent has for a harness.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// There is mail, and no park.
    Now,
    /// There may be some at this time.
    At(BootTime),
    /// Only new mail is work.
    None,
}

/// Returns the work of an agent.
pub(crate) fn work(tx: &Tx<'_>, row: &AgentRow) -> Result<Work, Refusal> {
    let at = |due: Option<BootTime>| due.map_or(Work::None, Work::At);
    if let Some(parked) = row.parked(tx.now) {
        return Ok(at(parked.park.due(tx.now)));
    }
    if is_due(tx, row.key)? {
        return Ok(Work::Now);
    }
    Ok(at(delivery::next_due(tx, row.key, tx.now)?))
}

impl Engine {
    /// Ends the session of a harness if its agent runs on demand and has no work; returns whether
    /// it has ended.
    pub async fn leave(&self, caller: Caller, session_token: String) -> Result<bool, Refusal> {
        self.check_open()?;
        let (presences, logins) = (Arc::clone(&self.presences), Arc::clone(&self.logins));
        self.store
            .write(move |tx| {
                let me = session(tx, &caller, &session_token)?;
                presences.touch(me.key, &session_token, tx.now.boot);
                // Only a harness can open the dialogue that ends such a park.
                let waits_for_login =
                    me.parked(tx.now).is_some_and(|parked| park::ends_by_login(parked.cause));
                let is_needed = me.wanted() != Wanted::OnDemand
                    || waits_for_login
                    || logins.is_wanted(me.key)
                    || !turn::open_all(tx, me.key)?.is_empty()
                    || !command::open(tx, me.key, 0)?.is_empty()
                    || work(tx, &me)? == Work::Now;
                if is_needed {
                    return Ok(false);
                }
                agent::clear_session(tx, me.key)?;
                let epoch = me.session_epoch;
                let left = HarnessLost { session_epoch: epoch, loss: HarnessLoss::Left };
                log(tx, Fact::about(left, me.key).detail("left"));
                tx.after_commit(Effect::Presence(me.key, PresenceChange::Ended { epoch }));
                Ok(true)
            })
            .await
    }
}
