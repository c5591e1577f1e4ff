//! Turns: a harness gets work, and reports how it ended.
//!
//! Invariant: a turn and the lease on its delivery are one transaction, and its end and all
//! settlements are another. Only the present session may open or end one.

use std::collections::HashSet;
use std::sync::Arc;

use hive_core::agent::HarnessState;
use hive_core::caller::Caller;
use hive_core::command::Command;
use hive_core::delivery::{Delivery, State};
use hive_core::event::Kind as EventKind;
use hive_core::id::TurnId;
use hive_core::limits::{ERROR_BYTES_MAX, MODEL_CHARS_MAX, OUTPUT_TAIL_BYTES_MAX};
use hive_core::message::Message;
use hive_core::park;
use hive_core::question::Question;
use hive_core::reminder::Reminder;
use hive_core::time::{Now, WallTime};
use hive_core::turn::{Kind, MAIN_CONVERSATION, Outcome, ToolUse, Turn, Usage};

use super::actor::{self, Actor};
use super::once::{keep, replay};
use super::receive::{claim, pick};
use super::settle::{Ending, Settled, end_turn, is_of_session, new_turn_id};
use super::stop::check_started;
use super::{Engine, Refusal, token, tool_use};
use crate::store::PresenceChange;
use crate::store::agent::{self, AgentRow};
use crate::store::delivery::Lease;
use crate::store::event::{Fact, log};
use crate::store::request::RequestKey;
use crate::store::turn::{self, End, NewTurn, TurnRow};
use crate::store::waiter::Poll;
use crate::store::{AgentKey, Effect, Tx, command, delivery, message, question, reminder};

/// The request of a harness for a turn.
#[derive(Clone, Debug)]
pub struct Begin {
    /// The token of the session.
    pub session_token: String,
    /// The secret of the process that will run it.
    pub process_token: String,
    /// The conversation of the turn.
    pub conversation: String,
}

/// A turn to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// The opened turn.
    pub turn: Turn,
    /// The delivery that triggered it.
    pub delivery: Delivery,
    /// The number of further ready deliveries.
    pub pending: u32,
    /// The messages that earlier runs of the delivery sent.
    pub already_sent: Vec<Message>,
    /// The questions that they asked.
    pub already_asked: Vec<Question>,
    /// The reminders that they set.
    pub already_reminded: Vec<Reminder>,
    /// Open commands of the operator.
    pub commands: Vec<Command>,
}

/// The end of a turn, as its harness reports it.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The token of the session.
    pub session_token: String,
    /// The id of the turn.
    pub turn: TurnId,
    /// The outcome of the turn.
    pub outcome: Outcome,
    /// The error of a failed turn.
    pub error: String,
    /// The end of the output.
    pub output_tail: String,
    /// Tool calls whose result reached the model.
    pub returned_tool_uses: HashSet<String>,
    /// The tokens and the cost of the turn.
    pub usage: Usage,
    /// The model that ran.
    pub model: String,
    /// Size of the context in tokens.
    pub context_tokens: u64,
    /// Size of the model's window in tokens.
    pub context_window_tokens: u64,
    /// Whether a compaction ran.
    pub compacted: bool,
    /// When the rate limit ends.
    pub retry_time: Option<WallTime>,
    /// The tools that the turn called.
    pub tool_uses: Vec<ToolUse>,
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

/// Returns the caller's row, if the session is the present one.
pub(crate) fn session(
    tx: &rusqlite::Connection,
    caller: &Caller,
    session_token: &str,
) -> Result<AgentRow, Refusal> {
    let me = actor::row(tx, caller)?;
    if me.session_token.as_deref() != Some(session_token) && !hive_fault::planted!(SessionUnchecked)
    {
        return Err(Refusal::LeaseLost);
    }
    Ok(me)
}

impl Engine {
    /// Waits for mail and opens a turn for it.
    pub async fn begin_turn(
        &self,
        caller: Caller,
        request: RequestKey,
        begin: Begin,
    ) -> Result<Begun, Refusal> {
        let key = self.key_of(&caller).await?;
        self.check_open()?;
        self.presences.touch(key, &begin.session_token, self.clock.now().boot);
        let boot_id = self.clock.boot_id().to_owned();
        let waiter = self
            .store
            .wait(key, move |tx| {
                let me = session(tx, &caller, &begin.session_token)?;
                let seen = look(tx, &me, &request, &begin, &boot_id)?;
                if matches!(seen, Poll::Ready(_)) {
                    tx.after_commit(turn_open(me.key, true, tx.now));
                }
                Ok::<_, Refusal>(seen)
            })
            .await;
        let begun = self.wait_for(waiter, None, |_| true).await?;
        begun.map(|begun| *begun).ok_or(Refusal::Draining)
    }

