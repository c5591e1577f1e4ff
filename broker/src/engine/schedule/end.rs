//! The end of a schedule.
//!
//! Invariant: its owner is notified of an end that it did not ask for, and of each due time that no
//! message has stated.

use hive_core::event::ScheduleEnded;
use hive_core::limits::Limits;
use hive_core::message::SystemKind;

use super::texts;
use crate::engine::Refusal;
use crate::engine::mail::notice::{self, Notice};
use crate::store::agent::AgentRow;
use crate::store::event::{Fact, log};
use crate::store::schedule::{self as schedules, ScheduleRow};
use crate::store::{Tx, agent as agents};

/// Why a schedule ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End<'a> {
    /// Its owner ended it.
    ByOwner,
    /// The operator of this name ended it.
    ByOperator(&'a str),
    /// There is no further due time.
    NoDueTime,
    /// It was due once, and was fired by hand.
    FiredByHand,
    /// Its last target was retired.
    NoTarget,
    /// Its owner was retired.
    OwnerRetired,
    /// This broker does not know its zone.
    UnknownZone,
}

impl End<'_> {
    fn cause(self) -> String {
        match self {
            Self::ByOwner => "its owner ended it".to_owned(),
            Self::ByOperator(_) => "the operator ended it".to_owned(),
            Self::NoDueTime => "it has no further due time".to_owned(),
            Self::FiredByHand => "it was due once, and was fired by hand".to_owned(),
            Self::NoTarget => "its last target was retired".to_owned(),
            Self::OwnerRetired => "its owner was retired".to_owned(),
            Self::UnknownZone => "this broker does not know its zone".to_owned(),
        }
    }
}

/// Ends a schedule that has not ended.
pub(super) fn end(
    tx: &Tx<'_>,
    limits: &Limits,
    row: &ScheduleRow,
    why: &End<'_>,
) -> Result<(), Refusal> {
    let cause = why.cause();
    if !schedules::end(tx, row.id, &cause)? {
        return Ok(());
    }
    let fact = ScheduleEnded { schedule_id: row.id };
    let detail = match why {
        End::ByOperator(who) => format!("by {who}"),
        End::ByOwner
        | End::NoDueTime
        | End::FiredByHand
        | End::NoTarget
        | End::OwnerRetired
        | End::UnknownZone => cause.clone(),
    };
    log(tx, Fact::about(fact, row.owner).detail(&detail));
    let missed: Vec<_> =
        schedules::targets(tx, row.id)?.into_iter().filter(|target| target.skipped > 0).collect();
    let is_known = match why {
        End::ByOwner | End::OwnerRetired => true,
        End::NoDueTime | End::FiredByHand => missed.is_empty(),
        End::ByOperator(_) | End::NoTarget | End::UnknownZone => false,
    };
    if is_known {
        return Ok(());
    }
    let owner = agents::by_key(tx, row.owner)?;
    let body = texts::ended(row, &cause, &missed);
    let key = format!("schedule:{}", row.id);
    let notice = Notice {
        subject: Some(&key),
        ..Notice::about(&owner.name, owner.key, SystemKind::ScheduleEnded, &body)
    };
    notice::send(tx, limits, notice)?;
    Ok(())
}

/// Ends the schedules of a retired agent, and takes it from the targets of all others.
pub(crate) fn retire(tx: &Tx<'_>, limits: &Limits, me: &AgentRow) -> Result<(), Refusal> {
    for row in schedules::open_of(tx, me.key)? {
        end(tx, limits, &row, &End::OwnerRetired)?;
    }
    for row in schedules::open_to(tx, me.key)? {
        if schedules::targets(tx, row.id)?.len() > 1 {
            schedules::remove_target(tx, row.id, me.key)?;
        } else {
            end(tx, limits, &row, &End::NoTarget)?;
        }
    }
    Ok(())
}
