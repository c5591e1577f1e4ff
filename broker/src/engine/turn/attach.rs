//! Attaching: a harness begins a session with an agent, or resumes one.
//!
//! Invariant: a fresh start fences everything older in the same transaction: no lease of an earlier
//! session survives it.

use crate::engine::error::{AgentError, HarnessError};
use std::sync::Arc;

use hive_core::agent::{Agent, HarnessState, Isolation};
use hive_core::caller::Caller;
use hive_core::event::{HarnessAttached, HarnessLoss, HarnessLost};
use hive_core::id::TurnId;
use hive_core::limits::Limits;
use hive_core::tree::Kin;
use hive_core::turn::{MAIN_CONVERSATION, Outcome, Turn};

use super::end::{by_broker, end_open_turns, end_turn};
use crate::engine::actor::{self, session};
use crate::engine::mail::stream;
use crate::engine::presence::{Attachment, Begun, Presences};
use crate::engine::{Engine, Refusal, token};
use crate::store::PresenceChange;
use crate::store::agent::{self, AgentRow};
use crate::store::event::{Fact, log};
use crate::store::{AgentKey, Effect, Tx, purge, turn};

/// The request of a harness to attach.
#[derive(Clone, Debug)]
pub struct Attach {
    /// The session to take up; empty for a fresh start.
    pub session_token: String,
    /// Whether to fence a harness that is attached.
    pub take_over: bool,
    /// The version of the harness.
    pub revision: String,
    /// The isolation of the harness, as the broker sees it.
    pub isolation: Option<Isolation>,
}

/// An attached harness.
#[derive(Debug)]
pub struct Attached {
    /// The attachment; dropping it detaches the harness.
    pub attachment: Attachment,
    /// The token of the session.
    pub session_token: String,
    /// Whether an earlier session was resumed.
    pub resumed: bool,
    /// The attached agent.
    pub agent: Agent,
    /// The parent and the children of the agent.
    pub kin: Kin,
    /// The open turn of the session.
    pub open_turn: Option<Turn>,
}

impl Engine {
    /// Attaches a harness.
    pub async fn attach(&self, caller: Caller, attach: Attach) -> Result<Attached, Refusal> {
        self.check_open()?;
        let (limits, presences) = (Arc::clone(&self.limits), Arc::clone(&self.presences));
        let (boot_id, hints) = (self.clock.boot_id().to_owned(), Arc::clone(&self.hints));
        let (attachment, session_token, resumed, open_turn) = self
            .store
            .write(move |tx| {
                let me = actor::row(tx, &caller)?;
                check_purged(tx, &me)?;
                let resumed = !attach.session_token.is_empty()
                    && me.session_token.as_deref() == Some(&attach.session_token);
                let (epoch, token) = if resumed {
                    (me.session_epoch, attach.session_token)
                } else {
                    let live = presences.is_live_in(tx, me.key);
                    if live && !attach.take_over {
                        return Err(Refusal::from(HarnessError::Attached {
                            agent: me.name.clone(),
                        }));
                    }
                    for open in turn::open_all(tx, me.key)? {
                        if hive_fault::planted!(TakeOverKeepsTurn) {
                            break;
                        }
                        // Only a harness that died during its turn may have died because of it.
                        let vanished = !live && open.boot_id == boot_id;
                        let (outcome, error) = if vanished {
                            (Outcome::Vanished, "the harness vanished in mid-turn")
                        } else {
                            (Outcome::Fenced, "another harness took over")
                        };
                        end_turn(tx, &limits, &me, &open, &by_broker(outcome, error))?;
                    }
                    stream::requeue_all(tx, &limits, &me)?;
                    if live {
                        let lost = HarnessLost {
                            session_epoch: me.session_epoch,
                            loss: HarnessLoss::TakenOver,
                        };
                        log(tx, Fact::about(lost, me.key).detail("taken over"));
                    }
                    let (epoch, token) = (me.session_epoch + 1, token::new());
                    agent::set_session(tx, me.key, epoch, &token, &attach.revision)?;
                    let detail = format!("session epoch {epoch}, {}", attach.revision);
                    let attached = HarnessAttached { session_epoch: epoch };
                    log(tx, Fact::about(attached, me.key).detail(&detail));
                    agent::set_harness_state(tx, me.key, HarnessState::Starting)?;
                    super::kick::at_new_session(tx, &limits, &me)?;
                    (epoch, token)
                };
                let open_turn = match turn::open_of(tx, me.key, MAIN_CONVERSATION)? {
                    Some(open) => turn::view(tx, open.id, Some(me.key))?,
                    None => None,
                };
                let begun = Begun { epoch, token: token.clone(), isolation: attach.isolation };
                let attachment = presences.attach(tx, me.key, begun, hints);
                let turn_open =
                    PresenceChange::TurnOpen { open: open_turn.is_some(), now: tx.now.boot };
                tx.after_commit(Effect::Presence(me.key, turn_open));
                Ok((attachment, token, resumed, open_turn))
            })
            .await?;
        let agent = self.agent_by_key(attachment.agent()).await?;
        let kin = self.kin(attachment.agent()).await?;
        Ok(Attached { attachment, session_token, resumed, agent, kin, open_turn })
    }

