//! Parking an agent whose turns cannot run, and ending the park, as the rules of `core::park` say.

use std::fmt::Write as _;

use hive_core::event::AgentParked;
use hive_core::id::TurnId;
use hive_core::limits::Limits;
use hive_core::message::SystemKind;
use hive_core::park::{self, Change, Parked};
use hive_core::turn::Ended;

use super::end::Settled;
use crate::engine::Refusal;
use crate::engine::mail::notice::{self, Notice, to_parent_agent};
use crate::engine::mail::outbox;
use crate::engine::mail::text::quoted;
use crate::store::agent::AgentRow;
use crate::store::event::{Fact, log};
use crate::store::turn::TurnRow;
use crate::store::{AgentKey, Tx, agent};

/// Parks the agent if its turn could not run, so that it does not retry in a loop. If it runs
/// again, the recovery is reported.
pub(super) fn park_after(
    tx: &Tx<'_>,
    limits: &Limits,
    me: &AgentRow,
    open: &TurnRow,
    ended: &Ended,
    settled: Settled,
) -> Result<(), Refusal> {
    let (kind, failures, has_dead_letter) = (open.kind, me.failures_in_a_row, settled.dead > 0);
    match park::after_turn(kind, ended, has_dead_letter, failures, limits, tx.now) {
        Change::Nothing => Ok(()),
        Change::Runs => {
            agent::set_park(tx, me.key, None, 0, false)?;
            recovered(tx, limits, me, SystemKind::Recovered)
        }
        Change::Failed { failures, park: None } => {
            Ok(agent::set_park(tx, me.key, None, failures, me.operator_notified)?)
        }
        Change::Failed { failures, park: Some(park) } => {
            let parked = Parked { cause: ended.outcome, park, error: ended.error.clone() };
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
    let tell = row.stops_all_turns() && !me.operator_notified;
    agent::set_park(tx, me.key, Some(row), failures, me.operator_notified || tell)?;
    let detail = format!("{}: {}", row.cause, row.error);
    let parked = AgentParked { cause: row.cause, until_time: row.park.until(tx.now) };
    log(tx, Fact::about(parked, me.key).detail(&detail));
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
        outbox::add(tx, outbox::Kind::NeedsLogin, me.key, subject, &body)?;
    }
    match (tell, needs_login) {
        (true, true) => notice::put(tx, limits, notice).map(|_| ()),
        (true, false) => notice::send(tx, limits, notice).map(|_| ()),
        (false, _) => Ok(()),
    }
}

/// Notifies the operator that the trouble is over, if the trouble was reported, and with a notice
/// of this kind the parent. An unread notice of the trouble is superseded.
pub(super) fn recovered(
    tx: &Tx<'_>,
    limits: &Limits,
    me: &AgentRow,
    kind: SystemKind,
) -> Result<(), Refusal> {
    if !me.operator_notified {
        return Ok(());
    }
    let body = format!("{} works again.", me.name);
    // The notice needs no decision, so only the inbox shows it.
    notice::put(
        tx,
        limits,
        Notice::about(&me.name, AgentKey::OPERATOR, SystemKind::Unavailable, &body),
    )?;
    to_parent_agent(tx, limits, me, kind, &body)
}
