//! The end of a turn: as its harness reports it, or as the broker decides it.
//!
//! Invariant: everything leased under a turn is settled in the transaction that ends the turn, by
//! the outcome table of `core::turn`.

use crate::engine::error::{HarnessError, TurnError};
use std::fmt::Write as _;
use std::sync::Arc;

use hive_core::agent::HarnessState;
use hive_core::caller::Caller;
use hive_core::delivery::{RedeliveryCause, Settlement, State};
use hive_core::event::TurnEnded;
use hive_core::id::TurnId;
use hive_core::limits::{ERROR_BYTES_MAX, Limits, MODEL_CHARS_MAX, OUTPUT_TAIL_BYTES_MAX};
use hive_core::message::SystemKind;
use hive_core::park;
use hive_core::turn::{Ended, Outcome};
use serde::{Deserialize, Serialize};

use super::begin::turn_open;
use super::park::park_after;
use super::tool_use;
use crate::engine::actor::session;
use crate::engine::mail::notice::{self, Notice, parent};
use crate::engine::mail::settle::settle;
use crate::engine::mail::text::{cut_start, quoted};
use crate::engine::once::{keep, replay};
use crate::engine::{Engine, Refusal};
use crate::measures::Count;
use crate::store::agent::AgentRow;
use crate::store::event::{Fact, log};
use crate::store::request::RequestKey;
use crate::store::turn::{self as turns, TurnRow};
use crate::store::{Effect, Tx, agent, delivery, inbox, message, turn_tool};

/// The outcome of a turn's deliveries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settled {
    /// Acked deliveries.
    pub acked: u32,
    /// Requeued deliveries.
    pub returned: u32,
    /// New dead letters.
    pub dead: u32,
    /// Held deliveries.
    pub held: u32,
}

/// The effects of the end of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedAnswer {
    /// The outcome of its deliveries.
    pub settled: Settled,
    /// The number of ready deliveries.
    pub pending: u32,
    /// Whether the turn asked for a next one.
    pub next_turn_requested: bool,
    /// The park of the agent, if it is parked now.
    pub park: Option<park::View>,
}

impl Engine {
    /// Ends a turn and settles its mail.
    pub async fn end_turn(
        &self,
        caller: Caller,
        request: RequestKey,
        session_token: String,
        turn: TurnId,
        mut ended: Ended,
    ) -> Result<EndedAnswer, Refusal> {
        self.check_open()?;
        if !ended.outcome.is_reportable() {
            let problem = format!("{} is the broker's to say", ended.outcome);
            return Err(Refusal::Field { field: "outcome", problem });
        }
        tool_use::check(&ended.tool_uses)?;
        cut_end(&mut ended.error, ERROR_BYTES_MAX);
        cut_end(&mut ended.model, MODEL_CHARS_MAX);
        cut_start(&mut ended.output_tail, OUTPUT_TAIL_BYTES_MAX);
        let limits = Arc::clone(&self.limits);
        self.store
            .write(move |tx| {
                let me = session(tx, &caller, &session_token)?;
                let row = turns::get(tx, turn)?.filter(|row| row.agent == me.key);
                let row = row.ok_or(TurnError::NotFound { id: turn })?;
                if !is_of_session(&row, &me) {
                    return Err(HarnessError::SessionLost { agent: me.name.clone() }.into());
                }
                let settled = match replay::<Settled>(tx, me.key, &request)? {
                    Some(settled) => settled,
                    None => {
                        let settled = settle_end(tx, &limits, &me, &row, &ended)?;
                        keep(tx, me.key, &request, &settled)?;
                        settled
                    }
                };
                tx.after_commit(turn_open(
                    me.key,
                    !turns::open_all(tx, me.key)?.is_empty(),
                    tx.now,
                ));
                let me = agent::by_key(tx, me.key)?;
                Ok(EndedAnswer {
                    settled,
                    pending: inbox::get(tx, me.key)?.ready_count,
                    next_turn_requested: row.next_turn_requested,
                    park: me.parked(tx.now).map(|park| park.view(tx.now)),
                })
            })
            .await
    }
}

fn settle_end(
    tx: &Tx<'_>,
    limits: &Limits,
    me: &AgentRow,
    row: &TurnRow,
    ended: &Ended,
) -> Result<Settled, Refusal> {
    if let Some(outcome) = row.outcome {
        // The turn has ended. An earlier call of this session gets its answer again; an end by the
        // broker is final.
        let settled = row
            .settled
            .as_deref()
            .filter(|_| outcome.is_reportable())
            .and_then(|json| serde_json::from_str(json).ok());
        return settled.ok_or(Refusal::LeaseLost);
    }
    end_turn(tx, limits, me, row, ended)
}

/// Ends a turn and settles its mail.
pub(crate) fn end_turn(
    tx: &Tx<'_>,
    limits: &Limits,
    me: &AgentRow,
    open: &TurnRow,
    ended: &Ended,
) -> Result<Settled, Refusal> {
    end_turn_with(tx, limits, me, open, ended, |reached_model| {
        ended.outcome.settlement(reached_model)
    })
}

