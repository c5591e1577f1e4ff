//! The operator outbox: the items on which the operator has to act.
//!
//! The notifier decides how to notify the operator. Invariant: an item is in the outbox from the
//! commit that created it until the operator is notified or the item is settled. So no item is
//! missed, and a settled item is not reported.

use std::borrow::Borrow as _;
use std::collections::BTreeSet;
use std::time::Duration;

use hive_core::delivery::State;
use hive_core::id::{MessageId, QuestionId};
use hive_core::park;
use hive_core::question;
use hive_core::time::WallTime;

use crate::engine::{Engine, Refusal};
use crate::store::agent::{AgentRow, Agents};
use crate::store::attention::{self, AttentionRow};
use crate::store::{AgentKey, Tx, agent, delivery, question as questions};

pub use crate::store::attention::Kind;

/// Longest text of an item, in bytes: enough to see the cause, and every program accepts it in one
/// environment variable.
const TEXT_BYTES_MAX: usize = 4 * 1024;
/// The end of a text that was cut.
const CUT: char = '…';
/// Pause after the first failed notification; doubles with each further failure.
const BACKOFF_BASE: Duration = Duration::from_secs(1);
/// Longest pause between two attempts.
const BACKOFF_MAX: Duration = Duration::from_secs(300);

/// An item of the operator outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The row in the outbox.
    pub row: i64,
    /// The kind of the item.
    pub kind: Kind,
    /// The agent of the item: the asker, the sender, the owner of the dead letter, or the agent
    /// without a login.
    pub agent: String,
    /// The id of the question, of the message, or of the turn that found no login; 0 if the harness
    /// found that without a turn.
    pub id: u64,
    /// The text for the operator.
    pub text: String,
    /// The time at which the item was created.
    pub create_time: WallTime,
    /// The number of failed notifications.
    pub failures: u32,
}

/// The items to report now, and the time until the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// Items to report now.
    pub items: Vec<Item>,
    /// The time until the next postponed item is due.
    pub next: Option<Duration>,
}

/// Adds an item to the outbox, if a notifier drains it. A second call for the same item has no
/// effect.
pub(crate) fn add(
    tx: &Tx<'_>,
    kind: Kind,
    agent: AgentKey,
    subject: u64,
    text: &str,
) -> Result<(), Refusal> {
    if !tx.attention {
        return Ok(());
    }
    let end = text.floor_char_boundary(TEXT_BYTES_MAX - CUT.len_utf8());
    let cut = (text.len() > TEXT_BYTES_MAX).then(|| format!("{}{CUT}", &text[..end]));
    Ok(attention::insert(tx, kind, agent, subject, cut.as_deref().unwrap_or(text))?)
}

impl Engine {
    /// Begins to drain the outbox: postponed items are retried now, because the cause of the
    /// failure may be repaired since.
    pub async fn begin_outbox(&self) -> Result<(), Refusal> {
        self.store.write(|tx| attention::make_due(tx).map_err(Refusal::from)).await
    }

    /// Returns up to `items` due items, without those in `telling`. Deletes items that are settled.
    pub async fn due_items(&self, telling: &BTreeSet<i64>, items: usize) -> Result<Due, Refusal> {
        let telling = telling.clone();
        let rows = u32::try_from(items + telling.len()).unwrap_or(u32::MAX);
        let (due, over, next) = self
            .store
            .read(move |conn, now| {
                let (mut due, mut over) = (Vec::new(), Vec::new());
                for row in attention::due(conn, now.wall, now.wall.after(BACKOFF_MAX), rows)? {
                    if telling.contains(&row.id) || due.len() == items {
                        continue;
                    }
                    if waits(conn, &row)? {
                        due.push(item(conn, row)?);
                    } else {
                        over.push(row);
                    }
                }
                let next = attention::next_due(conn, now.wall)?
                    .map(|next| next.since(now.wall).min(BACKOFF_MAX));
                Ok::<_, Refusal>((due, over, next))
            })
            .await?;
        // There may be more items after the deleted ones.
        let next = if over.is_empty() { next } else { Some(Duration::ZERO) };
        if !over.is_empty() {
            self.store.write(move |tx| throw_out(tx, &over)).await?;
        }
        Ok(Due { items: due, next })
    }

    /// Deletes an item of which the operator was notified.
    pub async fn remove_item(&self, item: &Item) -> Result<(), Refusal> {
        let row = item.row;
        self.store.write(move |tx| attention::delete(tx, row).map_err(Refusal::from)).await
    }

    /// Notes a failed notification; returns how long until the next attempt.
    pub async fn postpone_item(&self, item: &Item) -> Result<Duration, Refusal> {
        let (row, pause) = (item.row, backoff(item.failures));
        self.store
            .write(move |tx| {
                attention::postpone(tx, row, tx.now.wall.after(pause)).map_err(Refusal::from)
            })
            .await?;
        Ok(pause)
    }
}

/// Returns the pause after one more failure than `failures`.
fn backoff(failures: u32) -> Duration {
    BACKOFF_BASE.saturating_mul(1 << failures.min(16)).min(BACKOFF_MAX)
}

/// Returns whether the item still needs the operator.
fn waits<A: Agents>(conn: &A, row: &AttentionRow) -> Result<bool, Refusal> {
    let in_state = |inbox, state| -> Result<bool, Refusal> {
        let Some(message) = MessageId::new(row.subject) else { return Ok(false) };
        Ok(delivery::get(conn, inbox, message)?
            .is_some_and(|delivery| delivery.progress.state == state))
    };
    match row.kind {
        Kind::Question => {
            let Some(id) = QuestionId::new(row.subject) else { return Ok(false) };
            Ok(questions::get(conn, id)?
                .is_some_and(|question| question.state == question::State::Open))
        }
        Kind::Mail => in_state(AgentKey::OPERATOR, State::Ready),
        Kind::DeadLetter => in_state(row.agent, State::Dead),
        Kind::NeedsLogin => {
            let agent = agent::by_key(conn, row.agent)?;
            let agent: &AgentRow = agent.borrow();
            Ok(!agent.retired
                && agent.park.as_ref().is_some_and(|park| park::ends_by_login(park.cause)))
        }
    }
}

/// Deletes the settled items of `rows`. Each is checked again, because it may be open again.
fn throw_out(tx: &Tx<'_>, rows: &[AttentionRow]) -> Result<(), Refusal> {
    for row in rows {
        if !waits(tx, row)? {
            attention::delete(tx, row.id)?;
        }
    }
    Ok(())
}

fn item(conn: &rusqlite::Connection, row: AttentionRow) -> Result<Item, Refusal> {
    let AttentionRow { id, kind, agent, subject, text, create_time, attempts } = row;
    let agent = agent::name_of(conn, agent)?;
    Ok(Item { row: id, kind, agent, id: subject, text, create_time, failures: attempts })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_five_minutes() {
        let pauses: Vec<u64> = (0..11).map(|failures| backoff(failures).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(backoff(u32::MAX), BACKOFF_MAX);
    }
}
