//! Tables `open_delivery` and `settled_delivery`: one row for each message and recipient.
//!
//! A delivery is open until it is settled. Open ones are in queues, each in the order of its
//! messages: the leased ones, the ready ones of each lane, and those that are held or dead. The
//! view `delivery` has both tables, for reads that are not on the path of a message. Invariant:
//! `save` is the only function that changes a delivery's state, and it keeps the inbox's counts in
//! step.

mod read;

use std::sync::Arc;

use hive_core::delivery::{Lane, State};
use hive_core::id::{MessageId, TurnId};
use hive_core::time::{BootTime, Now};
use rusqlite::{Result, params};

use crate::store::codec::{Coded, integer};
use crate::store::columns::sql;
use crate::store::effect::Effect;
use crate::store::key::AgentKey;
pub use crate::store::row::delivery::DeliveryRow;
use crate::store::row::delivery::{COLUMNS, queue_of};
use crate::store::row::lease::{Lease, LeaseRequest};
use crate::store::statement::{Sql, Statements, all, first, one, run};
use crate::store::table::inbox::{self, Moved};
use crate::store::table::lease;
use crate::store::write::leases::Rows;
use crate::store::write::tx::Tx;
pub use read::Filter;
#[cfg(test)]
pub(in crate::store) use read::count_sql;
pub(crate) use read::{count, count_all, oldest_ready, page, view_leased};

/// Leased deliveries of an agent that are read at once to find one.
const LEASES_READ_MAX: u32 = 2048;

/// Finds an open delivery by its agent and message, in whatever queue it is.
pub(in crate::store) const OPEN_KEY: &str =
    "d.agent_id = ?1 AND d.queue IN (0, 1, 2, 4) AND d.message_id = ?2";

/// Adds a delivery to an inbox and hints its owner.
pub fn insert(
    tx: &Tx<'_>,
    agent: AgentKey,
    message: MessageId,
    lane: Lane,
    sender: Option<AgentKey>,
    body_bytes: u64,
) -> Result<()> {
    let accepted = DeliveryRow::new(agent, message, lane, tx.now.wall);
    tx.cache().fresh.add(DeliveryRow { sender, body_bytes, ..accepted });
    inbox::opened(tx, agent, sender, body_bytes)?;
    tx.after_commit(Effect::Hint(agent));
    Ok(())
}

/// Returns one delivery.
pub(crate) fn get(
    conn: &impl Statements,
    agent: AgentKey,
    message: MessageId,
) -> Result<Option<DeliveryRow>> {
    const OPEN: &str = sql!("SELECT ", COLUMNS, " FROM open_delivery d WHERE ", OPEN_KEY);
    const SETTLED: &str = sql!(
        "SELECT ",
        COLUMNS,
        " FROM settled_delivery d WHERE d.message_id = ?2 AND d.agent_id = ?1"
    );
    let key = (agent.0, integer(message.get()));
    match first(conn, OPEN, key)? {
        Some(row) => Ok(Some(row)),
        None => first(conn, SETTLED, key),
    }
}

/// Returns one leased delivery.
fn leased(tx: &Tx<'_>, agent: AgentKey, message: MessageId) -> Result<Option<DeliveryRow>> {
    const SQL: &str = sql!(
        "SELECT ",
        COLUMNS,
        " FROM open_delivery d WHERE d.agent_id = ?1 AND d.queue = 0 AND d.message_id = ?2"
    );
    let few =
        tx.cache().leases.has(agent) || inbox::get(tx, agent)?.leased_count <= LEASES_READ_MAX;
    if few {
        return all_leased(tx, agent, |rows| rows.get(&message).map(|row| DeliveryRow::clone(row)));
    }
    write_new(tx, agent)?;
    first(tx, Sql::Direct(SQL), (agent.0, integer(message.get())))
}

/// Writes what is new, so that the rows of an inbox are as memory has them.
pub(super) fn write_new(tx: &Tx<'_>, agent: AgentKey) -> Result<()> {
    if tx.cache().fresh.has(agent) { tx.write_back() } else { Ok(()) }
}

/// Passes all leased deliveries of an agent to `work`.
pub(super) fn all_leased<T>(
    tx: &Tx<'_>,
    agent: AgentKey,
    work: impl FnOnce(&Rows) -> T,
) -> Result<T> {
    const SQL: &str = sql!(
        "SELECT ",
        COLUMNS,
        " FROM open_delivery d WHERE d.agent_id = ?1 AND d.queue = 0 ORDER BY d.message_id"
    );
    let read = || match inbox::get(tx, agent)?.leased_count {
        0 => Ok(Vec::new()),
        _ => write_new(tx, agent).and_then(|()| all(tx, Sql::Direct(SQL), [agent.0])),
    };
    tx.cache().leases.of(agent, read, work)
}

