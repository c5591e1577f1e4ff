//! Attention: what begins to wait on the operator goes into an outbox, and is told from there.
//!
//! What it is not: how it is told is the notifier's affair. Invariant: a thing is in the outbox
//! from the commit that made it wait until it was told or waits no more; so nothing is missed, and
//! what the operator has seen to meanwhile is not told.

use std::collections::BTreeSet;
use std::time::Duration;

use hive_core::delivery::State;
use hive_core::id::{MessageId, QuestionId};
use hive_core::park;
use hive_core::question;
use hive_core::time::WallTime;

use super::{Engine, Refusal};
use crate::store::attention::{self, AttentionRow};
use crate::store::{AgentKey, Tx, agent, delivery, question as questions};

pub use crate::store::attention::Kind;

/// Longest text of an item, in bytes: enough to know what it is about, and what every program takes
/// in one variable.
const TEXT_BYTES_MAX: usize = 4 * 1024;
/// What a text ends with that was cut.
const CUT: char = '…';
/// Pause after the first failed attempt at telling; doubles with each further one.
const BACKOFF_BASE: Duration = Duration::from_secs(1);
/// Longest such pause.
const BACKOFF_MAX: Duration = Duration::from_secs(300);

/// A thing that waits on the operator, to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its row in the outbox.
    pub row: i64,
    /// What waits.
    pub kind: Kind,
    /// The agent it is about: who asks, who wrote, whose letter is dead, who has no login.
    pub agent: String,
    /// The id of what waits: of the question, of the message, or of the turn that found no login; 0
    /// where the harness found that without one.
    pub id: u64,
    /// What there is to say.
    pub text: String,
    /// Since when it waits.
    pub create_time: WallTime,
    /// How often telling it has failed.
    pub failures: u32,
}

/// What is to be told now, and when to look again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// To be told now.
    pub items: Vec<Item>,
    /// How long until the next one is due that was put off.
    pub next: Option<Duration>,
}

/// Puts a thing into the outbox, if somebody works it off. Once for each thing, however often it is
/// called.
pub(crate) fn wait_on_operator(
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
    /// Begins to work off the outbox: what was put off is tried now, for what failed may have been
    /// put right by whoever started the broker.
    pub async fn begin_attention(&self) -> Result<(), Refusal> {
        self.store.write(|tx| attention::hurry(tx).map_err(Refusal::from)).await
    }

    /// Up to `items` things to be told now, without those that `telling` holds already. What waits
    /// no more is thrown out.
    pub async fn due_attention(
        &self,
        telling: &BTreeSet<i64>,
        items: usize,
    ) -> Result<Due, Refusal> {
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
        // There may be more behind what was thrown out.
        let next = if over.is_empty() { next } else { Some(Duration::ZERO) };
        if !over.is_empty() {
            self.store.write(move |tx| throw_out(tx, &over)).await?;
        }
        Ok(Due { items: due, next })
    }

    /// It was told.
    pub async fn told(&self, item: &Item) -> Result<(), Refusal> {
        let row = item.row;
        self.store.write(move |tx| attention::delete(tx, row).map_err(Refusal::from)).await
    }

    /// It could not be told; answers how long until it is tried again.
    pub async fn not_told(&self, item: &Item) -> Result<Duration, Refusal> {
        let (row, pause) = (item.row, backoff(item.failures));
        self.store
            .write(move |tx| {
                attention::put_off(tx, row, tx.now.wall.after(pause)).map_err(Refusal::from)
            })
            .await?;
        Ok(pause)
    }
}

/// How long to wait when it has failed once more after so many failures.
fn backoff(failures: u32) -> Duration {
    BACKOFF_BASE.saturating_mul(1 << failures.min(16)).min(BACKOFF_MAX)
}

/// Whether it still waits on the operator.
fn waits(conn: &rusqlite::Connection, row: &AttentionRow) -> Result<bool, Refusal> {
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
            Ok(!agent.retired && agent.park.is_some_and(|park| park::ends_by_login(park.cause)))
        }
    }
}

/// Deletes what waits no more; asked again, because it may have begun to wait anew.
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
