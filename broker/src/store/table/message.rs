//! Table `message`: the sent messages. Rows are written once and never changed.

use std::sync::Arc;

use hive_core::delivery::State;
use hive_core::id::{MessageId, QuestionId, ReminderId, TurnId};
use hive_core::message::{Message, Origin, SystemKind};
use hive_core::name::{AgentName, Label};
use hive_core::time::WallTime;
use hive_core::trace::{TraceContext, Traced};
use rusqlite::{Result, Row};

use crate::store::codec::{integer, parsed};
use crate::store::columns::{Columns, around, columns, name_of, sql};
use crate::store::key::AgentKey;
use crate::store::row::message::{self, MessageRow, origin_columns};
pub(in crate::store) use crate::store::row::message::{AGENT, EXTERNAL, OPERATOR, SYSTEM};
use crate::store::statement::{Sql, Statements, all, first, one, page as read_page, run};
use crate::store::write::messages::BODY_BYTES_MAX;
use crate::store::write::tx::Tx;

/// Maximum agents that one page of recipients reads.
const AGENTS_READ_MAX: u32 = 1000;

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
    pub id: MessageId,
    /// The sender of the message.
    pub origin: &'a Origin,
    /// The agent behind the origin: the sender, or the agent whose co-process woke it.
    pub origin_key: Option<AgentKey>,
    /// The recipient of the message.
    pub to: To,
    /// The number of its deliveries.
    pub recipient_count: u32,
    /// The text.
    pub body: &'a str,
    /// The message that it answers.
    pub in_reply_to: Option<MessageId>,
    /// The kind of a notice.
    pub system_kind: Option<SystemKind>,
    /// The turn it is sent in.
    pub turn: Option<TurnId>,
    pub coalescing_key: Option<&'a str>,
    /// The question it is about.
    pub question: Option<QuestionId>,
    /// The reminder that it comes from.
    pub reminder: Option<ReminderId>,
    /// The span in which it is sent.
    pub traced: Option<Traced>,
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
            recipient_count: 1,
            body,
            in_reply_to: None,
            system_kind: None,
            turn: None,
            coalescing_key: None,
            question: None,
            reminder: None,
            traced: None,
        }
    }

    /// Returns the message as a reader sees it, without the names of its recipients.
    fn as_message(&self, accept_time: WallTime) -> Message {
        Message {
            id: self.id,
            origin: self.origin.clone(),
            recipients: Vec::new(),
            recipient_count: self.recipient_count,
            body: self.body.to_owned(),
            in_reply_to: self.in_reply_to,
            accept_time,
            system_kind: self.system_kind,
            broadcast: self.to == To::Everyone,
            turn_id: self.turn,
            coalescing_key: self.coalescing_key.map(str::to_owned),
            question_id: self.question,
            reminder_id: self.reminder,
            traceparent: self.traced.map(|traced| traced.context),
        }
    }
}

/// Writes a message.
pub fn insert(tx: &Tx<'_>, new: &NewMessage<'_>) -> Result<()> {
    let row = MessageRow {
        message: Arc::new(new.as_message(tx.now.wall)),
        origin: new.origin_key.map(|key| key.0),
        to: new.to.code(),
        parent_span: new.traced.and_then(|traced| traced.parent),
    };
    match new.to {
        To::One(_) if new.body.len() <= BODY_BYTES_MAX => tx.cache().fresh.add_message(row),
        To::One(_) | To::Everyone => message::insert(tx, &[row])?,
    }
    Ok(())
}

/// Returns a message that this recipient is leased now.
pub(super) fn get_leased(tx: &Tx<'_>, id: MessageId, recipient: &str) -> Result<Option<Message>> {
    // The name of the recipient is known, so no agent is looked for.
    const AROUND: (&str, &str) = around(COLUMNS, name_of!("m.to_id"));
    const SQL: &str = sql!(
        "SELECT ",
        AROUND.0,
        "iif(m.to_id = 0, NULL, ?2)",
        AROUND.1,
        " FROM message m WHERE m.id = ?1"
    );
    let messages = &tx.cache().fresh.messages;
    if let Some(message) = messages.take(id) {
        return Ok(Some(Message { recipients: vec![recipient.to_owned()], ..message }));
    }
    if messages.is_unwritten(id) {
        tx.write_back()?;
    }
    first(tx, Sql::Direct(SQL), (integer(id.get()), recipient))
}