    /// Notes a sign of life; returns the open turn of the session.
    pub async fn heartbeat(
        &self,
        caller: Caller,
        session_token: String,
    ) -> Result<Option<TurnId>, Refusal> {
        self.check_open()?;
        let now = self.clock.now().boot;
        let presences = Arc::clone(&self.presences);
        self.store
            .read(move |conn, _| {
                let me = session(conn, &caller, &session_token)?;
                presences.touch(me.key, &session_token, now);
                Ok(turn::open_of(conn, me.key, MAIN_CONVERSATION)?.map(|open| open.id))
            })
            .await
    }

    /// Ends these sessions, whose harnesses have stayed away, each by its agent and epoch; does
    /// nothing about one whose harness has come back.
    pub(crate) async fn end_away(&self, sessions: Vec<(AgentKey, u64)>) -> Result<(), Refusal> {
        let (limits, presences) = (Arc::clone(&self.limits), Arc::clone(&self.presences));
        let boot_id = self.clock.boot_id().to_owned();
        self.store
            .write(move |tx| {
                let end =
                    |(key, epoch)| end_one_away(tx, &limits, &presences, &boot_id, key, epoch);
                sessions.into_iter().try_for_each(end)
            })
            .await
    }
}

fn end_one_away(
    tx: &Tx<'_>,
    limits: &Limits,
    presences: &Presences,
    boot_id: &str,
    key: AgentKey,
    epoch: u64,
) -> Result<(), Refusal> {
    let me = agent::by_key(tx, key)?;
    if me.session_token.is_none() {
        tx.after_commit(Effect::Presence(key, PresenceChange::Ended { epoch }));
        return Ok(());
    }
    if me.session_epoch != epoch {
        // An earlier attach in the batch has begun a newer session, or an attach of an aborted
        // batch is on disk after all; then memory is compared.
        return Ok(());
    }
    let open = turn::open_all(tx, key)?;
    if !presences.is_away_in(tx, key, epoch, limits.harness_grace()) {
        return Ok(());
    }
    if presences.is_live_in(tx, key) && open.is_empty() {
        // Memory was behind: without a turn it may be silent.
        let turn_open = PresenceChange::TurnOpen { open: false, now: tx.now.boot };
        tx.after_commit(Effect::Presence(key, turn_open));
        return Ok(());
    }
    let other_boot = open.iter().any(|open| open.boot_id != boot_id);
    let outcome = if other_boot { Outcome::Fenced } else { Outcome::Vanished };
    end_open_turns(tx, limits, &me, outcome, "the harness vanished in mid-turn")?;
    agent::clear_session(tx, key)?;
    let lost = HarnessLost { session_epoch: epoch, loss: HarnessLoss::StayedAway };
    log(tx, Fact::about(lost, key).detail("stayed away"));
    tx.after_commit(Effect::Presence(key, PresenceChange::Ended { epoch }));
    Ok(())
}

/// Refuses a harness of an agent that would work in the directories of a purged one.
fn check_purged(tx: &Tx<'_>, row: &AgentRow) -> Result<(), Refusal> {
    if purge::is_pending(tx, &row.name)? {
        return Err(Refusal::from(AgentError::Purging { agent: row.name.clone() }));
    }
    Ok(())
}
