//! Settling: the effect of the end of a turn or a lease on its mail.
//!
//! Invariant: everything leased under a turn is settled in the transaction that ends the turn, by
//! the outcome table of `core::turn`.

use std::collections::HashSet;
use std::fmt::Write as _;

use hive_core::agent::HarnessState;
use hive_core::delivery::{Settlement, State};
use hive_core::event::Kind;
use hive_core::id::TurnId;
use hive_core::limits::Limits;
use hive_core::message::SystemKind;
use hive_core::park::{self, Change, Parked, TurnEnd};
use hive_core::time::WallTime;
use hive_core::turn::{Outcome, ToolUse};
use serde::{Deserialize, Serialize};

use super::Refusal;
use super::attention::{self, wait_on_operator};
use super::notice::{self, Notice};
use super::question::quoted;
use crate::store::agent::AgentRow;
use crate::store::delivery::DeliveryRow;
use crate::store::event::{Fact, log};
use crate::store::turn::{self, End, TurnRow};
use crate::store::{AgentKey, Effect, Tx, agent, delivery, message, turn_tool};

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

/// How a turn ended, and what it leaves behind.
#[derive(Clone, Debug)]
pub(crate) struct Ending<'a> {
    pub(crate) outcome: Outcome,
    pub(crate) returned_tool_uses: &'a HashSet<String>,
    pub(crate) tool_uses: &'a [ToolUse],
    pub(crate) end: End<'a>,
    pub(crate) retry_time: Option<WallTime>,
}

impl Ending<'_> {
    /// Returns an ending that the broker decides, with only its cause known.
    pub(crate) fn by_broker<'a>(
        outcome: Outcome,
        error: &'a str,
        none: &'a HashSet<String>,
    ) -> Ending<'a> {
        Ending {
            outcome,
            returned_tool_uses: none,
            tool_uses: &[],
            end: End { error, ..End::default() },
            retry_time: None,
        }
    }
}

