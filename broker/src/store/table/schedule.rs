//! Tables `schedule` and `schedule_target`: the schedules of agents, and what each of their targets
//! got.
//!
//! Invariant: a schedule that has not ended has a target, and an ended one never changes again.

use std::time::Duration;

use hive_core::id::{MessageId, ScheduleId};
use hive_core::name::AgentName;
use hive_core::schedule::{Due, Schedule, State, Target, Terms};
use hive_core::time::WallTime;
use rusqlite::Result;

use crate::store::codec::{Coded as _, integer};
use crate::store::columns::{columns, name_of};
use crate::store::effect::Effect;
use crate::store::key::AgentKey;
use crate::store::statement::{
    Statements, all, change, first, insert, one, page as read_page, run,
};
use crate::store::write::tx::Tx;

/// Bytes of a schedule in a page besides its text: its fields, and each of its targets.
const FIELDS_BYTES: usize = 400;
const TARGET_BYTES: usize = 100;

columns! {
    /// A schedule without its targets.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ScheduleRow, const COLUMNS {
        pub id: ScheduleId = "s.id",
        /// The key of its owner.
        pub owner: AgentKey = "s.owner_id",
        pub owner_name: AgentName = name_of!("s.owner_id"),
        pub body: String = "s.body",
        pub first_time: WallTime = "s.first_time",
        /// The interval in seconds.
        pub interval_s: Option<u64> = "s.interval_s",
        pub zone: String = "s.zone",
        /// The limit of its lateness in seconds.
        pub late_max_s: Option<u64> = "s.late_max_s",
        pub state: State = "s.state",
        /// The number of the next due time.
        pub next_number: u64 = "s.next_number",
        pub next_time: Option<WallTime> = "s.next_time",
        pub create_time: WallTime = "s.create_time",
        pub end_time: Option<WallTime> = "s.end_time",
        pub end_cause: String = "s.end_cause",
        target_count: usize = "(SELECT count(*) FROM schedule_target t WHERE t.schedule_id = s.id)",
    }
}

columns! {
    /// What a target of a schedule got.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct TargetRow, const TARGET_COLUMNS {
        /// The key of the target.
        pub agent: AgentKey = "t.agent_id",
        pub name: AgentName = name_of!("t.agent_id"),
        /// Its last message.
        pub message: Option<MessageId> = "t.message_id",
        /// Whether that message stands for a due time.
        pub is_due: bool = "t.is_due",
        /// The skipped due times that it states.
        pub stated: u64 = "t.stated",
        /// The due times that were skipped after it.
        pub skipped: u64 = "t.skipped",
    }
}

impl ScheduleRow {
    /// Returns what it sends, to these targets, and when.
    pub(crate) fn terms(&self, targets: &[TargetRow]) -> Terms {
        Terms {
            body: self.body.clone(),
            targets: targets.iter().map(|target| target.name.clone()).collect(),
            first_time: self.first_time,
            interval: self.interval_s.map(Duration::from_secs),
            zone: self.zone.clone(),
            late_max: self.late_max_s.map(Duration::from_secs),
        }
    }

    fn with(self, targets: Vec<TargetRow>) -> Schedule {
        Schedule {
            terms: self.terms(&targets),
            id: self.id,
            owner: self.owner_name,
            targets: targets
                .into_iter()
                .map(|TargetRow { agent: _, name, message, is_due: _, stated: _, skipped }| {
                    Target { agent: name, message_id: message, skipped_count: skipped }
                })
                .collect(),
            state: self.state,
            next_time: self.next_time,
            create_time: self.create_time,
            end_time: self.end_time,
            end_cause: self.end_cause,
        }
    }
}

