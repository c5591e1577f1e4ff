//! Tables `turn` and `turn_delivery`: runs of the model, and the deliveries of each.
//!
//! Invariant: an agent has at most one open turn per conversation (a unique index), and an ended
//! turn never opens again.

use hive_core::id::{MessageId, TurnId};
use hive_core::limits::ALONE_FROM_ATTEMPT;
use hive_core::name::AgentName;
use hive_core::time::WallTime;
use hive_core::trace::{TraceContext, Traced};
use hive_core::turn::{Ended, Kind, Outcome, Turn, Usage};
use rusqlite::{Result, Row};

use crate::store::codec::{Coded as _, integer};
use crate::store::columns::{Columns as _, columns, name_of, sql};
use crate::store::effect::Effect;
use crate::store::key::AgentKey;
use crate::store::statement::{Statements, all, first, insert, one, page as read_page, run};
use crate::store::table::message;
use crate::store::write::tx::Tx;

columns! {
    /// The columns of a turn that the engine uses.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct TurnRow, const ROW_COLUMNS {
        pub id: TurnId = "id",
        pub agent: AgentKey = "agent_id",
        /// The purpose of the turn.
        pub kind: Kind = "kind",
        /// The number of the session that opened it.
        pub session_epoch: u64 = "session_epoch",
        /// The boot it was opened in.
        pub boot_id: String = "boot_id",
        /// The delivery that triggered it.
        pub message: Option<MessageId> = "message_id",
        /// Whether that delivery is served alone. It does not change if the operator settles the
        /// delivery during the turn.
        pub alone: bool = "attempt" => is_alone,
        /// Whether it asked for a next one.
        pub next_turn_requested: bool = "next_turn_requested",
        /// The outcome; `None` while it is open.
        pub outcome: Option<Outcome> = "outcome",
        /// The counts of its settled deliveries, as JSON.
        pub settled: Option<String> = "settled",
        /// The span of the turn.
        pub trace: Option<TraceContext> = "traceparent",
    }
}

/// Reads whether a delivery at this attempt is served alone.
fn is_alone(row: &Row<'_>, at: usize) -> Result<bool> {
    Ok(u32::read(row, at)? >= ALONE_FROM_ATTEMPT)
}

/// A turn to open.
#[derive(Clone, Debug)]
pub struct NewTurn<'a> {
    pub id: TurnId,
    pub agent: AgentKey,
    /// The purpose of the turn.
    pub kind: Kind,
    pub conversation: &'a str,
    /// The number of the session.
    pub session_epoch: u64,
    /// The secret of the process that will run it.
    pub process_token: &'a str,
    pub boot_id: &'a str,
    /// The delivery that triggers it, and its attempt.
    pub delivery: Option<(MessageId, u32)>,
    /// The model it will run on, as far as the broker knows.
    pub model: &'a str,
    /// The span of the turn.
    pub traced: Option<Traced>,
}

/// Opens a turn.
pub fn insert(tx: &Tx<'_>, new: &NewTurn<'_>) -> Result<()> {
    tx.after_commit(Effect::Shown(new.agent));
    insert!(tx, into turn {
        id: integer(new.id.get()),
        agent_id: new.agent.0,
        kind: new.kind.code(),
        conversation: new.conversation,
        session_epoch: integer(new.session_epoch),
        process_token: new.process_token,
        boot_id: new.boot_id,
        message_id: new.delivery.map(|(message, _)| integer(message.get())),
        attempt: new.delivery.map_or(0, |(_, attempt)| attempt),
        start_time: tx.now.wall.0,
        model: new.model,
        traceparent: new.traced.map(Traced::to_bytes),
    })
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
    let sql = "INSERT OR REPLACE INTO turn_delivery (turn_id, message_id, agent_id, tool_use_id) VALUES (?1, ?2, ?3, ?4)";
    run(tx, sql, (integer(turn.get()), integer(message.get()), agent.0, tool_use))
}

/// Notes that a turn did not receive a delivery after all.
pub fn uncarry(tx: &Tx<'_>, turn: TurnId, message: MessageId) -> Result<()> {
    let sql = "DELETE FROM turn_delivery WHERE turn_id = ?1 AND message_id = ?2";
    run(tx, sql, (integer(turn.get()), integer(message.get())))
}

