//! Reminders: setting, withdrawing and firing them.
//!
//! Invariant: a reminder and the message it becomes are one transaction. So it fires exactly once,
//! whenever the broker was down and however the clock jumped. A long body is a file before its
//! message is sent; if no file can be written, the message carries the body.

use crate::engine::error::ReminderError;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hive_core::caller::Caller;
use hive_core::event::{Facts, ReminderSet};
use hive_core::id::ReminderId;
use hive_core::limits::{DUE_SPAN_MIN, Limits, REMINDER_DELAY_MAX, REMINDER_INLINE_BYTES_MAX};
use hive_core::message::SystemKind;
use hive_core::reminder::{Reminder, State};
use hive_core::time::WallTime;
use serde::{Deserialize, Serialize};

use super::admission::{Admission, check_body};
use super::notice::{self, Notice};
use super::text::format_time;
use crate::engine::actor::{self, Actor};
use crate::engine::{Engine, Refusal};
use crate::store::agent::AgentRow;
use crate::store::event::{Fact, log};
use crate::store::reminder::{self as reminders, NewReminder, ReminderRow};
use crate::store::request::RequestKey;
use crate::store::{Tx, message};

/// Most reminders that one sweep fires, so that it never stalls a send.
const STEP_ROWS: u32 = 100;
/// A reminder that fires later than this states when it was due.
const LATE: Duration = Duration::from_secs(60);
/// The part of a long body that its message shows, in characters.
const EXCERPT_CHARS: usize = 500;

/// When a reminder is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// After this time from now.
    In(Duration),
    /// At this time.
    At(WallTime),
}

/// The stored answer for a replay.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Set {
    id: ReminderId,
    already: bool,
}

impl Engine {
    /// Sets a reminder; returns it, and whether an earlier run of the same delivery had set it
    /// already.
    pub async fn set_reminder(
        &self,
        actor: Actor,
        request: RequestKey,
        body: String,
        due: Due,
    ) -> Result<(Reminder, bool), Refusal> {
        self.check_open()?;
        actor.check_agent()?;
        check_body(&body, &self.limits)?;
        let put = move |admission: Admission<'_, '_>| put(&admission, &body, due);
        self.act_and_read("remind", actor, request, put, |tx, set: Set| {
            Ok((row(tx, set.id)?.reminder, set.already))
        })
        .await
    }

    /// Withdraws a pending reminder.
    pub async fn cancel_reminder(
        &self,
        actor: Actor,
        request: RequestKey,
        id: ReminderId,
    ) -> Result<Reminder, Refusal> {
        self.check_open()?;
        let cancel = move |admission: Admission<'_, '_>| {
            let row = visible(&admission, id)?.ok_or(ReminderError::NotFound { id })?;
            cancel(&admission, &row)
        };
        self.act_and_read("cancel reminder", actor, request, cancel, move |tx, ()| {
            Ok(row(tx, id)?.reminder)
        })
        .await
    }

    /// Lists reminders by id; also returns whether there are more.
    pub async fn list_reminders(
        &self,
        caller: Caller,
        agent: String,
        mut states: Vec<State>,
        after: Option<ReminderId>,
        rows: u32,
    ) -> Result<(Vec<Reminder>, bool), Refusal> {
        if states.is_empty() {
            states.push(State::Pending);
        }
        self.store
            .read(move |conn, _| {
                let of = actor::scope(conn, &caller, &agent, "that agent's list of reminders")?;
                Ok(reminders::page(conn, of, &states, after, rows)?)
            })
            .await
    }

    /// Fires due reminders; returns when the next one is due.
    pub async fn sweep_reminders(&self) -> Result<Option<WallTime>, Refusal> {
        let due = self
            .store
            .read(|conn, now| Ok::<_, Refusal>(reminders::due(conn, now.wall, STEP_ROWS)?))
            .await?;
        let files = self.write_files(&due).await;
        let limits = Arc::clone(&self.limits);
        self.store
            .write(move |tx| {
                for row in due {
                    // Read again: it may have been withdrawn since, or the clock may have been set
                    // back.
                    let row = reminders::row(tx, row.reminder.id)?;
                    let still = row.filter(|row| {
                        row.reminder.state == State::Pending && row.reminder.due_time <= tx.now.wall
                    });
                    if let Some(row) = still {
                        fire(tx, &limits, &row, files.get(&row.reminder.id))?;
                    }
                }
                Ok(reminders::next_due(tx)?)
            })
            .await
    }

    /// Writes the long bodies to files; returns the paths of those that could be written.
    async fn write_files(&self, due: &[ReminderRow]) -> BTreeMap<ReminderId, PathBuf> {
        let mut files = BTreeMap::new();
        for ReminderRow { reminder, .. } in due {
            if reminder.body.len() <= REMINDER_INLINE_BYTES_MAX {
                continue;
            }
            let Some(dir) = self.directories.of_reminders(&reminder.agent) else { continue };
            let (id, body) = (reminder.id, reminder.body.clone());
            let written = self.store.blocking(move || crate::spill::write(&dir, id, &body)).await;
            match written {
                Ok(Ok(path)) => {
                    files.insert(id, path);
                }
                Ok(Err(error)) => {
                    tracing::warn!(%error, agent = %reminder.agent, reminder = %id, "no file could be written; the message carries the body");
                }
                Err(error) => {
                    tracing::warn!(%error, reminder = %id, "writing a file panicked; the message carries the body");
                }
            }
        }
        files
    }
}