columns! {
    /// The columns of a message `m`.
    pub(in crate::store) const COLUMNS: Message {
        id: MessageId = "m.id",
        origin: Origin = "m.origin_kind, m.origin_name",
        recipients: Vec<String> = name_of!("m.to_id") => recipient,
        recipient_count: u32 = "m.recipient_count",
        body: String = "m.body",
        in_reply_to: Option<MessageId> = "m.in_reply_to",
        accept_time: WallTime = "m.accept_time",
        system_kind: Option<SystemKind> = "m.system_kind",
        broadcast: bool = "m.to_id = 0",
        turn_id: Option<TurnId> = "m.turn_id",
        coalescing_key: Option<String> = "m.coalescing_key",
        question_id: Option<QuestionId> = "m.question_id",
        reminder_id: Option<ReminderId> = "m.reminder_id",
        traceparent: Option<TraceContext> = "m.traceparent",
    }
}

/// Reads the recipient of a message; empty for a broadcast.
fn recipient(row: &Row<'_>, at: usize) -> Result<Vec<String>> {
    Ok(row.get::<_, Option<String>>(at)?.into_iter().collect())
}

impl Columns for Origin {
    const WIDTH: usize = 2;

    fn read(row: &Row<'_>, at: usize) -> Result<Self> {
        Ok(match row.get(at)? {
            AGENT => Self::Agent(parsed(row, at + 1, AgentName::parse)?),
            OPERATOR => Self::Operator(row.get(at + 1)?),
            SYSTEM => Self::System,
            _ => Self::External(parsed(row, at + 1, Label::parse)?),
        })
    }
}

/// Returns the span in which a message was sent.
pub(crate) fn trace_of(tx: &Tx<'_>, id: MessageId) -> Result<Option<TraceContext>> {
    const SQL: &str = "SELECT traceparent FROM message WHERE id = ?1";
    let messages = &tx.cache().fresh.messages;
    if let Some(trace) = messages.trace_of(id) {
        return Ok(trace);
    }
    if messages.is_unwritten(id) {
        tx.write_back()?;
    }
    let found: Option<Option<TraceContext>> = first(tx, Sql::Direct(SQL), [integer(id.get())])?;
    Ok(found.flatten())
}

/// Returns a message, without a check of the reader.
pub(crate) fn get(conn: &impl Statements, id: MessageId) -> Result<Option<Message>> {
    const SQL: &str = sql!("SELECT ", COLUMNS, " FROM message m WHERE m.id = ?1");
    first(conn, SQL, [integer(id.get())])
}

/// Returns the names of recipients of a broadcast after a name, by name, and the name after which
/// the next page begins, if there may be more. Reads at most [`AGENTS_READ_MAX`] agents, so a page
/// of a broadcast to few of many agents may be short.
pub(crate) fn recipients(
    conn: &impl Statements,
    id: MessageId,
    after: &str,
    rows: u32,
) -> Result<(Vec<String>, Option<String>)> {
    // A purged agent is listed under the name that it had, at the place of the name of its row.
    let sql = "SELECT a.name, coalesce(a.purged_name, a.name), \
         (EXISTS (SELECT 1 FROM settled_delivery d WHERE d.message_id = ?1 AND d.agent_id = a.id) OR EXISTS \
          (SELECT 1 FROM open_delivery d WHERE d.agent_id = a.id AND d.queue IN (0, 1, 2, 4) AND d.message_id = ?1)) \
         FROM agent a WHERE a.name > ?2 ORDER BY a.name LIMIT ?3";
    let agents: Vec<(String, String, bool)> =
        all(conn, sql, (integer(id.get()), after, AGENTS_READ_MAX))?;
    let all_read = agents.len() < AGENTS_READ_MAX as usize;
    let last_read = agents.last().map(|(row, ..)| row.clone());
    let mut found = agents.into_iter().filter(|(.., received)| *received);
    let page: Vec<(String, String)> =
        found.by_ref().take(rows as usize).map(|(row, name, _)| (row, name)).collect();
    let next = if found.next().is_some() {
        page.last().map(|(row, _)| row.clone())
    } else {
        last_read.filter(|_| !all_read)
    };
    Ok((page.into_iter().map(|(_, name)| name).collect(), next))
}