/// Returns a consumer's token: it names its delivery, so that finding it needs no index, and has a
/// secret.
#[must_use]
pub fn lease_token(agent: AgentKey, message: MessageId, secret: &str) -> String {
    format!("{}.{message}.{secret}", agent.0)
}

/// Returns the delivery of this agent whose present or last claim has this token. A token is what a
/// client sends: it may name any agent, or none.
pub fn by_lease_token(tx: &Tx<'_>, owner: AgentKey, token: &str) -> Result<Option<DeliveryRow>> {
    let mut parts = token.splitn(3, '.');
    let agent = parts.next().and_then(|agent| agent.parse().ok()).map(AgentKey);
    let message = parts.next().and_then(|message| message.parse().ok()).and_then(MessageId::new);
    let (Some(agent), Some(message)) = (agent.filter(|agent| *agent == owner), message) else {
        return Ok(None);
    };
    // Nearly always it is leased.
    let row = match leased(tx, agent, message)? {
        Some(row) => Some(row),
        None => get(tx, agent, message)?,
    };
    Ok(row.filter(|row| {
        row.lease
            .as_ref()
            .is_some_and(|lease| lease.token == token || hive_fault::planted!(StaleLease))
    }))
}

/// Returns the deliveries of an agent that are leased under a turn, in order.
pub fn leased_by(tx: &Tx<'_>, agent: AgentKey, turn: TurnId) -> Result<Vec<DeliveryRow>> {
    leased_as(tx, agent, |lease| lease.turn == Some(turn))
}

/// Returns all leased deliveries of an agent, in order.
pub fn leased_of(tx: &Tx<'_>, agent: AgentKey) -> Result<Vec<DeliveryRow>> {
    leased_as(tx, agent, |_| true)
}

/// Returns the deliveries of an agent whose lease is wanted, in order.
pub fn leased_as(
    tx: &Tx<'_>,
    agent: AgentKey,
    wanted: impl Fn(&Lease) -> bool,
) -> Result<Vec<DeliveryRow>> {
    all_leased(tx, agent, |rows| {
        let rows = rows.values().filter(|row| row.lease.as_ref().is_some_and(&wanted));
        rows.map(|row| DeliveryRow::clone(row)).collect()
    })
}

/// Returns the ready, held and dead deliveries of an agent, at most `rows` of each kind.
pub(crate) fn unsettled_of(
    conn: &impl Statements,
    agent: AgentKey,
    rows: u32,
) -> Result<Vec<DeliveryRow>> {
    const READY: &str = sql!(
        "SELECT ",
        COLUMNS,
        " FROM open_delivery d WHERE d.agent_id = ?1 AND d.queue IN (1, 2) LIMIT ?2"
    );
    const APART: &str = sql!(
        "SELECT ",
        COLUMNS,
        " FROM open_delivery d WHERE d.agent_id = ?1 AND d.queue = 4 LIMIT ?2"
    );
    let mut found = all(conn, READY, (agent.0, rows))?;
    found.extend(all::<DeliveryRow>(conn, APART, (agent.0, rows))?);
    Ok(found)
}

/// Returns the next due deliveries of a lane, oldest first; or of both lanes, the system's first.
pub fn due(
    tx: &Tx<'_>,
    agent: AgentKey,
    lane: Option<Lane>,
    failures_below: u32,
    rows: u32,
) -> Result<Vec<DeliveryRow>> {
    let is_wanted = |row: &DeliveryRow| {
        lane.is_none_or(|lane| row.lane == lane) && row.progress.failures < failures_below
    };
    let (mut due, new_count) = tx.cache().fresh.ready_of(agent, is_wanted);
    let is_all_new = new_count == inbox::get(tx, agent)?.ready_count as usize;
    if !is_all_new {
        due.extend(written_due(tx, agent, lane, failures_below, rows)?);
    }
    if !is_all_new || lane.is_none() {
        due.sort_by_key(|row| (row.lane.code(), row.message));
    }
    due.truncate(rows as usize);
    Ok(due)
}

