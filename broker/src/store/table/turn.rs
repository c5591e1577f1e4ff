//! Tables `turn` and `turn_delivery`: runs of the model, and the deliveries of each.
//!
//! Invariant: an agent has at most one open turn per conversation (a unique index), and an ended
//! turn never opens again.

use hive_core::id::{MessageId, TurnId};
use hive_core::limits::ALONE_FROM_ATTEMPT;
use hive_core::name::AgentName;
use hive_core::time::WallTime;
use hive_core::turn::{Ended, Kind, Outcome, Turn, Usage};
use rusqlite::{Connection, OptionalExtension as _, Result, Row};

use crate::store::codec::{
    Coded as _, coded, coded_option, id, id_option, integer, parsed, unsigned,
};
use crate::store::key::AgentKey;
use crate::store::table::message;
use crate::store::write::tx::Tx;

/// The columns of a turn that the engine uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnRow {
    /// The id of the turn.
    pub id: TurnId,
    /// The key of the agent.
    pub agent: AgentKey,
    /// The purpose of the turn.
    pub kind: Kind,
    /// The number of the session that opened it.
    pub session_epoch: u64,
    /// The boot it was opened in.
    pub boot_id: String,
    /// The delivery that triggered it.
    pub message: Option<MessageId>,
    /// Whether that delivery is served alone. It does not change if the operator settles the
    /// delivery during the turn.
    pub alone: bool,
    /// Whether it asked for a next one.
    pub next_turn_requested: bool,
    /// The outcome; `None` while it is open.
    pub outcome: Option<Outcome>,
    /// The counts of its settled deliveries, as JSON.
    pub settled: Option<String>,
}

const ROW_COLUMNS: &str = "id, agent_id, kind, session_epoch, boot_id, message_id, attempt, next_turn_requested, outcome, settled";

fn row_from(row: &Row<'_>) -> Result<TurnRow> {
    Ok(TurnRow {
        id: id(row, 0, TurnId::new)?,
        agent: AgentKey(row.get(1)?),
        kind: coded(row, 2)?,
        session_epoch: unsigned(row, 3)?,
        boot_id: row.get(4)?,
        message: id_option(row, 5, MessageId::new)?,
        alone: unsigned::<u32>(row, 6)? >= ALONE_FROM_ATTEMPT,
        next_turn_requested: row.get(7)?,
        outcome: coded_option(row, 8)?,
        settled: row.get(9)?,
    })
}

/// A turn to open.
#[derive(Clone, Debug)]
pub struct NewTurn<'a> {
    /// The id of the turn.
    pub id: TurnId,
    /// The key of the agent.
    pub agent: AgentKey,
    /// The purpose of the turn.
    pub kind: Kind,
    /// The conversation of the turn.
    pub conversation: &'a str,
    /// The number of the session.
    pub session_epoch: u64,
    /// The secret of the process that will run it.
    pub process_token: &'a str,
    /// The id of this boot.
    pub boot_id: &'a str,
    /// The delivery that triggers it, and its attempt.
    pub delivery: Option<(MessageId, u32)>,
    /// The model it will run on, as far as the broker knows.
    pub model: &'a str,
}

/// Opens a turn.
pub fn insert(tx: &Tx<'_>, new: &NewTurn<'_>) -> Result<()> {
    tx.prepare_cached(
        "INSERT INTO turn (id, agent_id, kind, conversation, session_epoch, process_token, boot_id, message_id, attempt, start_time, model) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
    )?
    .execute((
        integer(new.id.get()),
        new.agent.0,
        new.kind.code(),
        new.conversation,
        integer(new.session_epoch),
        new.process_token,
        new.boot_id,
        new.delivery.map(|(message, _)| integer(message.get())),
        new.delivery.map_or(0, |(_, attempt)| attempt),
        tx.now.wall.0,
        new.model,
    ))
    .map(|_| ())
}

/// Notes that a turn carries a delivery; `tool_use` is the call that received it, none for the
/// delivery that triggered the turn.
pub fn carry(
    tx: &Tx<'_>,
    turn: TurnId,
    agent: AgentKey,
    message: MessageId,
    tool_use: Option<&str>,
) -> Result<()> {
    tx.prepare_cached(
        "INSERT OR REPLACE INTO turn_delivery (turn_id, message_id, agent_id, tool_use_id) VALUES (?1, ?2, ?3, ?4)",
    )?
    .execute((integer(turn.get()), integer(message.get()), agent.0, tool_use))
    .map(|_| ())
}

