//! The beginning of a turn: a harness gets work.
//!
//! Invariant: a turn and the lease on its delivery are one transaction. Only the present session
//! may open one.

use std::time::Duration;

use crate::engine::error::{AgentError, MailError, TurnError};
use hive_core::agent::HarnessState;
use hive_core::caller::Caller;
use hive_core::command::Command;
use hive_core::delivery::Delivery;
use hive_core::event::TurnBegun;
use hive_core::id::{MessageId, TurnId};
use hive_core::message::Message;
use hive_core::question::Question;
use hive_core::reminder::Reminder;
use hive_core::time::Now;
use hive_core::trace::TraceContext;
use hive_core::turn::{Kind, Turn};
use hive_export::delivery_span;

use crate::engine::actor::{self, Actor, check_started, session};
use crate::engine::mail::receive::claim;
use crate::engine::mail::serving::pick;
use crate::engine::once::{keep, replay};
use crate::engine::{Engine, Refusal, token, trace};
use crate::store::PresenceChange;
use crate::store::agent::{self, AgentRow};
use crate::store::event::{Fact, log};
use crate::store::lease::Lease;
use crate::store::request::RequestKey;
use crate::store::turn::{self, NewTurn};
use crate::store::waiter::{Poll, Waiter};
use crate::store::{AgentKey, Effect, Tx, command, delivery, inbox, message, question, reminder};

/// The request of a harness for a turn.
#[derive(Clone, Debug)]
pub struct Begin {
    /// The token of the session.
    pub session_token: String,
    /// The secret of the process that will run it.
    pub process_token: String,
    /// The conversation of the turn.
    pub conversation: String,
    /// The kind of the turn.
    pub kind: Kind,
}

/// A turn to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// The opened turn.
    pub turn: Turn,
    /// The delivery that triggered it; `None` if its kind is not mail.
    pub delivery: Option<Delivery>,
    /// The number of ready deliveries without that one.
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

/// A turn after its first step.
#[derive(Debug)]
pub enum First {
    /// It has begun.
    Begun(Box<Begun>),
    /// It waits for mail.
    Waits(Waiter<Option<Box<Begun>>, Refusal>),
}

impl Engine {
    /// Begins a turn: for mail, for which it waits, or at once without mail.
    pub async fn begin_turn(
        &self,
        caller: Caller,
        request: RequestKey,
        begin: Begin,
    ) -> Result<Begun, Refusal> {
        let first = self.begin_or_wait(caller, request, begin).await?;
        self.begun(first).await
    }

    /// Takes the first step of [`Self::begin_turn`]. What waits after it keeps nothing of the
    /// request.
    pub async fn begin_or_wait(
        &self,
        caller: Caller,
        request: RequestKey,
        begin: Begin,
    ) -> Result<First, Refusal> {
        Ok(match begin.kind {
            Kind::Mail => First::Waits(self.wait_for_mail(caller, request, begin).await?),
            Kind::Continue | Kind::Checkpoint | Kind::Compact => {
                First::Begun(Box::new(self.begin_without_mail(caller, request, begin).await?))
            }
        })
    }

    /// Takes the second step of [`Self::begin_turn`], which may last for hours.
    pub async fn begun(&self, first: First) -> Result<Begun, Refusal> {
        let begun = match first {
            First::Begun(begun) => Some(begun),
            First::Waits(waiter) => self.wait_for(waiter, None, |_| true).await?,
        };
        begun.map(|begun| *begun).ok_or(Refusal::Draining)
    }

    async fn wait_for_mail(
        &self,
        caller: Caller,
        request: RequestKey,
        begin: Begin,
    ) -> Result<Waiter<Option<Box<Begun>>, Refusal>, Refusal> {
        let key = self.key_of(&caller).await?;
        self.check_open()?;
        self.presences.touch(key, &begin.session_token, self.clock.now().boot);
        let (boot_id, grace) = (self.clock.boot_id().to_owned(), self.limits.harness_grace());
        let waiter = self
            .store
            .wait_after_checks(key, move |tx| {
                let me = session(tx, &caller, &begin.session_token)?;
                let polled = poll_begin(tx, &me, &request, &begin, &boot_id)?;
                if matches!(polled, Poll::Ready(_)) {
                    opened(tx, me.key, grace);
                }
                Ok::<_, Refusal>(polled)
            })
            .await;
        Ok(waiter)
    }

