//! Creating and changing schedules of the asker.

use std::time::Duration;

use hive_core::effect::Change;
use hive_core::id::ScheduleId;
use hive_core::limits::Limits;
use hive_core::name::AgentName;
use hive_core::schedule::{Edit, Terms, begin};
use hive_core::time::WallTime;

use super::{Approved, Plan, change};
use crate::engine::error::{MailError, ScheduleError};
use crate::engine::mail::admission::{may_write, not_allowed};
use crate::engine::mail::text::format_time;
use crate::engine::schedule::{self, HEAD_BYTES_MAX, check_open, refused};
use crate::engine::{Refusal, actor};
use crate::store::Tx;
use crate::store::agent::{AgentRow, Agents};
use crate::store::schedule as schedules;
use crate::store::schedule::ScheduleRow;

pub(super) fn plan_create<A: Agents>(
    conn: &A,
    limits: &Limits,
    asker: &AgentRow,
    terms: &Terms,
    now: WallTime,
) -> Result<Plan, Refusal> {
    // The asker may have been retired since.
    actor::active(conn, &asker.name)?;
    let max = asker.policy.schedules_max.unwrap_or(limits.schedules_max);
    let open = schedules::open_count(conn, asker.key)?;
    if open >= max {
        return Err(ScheduleError::Limit { open, max }.into());
    }
    check_body(&terms.body, limits)?;
    check_targets(conn, asker, &terms.targets)?;
    begin(terms, now).map_err(refused)?;
    Ok(Plan { key: None, changes: diff("schedule", None, terms), narrows: false })
}

pub(super) fn create(
    tx: &Tx<'_>,
    approved: Approved<'_>,
    terms: &Terms,
) -> Result<ScheduleId, Refusal> {
    schedule::create(tx, approved.asker, terms, &approved.detail())
}

pub(super) fn plan_change<A: Agents>(
    conn: &A,
    limits: &Limits,
    asker: &AgentRow,
    id: ScheduleId,
    edit: &Edit,
    now: WallTime,
) -> Result<Plan, Refusal> {
    let row = of_asker(conn, asker, id)?;
    let before = row.terms(&schedules::targets(conn, id)?);
    let after = edited(edit, &before)?;
    check_body(&after.body, limits)?;
    let added: Vec<AgentName> =
        after.targets.iter().filter(|name| !before.targets.contains(name)).cloned().collect();
    check_targets(conn, asker, &added)?;
    let next = begin(&after, now).map_err(refused)?;
    let is_sooner = row.next_time.or_else(|| begin(&before, now).ok().map(|due| due.time));
    let is_sooner = is_sooner.is_none_or(|before| next.time < before);
    let often = |terms: &Terms| terms.interval.unwrap_or(Duration::MAX);
    let late = |terms: &Terms| terms.late_max.unwrap_or(Duration::MAX);
    let narrows = after.body == before.body
        && added.is_empty()
        && after.zone == before.zone
        && often(&after) >= often(&before)
        && late(&after) <= late(&before)
        && (times(&after) == times(&before) || !is_sooner);
    let changes = diff(&format!("schedule.{id}"), Some(&before), &after);
    Ok(Plan { key: None, changes, narrows })
}

pub(super) fn apply_change(
    tx: &Tx<'_>,
    limits: &Limits,
    approved: Approved<'_>,
    id: ScheduleId,
    edit: &Edit,
) -> Result<(), Refusal> {
    let row = of_asker(tx, approved.asker, id)?;
    schedule::change(tx, limits, &row, |before| edited(edit, before), &approved.detail())
}

fn times(terms: &Terms) -> (WallTime, Option<Duration>) {
    (terms.first_time, terms.interval)
}

fn edited(edit: &Edit, before: &Terms) -> Result<Terms, Refusal> {
    let after = edit.of(before).map_err(refused)?;
    after.check().map_err(refused)?;
    Ok(after)
}

/// Returns a schedule of the asker that has not ended. For others it does not exist.
fn of_asker<A: Agents>(conn: &A, asker: &AgentRow, id: ScheduleId) -> Result<ScheduleRow, Refusal> {
    let row = schedules::row(conn, id)?.filter(|row| row.owner == asker.key);
    let row = row.ok_or(ScheduleError::NotFound { id })?;
    check_open(&row)?;
    Ok(row)
}

fn check_body(body: &str, limits: &Limits) -> Result<(), Refusal> {
    let max = (limits.body_bytes_max as usize).saturating_sub(HEAD_BYTES_MAX);
    if body.len() > max {
        let max = u32::try_from(max).unwrap_or(u32::MAX);
        return Err(MailError::BodyTooLarge { field: "effect", bytes: body.len(), max }.into());
    }
    Ok(())
}

/// Refuses targets to which the asker could not send.
fn check_targets<A: Agents>(
    conn: &A,
    asker: &AgentRow,
    targets: &[AgentName],
) -> Result<(), Refusal> {
    use std::borrow::Borrow as _;
    for name in targets {
        let to = actor::active(conn, name.as_str())?;
        let to: &AgentRow = to.borrow();
        if to.key != asker.key && !may_write(asker, to) {
            return Err(not_allowed(asker, &to.name));
        }
    }
    Ok(())
}

/// Returns how terms differ, a line each.
fn diff(of: &str, before: Option<&Terms>, after: &Terms) -> Vec<Change> {
    let mut changes = Vec::new();
    let old = before.map(lines).unwrap_or_default();
    for (at, (field, value)) in lines(after).into_iter().enumerate() {
        let before = old.get(at).map_or("", |(_, before)| before);
        if before != value {
            changes.push(change(&format!("{of}.{field}"), before, &value, String::new()));
        }
    }
    if before.is_none_or(|before| before.body != after.body) {
        let field = format!("{of}.body");
        let body = |terms: &Terms| -> Vec<String> {
            // An empty value stands for none.
            let shown = |line: &str| if line.is_empty() { " ".to_owned() } else { line.to_owned() };
            terms.body.lines().map(shown).collect()
        };
        let old = before.map(body).unwrap_or_default();
        changes.extend(old.iter().map(|line| change(&field, line, "", String::new())));
        changes.extend(body(after).iter().map(|line| change(&field, "", line, String::new())));
    }
    changes
}

/// Returns the values of terms but their text, each on one line.
fn lines(terms: &Terms) -> Vec<(&'static str, String)> {
    let Terms { body: _, targets, first_time, interval, zone, late_max } = terms;
    let targets: Vec<&str> = targets.iter().map(AgentName::as_str).collect();
    let span = |span: &Duration| format!("{} s", span.as_secs());
    vec![
        ("targets", targets.join(", ")),
        ("first_time", format_time(*first_time)),
        ("interval", interval.as_ref().map_or("once".to_owned(), span)),
        ("zone", zone.clone()),
        ("late_max", late_max.as_ref().map(span).unwrap_or_default()),
    ]
}
