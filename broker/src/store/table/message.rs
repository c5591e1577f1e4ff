//! Table `message`: the sent messages. Rows are written once and never changed.

use hive_core::delivery::State;
use hive_core::id::{MessageId, QuestionId, ReminderId, TurnId};
use hive_core::limits::PAGE_BYTES_MAX;
use hive_core::message::{Message, Origin, SystemKind};
use hive_core::name::{AgentName, Label};
use hive_core::time::WallTime;
use rusqlite::{Connection, OptionalExtension as _, Result, Row};

use crate::store::codec::{coded, coded_option, id, id_option, integer, parsed};
use crate::store::key::AgentKey;
use crate::store::write::tx::Tx;

pub(in crate::store) const AGENT: i64 = 1;
pub(in crate::store) const OPERATOR: i64 = 2;
pub(in crate::store) const SYSTEM: i64 = 3;
pub(in crate::store) const EXTERNAL: i64 = 4;

/// The recipient of a message, as a row stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To {
    /// One recipient.
    One(AgentKey),
    /// Everyone but the sender.
    Everyone,
}

impl To {
    fn code(self) -> i64 {
        match self {
            Self::One(key) => key.0,
            Self::Everyone => 0,
        }
    }
}

/// A message to write.
#[derive(Clone, Debug)]
pub struct NewMessage<'a> {
    /// The id of the message.
    pub id: MessageId,
    /// The sender of the message.
    pub origin: &'a Origin,
    /// The agent behind the origin: the sender, or the agent whose co-process woke it.
    pub origin_key: Option<AgentKey>,
    /// The recipient of the message.
    pub to: To,
    /// The text.
    pub body: &'a str,
    /// The message that it answers.
    pub in_reply_to: Option<MessageId>,
    /// The kind of a notice.
    pub system_kind: Option<SystemKind>,
    /// The turn it is sent in.
    pub turn: Option<TurnId>,
    /// The coalescing key.
    pub coalescing_key: Option<&'a str>,
    /// The question it is about.
    pub question: Option<QuestionId>,
    /// The reminder it comes from.
    pub reminder: Option<ReminderId>,
}

impl<'a> NewMessage<'a> {
    /// Returns a message with only an origin, a recipient and a text.
    #[must_use]
    pub fn new(id: MessageId, origin: &'a Origin, to: To, body: &'a str) -> Self {
        Self {
            id,
            origin,
            origin_key: None,
            to,
            body,
            in_reply_to: None,
            system_kind: None,
            turn: None,
            coalescing_key: None,
            question: None,
            reminder: None,
        }
    }
}

/// Writes a message.
pub fn insert(tx: &Tx<'_>, new: &NewMessage<'_>) -> Result<()> {
    let (kind, name) = match new.origin {
        Origin::Agent(name) => (AGENT, name.as_str()),
        Origin::Operator(user) => (OPERATOR, user.as_str()),
        Origin::System => (SYSTEM, ""),
        Origin::External(label) => (EXTERNAL, label.as_str()),
    };
    tx.prepare_cached(
        "INSERT INTO message (id, origin_kind, origin_id, origin_name, to_id, body, in_reply_to, accept_time, system_kind, turn_id, \
         coalescing_key, question_id, reminder_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
    )?
    .execute((
        integer(new.id.get()),
        kind,
        new.origin_key.map(|key| key.0),
        name,
        new.to.code(),
        new.body,
        new.in_reply_to.map(|id| integer(id.get())),
        tx.now.wall.0,
        new.system_kind.map(crate::store::codec::Coded::code),
        new.turn.map(|id| integer(id.get())),
        new.coalescing_key,
        new.question.map(|id| integer(id.get())),
        new.reminder.map(|id| integer(id.get())),
    ))
    .map(|_| ())
}

pub(in crate::store) const COLUMNS: &str = "m.id, m.origin_kind, m.origin_name, m.to_id, m.body, m.in_reply_to, m.accept_time, m.system_kind, m.turn_id, m.coalescing_key, \
     (SELECT coalesce(purged_name, name) FROM agent WHERE id = m.to_id), m.question_id, m.reminder_id";
pub(in crate::store) const COLUMN_COUNT: usize = 13;