/// Returns the tool call by which a turn received a delivery; `None` for the one that triggered it.
pub fn tool_use_of(conn: &Connection, turn: TurnId, message: MessageId) -> Result<Option<String>> {
    conn.prepare_cached(
        "SELECT tool_use_id FROM turn_delivery WHERE turn_id = ?1 AND message_id = ?2",
    )?
    .query_row((integer(turn.get()), integer(message.get())), |row| row.get(0))
    .optional()
    .map(Option::flatten)
}

/// Returns a turn by its id.
pub fn get(conn: &Connection, turn: TurnId) -> Result<Option<TurnRow>> {
    let sql = format!("SELECT {ROW_COLUMNS} FROM turn WHERE id = ?1");
    conn.prepare_cached(&sql)?.query_row([integer(turn.get())], row_from).optional()
}

/// Returns the agent's open turn of a conversation.
pub fn open_of(conn: &Connection, agent: AgentKey, conversation: &str) -> Result<Option<TurnRow>> {
    let sql = format!(
        "SELECT {ROW_COLUMNS} FROM turn WHERE agent_id = ?1 AND conversation = ?2 AND outcome IS NULL"
    );
    conn.prepare_cached(&sql)?.query_row((agent.0, conversation), row_from).optional()
}

/// Returns all open turns of an agent.
///
/// The index is named, here and below: SQLite would take that of all turns of the agent, and read
/// every one that ever ran.
pub fn open_all(conn: &Connection, agent: AgentKey) -> Result<Vec<TurnRow>> {
    let sql = format!(
        "SELECT {ROW_COLUMNS} FROM turn INDEXED BY turn_open WHERE agent_id = ?1 AND outcome IS NULL ORDER BY id"
    );
    conn.prepare_cached(&sql)?.query_map([agent.0], row_from)?.collect()
}

/// Returns the agent's last turn that was no upkeep of its conversation.
pub fn last_work(conn: &Connection, agent: AgentKey) -> Result<Option<TurnRow>> {
    let sql = format!(
        "SELECT {ROW_COLUMNS} FROM turn INDEXED BY turn_by_agent WHERE agent_id = ?1 AND kind IN ({}, {}) ORDER BY id DESC LIMIT 1",
        Kind::Mail.code(),
        Kind::Continue.code()
    );
    conn.prepare_cached(&sql)?.query_row([agent.0], row_from).optional()
}

/// Returns the agent's open turn that runs in the process with this token.
pub fn open_of_process(
    conn: &Connection,
    agent: AgentKey,
    process_token: &str,
) -> Result<Option<TurnRow>> {
    let sql = format!(
        "SELECT {ROW_COLUMNS} FROM turn INDEXED BY turn_open WHERE agent_id = ?1 AND outcome IS NULL AND process_token = ?2"
    );
    conn.prepare_cached(&sql)?.query_row((agent.0, process_token), row_from).optional()
}

/// Notes that the turn asked for a next one.
pub fn request_next(tx: &Tx<'_>, turn: TurnId) -> Result<()> {
    tx.prepare_cached("UPDATE turn SET next_turn_requested = 1 WHERE id = ?1")?
        .execute([integer(turn.get())])
        .map(|_| ())
}

/// Ends a turn.
pub fn end(tx: &Tx<'_>, turn: TurnId, ended: &Ended, settled: &str) -> Result<()> {
    let Ended { outcome, error, output_tail, usage, model, .. } = ended;
    tx.prepare_cached(
        "UPDATE turn SET outcome = ?2, end_time = ?3, settled = ?4, error = ?5, output_tail = ?6, input_tokens = ?7, \
         cache_read_tokens = ?8, cache_creation_tokens = ?9, output_tokens = ?10, cost_micro_usd = ?11, inference_count = ?12, \
         tool_call_count = ?13, model = CASE WHEN ?14 = '' THEN model ELSE ?14 END, context_tokens = ?15, context_window_tokens = ?16, \
         compacted = ?17 WHERE id = ?1",
    )?
    .execute(rusqlite::params![
        integer(turn.get()),
        outcome.code(),
        tx.now.wall.0,
        settled,
        error,
        output_tail,
        integer(usage.input_tokens),
        integer(usage.cache_read_tokens),
        integer(usage.cache_creation_tokens),
        integer(usage.output_tokens),
        integer(usage.cost_micro_usd),
        usage.inference_count,
        usage.tool_call_count,
        model,
        integer(ended.context_tokens),
        integer(ended.context_window_tokens),
        ended.compacted,
    ])
    .map(|_| ())
}