/// Returns the tool call by which a turn received a delivery; `None` for the one that triggered it.
pub(crate) fn tool_use_of(
    conn: &impl Statements,
    turn: TurnId,
    message: MessageId,
) -> Result<Option<String>> {
    let sql = "SELECT tool_use_id FROM turn_delivery WHERE turn_id = ?1 AND message_id = ?2";
    Ok(first(conn, sql, (integer(turn.get()), integer(message.get())))?.flatten())
}

/// Returns a turn by its id.
pub(crate) fn get(conn: &impl Statements, turn: TurnId) -> Result<Option<TurnRow>> {
    const SQL: &str = sql!("SELECT ", ROW_COLUMNS, " FROM turn WHERE id = ?1");
    first(conn, SQL, [integer(turn.get())])
}

/// Returns the agent's open turn of a conversation.
pub(crate) fn open_of(
    conn: &impl Statements,
    agent: AgentKey,
    conversation: &str,
) -> Result<Option<TurnRow>> {
    const SQL: &str = sql!(
        "SELECT ",
        ROW_COLUMNS,
        " FROM turn WHERE agent_id = ?1 AND conversation = ?2 AND outcome IS NULL"
    );
    first(conn, SQL, (agent.0, conversation))
}

/// Returns all open turns of an agent.
///
/// The index is named, here and below: SQLite would take that of all turns of the agent, and read
/// every one that ever ran.
pub(crate) fn open_all(conn: &impl Statements, agent: AgentKey) -> Result<Vec<TurnRow>> {
    let sql = format!(
        "SELECT {ROW_COLUMNS} FROM turn INDEXED BY turn_open WHERE agent_id = ?1 AND outcome IS NULL ORDER BY id"
    );
    all(conn, &sql, [agent.0])
}

/// Returns the agents with open turns that began before the host was started last.
pub(crate) fn agents_of_other_boots(
    conn: &impl Statements,
    boot_id: &str,
) -> Result<Vec<AgentKey>> {
    let sql = "SELECT DISTINCT agent_id FROM turn INDEXED BY turn_open WHERE outcome IS NULL AND boot_id <> ?1 \
         ORDER BY agent_id";
    all(conn, sql, [boot_id])
}

/// Returns the agent's last turn that was no upkeep of its conversation.
pub(crate) fn last_work(conn: &impl Statements, agent: AgentKey) -> Result<Option<TurnRow>> {
    let sql = format!(
        "SELECT {ROW_COLUMNS} FROM turn INDEXED BY turn_by_agent WHERE agent_id = ?1 AND kind IN ({}, {}) ORDER BY id DESC LIMIT 1",
        Kind::Mail.code(),
        Kind::Continue.code()
    );
    first(conn, &sql, [agent.0])
}

/// Returns the agent's open turn that runs in the process with this token.
pub(crate) fn open_of_process(
    conn: &impl Statements,
    agent: AgentKey,
    process_token: &str,
) -> Result<Option<TurnRow>> {
    let sql = format!(
        "SELECT {ROW_COLUMNS} FROM turn INDEXED BY turn_open WHERE agent_id = ?1 AND outcome IS NULL AND process_token = ?2"
    );
    first(conn, &sql, (agent.0, process_token))
}

/// Notes that the turn asked for a next one.
pub fn request_next(tx: &Tx<'_>, turn: TurnId) -> Result<()> {
    run(tx, "UPDATE turn SET next_turn_requested = 1 WHERE id = ?1", [integer(turn.get())])
}

/// Ends a turn.
pub fn end(tx: &Tx<'_>, turn: TurnId, ended: &Ended, settled: &str) -> Result<()> {
    let Ended { outcome, error, output_tail, usage, model, .. } = ended;
    let sql = "UPDATE turn SET outcome = ?2, end_time = ?3, settled = ?4, error = ?5, output_tail = ?6, input_tokens = ?7, \
         cache_read_tokens = ?8, cache_creation_tokens = ?9, output_tokens = ?10, cost_micro_usd = ?11, inference_count = ?12, \
         tool_call_count = ?13, model = CASE WHEN ?14 = '' THEN model ELSE ?14 END, context_tokens = ?15, context_window_tokens = ?16, \
         compacted = ?17 WHERE id = ?1";
    let values = rusqlite::params![
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
    ];
    run(tx, sql, values)
}

columns! {
    /// The tokens and the cost of a turn `t`.
    pub(super) const USAGE: Usage {
        input_tokens: u64 = "t.input_tokens",
        cache_read_tokens: u64 = "t.cache_read_tokens",
        cache_creation_tokens: u64 = "t.cache_creation_tokens",
        output_tokens: u64 = "t.output_tokens",
        cost_micro_usd: u64 = "t.cost_micro_usd",
        inference_count: u32 = "t.inference_count",
        tool_call_count: u32 = "t.tool_call_count",
    }
}