    /// Begins a turn that carries no delivery. The operator may have a conversation compacted even
    /// if the agent is parked.
    async fn begin_without_mail(
        &self,
        caller: Caller,
        request: RequestKey,
        begin: Begin,
    ) -> Result<Begun, Refusal> {
        self.check_open()?;
        let (boot_id, grace) = (self.clock.boot_id().to_owned(), self.limits.harness_grace());
        self.store
            .write(move |tx| {
                let me = session(tx, &caller, &begin.session_token)?;
                if let Some(begun) = begun_before(tx, &me, &request)? {
                    return Ok(begun);
                }
                check_no_open_turn(tx, &me, &begin)?;
                check_started(&me)?;
                if let Some(park) = me.parked(tx.now).filter(|_| begin.kind != Kind::Compact) {
                    let (error, retry_after) = (park.error.clone(), park.view(tx.now).remaining);
                    return Err(Refusal::from(AgentError::Parked {
                        agent: me.name.clone(),
                        error,
                        retry_after,
                    }));
                }
                let id = open(tx, &me, &begin, &boot_id, None)?;
                keep(tx, me.key, &request, &id)?;
                opened(tx, me.key, grace);
                let commands = command::open(tx, me.key, 0)?;
                begun(tx, &me, turn::view_new(tx, id)?, None, IsRerun::No, commands)
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
                let open = actor.turn(tx, &me)?.ok_or(TurnError::Ended)?;
                Ok(turn::request_next(tx, open.id)?)
            })
            .await;
        self.noting(&caller, "request next turn", requested).await
    }
}

/// Returns the effect of a turn that was opened or ended.
pub(super) fn turn_open(agent: AgentKey, open: bool, now: Now) -> Effect {
    Effect::Presence(agent, PresenceChange::TurnOpen { open, now: now.boot })
}

/// Adds the effects of a turn that was opened. From now on silence is a sign of death.
fn opened(tx: &Tx<'_>, agent: AgentKey, grace: Duration) {
    tx.after_commit(turn_open(agent, true, tx.now));
    tx.after_commit(Effect::Due(tx.now.boot.after(grace)));
}

fn check_no_open_turn(tx: &Tx<'_>, me: &AgentRow, begin: &Begin) -> Result<(), Refusal> {
    match turn::open_of(tx, me.key, &begin.conversation)? {
        Some(open) => Err(Refusal::from(TurnError::Open { id: open.id })),
        None => Ok(()),
    }
}

/// Returns the turn that an earlier call of this request began, while it is open.
fn begun_before(
    tx: &Tx<'_>,
    me: &AgentRow,
    request: &RequestKey,
) -> Result<Option<Begun>, Refusal> {
    let Some(id) = replay::<TurnId>(tx, me.key, request)? else { return Ok(None) };
    let Some(turn) = turn::view(tx, id, Some(me.key))?.filter(|turn| turn.outcome.is_none()) else {
        return Ok(None);
    };
    let find = |message| {
        let found = delivery::get(tx, me.key, message)?;
        let missing = || MailError::DeliveryNotFound { agent: me.name.clone(), message };
        Ok::<_, Refusal>(delivery::view_leased(tx, &found.ok_or_else(missing)?, &me.name)?)
    };
    let delivery = turn.message_id.map(find).transpose()?;
    let commands = command::open(tx, me.key, 0)?;
    begun(tx, me, turn, delivery, IsRerun::Maybe, commands).map(Some)
}