const VIEW_COLUMNS: &str = "t.id, (SELECT coalesce(purged_name, name) FROM agent WHERE id = t.agent_id), t.kind, t.conversation, t.session_epoch, t.message_id, \
     t.attempt, t.outcome, t.start_time, t.end_time, t.error, t.output_tail, t.input_tokens, t.cache_read_tokens, \
     t.cache_creation_tokens, t.output_tokens, t.cost_micro_usd, t.inference_count, t.tool_call_count, t.model, t.context_tokens, \
     t.context_window_tokens, t.compacted";

fn view_from(row: &Row<'_>) -> Result<Turn> {
    Ok(Turn {
        id: id(row, 0, TurnId::new)?,
        agent: parsed(row, 1, AgentName::parse)?,
        kind: coded(row, 2)?,
        conversation: row.get(3)?,
        session_epoch: unsigned(row, 4)?,
        message_id: id_option(row, 5, MessageId::new)?,
        attempt: unsigned(row, 6)?,
        outcome: coded_option(row, 7)?,
        start_time: WallTime(row.get(8)?),
        end_time: row.get::<_, Option<i64>>(9)?.map(WallTime),
        error: row.get(10)?,
        output_tail: row.get(11)?,
        usage: Usage {
            input_tokens: unsigned(row, 12)?,
            cache_read_tokens: unsigned(row, 13)?,
            cache_creation_tokens: unsigned(row, 14)?,
            output_tokens: unsigned(row, 15)?,
            cost_micro_usd: unsigned(row, 16)?,
            inference_count: unsigned(row, 17)?,
            tool_call_count: unsigned(row, 18)?,
        },
        model: row.get(19)?,
        context_tokens: unsigned(row, 20)?,
        context_window_tokens: unsigned(row, 21)?,
        compacted: row.get(22)?,
        received: Vec::new(),
        sent: Vec::new(),
    })
}

fn fill(conn: &Connection, turn: &mut Turn) -> Result<()> {
    let mut select = conn.prepare_cached(
        "SELECT message_id FROM turn_delivery WHERE turn_id = ?1 AND tool_use_id IS NOT NULL ORDER BY message_id",
    )?;
    turn.received = select
        .query_map([integer(turn.id.get())], |row| id(row, 0, MessageId::new))?
        .collect::<Result<_>>()?;
    turn.sent = message::sent_in(conn, turn.id)?;
    Ok(())
}

/// Returns a turn for display, if it is this agent's or `agent` is `None`.
pub fn view(conn: &Connection, turn: TurnId, agent: Option<AgentKey>) -> Result<Option<Turn>> {
    let sql = format!(
        "SELECT {VIEW_COLUMNS} FROM turn t WHERE t.id = ?1 AND (?2 IS NULL OR t.agent_id = ?2)"
    );
    let mut found = conn
        .prepare_cached(&sql)?
        .query_row((integer(turn.get()), agent.map(|key| key.0)), view_from)
        .optional()?;
    if let Some(turn) = &mut found {
        fill(conn, turn)?;
    }
    Ok(found)
}

/// Reads the model of the newest turn that has reported one; empty if none has. Only a few turns
/// are read. If all turns of an agent fail before the model answers, this must not read its whole
/// history.
pub fn model_of_newest(conn: &Connection, agent: AgentKey) -> Result<String> {
    let sql = "SELECT model FROM (SELECT id, model FROM turn WHERE agent_id = ?1 ORDER BY id DESC LIMIT 20) WHERE model <> '' \
         ORDER BY id DESC LIMIT 1";
    Ok(conn
        .prepare_cached(sql)?
        .query_row([agent.0], |row| row.get(0))
        .optional()?
        .unwrap_or_default())
}

/// Returns turns, newest first; of one agent, or of all.
pub fn page(
    conn: &Connection,
    agent: Option<AgentKey>,
    before: Option<TurnId>,
    rows: u32,
) -> Result<Vec<Turn>> {
    let filter = if agent.is_some() { "t.agent_id = ?1" } else { "?1 IS NULL" };
    let sql = format!(
        "SELECT {VIEW_COLUMNS} FROM turn t WHERE {filter} AND t.id < ?2 ORDER BY t.id DESC LIMIT ?3"
    );
    let before = before.map_or(i64::MAX, |id| integer(id.get()));
    let mut turns: Vec<Turn> = conn
        .prepare_cached(&sql)?
        .query_map((agent.map(|key| key.0), before, rows), view_from)?
        .collect::<Result<_>>()?;
    for turn in &mut turns {
        fill(conn, turn)?;
    }
    Ok(turns)
}