columns! {
    /// The columns of a turn `t` for display. [`fill`] reads its messages.
    const VIEW_COLUMNS: Turn {
        id: TurnId = "t.id",
        agent: AgentName = name_of!("t.agent_id"),
        kind: Kind = "t.kind",
        conversation: String = "t.conversation",
        session_epoch: u64 = "t.session_epoch",
        message_id: Option<MessageId> = "t.message_id",
        attempt: u32 = "t.attempt",
        outcome: Option<Outcome> = "t.outcome",
        start_time: WallTime = "t.start_time",
        end_time: Option<WallTime> = "t.end_time",
        error: String = "t.error",
        output_tail: String = "t.output_tail",
        usage: Usage = USAGE,
        model: String = "t.model",
        context_tokens: u64 = "t.context_tokens",
        context_window_tokens: u64 = "t.context_window_tokens",
        compacted: bool = "t.compacted",
        traceparent: Option<TraceContext> = "t.traceparent",
    } + received + sent
}

fn fill(conn: &impl Statements, turn: &mut Turn) -> Result<()> {
    let sql = "SELECT message_id FROM turn_delivery WHERE turn_id = ?1 AND tool_use_id IS NOT NULL ORDER BY message_id";
    turn.received = all(conn, sql, [integer(turn.id.get())])?;
    turn.sent = message::sent_in(conn, turn.id)?;
    Ok(())
}

/// Returns a turn for display, if it is this agent's or `agent` is `None`.
pub(crate) fn view(
    conn: &impl Statements,
    turn: TurnId,
    agent: Option<AgentKey>,
) -> Result<Option<Turn>> {
    const SQL: &str = sql!(
        "SELECT ",
        VIEW_COLUMNS,
        " FROM turn t WHERE t.id = ?1 AND (?2 IS NULL OR t.agent_id = ?2)"
    );
    let mut found = first(conn, SQL, (integer(turn.get()), agent.map(|key| key.0)))?;
    if let Some(turn) = &mut found {
        fill(conn, turn)?;
    }
    Ok(found)
}

/// Returns a turn for display that was opened in this transaction: it has received and sent nothing
/// yet.
pub fn view_new(tx: &Tx<'_>, turn: TurnId) -> Result<Turn> {
    const SQL: &str = sql!("SELECT ", VIEW_COLUMNS, " FROM turn t WHERE t.id = ?1");
    one(tx, SQL, [integer(turn.get())])
}

/// Returns the newest turn of all agents.
pub(crate) fn newest(conn: &impl Statements) -> Result<Option<TurnId>> {
    first(conn, "SELECT id FROM turn ORDER BY id DESC LIMIT 1", [])
}

/// Reads the model of the newest turn that has reported one; empty if none has. Only a few turns
/// are read. If all turns of an agent fail before the model answers, this must not read its whole
/// history.
pub(crate) fn model_of_newest(conn: &impl Statements, agent: AgentKey) -> Result<String> {
    let sql = "SELECT model FROM (SELECT id, model FROM turn WHERE agent_id = ?1 ORDER BY id DESC LIMIT 20) WHERE model <> '' \
         ORDER BY id DESC LIMIT 1";
    Ok(first(conn, sql, [agent.0])?.unwrap_or_default())
}

/// Returns turns, newest first, at most `rows` and well under one reply's bytes; of one agent, or
/// of all. Also returns whether there are more.
pub(crate) fn page(
    conn: &impl Statements,
    agent: Option<AgentKey>,
    before: Option<TurnId>,
    rows: u32,
) -> Result<(Vec<Turn>, bool)> {
    let filter = if agent.is_some() { "t.agent_id = ?1" } else { "?1 IS NULL" };
    let sql = format!(
        "SELECT {VIEW_COLUMNS} FROM turn t WHERE {filter} AND t.id < ?2 ORDER BY t.id DESC LIMIT ?3"
    );
    let before = before.map_or(i64::MAX, |id| integer(id.get()));
    let values = (agent.map(|key| key.0), before, rows + 1);
    let bytes_of = |turn: &Turn| turn.error.len() + turn.output_tail.len() + turn.model.len() + 400;
    let (mut turns, more) = read_page(conn, &sql, values, rows, bytes_of)?;
    for turn in &mut turns {
        fill(conn, turn)?;
    }
    Ok((turns, more))
}