    /// Opens a turn that carries no delivery. The operator may have a conversation compacted even
    /// if the agent is parked.
    pub async fn open_turn(
        &self,
        caller: Caller,
        request: RequestKey,
        begin: Begin,
        kind: Kind,
    ) -> Result<Turn, Refusal> {
        self.check_open()?;
        let boot_id = self.clock.boot_id().to_owned();
        self.store
            .write(move |tx| {
                let me = session(tx, &caller, &begin.session_token)?;
                if let Some(turn) = replay::<TurnId>(tx, me.key, &request)?
                    && let Some(view) = turn::view(tx, turn, Some(me.key))?
                    && view.outcome.is_none()
                {
                    return Ok(view);
                }
                check_no_open_turn(tx, &me, &begin)?;
                check_started(&me)?;
                if let Some(park) = me.parked(tx.now).filter(|_| kind != Kind::Compact) {
                    let (error, retry_after) = (park.error.clone(), park.view(tx.now).remaining);
                    return Err(Refusal::AgentParked { agent: me.name, error, retry_after });
                }
                let id = open(tx, &me, &begin, &boot_id, kind, None)?;
                keep(tx, me.key, &request, &id)?;
                tx.after_commit(turn_open(me.key, true, tx.now));
                turn::view(tx, id, Some(me.key))?.ok_or(Refusal::TurnNotFound { id })
            })
            .await
    }

    /// Ends a turn and settles its mail.
    pub async fn end_turn(
        &self,
        caller: Caller,
        request: RequestKey,
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
                let me = session(tx, &caller, &ended.session_token)?;
                let row = turn::get(tx, ended.turn)?.filter(|row| row.agent == me.key);
                let row = row.ok_or(Refusal::TurnNotFound { id: ended.turn })?;
                if !is_of_session(&row, &me) {
                    return Err(Refusal::LeaseLost);
                }
                let settled = match replay::<Settled>(tx, me.key, &request)? {
                    Some(settled) => settled,
                    None => {
                        let settled = settle_end(tx, &limits, &me, &row, &ended)?;
                        keep(tx, me.key, &request, &settled)?;
                        settled
                    }
                };
                tx.after_commit(turn_open(me.key, !turn::open_all(tx, me.key)?.is_empty(), tx.now));
                let me = agent::by_key(tx, me.key)?;
                Ok(EndedAnswer {
                    settled,
                    pending: delivery::count(tx, me.key, State::Ready)?,
                    next_turn_requested: row.next_turn_requested,
                    park: me.parked(tx.now).map(|park| park.view(tx.now)),
                })
            })
            .await
    }

    /// Requests another turn after the open turn of the calling process.
    pub async fn request_next_turn(&self, actor: Actor) -> Result<(), Refusal> {
        self.check_open()?;
        let caller = actor.caller.clone();
        let requested = self
            .store
            .write(move |tx| {
                let me = actor.row(tx)?;
                actor::check_group(&actor.caller, &me, "inbox")?;
                let open = actor.turn(tx, &me)?.ok_or(Refusal::TurnEnded)?;
                Ok(turn::request_next(tx, open.id)?)
            })
            .await;
        self.noting(&caller, "request next turn", requested).await
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
}

/// Returns the effect of a turn that was opened or ended.
fn turn_open(agent: AgentKey, open: bool, now: Now) -> Effect {
    Effect::Presence(agent, PresenceChange::TurnOpen { open, now: now.boot })
}

fn check_no_open_turn(tx: &Tx<'_>, me: &AgentRow, begin: &Begin) -> Result<(), Refusal> {
    match turn::open_of(tx, me.key, &begin.conversation)? {
        Some(open) => Err(Refusal::TurnOpen { id: open.id }),
        None => Ok(()),
    }
}