fn put(admission: &Admission<'_, '_>, body: &str, due: Due) -> Result<Set, Refusal> {
    let &Admission { tx, me, .. } = admission;
    let turn = admission.turn("inbox")?;
    let trace = admission.actor.cause.parent(turn.as_ref());
    let turn = turn.map(|turn| turn.id);
    let now = tx.now.wall;
    let (due_time, delay) = match due {
        Due::In(delay) if !(DUE_SPAN_MIN..=REMINDER_DELAY_MAX).contains(&delay) => {
            let problem = format!("it must be between 1 s and {} s", REMINDER_DELAY_MAX.as_secs());
            return Err(Refusal::Field { field: "delay", problem });
        }
        Due::In(delay) => (now.after(delay), Some(delay)),
        Due::At(time) if time < now => {
            let problem =
                format!("{} is in the past; it is {} now", format_time(time), format_time(now));
            return Err(Refusal::Field { field: "due_time", problem });
        }
        Due::At(time) if time.since(now) > REMINDER_DELAY_MAX => {
            let problem = format!(
                "it is more than {} days ahead",
                REMINDER_DELAY_MAX.as_secs() / (24 * 3600)
            );
            return Err(Refusal::Field { field: "due_time", problem });
        }
        Due::At(time) => (time, None),
    };
    let id = ReminderId::new(tx.next_id()).expect("the sequence begins with 1");
    let delay_ms = delay.map(|delay| u64::try_from(delay.as_millis()).unwrap_or(u64::MAX));
    let new = NewReminder { id, agent: me.key, body, due_time, delay_ms, turn, trace };
    if let Some(turn) = turn
        && let Some(earlier) = reminders::equal_in_earlier_runs(tx, turn, &new)?
    {
        message::absorb(tx, turn, earlier.get())?;
        return Ok(Set { id: earlier, already: true });
    }
    admission.check_reminders(reminders::pending(tx, me.key)?)?;
    admission.take_rate()?;
    reminders::insert(tx, &new)?;
    let detail = format!("due {}", format_time(due_time));
    log(tx, Fact::about(ReminderSet { due_time }, me.key).turn(turn).reminder(id).detail(&detail));
    Ok(Set { id, already: false })
}

fn row(tx: &Tx<'_>, id: ReminderId) -> Result<ReminderRow, Refusal> {
    reminders::row(tx, id)?.ok_or(Refusal::from(ReminderError::NotFound { id }))
}

/// Returns a reminder that the caller may read. For any other caller it does not exist; so this
/// comes before every other check.
pub(crate) fn visible(
    admission: &Admission<'_, '_>,
    id: ReminderId,
) -> Result<Option<ReminderRow>, Refusal> {
    let row = reminders::row(admission.tx, id)?;
    Ok(row.filter(|row| !admission.is_agent() || row.agent == admission.me.key))
}

/// Withdraws a reminder that is [`visible`], in the name of its agent or of the operator.
pub(crate) fn cancel(admission: &Admission<'_, '_>, row: &ReminderRow) -> Result<(), Refusal> {
    let Admission { tx, actor, .. } = *admission;
    admission.turn("inbox")?;
    close(tx, row, actor.caller.name())
}

fn close(tx: &Tx<'_>, row: &ReminderRow, who: &str) -> Result<(), Refusal> {
    let id = row.reminder.id;
    if !reminders::close(tx, id, State::Cancelled, None)? {
        return Err(Refusal::from(ReminderError::Closed { id, state: row.reminder.state }));
    }
    let detail = format!("by {who}");
    log(tx, Fact::about(Facts::ReminderCancelled, row.agent).reminder(id).detail(&detail));
    Ok(())
}

/// Ends the reminders of a retired agent.
pub(crate) fn retire(tx: &Tx<'_>, me: &AgentRow) -> Result<(), Refusal> {
    for row in reminders::pending_of(tx, me.key)? {
        close(tx, &row, "retiring")?;
    }
    Ok(())
}

fn fire(
    tx: &Tx<'_>,
    limits: &Limits,
    row: &ReminderRow,
    file: Option<&PathBuf>,
) -> Result<(), Refusal> {
    let Reminder { id, agent, body, create_time, due_time, .. } = &row.reminder;
    let mut text = format!("Reminder {id}, which you set at {}", format_time(*create_time));
    if tx.now.wall.since(*due_time) > LATE {
        text.push_str(&format!(" for {}", format_time(*due_time)));
    }
    match file {
        None => text.push_str(&format!(":\n\n{body}")),
        Some(path) => {
            let excerpt: String = body.chars().take(EXCERPT_CHARS).collect();
            text.push_str(&format!(
                ". It has {} bytes and lies in your state directory as `{}`. It begins:\n\n{excerpt}",
                body.len(),
                path.display()
            ));
        }
    }
    let notice = Notice {
        reminder: Some(*id),
        parent: row.trace,
        ..Notice::about(agent.as_str(), row.agent, SystemKind::Reminder, &text)
    };
    let message = notice::send(tx, limits, notice)?;
    if !(hive_fault::planted!(ReminderFiresTwice) && tx.now.wall.0 % 2 == 0) {
        reminders::close(tx, *id, State::Fired, Some(message))?;
    }
    let fact = Fact::about(Facts::ReminderFired, row.agent).message(message).reminder(*id);
    log(tx, fact);
    Ok(())
}
