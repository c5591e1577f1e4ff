//! Schedules: mail that an agent has sent to its targets at due times, in its own name.
//!
//! An approval creates and changes them: see `engine/approval`. Here they fire, pause and end.
//! Invariants: each due time is fired once, or counted in a later message, or in the notice of the
//! end; both are decided in the transaction that computes the next due time. A target has at most
//! one message of a schedule that it has not read, since it was added to the targets.

mod end;
mod fire;
mod texts;

use std::sync::Arc;

use hive_core::agent::SCHEDULING;
use hive_core::caller::Caller;
use hive_core::event::{ScheduleChange, ScheduleChanged, ScheduleCreated};
use hive_core::id::{MessageId, ScheduleId};
use hive_core::limits::Limits;
use hive_core::name::AgentName;
use hive_core::schedule::{Due, Schedule, State, Terms, begin};
use hive_core::time::WallTime;
use serde::{Deserialize, Serialize};

use super::error::ScheduleError;
use super::mail::admission::Admission;
use super::{Engine, Refusal, actor};
use crate::engine::actor::Actor;
use crate::store::agent::AgentRow;
use crate::store::event::{Fact, log};
use crate::store::request::RequestKey;
use crate::store::schedule::{self as schedules, ScheduleRow, TargetRow};
use crate::store::{Tx, agent as agents};
pub(crate) use end::retire;
use end::{End, end};
use fire::{Firing, fire};
pub(crate) use texts::HEAD_BYTES_MAX;

/// Most schedules that one sweep fires, so that it never stalls a send. Each has a few targets.
const STEP_ROWS: u32 = 20;

/// What a target got when its schedule was fired by hand.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fired {
    /// The target.
    pub agent: AgentName,
    /// The message, or why it got none.
    pub message: Result<MessageId, String>,
}

impl Engine {
    /// Fires a schedule now, besides its due times; returns it, and what each target got.
    pub async fn fire_schedule(
        &self,
        actor: Actor,
        request: RequestKey,
        id: ScheduleId,
    ) -> Result<(Schedule, Vec<Fired>), Refusal> {
        self.check_open()?;
        let fire = move |admission: Admission<'_, '_>| {
            let row = of_caller(&admission, id)?;
            fire_now(&admission, &row)
        };
        self.act_and_read("fire schedule", actor, request, fire, move |tx, fired| {
            Ok((get(tx, id)?, fired))
        })
        .await
    }

    /// Ends a schedule.
    pub async fn cancel_schedule(
        &self,
        actor: Actor,
        request: RequestKey,
        id: ScheduleId,
    ) -> Result<Schedule, Refusal> {
        self.check_open()?;
        let cancel = move |admission: Admission<'_, '_>| {
            let row = of_caller(&admission, id)?;
            let Admission { tx, limits, actor, .. } = admission;
            match &actor.caller {
                Caller::Agent(_) => end(tx, limits, &row, &End::ByOwner),
                Caller::Operator(who) => end(tx, limits, &row, &End::ByOperator(who.as_str())),
            }
        };
        self.act_and_read("cancel schedule", actor, request, cancel, move |tx, ()| get(tx, id))
            .await
    }

    /// Pauses a schedule of any owner. What is due by now fires before.
    pub async fn pause_schedule(
        &self,
        caller: Caller,
        request: RequestKey,
        id: ScheduleId,
    ) -> Result<Schedule, Refusal> {
        let limits = Arc::clone(&self.limits);
        self.change_schedule(caller, request, id, move |tx, row, who| {
            let row = fire_if_due(tx, &limits, row)?;
            if row.state == State::Active {
                schedules::pause(tx, row.id)?;
                note_change(tx, &row, ScheduleChange::Paused, &format!("by {who}"));
            }
            Ok(())
        })
        .await
    }

    /// Resumes a paused schedule of any owner at its next due time.
    pub async fn resume_schedule(
        &self,
        caller: Caller,
        request: RequestKey,
        id: ScheduleId,
    ) -> Result<Schedule, Refusal> {
        let limits = Arc::clone(&self.limits);
        self.change_schedule(caller, request, id, move |tx, row, who| {
            if row.state == State::Active {
                return Ok(());
            }
            note_change(tx, row, ScheduleChange::Resumed, &format!("by {who}"));
            match next_after(&row.terms(&[]), row.next_number, tx.now.wall) {
                Some(next) => Ok(schedules::set_next(tx, row.id, next)?),
                None => end(tx, &limits, row, &End::NoDueTime),
            }
        })
        .await
    }