/// Returns whether an agent sent or received a message.
pub(crate) fn concerns(conn: &impl Statements, id: MessageId, agent: AgentKey) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM message WHERE id = ?1 AND origin_id = ?2) \
             OR EXISTS (SELECT 1 FROM open_delivery WHERE agent_id = ?2 AND queue IN (0, 1, 2, 4) AND message_id = ?1) \
             OR EXISTS (SELECT 1 FROM settled_delivery WHERE message_id = ?1 AND agent_id = ?2)";
    one(conn, sql, (integer(id.get()), agent.0))
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
pub(crate) fn page(
    conn: &impl Statements,
    filter: Filter,
    rows: u32,
) -> Result<(Vec<Message>, bool)> {
    let sql = format!(
        "SELECT {COLUMNS} FROM message m WHERE m.id < ?1 \
         AND (?2 IS NULL OR m.origin_id = ?2 OR m.to_id = ?2 OR (m.to_id = 0 AND \
          (EXISTS (SELECT 1 FROM settled_delivery d WHERE d.message_id = m.id AND d.agent_id = ?2) OR EXISTS \
           (SELECT 1 FROM open_delivery d WHERE d.agent_id = ?2 AND d.queue IN (0, 1, 2, 4) AND d.message_id = m.id)))) \
         AND (?3 IS NULL OR m.id = ?3 OR m.in_reply_to = ?3) ORDER BY m.id DESC LIMIT ?4"
    );
    let before = filter.before.map_or(i64::MAX, |id| integer(id.get()));
    let thread = filter.thread_of.map(|id| integer(id.get()));
    let values = (before, filter.agent.map(|key| key.0), thread, rows + 1);
    read_page(conn, &sql, values, rows, |message: &Message| message.body.len())
}

/// Returns the messages sent in a turn.
pub(crate) fn sent_in(conn: &impl Statements, turn: TurnId) -> Result<Vec<MessageId>> {
    all(conn, "SELECT id FROM message WHERE turn_id = ?1 ORDER BY id", [integer(turn.get())])
}

/// The earlier turns that carried one of this turn's deliveries and did not end well.
pub(in crate::store) const EARLIER_RUNS: &str = "SELECT DISTINCT before.turn_id FROM turn_delivery now \
     JOIN turn_delivery before ON before.agent_id = now.agent_id AND before.message_id = now.message_id \
     JOIN turn t ON t.id = before.turn_id \
     WHERE now.turn_id = ?1 AND before.turn_id <> ?1 AND t.outcome IS NOT NULL AND t.outcome <> 1";

/// Returns the messages that earlier runs of a turn's deliveries sent, oldest first.
pub(crate) fn sent_in_earlier_runs(conn: &impl Statements, turn: TurnId) -> Result<Vec<Message>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM message m WHERE m.turn_id IN ({EARLIER_RUNS}) ORDER BY m.id"
    );
    all(conn, &sql, [integer(turn.get())])
}

/// Returns a message of an earlier run that equals one about to be sent and has not replaced
/// another: in this turn, or in one that ended well and so has used it up.
pub(crate) fn equal_in_earlier_runs(
    conn: &impl Statements,
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
    first(conn, &sql, (integer(turn.get()), to.code(), reply, body))
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
    let sql = "INSERT INTO absorbed (turn_id, message_id) VALUES (?1, ?2)";
    run(tx, sql, (integer(turn.get()), integer(id)))
}

/// Returns the states of the unsettled deliveries of the broker's messages with this coalescing
/// key.
pub(crate) fn unsettled_notices(
    conn: &impl Statements,
    agent: AgentKey,
    key: &str,
) -> Result<Vec<State>> {
    let sql = "SELECT d.state FROM message m JOIN open_delivery d ON d.agent_id = ?1 AND d.queue IN (0, 1, 2, 4) \
         AND d.message_id = m.id WHERE m.coalescing_key = ?2 AND m.origin_kind = ?3";
    all(conn, sql, (agent.0, key, SYSTEM))
}

/// Returns the newest of the broker's messages with this coalescing key to an inbox, and its text.
pub(crate) fn last_notice(
    conn: &impl Statements,
    to: AgentKey,
    key: &str,
) -> Result<Option<(MessageId, String)>> {
    let sql = "SELECT id, body FROM message WHERE coalescing_key = ?2 AND to_id = ?1 AND origin_kind = ?3 ORDER BY id DESC LIMIT 1";
    first(conn, sql, (to.0, key, SYSTEM))
}

/// Returns the undelivered message of this origin with this coalescing key, if there is one.
pub(crate) fn coalescable(
    conn: &impl Statements,
    agent: AgentKey,
    origin: &Origin,
    key: &str,
) -> Result<Option<MessageId>> {
    let (kind, name) = origin_columns(origin);
    let sql = "SELECT m.id FROM message m JOIN open_delivery d ON d.agent_id = ?1 AND d.queue IN (1, 2) AND d.message_id = m.id \
         WHERE m.coalescing_key = ?2 AND m.origin_kind = ?3 AND m.origin_name = ?4 ORDER BY m.id DESC LIMIT 1";
    first(conn, sql, (agent.0, key, kind, name))
}