/// Reads a message whose first column is `first`. [`recipients`] fills in the recipients of a
/// broadcast.
pub(in crate::store) fn from_row(row: &Row<'_>, first: usize) -> Result<Message> {
    let kind: i64 = row.get(first + 1)?;
    let origin = match kind {
        AGENT => Origin::Agent(parsed(row, first + 2, AgentName::parse)?),
        OPERATOR => Origin::Operator(row.get(first + 2)?),
        SYSTEM => Origin::System,
        _ => Origin::External(parsed(row, first + 2, Label::parse)?),
    };
    let system_kind: Option<SystemKind> = coded_option(row, first + 7)?;
    let recipient: Option<String> = row.get(first + 10)?;
    Ok(Message {
        id: id(row, first, MessageId::new)?,
        origin,
        recipients: recipient.into_iter().collect(),
        body: row.get(first + 4)?,
        in_reply_to: id_option(row, first + 5, MessageId::new)?,
        accept_time: WallTime(row.get(first + 6)?),
        system_kind,
        broadcast: row.get::<_, i64>(first + 3)? == 0,
        turn_id: id_option(row, first + 8, TurnId::new)?,
        coalescing_key: row.get(first + 9)?,
        question_id: id_option(row, first + 11, QuestionId::new)?,
        reminder_id: id_option(row, first + 12, ReminderId::new)?,
    })
}

/// Fills in the recipients of a broadcast.
pub fn recipients(conn: &Connection, message: &mut Message) -> Result<()> {
    if message.broadcast {
        let mut select = conn.prepare_cached(
            "SELECT coalesce(a.purged_name, a.name) FROM agent a WHERE EXISTS (SELECT 1 FROM delivery d WHERE d.agent_id = a.id AND d.message_id = ?1) \
             ORDER BY a.name",
        )?;
        message.recipients = select
            .query_map([integer(message.id.get())], |row| row.get(0))?
            .collect::<Result<_>>()?;
    }
    Ok(())
}

/// Returns a message, without a check of the reader.
pub fn get(conn: &Connection, id: MessageId) -> Result<Option<Message>> {
    let mut select =
        conn.prepare_cached(&format!("SELECT {COLUMNS} FROM message m WHERE m.id = ?1"))?;
    let mut message = select.query_row([integer(id.get())], |row| from_row(row, 0)).optional()?;
    if let Some(message) = &mut message {
        recipients(conn, message)?;
    }
    Ok(message)
}

/// Returns whether an agent sent or received a message.
pub fn concerns(conn: &Connection, id: MessageId, agent: AgentKey) -> Result<bool> {
    conn.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM message WHERE id = ?1 AND origin_id = ?2) \
             OR EXISTS (SELECT 1 FROM delivery WHERE agent_id = ?2 AND message_id = ?1)",
    )?
    .query_row((integer(id.get()), agent.0), |row| row.get(0))
}

/// The messages that a page shows.
#[derive(Clone, Copy, Debug)]
pub struct Filter {
    /// Only those that this agent sent or received.
    pub agent: Option<AgentKey>,
    /// Only this one and the replies to it.
    pub thread_of: Option<MessageId>,
    /// Only older ones.
    pub before: Option<MessageId>,
}

/// Returns messages, newest first, at most `rows` and well under one reply's bytes; and whether
/// there are more.
pub fn page(conn: &Connection, filter: Filter, rows: u32) -> Result<(Vec<Message>, bool)> {
    let sql = format!(
        "SELECT {COLUMNS} FROM message m WHERE m.id < ?1 \
         AND (?2 IS NULL OR m.origin_id = ?2 OR EXISTS (SELECT 1 FROM delivery d WHERE d.agent_id = ?2 AND d.message_id = m.id)) \
         AND (?3 IS NULL OR m.id = ?3 OR m.in_reply_to = ?3) ORDER BY m.id DESC LIMIT ?4"
    );
    let mut select = conn.prepare_cached(&sql)?;
    let before = filter.before.map_or(i64::MAX, |id| integer(id.get()));
    let thread = filter.thread_of.map(|id| integer(id.get()));
    let found = select
        .query_map((before, filter.agent.map(|key| key.0), thread, rows + 1), |row| {
            from_row(row, 0)
        })?;
    let mut messages: Vec<Message> = Vec::new();
    let mut bytes = 0;
    for message in found {
        let mut message = message?;
        bytes += message.body.len();
        if messages.len() == rows as usize || (bytes > PAGE_BYTES_MAX && !messages.is_empty()) {
            return Ok((messages, true));
        }
        recipients(conn, &mut message)?;
        messages.push(message);
    }
    Ok((messages, false))
}

/// Returns the messages sent in a turn.
pub fn sent_in(conn: &Connection, turn: TurnId) -> Result<Vec<MessageId>> {
    let mut select =
        conn.prepare_cached("SELECT id FROM message WHERE turn_id = ?1 ORDER BY id")?;
    select.query_map([integer(turn.get())], |row| id(row, 0, MessageId::new))?.collect()
}