/// Ends a turn, and settles each delivery as `settlement` decides from whether it reached the
/// model.
fn end_turn_with(
    tx: &Tx<'_>,
    limits: &Limits,
    me: &AgentRow,
    open: &TurnRow,
    ended: &Ended,
    settlement: impl Fn(bool) -> Settlement,
) -> Result<Settled, Refusal> {
    let mut settled = Settled::default();
    for mut row in delivery::leased_by(tx, me.key, open.id)? {
        let tool_use = turns::tool_use_of(tx, open.id, row.message)?;
        // Without the id of a tool call it is not known whether its result reached the model.
        let reached_model =
            tool_use.is_none_or(|id| !id.is_empty() && ended.returned_tool_uses.contains(&id));
        if hive_fault::planted!(ReceivedKept) && !reached_model {
            continue;
        }
        let settlement = settlement(reached_model);
        if !matches!(settlement, Settlement::Ack) {
            ended.error.clone_into(&mut row.last_error);
            ended.output_tail.clone_into(&mut row.output_tail);
        }
        match settle(tx, limits, me, row, settlement)? {
            State::Acked => settled.acked += 1,
            State::Dead => settled.dead += 1,
            State::Held => settled.held += 1,
            State::Ready | State::Leased | State::Dropped | State::Superseded => {
                settled.returned += 1;
            }
        }
    }
    let json = serde_json::to_string(&settled).expect("four numbers");
    turns::end(tx, open.id, ended, &json)?;
    turn_tool::insert(tx, open.id, &ended.tool_uses)?;
    tx.count(|| Count::Turn(ended.outcome, ended.usage));
    let detail = format!(
        "{}: {} acked, {} returned, {} dead, {} held",
        ended.outcome, settled.acked, settled.returned, settled.dead, settled.held
    );
    let facts = TurnEnded { outcome: ended.outcome, session_epoch: open.session_epoch };
    log(tx, Fact::about(facts, me.key).message(open.message).turn(open.id).detail(&detail));
    if ended.outcome == Outcome::Failed && !open.kind.is_upkeep() && !is_of_failures(tx, open)? {
        notify_parent_of_failure(tx, limits, me, open, ended)?;
    }
    park_after(tx, limits, me, open, ended, settled)?;
    // After a compaction without a new measurement, the earlier size is no longer true.
    if ended.context_tokens > 0 || ended.compacted {
        agent::set_context(tx, me.key, ended.context_tokens, ended.context_window_tokens)?;
    }
    tx.after_commit(Effect::Hint(me.key));
    tx.after_commit(Effect::Shown(me.key));
    Ok(settled)
}

/// Returns whether a notice of a failure triggered the turn. Such a turn's own failures are
/// reported by its dead letter alone, else each level of failing parents would multiply the
/// notices.
fn is_of_failures(tx: &Tx<'_>, open: &TurnRow) -> Result<bool, Refusal> {
    let Some(message) = open.message else { return Ok(false) };
    let kind = message::get(tx, message)?.and_then(|message| message.system_kind);
    Ok(matches!(kind, Some(SystemKind::TurnFailed | SystemKind::DeadLetter)))
}

fn notify_parent_of_failure(
    tx: &Tx<'_>,
    limits: &Limits,
    me: &AgentRow,
    open: &TurnRow,
    ended: &Ended,
) -> Result<(), Refusal> {
    let mut body = format!("A turn of {} failed (turn {}", me.name, open.id);
    if let Some(message) = open.message {
        write!(body, ", message {message}").expect("writing to a string succeeds");
    }
    // The agent controls the report of its harness, so the broker quotes it.
    write!(body, "):\n\n{}", quoted(&ended.error)).expect("writing to a string succeeds");
    if !ended.output_tail.is_empty() {
        write!(body, "\n\nThe end of its output:\n\n{}", quoted(&ended.output_tail))
            .expect("writing to a string succeeds");
    }
    let notice = Notice {
        turn: Some(open.id),
        parent: open.trace,
        ..Notice::about(&me.name, parent(me), SystemKind::TurnFailed, &body)
    };
    notice::send(tx, limits, notice).map(|_| ())
}

/// Returns an end that the broker decides.
pub(super) fn by_broker(outcome: Outcome, error: &str) -> Ended {
    Ended { error: error.to_owned(), ..Ended::new(outcome) }
}

/// Ends all open turns of an agent in the broker's own name.
pub(crate) fn end_open_turns(
    tx: &Tx<'_>,
    limits: &Limits,
    me: &AgentRow,
    outcome: Outcome,
    error: &str,
) -> Result<(), Refusal> {
    for open in turns::open_all(tx, me.key)? {
        end_turn(tx, limits, me, &open, &by_broker(outcome, error))?;
    }
    agent::set_harness_state(tx, me.key, HarnessState::Offline)?;
    Ok(())
}

/// Ends the turns that were open when a backup was made that has replaced the database.
pub(crate) fn end_restored_turns(
    tx: &Tx<'_>,
    limits: &Limits,
    me: &AgentRow,
    error: &str,
) -> Result<(), Refusal> {
    for open in turns::open_all(tx, me.key)? {
        let ended = by_broker(Outcome::Fenced, error);
        let restored = |_| Settlement::GiveBack(RedeliveryCause::Restored);
        end_turn_with(tx, limits, me, &open, &ended, restored)?;
    }
    Ok(())
}

/// Ends the turns that were open when the host went down, without blame; their sessions cannot come
/// back.
pub(crate) fn fence_turns_of_other_boots(
    tx: &Tx<'_>,
    limits: &Limits,
    boot_id: &str,
) -> Result<(), Refusal> {
    for key in turns::agents_of_other_boots(tx, boot_id)? {
        let me = agent::by_key(tx, key)?;
        if me.retired {
            continue;
        }
        for open in turns::open_all(tx, key)? {
            if open.boot_id != boot_id {
                let ended = by_broker(Outcome::Fenced, "the host rebooted");
                end_turn(tx, limits, &me, &open, &ended)?;
            }
        }
    }
    Ok(())
}

/// Returns whether this turn belongs to the agent's present session.
pub(crate) fn is_of_session(open: &TurnRow, me: &AgentRow) -> bool {
    open.session_epoch == me.session_epoch
}

/// Cuts a text that is too long, and keeps its beginning.
fn cut_end(text: &mut String, max: usize) {
    if text.len() > max {
        text.truncate(text.floor_char_boundary(max));
    }
}