fn look(
    tx: &Tx<'_>,
    me: &AgentRow,
    request: &RequestKey,
    begin: &Begin,
    boot_id: &str,
) -> Result<Poll<Option<Box<Begun>>>, Refusal> {
    if let Some(id) = replay::<TurnId>(tx, me.key, request)?
        && let Some(row) = turn::get(tx, id)?
        && row.outcome.is_none()
    {
        return Ok(Poll::Ready(Some(Box::new(begun(tx, me, &row)?))));
    }
    check_no_open_turn(tx, me, begin)?;
    // If the agent is started again, this call is polled.
    if check_started(me).is_err() {
        return Ok(Poll::Pending { so_far: None, next_due: None });
    }
    if let Some(parked) = me.parked(tx.now) {
        return Ok(Poll::Pending { so_far: None, next_due: parked.park.due(tx.now) });
    }
    let Some(mut row) = pick(tx, me.key, u32::MAX)? else {
        return Ok(Poll::Pending {
            so_far: None,
            next_due: delivery::next_due(tx, me.key, tx.now)?,
        });
    };
    let id =
        open(tx, me, begin, boot_id, Kind::Mail, Some((row.message, row.progress.attempt(false))))?;
    claim(
        tx,
        me,
        &mut row,
        Lease { token: token::new(), turn: Some(id), until: None, length_ms: None },
    )?;
    turn::carry(tx, id, me.key, row.message, None)?;
    keep(tx, me.key, request, &id)?;
    let row = turn::get(tx, id)?.ok_or(Refusal::TurnNotFound { id })?;
    Ok(Poll::Ready(Some(Box::new(begun(tx, me, &row)?))))
}

fn open(
    tx: &Tx<'_>,
    me: &AgentRow,
    begin: &Begin,
    boot_id: &str,
    kind: Kind,
    delivery: Option<(hive_core::id::MessageId, u32)>,
) -> Result<TurnId, Refusal> {
    let id = new_turn_id(tx);
    let new = NewTurn {
        id,
        agent: me.key,
        kind,
        conversation: &begin.conversation,
        session_epoch: me.session_epoch,
        process_token: &begin.process_token,
        boot_id,
        delivery,
        model: &me.model,
    };
    turn::insert(tx, &new)?;
    let detail = kind.to_string();
    let fact = Fact {
        message: delivery.map(|(message, _)| message),
        turn: Some(id),
        detail: &detail,
        ..Fact::about(EventKind::TurnBegun, me.key)
    };
    log(tx, fact)?;
    agent::set_harness_state(tx, me.key, HarnessState::Thinking)?;
    // From now on silence is a sign of death, so there is a due time for the sweep.
    tx.after_commit(Effect::Due);
    Ok(id)
}

fn begun(tx: &Tx<'_>, me: &AgentRow, row: &TurnRow) -> Result<Begun, Refusal> {
    let view = turn::view(tx, row.id, Some(me.key))?.ok_or(Refusal::TurnNotFound { id: row.id })?;
    let message = row.message.ok_or(Refusal::TurnNotFound { id: row.id })?;
    let woken_by = delivery::get(tx, me.key, message)?;
    let woken_by =
        woken_by.ok_or_else(|| Refusal::DeliveryNotFound { agent: me.name.clone(), message })?;
    Ok(Begun {
        turn: view,
        delivery: delivery::view(tx, &woken_by, tx.now)?,
        pending: delivery::count(tx, me.key, State::Ready)?,
        already_sent: message::sent_in_earlier_runs(tx, row.id)?,
        already_asked: question::asked_in_earlier_runs(tx, row.id)?,
        already_reminded: reminder::set_in_earlier_runs(tx, row.id)?,
        commands: command::open(tx, me.key, 0)?,
    })
}

fn settle_end(
    tx: &Tx<'_>,
    limits: &hive_core::limits::Limits,
    me: &AgentRow,
    row: &TurnRow,
    ended: &Ended,
) -> Result<Settled, Refusal> {
    if let Some(outcome) = row.outcome {
        // The turn has ended. An earlier call of this session gets its answer again; an end by the
        // broker stands.
        let settled = row
            .settled
            .as_deref()
            .filter(|_| outcome.is_reportable())
            .and_then(|json| serde_json::from_str(json).ok());
        return settled.ok_or(Refusal::LeaseLost);
    }
    let ending = Ending {
        outcome: ended.outcome,
        returned_tool_uses: &ended.returned_tool_uses,
        tool_uses: &ended.tool_uses,
        end: End {
            error: &ended.error,
            output_tail: &ended.output_tail,
            usage: ended.usage,
            model: &ended.model,
            context_tokens: ended.context_tokens,
            context_window_tokens: ended.context_window_tokens,
            compacted: ended.compacted,
        },
        retry_time: ended.retry_time,
    };
    end_turn(tx, limits, me, row, &ending)
}

/// Cuts a text that is too long, and keeps its beginning.
fn cut_end(text: &mut String, max: usize) {
    if text.len() > max {
        text.truncate(text.floor_char_boundary(max));
    }
}

/// Cuts a text that is too long, and keeps its end.
fn cut_start(text: &mut String, max: usize) {
    if text.len() > max {
        let start = text.ceil_char_boundary(text.len() - max);
        *text = text.split_off(start);
    }
}