/// The earlier turns that carried one of this turn's deliveries and did not end well.
pub(in crate::store) const EARLIER_RUNS: &str = "SELECT DISTINCT before.turn_id FROM turn_delivery now \
     JOIN turn_delivery before ON before.agent_id = now.agent_id AND before.message_id = now.message_id \
     JOIN turn t ON t.id = before.turn_id \
     WHERE now.turn_id = ?1 AND before.turn_id <> ?1 AND t.outcome IS NOT NULL AND t.outcome <> 1";

/// Returns the messages that earlier runs of a turn's deliveries sent, oldest first.
pub fn sent_in_earlier_runs(conn: &Connection, turn: TurnId) -> Result<Vec<Message>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM message m WHERE m.turn_id IN ({EARLIER_RUNS}) ORDER BY m.id"
    );
    conn.prepare_cached(&sql)?.query_map([integer(turn.get())], |row| from_row(row, 0))?.collect()
}

/// Returns a message of an earlier run that equals one about to be sent and has not replaced
/// another: in this turn, or in one that ended well and so has used it up.
pub fn equal_in_earlier_runs(
    conn: &Connection,
    turn: TurnId,
    to: To,
    in_reply_to: Option<MessageId>,
    body: &str,
) -> Result<Option<(MessageId, WallTime)>> {
    let sql = format!(
        "SELECT m.id, m.accept_time FROM message m WHERE m.turn_id IN ({EARLIER_RUNS}) AND m.to_id = ?2 AND m.in_reply_to IS ?3 \
         AND m.body = ?4 AND {} ORDER BY m.id LIMIT 1",
        not_absorbed("m.id")
    );
    let reply = in_reply_to.map(|id| integer(id.get()));
    conn.prepare_cached(&sql)?
        .query_row((integer(turn.get()), to.code(), reply, body), |row| {
            Ok((id(row, 0, MessageId::new)?, WallTime(row.get(1)?)))
        })
        .optional()
}

/// Returns the condition that this id has not replaced another in turn ?1, or in one that ended
/// well and so has used it up.
pub(in crate::store) fn not_absorbed(id: &str) -> String {
    format!(
        "NOT EXISTS (SELECT 1 FROM absorbed a LEFT JOIN turn u ON u.id = a.turn_id WHERE a.message_id = {id} \
         AND (a.turn_id = ?1 OR u.outcome = 1))"
    )
}

/// Notes that a message, question or reminder has replaced an equal one of this turn; ids are of
/// one sequence.
pub fn absorb(tx: &Tx<'_>, turn: TurnId, id: u64) -> Result<()> {
    tx.prepare_cached("INSERT INTO absorbed (turn_id, message_id) VALUES (?1, ?2)")?
        .execute((integer(turn.get()), integer(id)))
        .map(|_| ())
}

/// Returns the states of the unsettled deliveries of the broker's messages with this coalescing
/// key.
pub fn unsettled_notices(conn: &Connection, agent: AgentKey, key: &str) -> Result<Vec<State>> {
    conn.prepare_cached(
        "SELECT d.state FROM message m JOIN delivery d ON d.agent_id = ?1 AND d.message_id = m.id \
         WHERE m.coalescing_key = ?2 AND m.origin_kind = ?3 AND d.state IN (1, 2, 3, 4)",
    )?
    .query_map((agent.0, key, SYSTEM), |row| coded(row, 0))?
    .collect()
}

/// Returns the newest of the broker's messages with this coalescing key to an inbox, and its text.
pub fn last_notice(
    conn: &Connection,
    to: AgentKey,
    key: &str,
) -> Result<Option<(MessageId, String)>> {
    conn.prepare_cached(
        "SELECT id, body FROM message WHERE coalescing_key = ?2 AND to_id = ?1 AND origin_kind = ?3 ORDER BY id DESC LIMIT 1",
    )?
    .query_row((to.0, key, SYSTEM), |row| Ok((id(row, 0, MessageId::new)?, row.get(1)?)))
    .optional()
}

/// Returns the undelivered message of this origin with this coalescing key, if there is one.
pub fn coalescable(
    conn: &Connection,
    agent: AgentKey,
    origin: &Origin,
    key: &str,
) -> Result<Option<MessageId>> {
    let (kind, name) = match origin {
        Origin::Agent(name) => (AGENT, name.as_str()),
        Origin::Operator(user) => (OPERATOR, user.as_str()),
        Origin::System => (SYSTEM, ""),
        Origin::External(label) => (EXTERNAL, label.as_str()),
    };
    conn.prepare_cached(
        "SELECT m.id FROM message m JOIN delivery d ON d.agent_id = ?1 AND d.message_id = m.id \
         WHERE m.coalescing_key = ?2 AND m.origin_kind = ?3 AND m.origin_name = ?4 AND d.state = 1 ORDER BY m.id DESC LIMIT 1",
    )?
    .query_row((agent.0, key, kind, name), |row| id(row, 0, MessageId::new))
    .optional()
}