/// Writes an active schedule without targets.
pub fn insert(
    tx: &Tx<'_>,
    id: ScheduleId,
    owner: AgentKey,
    terms: &Terms,
    next: Due,
) -> Result<()> {
    let Terms { body, targets: _, first_time, interval, zone, late_max } = terms;
    insert!(tx, into schedule {
        id: integer(id.get()),
        owner_id: owner.0,
        body: body,
        first_time: first_time.0,
        interval_s: interval.map(seconds),
        zone: zone,
        late_max_s: late_max.map(seconds),
        next_number: integer(next.number),
        next_time: next.time.0,
        create_time: tx.now.wall.0,
    })?;
    tx.after_commit(Effect::WallDue);
    Ok(())
}

fn seconds(span: Duration) -> i64 {
    integer(span.as_secs())
}

/// Writes new terms of a schedule, without its targets.
pub fn set_terms(tx: &Tx<'_>, id: ScheduleId, terms: &Terms) -> Result<()> {
    let Terms { body, targets: _, first_time, interval, zone, late_max } = terms;
    let sql = "UPDATE schedule SET body = ?2, first_time = ?3, interval_s = ?4, zone = ?5, late_max_s = ?6 WHERE id = ?1 AND state <> 3";
    let (interval, late_max) = (interval.map(seconds), late_max.map(seconds));
    run(tx, sql, (integer(id.get()), body, first_time.0, interval, zone, late_max))
}

/// Makes a schedule active, with this next due time.
pub fn set_next(tx: &Tx<'_>, id: ScheduleId, next: Due) -> Result<()> {
    let sql = "UPDATE schedule SET state = 1, next_number = ?2, next_time = ?3 WHERE id = ?1 AND state <> 3";
    run(tx, sql, (integer(id.get()), integer(next.number), next.time.0))?;
    tx.after_commit(Effect::WallDue);
    Ok(())
}

/// Writes the number of the due time with which a paused schedule may go on.
pub fn set_number(tx: &Tx<'_>, id: ScheduleId, number: u64) -> Result<()> {
    let sql = "UPDATE schedule SET next_number = ?2 WHERE id = ?1 AND state = 2";
    run(tx, sql, (integer(id.get()), integer(number)))
}

/// Pauses an active schedule.
pub fn pause(tx: &Tx<'_>, id: ScheduleId) -> Result<()> {
    let sql = "UPDATE schedule SET state = 2, next_time = NULL WHERE id = ?1 AND state = 1";
    run(tx, sql, [integer(id.get())])
}

/// Ends a schedule; returns whether it had not ended before.
pub fn end(tx: &Tx<'_>, id: ScheduleId, cause: &str) -> Result<bool> {
    let sql = "UPDATE schedule SET state = ?2, next_time = NULL, end_time = ?3, end_cause = ?4 WHERE id = ?1 AND state <> 3";
    let values = (integer(id.get()), State::Ended.code(), tx.now.wall.0, cause);
    Ok(change(tx, sql, values)? == 1)
}

/// Adds a target, which has no message yet.
pub fn add_target(tx: &Tx<'_>, id: ScheduleId, agent: AgentKey) -> Result<()> {
    insert!(tx, into schedule_target { schedule_id: integer(id.get()), agent_id: agent.0 })
}

/// Removes a target.
pub fn remove_target(tx: &Tx<'_>, id: ScheduleId, agent: AgentKey) -> Result<()> {
    let sql = "DELETE FROM schedule_target WHERE schedule_id = ?1 AND agent_id = ?2";
    run(tx, sql, (integer(id.get()), agent.0))
}

/// Writes what a target got.
pub fn save_target(tx: &Tx<'_>, id: ScheduleId, target: &TargetRow) -> Result<()> {
    let TargetRow { agent, name: _, message, is_due, stated, skipped } = target;
    let sql = "UPDATE schedule_target SET message_id = ?3, is_due = ?4, stated = ?5, skipped = ?6 WHERE schedule_id = ?1 AND agent_id = ?2";
    let message = message.map(|id| integer(id.get()));
    let values = (integer(id.get()), agent.0, message, is_due, integer(*stated), integer(*skipped));
    run(tx, sql, values)
}