    async fn change_schedule<F>(
        &self,
        caller: Caller,
        request: RequestKey,
        id: ScheduleId,
        change: F,
    ) -> Result<Schedule, Refusal>
    where
        F: FnOnce(&Tx<'_>, &ScheduleRow, &str) -> Result<(), Refusal> + Send + 'static,
    {
        self.check_open()?;
        let who = caller.name().to_owned();
        self.command(caller, request, move |tx| {
            let row = schedules::row(tx, id)?.ok_or(ScheduleError::NotFound { id })?;
            check_open(&row)?;
            change(tx, &row, &who)
        })
        .await?;
        self.store
            .read(move |conn, _| {
                Ok(schedules::get(conn, id)?.ok_or(ScheduleError::NotFound { id })?)
            })
            .await
    }

    /// Lists schedules by id; also returns whether there are more.
    pub async fn list_schedules(
        &self,
        caller: Caller,
        owner: String,
        mut states: Vec<State>,
        after: Option<ScheduleId>,
        rows: u32,
    ) -> Result<(Vec<Schedule>, bool), Refusal> {
        if states.is_empty() {
            states.extend([State::Active, State::Paused]);
        }
        self.store
            .read(move |conn, _| {
                let of = actor::scope(conn, &caller, &owner, "that agent's list of schedules")?;
                Ok(schedules::page(conn, of, &states, after, rows)?)
            })
            .await
    }

    /// Fires due schedules; returns when the next one is due.
    pub async fn sweep_schedules(&self) -> Result<Option<WallTime>, Refusal> {
        let limits = Arc::clone(&self.limits);
        let due = self.store.read(|conn, now| {
            Ok::<_, Refusal>((schedules::due(conn, now.wall, 1)?.len(), schedules::next_due(conn)?))
        });
        // Mostly none is due, and a read keeps nothing waiting.
        if let (0, next) = due.await? {
            return Ok(next);
        }
        self.store
            .write(move |tx| {
                for row in schedules::due(tx, tx.now.wall, STEP_ROWS)? {
                    fire_due(tx, &limits, &row)?;
                }
                Ok(schedules::next_due(tx)?)
            })
            .await
    }
}

fn get(tx: &Tx<'_>, id: ScheduleId) -> Result<Schedule, Refusal> {
    Ok(schedules::get(tx, id)?.ok_or(ScheduleError::NotFound { id })?)
}

/// Returns a schedule of the caller that has not ended. For any other agent it does not exist; so
/// this comes before every other check.
fn of_caller(admission: &Admission<'_, '_>, id: ScheduleId) -> Result<ScheduleRow, Refusal> {
    let row = schedules::row(admission.tx, id)?;
    let row = row.filter(|row| !admission.is_agent() || row.owner == admission.me.key);
    let row = row.ok_or(ScheduleError::NotFound { id })?;
    admission.turn(SCHEDULING)?;
    check_open(&row)?;
    Ok(row)
}

/// Refuses a schedule that has ended.
pub(crate) fn check_open(row: &ScheduleRow) -> Result<(), Refusal> {
    match row.state {
        State::Active | State::Paused => Ok(()),
        State::Ended => Err(ScheduleError::WrongState { id: row.id, state: row.state }.into()),
    }
}

fn note_change(tx: &Tx<'_>, row: &ScheduleRow, change: ScheduleChange, detail: &str) {
    let fact = ScheduleChanged { schedule_id: row.id, change };
    log(tx, Fact::about(fact, row.owner).detail(detail));
}

/// Returns the first due time after `now` that is not before this number; `None` if there is none.
fn next_after(terms: &Terms, number: u64, now: WallTime) -> Option<Due> {
    let timetable = terms.timetable().ok()?;
    let after = timetable.last(now).map_or(0, |due| due.number + 1);
    timetable.at(after.max(number))
}

/// Creates a schedule; returns its id.
pub(crate) fn create(
    tx: &Tx<'_>,
    owner: &AgentRow,
    terms: &Terms,
    detail: &str,
) -> Result<ScheduleId, Refusal> {
    let next = begin(terms, tx.now.wall).map_err(refused)?;
    let id = ScheduleId::new(tx.next_id()).expect("the sequence begins with 1");
    schedules::insert(tx, id, owner.key, terms, next)?;
    for name in &terms.targets {
        schedules::add_target(tx, id, actor::active(tx, name.as_str())?.key)?;
    }
    log(tx, Fact::about(ScheduleCreated { schedule_id: id }, owner.key).detail(detail));
    Ok(id)
}

/// Gives a schedule new terms. What is due by now fires before, by the old ones.
pub(crate) fn change(
    tx: &Tx<'_>,
    limits: &Limits,
    row: &ScheduleRow,
    terms: impl FnOnce(&Terms) -> Result<Terms, Refusal>,
    detail: &str,
) -> Result<(), Refusal> {
    let row = fire_if_due(tx, limits, row)?;
    check_open(&row)?;
    let before = schedules::targets(tx, row.id)?;
    let old = row.terms(&before);
    let new = terms(&old)?;
    for target in before.iter().filter(|target| !new.targets.contains(&target.name)) {
        schedules::remove_target(tx, row.id, target.agent)?;
    }
    for name in new.targets.iter().filter(|name| !old.targets.contains(name)) {
        schedules::add_target(tx, row.id, actor::active(tx, name.as_str())?.key)?;
    }
    schedules::set_terms(tx, row.id, &new)?;
    let times = |terms: &Terms| (terms.first_time, terms.interval, terms.zone.clone());
    if times(&old) != times(&new) {
        let next = begin(&new, tx.now.wall).map_err(refused)?;
        match row.state {
            State::Active => schedules::set_next(tx, row.id, next)?,
            State::Paused => schedules::set_number(tx, row.id, 0)?,
            State::Ended => {}
        }
    }
    note_change(tx, &row, ScheduleChange::Edited, detail);
    Ok(())
}

/// Returns the refusal of a schedule that there cannot be.
pub(crate) fn refused(fault: hive_core::schedule::Fault) -> Refusal {
    Refusal::Field { field: "effect", problem: fault.to_string() }
}

/// Fires a schedule if it is due by now; returns it as it is then.
fn fire_if_due(tx: &Tx<'_>, limits: &Limits, row: &ScheduleRow) -> Result<ScheduleRow, Refusal> {
    if row.next_time.is_none_or(|next| next > tx.now.wall) {
        return Ok(row.clone());
    }
    fire_due(tx, limits, row)?;
    Ok(schedules::row(tx, row.id)?.ok_or(ScheduleError::NotFound { id: row.id })?)
}

/// Fires an active schedule for its last due time, and counts those before it.
fn fire_due(tx: &Tx<'_>, limits: &Limits, row: &ScheduleRow) -> Result<(), Refusal> {
    let terms = row.terms(&[]);
    let Ok(timetable) = terms.timetable() else {
        return end(tx, limits, row, &End::UnknownZone);
    };
    let Some(due) = timetable.last(tx.now.wall).filter(|due| due.number >= row.next_number) else {
        // The rules of its zone are others than those by which the row was written. Without a new
        // time the row would be due again at once.
        return match timetable.at(row.next_number) {
            Some(next) => Ok(schedules::set_next(tx, row.id, next)?),
            None => end(tx, limits, row, &End::NoDueTime),
        };
    };
    let mut skipped = due.number - row.next_number;
    if hive_fault::planted!(DowntimeUncounted) {
        skipped = 0;
    }
    let is_late = terms.late_max.is_some_and(|max| tx.now.wall.since(due.time) > max);
    let firing = Firing::Due { due, skipped, is_late };
    let owner = agents::by_key(tx, row.owner)?;
    fire(tx, limits, row, &owner, &firing)?;
    if hive_fault::planted!(ScheduleFiresTwice) && tx.now.wall.0 % 2 == 0 {
        return Ok(());
    }
    match timetable.at(due.number + 1) {
        Some(next) => Ok(schedules::set_next(tx, row.id, next)?),
        None => end(tx, limits, row, &End::NoDueTime),
    }
}

/// Fires an active schedule by hand; one that is due once ends with it.
fn fire_now(admission: &Admission<'_, '_>, row: &ScheduleRow) -> Result<Vec<Fired>, Refusal> {
    let &Admission { tx, limits, .. } = admission;
    if row.state != State::Active {
        return Err(ScheduleError::WrongState { id: row.id, state: row.state }.into());
    }
    if admission.is_agent() {
        let targets: Vec<TargetRow> = schedules::targets(tx, row.id)?;
        admission.take_send(row.body.len().saturating_mul(targets.len()))?;
    }
    let owner = agents::by_key(tx, row.owner)?;
    let fired = fire(tx, limits, row, &owner, &Firing::Now)?;
    if row.interval_s.is_none() && fired.iter().any(|fired| fired.message.is_ok()) {
        end(tx, limits, row, &End::FiredByHand)?;
    }
    Ok(fired)
}
