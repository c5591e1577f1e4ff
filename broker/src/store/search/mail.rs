//! The two ends of the index: the mail that it is built from, and the mail that its proposals name.
//!
//! Messages and questions have their numbers from one sequence, and one writer commits them in
//! order. So reading after the last number misses nothing. Invariant: whatever the index proposes,
//! a hit exists and the caller may see it.

use hive_core::id::{MessageId, QuestionId};
use hive_core::message::{Message, SystemKind};
use hive_core::question::Question;
use hive_core::time::WallTime;
use rusqlite::{Connection, Result};
use sha2::{Digest as _, Sha256};

use super::{BATCH_BYTES, BATCH_ROWS, Position};
use crate::store::codec::{Coded as _, integer};
use crate::store::columns::Columns as _;
use crate::store::statement::{all, first};
use crate::store::{AgentKey, message, question};

/// Separator of a question and its options, so that no phrase crosses from one into the other. It
/// is a word that does not occur in texts.
const BETWEEN: &str = " \u{E000} ";
/// Approximate cost of a recipient, counted as bytes of a batch.
const RECIPIENT_BYTES: usize = 64;

/// A message or question in the form of the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) id: u64,
    pub(super) text: String,
    /// A word for each agent that it concerns.
    pub(super) who: String,
}

/// The next part of the mail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    pub(super) entries: Vec<Entry>,
    /// The last row that was read, and its mark.
    pub(super) last: Option<(u64, String)>,
    /// Whether there is more mail after it.
    pub more: bool,
}

/// An item that a search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hit {
    /// A message.
    Message(Message),
    /// A question.
    Question(Question),
}

impl Hit {
    /// Returns its id, of the sequence that messages and questions share.
    #[must_use]
    pub fn id(&self) -> u64 {
        match self {
            Self::Message(message) => message.id.get(),
            Self::Question(question) => question.id.get(),
        }
    }

    /// Returns its approximate size on the wire, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            Self::Message(message) => message.body.len(),
            Self::Question(question) => question::bytes_of(question),
        }
    }
}

/// Returns the word for an agent or the operator.
pub(super) fn word(key: i64) -> String {
    format!("k{key}")
}

/// Reads the mail after a position; `None` if the position is not of this mail. It may be of
/// another database, or of a later time of this one, if a backup was restored.
pub fn after(conn: &Connection, position: &Position) -> Result<Option<Batch>> {
    if position.id != 0
        && !position.proven
        && mark_of(conn, position.id)?.as_deref() != Some(&position.mark)
    {
        return Ok(None);
    }
    // The message that delivers a question is found as the question.
    let mut select = conn.prepare_cached(
        "SELECT id, accept_time, body, origin_id, to_id, system_kind, NULL FROM message WHERE id > ?1 UNION ALL \
         SELECT id, create_time, text, asker_id, target_id, NULL, options FROM question WHERE id > ?1 ORDER BY id LIMIT ?2",
    )?;
    let mut rows = select.query((integer(position.id), BATCH_ROWS + 1))?;
    let (mut batch, mut last, mut seen, mut bytes) = (Batch::default(), None, 0, 0);
    while let Some(row) = rows.next()? {
        if seen == BATCH_ROWS || bytes > BATCH_BYTES {
            batch.more = true;
            break;
        }
        seen += 1;
        let (id, time, text) = <(u64, i64, String)>::read(row, 0)?;
        let hash = digest(time, &text);
        last = Some((id, hash));
        if row.get::<_, Option<i64>>(5)? == Some(SystemKind::QuestionAsked.code()) {
            continue;
        }
        let options: Option<String> = row.get(6)?;
        let (from, to): (Option<i64>, i64) = (row.get(3)?, row.get(4)?);
        let keys = if to == 0 { recipients(conn, id)? } else { vec![to] };
        bytes += text.len() + RECIPIENT_BYTES * keys.len();
        let words: Vec<String> = from.into_iter().chain(keys).map(word).collect();
        batch.entries.push(Entry {
            id,
            text: with_options(text, options.as_deref()),
            who: words.join(" "),
        });
    }
    batch.last = last;
    Ok(Some(batch))
}

fn with_options(mut text: String, options: Option<&str>) -> String {
    // The table checks that it is JSON; if it is no list of texts, it has no words.
    let options: Vec<String> =
        options.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
    for option in options {
        text.push_str(BETWEEN);
        text.push_str(&option);
    }
    text
}

/// Returns the recipients of a broadcast.
fn recipients(conn: &Connection, id: u64) -> Result<Vec<i64>> {
    let sql = "SELECT a.id FROM agent a WHERE EXISTS (SELECT 1 FROM settled_delivery d WHERE d.message_id = ?1 AND d.agent_id = a.id) \
         OR EXISTS (SELECT 1 FROM open_delivery d WHERE d.agent_id = a.id AND d.queue IN (0, 1, 2, 4) AND d.message_id = ?1)";
    all(conn, sql, [integer(id)])
}

/// Returns the mark of a row. If a database has another mark under this number, the index was not
/// made from it.
fn mark_of(conn: &Connection, id: u64) -> Result<Option<String>> {
    let sql = "SELECT accept_time, body FROM message WHERE id = ?1 UNION ALL SELECT create_time, text FROM question WHERE id = ?1";
    let found: Option<(i64, String)> = first(conn, sql, [integer(id)])?;
    Ok(found.map(|(time, text)| digest(time, &text)))
}

fn digest(time: i64, text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let start: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("{time}:{start}")
}

/// Returns which of these ids, in order, no longer exist, and whether one was reached that is of
/// `young` or later. Nothing after that one was pruned.
pub fn gone(conn: &Connection, ids: &[u64], young: WallTime) -> Result<(Vec<u64>, bool)> {
    let sql = "SELECT accept_time FROM message WHERE id = ?1 UNION ALL SELECT create_time FROM question WHERE id = ?1";
    let mut gone = Vec::new();
    for id in ids {
        match first::<WallTime>(conn, sql, [integer(*id)])? {
            Some(time) if time >= young => return Ok((gone, true)),
            Some(_) => {}
            None => gone.push(*id),
        }
    }
    Ok((gone, false))
}

/// Returns the message or question of this number, if it exists. If an agent is named, only if that
/// agent sent, received, asked or was asked it.
pub fn hit(conn: &Connection, id: u64, concerning: Option<AgentKey>) -> Result<Option<Hit>> {
    if let Some(id) = MessageId::new(id)
        && concerning.map_or(Ok(true), |key| message::concerns(conn, id, key))?
        && let Some(message) = message::get(conn, id)?
    {
        return Ok(Some(Hit::Message(message)));
    }
    if let Some(id) = QuestionId::new(id)
        && concerning.map_or(Ok(true), |key| question::concerns(conn, id, key))?
        && let Some(question) = question::get(conn, id)?
    {
        return Ok(Some(Hit::Question(question)));
    }
    Ok(None)
}