/// Returns a schedule, without a check of the reader.
pub(crate) fn row(conn: &impl Statements, id: ScheduleId) -> Result<Option<ScheduleRow>> {
    let sql = format!("SELECT {COLUMNS} FROM schedule s WHERE s.id = ?1");
    first(conn, &sql, [integer(id.get())])
}

/// Returns the targets of a schedule, by name.
pub(crate) fn targets(conn: &impl Statements, id: ScheduleId) -> Result<Vec<TargetRow>> {
    let sql = format!(
        "SELECT {TARGET_COLUMNS} FROM schedule_target t WHERE t.schedule_id = ?1 ORDER BY 2"
    );
    all(conn, &sql, [integer(id.get())])
}

/// Returns a schedule with its targets, without a check of the reader.
pub(crate) fn get(conn: &impl Statements, id: ScheduleId) -> Result<Option<Schedule>> {
    let Some(row) = row(conn, id)? else { return Ok(None) };
    let targets = targets(conn, id)?;
    Ok(Some(row.with(targets)))
}

/// Returns schedules by id, of one owner or of all; and whether there are more.
pub(crate) fn page(
    conn: &impl Statements,
    owner: Option<AgentKey>,
    states: &[State],
    after: Option<ScheduleId>,
    rows: u32,
) -> Result<(Vec<Schedule>, bool)> {
    let states: Vec<String> = states.iter().map(|state| state.code().to_string()).collect();
    let sql = format!(
        "SELECT {COLUMNS} FROM schedule s WHERE s.id > ?1 AND s.state IN ({}) AND (?2 IS NULL OR s.owner_id = ?2) \
         ORDER BY s.id LIMIT ?3",
        states.join(", ")
    );
    let after = after.map_or(0, |id| integer(id.get()));
    let values = (after, owner.map(|key| key.0), rows + 1);
    let (rows, more) = read_page(conn, &sql, values, rows, |row: &ScheduleRow| {
        row.body.len() + FIELDS_BYTES + row.target_count * TARGET_BYTES
    })?;
    let mut page = Vec::with_capacity(rows.len());
    for row in rows {
        let targets = targets(conn, row.id)?;
        page.push(row.with(targets));
    }
    Ok((page, more))
}

/// Returns how many schedules of an owner have not ended.
pub(crate) fn open_count(conn: &impl Statements, owner: AgentKey) -> Result<u32> {
    one(conn, "SELECT count(*) FROM schedule WHERE owner_id = ?1 AND state <> 3", [owner.0])
}

/// Returns the schedules of an owner that have not ended.
pub(crate) fn open_of(conn: &impl Statements, owner: AgentKey) -> Result<Vec<ScheduleRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM schedule s WHERE s.owner_id = ?1 AND s.state <> 3 ORDER BY s.id"
    );
    all(conn, &sql, [owner.0])
}

/// Returns the schedules that have not ended and have this target.
pub(crate) fn open_to(conn: &impl Statements, target: AgentKey) -> Result<Vec<ScheduleRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM schedule_target st JOIN schedule s ON s.id = st.schedule_id \
         WHERE st.agent_id = ?1 AND s.state <> 3 ORDER BY s.id"
    );
    all(conn, &sql, [target.0])
}

/// Returns the due schedules, in the order of their times.
pub(crate) fn due(conn: &impl Statements, now: WallTime, rows: u32) -> Result<Vec<ScheduleRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM schedule s WHERE s.state = 1 AND s.next_time <= ?1 ORDER BY s.next_time, s.id LIMIT ?2"
    );
    all(conn, &sql, (now.0, rows))
}

/// Returns when the next schedule is due.
pub(crate) fn next_due(conn: &impl Statements) -> Result<Option<WallTime>> {
    one(conn, "SELECT min(next_time) FROM schedule WHERE state = 1", [])
}