/// Ends a turn and settles its mail.
pub(crate) fn end_turn(
    tx: &Tx<'_>,
    limits: &Limits,
    me: &AgentRow,
    open: &TurnRow,
    ending: &Ending<'_>,
) -> Result<Settled, Refusal> {
    let mut settled = Settled::default();
    for mut row in delivery::leased_by(tx, open.id)? {
        let tool_use = turn::tool_use_of(tx, open.id, row.message)?;
        // Without the id of a tool call it is not known whether its result reached the model.
        let reached_model =
            tool_use.is_none_or(|id| !id.is_empty() && ending.returned_tool_uses.contains(&id));
        if hive_fault::planted!(ReceivedKept) && !reached_model {
            continue;
        }
        let settlement = ending.outcome.settlement(reached_model);
        if !matches!(settlement, Settlement::Ack) {
            ending.end.error.clone_into(&mut row.last_error);
            ending.end.output_tail.clone_into(&mut row.output_tail);
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
    turn::end(tx, open.id, ending.outcome, &ending.end, &json)?;
    turn_tool::insert(tx, open.id, ending.tool_uses)?;
    let detail = format!(
        "{}: {} acked, {} returned, {} dead, {} held",
        ending.outcome, settled.acked, settled.returned, settled.dead, settled.held
    );
    log(
        tx,
        Fact {
            message: open.message,
            turn: Some(open.id),
            detail: &detail,
            ..Fact::about(Kind::TurnEnded, me.key)
        },
    )?;
    if ending.outcome == Outcome::Failed && !open.kind.is_upkeep() && !is_of_failures(tx, open)? {
        tell_parent_of_failure(tx, limits, me, open, ending)?;
    }
    park_after(tx, limits, me, open, ending, settled)?;
    // After a compaction without a new measurement, the earlier size is no longer true.
    if ending.end.context_tokens > 0 || ending.end.compacted {
        agent::set_context(
            tx,
            me.key,
            ending.end.context_tokens,
            ending.end.context_window_tokens,
        )?;
    }
    tx.after_commit(Effect::Wake(me.key));
    Ok(settled)
}

/// Settles one leased delivery; returns its new state.
pub(crate) fn settle(
    tx: &Tx<'_>,
    limits: &Limits,
    me: &AgentRow,
    mut row: DeliveryRow,
    settlement: Settlement,
) -> Result<State, Refusal> {
    let settlement = planted(settlement, row.progress.failures, limits);
    let progress = row.progress.settle(settlement, tx.now, limits).ok_or(Refusal::LeaseLost)?;
    row.progress = progress;
    delivery::save(tx, &mut row, State::Leased)?;
    let (kind, detail) = match progress.state {
        State::Acked => (Kind::DeliveryAcked, String::new()),
        State::Dead => (
            Kind::DeliveryDead,
            format!("after {} failed attempts: {}", progress.failures, row.last_error),
        ),
        State::Held => (Kind::DeliveryHeld, String::new()),
        State::Ready | State::Leased | State::Dropped | State::Superseded => (
            Kind::DeliveryReturned,
            progress.cause.map(|cause| cause.to_string()).unwrap_or_default(),
        ),
    };
    let turn = row.lease.as_ref().and_then(|lease| lease.turn);
    log(
        tx,
        Fact { message: Some(row.message), turn, detail: &detail, ..Fact::about(kind, me.key) },
    )?;
    if progress.state == State::Dead && !hive_fault::planted!(DeadLetterUntold) {
        tell_parent_of_dead_letter(tx, limits, me, &row)?;
    }
    Ok(progress.state)
}

/// Returns the settlement that a planted bug makes of this one; without a bug, the same one.
#[inline(always)]
fn planted(settlement: Settlement, failures: u32, limits: &Limits) -> Settlement {
    use hive_core::delivery::RedeliveryCause as Cause;
    let last = matches!(settlement, Settlement::Fail(_)) && failures + 1 == limits.attempts_max;
    if hive_fault::planted!(NeverDead) && last {
        return Settlement::GiveBack(Cause::TurnFailed);
    }
    if hive_fault::planted!(RateLimitUsesAttempt)
        && settlement == Settlement::GiveBack(Cause::RateLimited)
    {
        return Settlement::Fail(Cause::RateLimited);
    }
    if hive_fault::planted!(VanishedForgiven)
        && settlement == Settlement::Fail(Cause::HarnessVanished)
    {
        return Settlement::GiveBack(Cause::HarnessVanished);
    }
    settlement
}

/// Returns the recipient of an agent's notices of trouble: its parent, or for a root the operator.
pub(super) fn parent(me: &AgentRow) -> AgentKey {
    me.parent.unwrap_or(AgentKey::OPERATOR)
}

/// Returns whether a notice of a failure triggered the turn. Such a turn's own failures are
/// reported by its dead letter alone, else each level of failing parents would multiply the
/// notices.
fn is_of_failures(tx: &Tx<'_>, open: &TurnRow) -> Result<bool, Refusal> {
    let Some(message) = open.message else { return Ok(false) };
    let kind = message::get(tx, message)?.and_then(|message| message.system_kind);
    Ok(matches!(kind, Some(SystemKind::TurnFailed | SystemKind::DeadLetter)))
}

fn tell_parent_of_failure(
    tx: &Tx<'_>,
    limits: &Limits,
    me: &AgentRow,
    open: &TurnRow,
    ending: &Ending<'_>,
) -> Result<(), Refusal> {
    let mut body = format!("A turn of {} failed (turn {}", me.name, open.id);
    if let Some(message) = open.message {
        write!(body, ", message {message}").expect("writing to a string succeeds");
    }
    // The agent controls the report of its harness, so the broker quotes it.
    write!(body, "):\n\n{}", quoted(ending.end.error)).expect("writing to a string succeeds");
    if !ending.end.output_tail.is_empty() {
        write!(body, "\n\nThe end of its output:\n\n{}", quoted(ending.end.output_tail))
            .expect("writing to a string succeeds");
    }
    let notice = Notice {
        turn: Some(open.id),
        ..Notice::about(&me.name, parent(me), SystemKind::TurnFailed, &body)
    };
    notice::send(tx, limits, notice).map(|_| ())
}

fn tell_parent_of_dead_letter(
    tx: &Tx<'_>,
    limits: &Limits,
    me: &AgentRow,
    row: &DeliveryRow,
) -> Result<(), Refusal> {
    let body = format!(
        "Message {} to {} is a dead letter after {} failed attempts:\n\n{}\n\nThe operator can look at it with \
         `hivectl dead-letters show {} --agent {}`, and redrive or drop it.",
        row.message,
        me.name,
        row.progress.failures,
        quoted(&row.last_error),
        row.message,
        me.name
    );
    let notice = Notice {
        in_reply_to: Some(row.message),
        turn: row.turn,
        ..Notice::about(&me.name, parent(me), SystemKind::DeadLetter, &body)
    };
    notice::put(tx, limits, notice)?;
    // Regardless of its parent: only the operator can redrive or drop it.
    wait_on_operator(tx, attention::Kind::DeadLetter, me.key, row.message.get(), &body)
}

/// Parks the agent if its turn could not run, so that it does not retry in a loop. If it runs
/// again, the recovery is reported.
fn park_after(
    tx: &Tx<'_>,
    limits: &Limits,
    me: &AgentRow,
    open: &TurnRow,
    ending: &Ending<'_>,
    settled: Settled,
) -> Result<(), Refusal> {
    let end = TurnEnd {
        kind: open.kind,
        outcome: ending.outcome,
        compacted: ending.end.compacted,
        has_dead_letter: settled.dead > 0,
        retry_time: ending.retry_time,
    };
    match park::after_turn(&end, me.failures_in_a_row, limits, tx.now) {
        Change::Nothing => Ok(()),
        Change::Runs => {
            agent::set_park(tx, me.key, None, 0, false)?;
            recovered(tx, limits, me)
        }
        Change::Failed { failures, park: None } => {
            Ok(agent::set_park(tx, me.key, None, failures, me.operator_told)?)
        }
        Change::Failed { failures, park: Some(park) } => {
            let parked = Parked { cause: ending.outcome, park, error: ending.end.error.to_owned() };
            park_for(tx, limits, me, &parked, failures, Some(open.id))
        }
    }
}

/// Parks the agent. If turns cannot run at all, the operator is notified, once until a turn has run
/// well; `found_by` is the turn that showed it.
pub(super) fn park_for(
    tx: &Tx<'_>,
    limits: &Limits,
    me: &AgentRow,
    row: &Parked,
    failures: u32,
    found_by: Option<TurnId>,
) -> Result<(), Refusal> {
    let tell = row.stops_all_turns() && !me.operator_told;
    agent::set_park(tx, me.key, Some(row), failures, me.operator_told || tell)?;
    let detail = format!("{}: {}", row.cause, row.error);
    log(tx, Fact { detail: &detail, ..Fact::about(Kind::AgentParked, me.key) })?;
    let mut body =
        format!("{} cannot run turns now ({}):\n\n{}", me.name, row.cause, quoted(&row.error));
    let needs_login = park::ends_by_login(row.cause);
    if needs_login {
        write!(body, "\n\nLog in with `hivectl login {}`.", me.name)
            .expect("writing to a string succeeds");
    }
    let notice = Notice::about(&me.name, AgentKey::OPERATOR, SystemKind::Unavailable, &body);
    if needs_login {
        let subject = found_by.map_or(0, TurnId::get);
        wait_on_operator(tx, attention::Kind::NeedsLogin, me.key, subject, &body)?;
    }
    match (tell, needs_login) {
        (true, true) => notice::put(tx, limits, notice).map(|_| ()),
        (true, false) => notice::send(tx, limits, notice).map(|_| ()),
        (false, _) => Ok(()),
    }
}

/// Notifies the operator that the trouble is over, if the trouble was reported. An unread notice of
/// the trouble is superseded.
pub(super) fn recovered(tx: &Tx<'_>, limits: &Limits, me: &AgentRow) -> Result<(), Refusal> {
    if !me.operator_told {
        return Ok(());
    }
    let body = format!("{} works again.", me.name);
    // It needs no decision, so only the inbox shows it.
    notice::put(
        tx,
        limits,
        Notice::about(&me.name, AgentKey::OPERATOR, SystemKind::Unavailable, &body),
    )
    .map(|_| ())
}

/// Ends all open turns of an agent in the broker's own name.
pub(crate) fn end_open_turns(
    tx: &Tx<'_>,
    limits: &Limits,
    me: &AgentRow,
    outcome: Outcome,
    error: &str,
) -> Result<(), Refusal> {
    let none = HashSet::new();
    for open in turn::open_all(tx, me.key)? {
        end_turn(tx, limits, me, &open, &Ending::by_broker(outcome, error, &none))?;
    }
    agent::set_harness_state(tx, me.key, HarnessState::Offline)?;
    Ok(())
}

/// Ends the turns that were open when the host went down, without blame; their sessions cannot come
/// back.
pub(crate) fn fence_turns_of_other_boots(
    tx: &Tx<'_>,
    limits: &Limits,
    me: &AgentRow,
    boot_id: &str,
) -> Result<(), Refusal> {
    let none = HashSet::new();
    for open in turn::open_all(tx, me.key)? {
        if open.boot_id != boot_id {
            end_turn(
                tx,
                limits,
                me,
                &open,
                &Ending::by_broker(Outcome::Fenced, "the host rebooted", &none),
            )?;
        }
    }
    Ok(())
}

/// Returns whether this turn belongs to the agent's present session.
pub(crate) fn is_of_session(open: &TurnRow, me: &AgentRow) -> bool {
    open.session_epoch == me.session_epoch
}

/// Returns a fresh turn id.
pub(crate) fn new_turn_id(tx: &Tx<'_>) -> TurnId {
    TurnId::new(tx.next_id()).expect("the sequence begins with 1")
}