/// Returns the next due ones of the deliveries that are written, and that still are as they were.
fn written_due(
    tx: &Tx<'_>,
    agent: AgentKey,
    lane: Option<Lane>,
    failures_below: u32,
    rows: u32,
) -> Result<Vec<DeliveryRow>> {
    const DUE: &str = sql!(
        "SELECT ",
        COLUMNS,
        " FROM open_delivery d WHERE d.agent_id = ?1 AND d.queue BETWEEN ?2 AND ?3 \
          AND (d.not_before_boot IS NULL OR d.not_before_boot <= ?4) AND d.failures < ?5"
    );
    const SQL: &str = sql!(DUE, " ORDER BY d.queue, d.message_id LIMIT ?6");
    const NEWEST_FIRST: &str = sql!(DUE, " ORDER BY d.queue, d.message_id DESC LIMIT ?6");
    const UNLESS_BACKOFF: &str = sql!(
        DUE,
        " AND NOT EXISTS (SELECT 1 FROM open_delivery b WHERE b.agent_id = d.agent_id \
          AND b.not_before_boot > ?4) ORDER BY d.queue, d.message_id LIMIT ?6"
    );
    let mut sql = SQL;
    if hive_fault::planted!(BackoffBlocks) {
        sql = UNLESS_BACKOFF;
    }
    if hive_fault::planted!(NewestFirst) {
        sql = NEWEST_FIRST;
    }
    let (first, last) = lane.map_or((Lane::System, Lane::Normal), |lane| (lane, lane));
    let now = tx.now.boot.0;
    let fresh = &tx.cache().fresh;
    let rows = rows.saturating_add(u32::try_from(fresh.gone_count(agent)).unwrap_or(u32::MAX));
    let values = (agent.0, first.code(), last.code(), now, failures_below, rows);
    let mut due: Vec<DeliveryRow> = all(tx, Sql::Direct(sql), values)?;
    due.retain(|row| !fresh.is_gone(row));
    Ok(due)
}

/// Returns when the next delivery in backoff becomes due. Deliveries that are due already do not
/// count: a waiter that did not get them may not have them, and would poll again and again.
pub(crate) fn next_due(
    conn: &impl Statements,
    agent: AgentKey,
    now: Now,
) -> Result<Option<BootTime>> {
    let sql = "SELECT min(not_before_boot) FROM open_delivery INDEXED BY open_delivery_backoff \
         WHERE not_before_boot IS NOT NULL AND agent_id = ?1 AND not_before_boot > ?2";
    // A delivery that is not written yet has no backoff.
    one(conn, Sql::Direct(sql), (agent.0, now.boot.0))
}

/// Writes a changed delivery, and returns it. `before` is the state in which it was read.
pub fn save(tx: &Tx<'_>, mut row: DeliveryRow, before: State) -> Result<Arc<DeliveryRow>> {
    let after = row.progress.state;
    if after != before {
        row.state_time = tx.now.wall;
    }
    inbox::moved(tx, &row, Moved { before, after })?;
    // Memory has it, too.
    let row = Arc::new(row);
    if after == State::Leased {
        let is_only = inbox::get(tx, row.agent)?.leased_count == 1;
        tx.cache().leases.put(&row, is_only);
        tx.cache().fresh.change(Arc::clone(&row), before);
    } else {
        if after.is_settled() {
            tx.cache().fresh.settle(Arc::clone(&row), before);
        } else {
            write(tx, &row, before)?;
        }
        if before == State::Leased {
            tx.cache().leases.remove(row.agent, row.message);
        }
    }
    let lease = row.lease.as_ref();
    let frees_window = before == State::Leased
        && after != State::Leased
        && lease.is_some_and(|lease| lease.stream.is_some());
    if after == State::Ready || frees_window {
        tx.after_commit(Effect::Hint(row.agent));
    }
    lease::moved(tx, &row, Moved { before, after })?;
    Ok(row)
}

/// Writes an open delivery that is not leased.
fn write(tx: &Tx<'_>, row: &DeliveryRow, before: State) -> Result<()> {
    write_new(tx, row.agent)?;
    const SQL: &str = "UPDATE open_delivery SET queue = ?4, state = ?5, failures = ?6, cause = ?7, \
         not_before_boot = ?8, lease_token = ?9, lease_turn_id = ?10, lease_until_boot = ?11, \
         lease_ms = ?12, lease_stream = ?13, lease_request = ?14, lease_end = ?15, turn_id = ?16, \
         last_error = ?17, output_tail = ?18, state_time = ?19 \
         WHERE agent_id = ?1 AND queue = ?2 AND message_id = ?3";
    let (state, lease) = (row.progress.state, row.lease.as_ref());
    run(
        tx,
        Sql::Direct(SQL),
        params![
            row.agent.0,
            queue_of(row.lane, before),
            integer(row.message.get()),
            queue_of(row.lane, state),
            state.code(),
            row.progress.failures,
            row.progress.cause.map(Coded::code),
            row.progress.not_before.map(|time| time.0),
            lease.map(|lease| lease.token.as_str()),
            lease.and_then(|lease| lease.turn).map(|turn| integer(turn.get())),
            lease.and_then(|lease| lease.until).map(|until| until.0),
            lease.and_then(|lease| lease.length_ms).map(integer),
            lease.and_then(|lease| lease.stream.as_deref()),
            lease.and_then(|lease| lease.request.as_ref()).map(LeaseRequest::bytes),
            lease.and_then(|lease| lease.end).map(Coded::code),
            row.turn.map(|turn| integer(turn.get())),
            row.last_error,
            row.output_tail,
            row.state_time.0,
        ],
    )
}
