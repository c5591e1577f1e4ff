//! The first commit of a broker on a restored backup: a new log begins, and what was running when
//! the backup was made has ended.
//!
//! The clients of the replaced database may have gone on for long after the backup, so none of
//! their sessions, turns and leases may continue. Invariant: until that commit the backup is
//! marked, so that a broker which is killed before it begins again.

use hive_core::agent::HarnessState;
use hive_core::delivery::{RedeliveryCause, Settlement};
use hive_core::event::{Facts, HarnessLoss, HarnessLost};
use hive_core::id::TurnId;
use hive_core::limits::Limits;

use crate::engine::mail::settle::settle;
use crate::engine::turn::end::end_restored_turns;
use crate::engine::{Engine, Refusal, action, token};
use crate::store::event::{Fact, log as log_event};
use crate::store::{Tx, agent, delivery, log};

/// What the ends of turns and leases say.
const ERROR: &str = "a backup has replaced the database";

impl Engine {
    /// Deletes what the files beside the database hold of a database that a backup has replaced:
    /// the search index, and the lines of turns that the backup does not have.
    pub(super) async fn forget_replaced(&self, newest: Option<TurnId>) -> Result<(), Refusal> {
        self.searching.forget();
        let lines = std::sync::Arc::clone(&self.turn_events);
        self.store.blocking(move || lines.forget_after(newest)).await??;
        Ok(())
    }
}

/// Returns the identity of the log. Begins a log if the database has none, or is a backup.
pub(super) fn log_id(tx: &Tx<'_>, limits: &Limits) -> Result<String, Refusal> {
    let restored = log::backup_time(tx)?.is_some();
    if let Some(id) = log::id(tx)?.filter(|_| !restored) {
        return Ok(id);
    }
    let id = token::new();
    if restored {
        log_event(tx, Fact::of_hive(Facts::LogBegun).detail(ERROR));
        for me in agent::active(tx)? {
            end_restored_turns(tx, limits, &me, ERROR)?;
            for mut row in delivery::leased_of(tx, me.key)? {
                ERROR.clone_into(&mut row.last_error);
                settle(tx, limits, &me, row, Settlement::GiveBack(RedeliveryCause::Restored))?;
            }
            if me.session_token.is_some() {
                agent::clear_session(tx, me.key)?;
                agent::set_harness_state(tx, me.key, HarnessState::Offline)?;
                let lost =
                    HarnessLost { session_epoch: me.session_epoch, loss: HarnessLoss::Restored };
                log_event(tx, Fact::about(lost, me.key).detail(ERROR));
            }
        }
        action::restored(tx, limits)?;
        tracing::warn!("a backup has replaced the database; a new log begins");
    }
    log::begin(tx, &id)?;
    Ok(id)
}