fn poll_begin(
    tx: &Tx<'_>,
    me: &AgentRow,
    request: &RequestKey,
    begin: &Begin,
    boot_id: &str,
) -> Result<Poll<Option<Box<Begun>>>, Refusal> {
    if let Some(begun) = begun_before(tx, me, request)? {
        return Ok(Poll::Ready(Some(Box::new(begun))));
    }
    check_no_open_turn(tx, me, begin)?;
    // If the agent is started again, this call is polled.
    if check_started(me).is_err() {
        return Ok(Poll::Pending { so_far: None, next_due: None });
    }
    if let Some(parked) = me.parked(tx.now) {
        return Ok(Poll::Pending { so_far: None, next_due: parked.park.due(tx.now) });
    }
    let Some(row) = pick(tx, me.key)? else {
        return Ok(Poll::Pending {
            so_far: None,
            next_due: delivery::next_due(tx, me.key, tx.now)?,
        });
    };
    let is_rerun = if row.turn.is_some() { IsRerun::Maybe } else { IsRerun::No };
    // What may not be readable is read before anything is written.
    let commands = command::open(tx, me.key, 0)?;
    let delivery = Some((row.message, row.progress.attempt(false)));
    let id = open(tx, me, begin, boot_id, delivery)?;
    let row = claim(tx, me, row, Lease::of_turn(token::of_lease(), id))?;
    turn::carry(tx, id, me.key, row.message, None)?;
    keep(tx, me.key, request, &id)?;
    let delivery = delivery::view_leased(tx, &row, &me.name)?;
    let begun = begun(tx, me, turn::view_new(tx, id)?, Some(delivery), is_rerun, commands)?;
    Ok(Poll::Ready(Some(Box::new(begun))))
}

fn open(
    tx: &Tx<'_>,
    me: &AgentRow,
    begin: &Begin,
    boot_id: &str,
    delivery: Option<(MessageId, u32)>,
) -> Result<TurnId, Refusal> {
    let id = new_turn_id(tx);
    let parent = cause(tx, me, begin.kind, id, delivery.map(|(message, _)| message))?;
    let new = NewTurn {
        id,
        agent: me.key,
        kind: begin.kind,
        conversation: &begin.conversation,
        session_epoch: me.session_epoch,
        process_token: &begin.process_token,
        boot_id,
        delivery,
        model: &me.model,
        traced: trace::span(tx, parent),
    };
    turn::insert(tx, &new)?;
    let begun = TurnBegun { kind: begin.kind, session_epoch: me.session_epoch };
    let fact = Fact::about(begun, me.key).message(delivery.map(|(message, _)| message)).turn(id);
    log(tx, fact);
    agent::set_harness_state(tx, me.key, HarnessState::Thinking)?;
    Ok(id)
}

/// Returns the span that causes a turn: the wait of its message, or the turn that asked for it.
fn cause(
    tx: &Tx<'_>,
    me: &AgentRow,
    kind: Kind,
    turn: TurnId,
    message: Option<MessageId>,
) -> Result<Option<TraceContext>, Refusal> {
    Ok(match (message, kind) {
        (Some(id), _) => {
            message::trace_of(tx, id)?.map(|sent| sent.with_span(delivery_span(sent, turn)))
        }
        (None, Kind::Continue) => turn::last_work(tx, me.key)?.and_then(|last| last.trace),
        (None, Kind::Mail | Kind::Checkpoint | Kind::Compact) => None,
    })
}

/// Whether an earlier turn may have carried the delivery of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IsRerun {
    /// None has: nothing was done for it before, so nothing is looked up.
    No,
    Maybe,
}

fn begun(
    tx: &Tx<'_>,
    me: &AgentRow,
    turn: Turn,
    delivery: Option<Delivery>,
    is_rerun: IsRerun,
    commands: Vec<Command>,
) -> Result<Begun, Refusal> {
    let id = turn.id;
    let (already_sent, already_asked, already_reminded) = match is_rerun {
        IsRerun::No => (Vec::new(), Vec::new(), Vec::new()),
        IsRerun::Maybe => (
            message::sent_in_earlier_runs(tx, id)?,
            question::asked_in_earlier_runs(tx, id)?,
            reminder::set_in_earlier_runs(tx, id)?,
        ),
    };
    Ok(Begun {
        turn,
        delivery,
        pending: inbox::get(tx, me.key)?.ready_count,
        already_sent,
        already_asked,
        already_reminded,
        commands,
    })
}

/// Returns a fresh turn id.
pub(crate) fn new_turn_id(tx: &Tx<'_>) -> TurnId {
    TurnId::new(tx.next_id()).expect("the sequence begins with 1")
}
