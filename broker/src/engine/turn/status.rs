//! Status: an agent's own text, and the state of its harness.

use crate::engine::error::AgentError;
use std::sync::Arc;

use hive_core::agent::{HarnessState, STATUS_CHARS_MAX};
use hive_core::caller::Caller;
use hive_core::event::{Facts, HarnessStateChanged};
use hive_core::message::SystemKind;
use hive_core::park::{self, Park, Parked, Reported};
use hive_core::turn::Outcome;

use super::park::{park_for, recovered};
use crate::engine::actor::Actor;
use crate::engine::actor::session;
use crate::engine::{Engine, Refusal};
use crate::store::agent;
use crate::store::event::{Fact, log};
use crate::store::request::RequestKey;

impl Engine {
    /// Sets the agent's own status.
    pub async fn set_status_text(
        &self,
        actor: Actor,
        request: RequestKey,
        text: String,
    ) -> Result<(), Refusal> {
        self.check_open()?;
        actor.check_agent()?;
        let chars = text.chars().count();
        if chars > STATUS_CHARS_MAX {
            return Err(Refusal::from(AgentError::StatusTooLong { chars, max: STATUS_CHARS_MAX }));
        }
        if text.contains(char::is_control) {
            let problem = "a status is one line without control characters".to_owned();
            return Err(Refusal::Field { field: "text", problem });
        }
        self.act("set status", actor, request, move |admission| {
            let (tx, me) = (admission.tx, admission.me);
            admission.turn("meta")?;
            agent::set_status_text(tx, me.key, &text)?;
            log(tx, Fact::about(Facts::StatusChanged, me.key).detail(&text));
            Ok(())
        })
        .await
    }

    /// Stores the state of the harness. A harness without a login parks its agent until there is
    /// one; a harness that no longer waits for a login ends that park.
    pub async fn report_harness(
        &self,
        caller: Caller,
        session_token: String,
        state: HarnessState,
    ) -> Result<(), Refusal> {
        self.check_open()?;
        if state == HarnessState::Offline {
            let problem = "a harness that is attached is not offline".to_owned();
            return Err(Refusal::Field { field: "state", problem });
        }
        let (limits, presences) = (Arc::clone(&self.limits), Arc::clone(&self.presences));
        self.store
            .write(move |tx| {
                let me = session(tx, &caller, &session_token)?;
                presences.touch(me.key, &session_token, tx.now.boot);
                if me.harness_state != state {
                    agent::set_harness_state(tx, me.key, state)?;
                    log(tx, Fact::about(HarnessStateChanged { state }, me.key));
                }
                let park = me.park.as_ref().map(|parked| &parked.park);
                let end = |operator_notified| {
                    agent::set_park(tx, me.key, None, me.failures_in_a_row, operator_notified)
                };
                match park::after_report(park, state, tx.now) {
                    Reported::Nothing => Ok(()),
                    Reported::LoggedIn => {
                        end(false)?;
                        recovered(tx, &limits, &me, SystemKind::LoggedIn)
                    }
                    Reported::OtherTrouble => Ok(end(me.operator_notified)?),
                    Reported::NeedsLogin => {
                        let parked = Parked {
                            cause: Outcome::AuthFailed,
                            park: Park::login(tx.now),
                            error: "claude has no valid login here".to_owned(),
                        };
                        park_for(tx, &limits, &me, &parked, me.failures_in_a_row, None)
                    }
                }
            })
            .await
    }
}
