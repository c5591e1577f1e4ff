//! Table `delivery`: one row for each message and recipient.
//!
//! Invariant: `save` is the only statement that changes a delivery's state, and it keeps the
//! inbox's counts in step.

use hive_core::delivery::{Delivery, Lane, Progress, State};
use hive_core::id::{MessageId, TurnId};
use hive_core::limits::PAGE_BYTES_MAX;
use hive_core::time::{BootTime, Now, WallTime};
use rusqlite::{Connection, OptionalExtension as _, Result, Row};

use crate::store::codec::{Coded as _, coded, coded_option, id, id_option, integer, unsigned};
use crate::store::effect::Effect;
use crate::store::key::AgentKey;
use crate::store::table::inbox;
use crate::store::table::message;
use crate::store::write::tx::Tx;

/// The claim on a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The secret that proves the claim.
    pub token: String,
    /// The turn that holds it; `None` for a consumer.
    pub turn: Option<TurnId>,
    /// When a consumer's lease expires.
    pub until: Option<BootTime>,
    /// The length of a consumer's lease, in milliseconds.
    pub length_ms: Option<u64>,
}

/// The row of a delivery, without the message's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeliveryRow {
    /// The recipient.
    pub agent: AgentKey,
    /// The message.
    pub message: MessageId,
    /// The lane in which it is served.
    pub lane: Lane,
    /// The state, the attempts and the backoff.
    pub progress: Progress,
    /// When its state last changed.
    pub state_time: WallTime,
    /// The present claim, or the last one: it stays after settling, so that a repeated settlement
    /// is recognised.
    pub lease: Option<Lease>,
    /// The turn that holds it, or held it last.
    pub turn: Option<TurnId>,
    /// The error of the last failed run.
    pub last_error: String,
    /// The end of that run's output.
    pub output_tail: String,
    /// The account of the operator that settled it.
    pub settled_by: String,
    /// The sender whose stored bytes it counts into.
    pub sender: Option<AgentKey>,
    /// The size of the body in bytes.
    pub body_bytes: u64,
}

const COLUMNS: &str = "d.agent_id, d.message_id, d.lane, d.state, d.failures, d.cause, d.not_before_boot, d.lease_token, d.lease_turn_id, \
     d.lease_until_boot, d.lease_ms, d.turn_id, d.last_error, d.output_tail, d.settled_by, d.sender_id, d.body_bytes, d.state_time";

fn from_row(row: &Row<'_>) -> Result<DeliveryRow> {
    let token: Option<String> = row.get(7)?;
    let lease = match token {
        None => None,
        Some(token) => Some(Lease {
            token,
            turn: id_option(row, 8, TurnId::new)?,
            until: row.get::<_, Option<i64>>(9)?.map(BootTime),
            length_ms: row.get::<_, Option<i64>>(10)?.and_then(|length| u64::try_from(length).ok()),
        }),
    };
    Ok(DeliveryRow {
        agent: AgentKey(row.get(0)?),
        message: id(row, 1, MessageId::new)?,
        lane: coded(row, 2)?,
        progress: Progress {
            state: coded(row, 3)?,
            failures: unsigned(row, 4)?,
            cause: coded_option(row, 5)?,
            not_before: row.get::<_, Option<i64>>(6)?.map(BootTime),
        },
        lease,
        turn: id_option(row, 11, TurnId::new)?,
        last_error: row.get(12)?,
        output_tail: row.get(13)?,
        settled_by: row.get(14)?,
        sender: row.get::<_, Option<i64>>(15)?.map(AgentKey),
        body_bytes: unsigned(row, 16)?,
        state_time: WallTime(row.get(17)?),
    })
}

/// Adds a delivery to an inbox and hints its owner.
pub fn insert(
    tx: &Tx<'_>,
    agent: AgentKey,
    message: MessageId,
    lane: Lane,
    sender: Option<AgentKey>,
    body_bytes: u64,
) -> Result<()> {
    tx.prepare_cached(
        "INSERT INTO delivery (agent_id, message_id, lane, state, state_time, sender_id, body_bytes) VALUES (?1, ?2, ?3, 1, ?4, ?5, ?6)",
    )?
    .execute((agent.0, integer(message.get()), lane.code(), tx.now.wall.0, sender.map(|key| key.0), integer(body_bytes)))?;
    inbox::opened(tx, agent, sender, body_bytes)?;
    tx.after_commit(Effect::Wake(agent));
    Ok(())
}

/// Returns one delivery.
pub fn get(conn: &Connection, agent: AgentKey, message: MessageId) -> Result<Option<DeliveryRow>> {
    let sql =
        format!("SELECT {COLUMNS} FROM delivery d WHERE d.agent_id = ?1 AND d.message_id = ?2");
    conn.prepare_cached(&sql)?.query_row((agent.0, integer(message.get())), from_row).optional()
}

/// Returns a consumer's token: it names its delivery, so that finding it needs no index, and has a
/// secret.
#[must_use]
pub fn lease_token(agent: AgentKey, message: MessageId, secret: &str) -> String {
    format!("{}.{message}.{secret}", agent.0)
}

/// Returns the delivery whose present or last claim has this token.
pub fn by_lease_token(conn: &Connection, token: &str) -> Result<Option<DeliveryRow>> {
    let mut parts = token.splitn(3, '.');
    let agent = parts.next().and_then(|agent| agent.parse().ok()).map(AgentKey);
    let message = parts.next().and_then(|message| message.parse().ok()).and_then(MessageId::new);
    let (Some(agent), Some(message)) = (agent, message) else { return Ok(None) };
    let row = get(conn, agent, message)?;
    Ok(row.filter(|row| {
        row.lease
            .as_ref()
            .is_some_and(|lease| lease.token == token || hive_fault::planted!(StaleLease))
    }))
}

/// Returns the deliveries leased under a turn, in order.
pub fn leased_by(conn: &Connection, turn: TurnId) -> Result<Vec<DeliveryRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM delivery d WHERE d.lease_turn_id = ?1 AND d.state = 2 ORDER BY d.message_id"
    );
    conn.prepare_cached(&sql)?.query_map([integer(turn.get())], from_row)?.collect()
}

/// Returns all leased deliveries of an agent, in order.
pub fn leased_of(conn: &Connection, agent: AgentKey) -> Result<Vec<DeliveryRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM delivery d WHERE d.agent_id = ?1 AND d.state = 2 ORDER BY d.message_id"
    );
    conn.prepare_cached(&sql)?.query_map([agent.0], from_row)?.collect()
}

/// Returns the ready, held and dead deliveries of an agent, at most `rows` of each kind.
pub fn unsettled_of(conn: &Connection, agent: AgentKey, rows: u32) -> Result<Vec<DeliveryRow>> {
    let ready = format!(
        "SELECT {COLUMNS} FROM delivery d INDEXED BY delivery_ready WHERE d.agent_id = ?1 AND d.state = 1 LIMIT ?2"
    );
    let apart = format!(
        "SELECT {COLUMNS} FROM delivery d INDEXED BY delivery_apart WHERE d.state IN (3, 4) AND d.agent_id = ?1 LIMIT ?2"
    );
    let mut found: Vec<DeliveryRow> = conn
        .prepare_cached(&ready)?
        .query_map((agent.0, rows), from_row)?
        .collect::<Result<_>>()?;
    for row in conn.prepare_cached(&apart)?.query_map((agent.0, rows), from_row)? {
        found.push(row?);
    }
    Ok(found)
}

/// Returns the next due deliveries of a lane, oldest first.
///
/// The index is named, here and below: SQLite would take the primary key, and read all deliveries
/// that the agent ever got.
pub fn due(
    conn: &Connection,
    agent: AgentKey,
    lane: Lane,
    now: Now,
    failures_below: u32,
    rows: u32,
) -> Result<Vec<DeliveryRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM delivery d INDEXED BY delivery_ready WHERE d.agent_id = ?1 AND d.lane = ?2 AND d.state = 1 \
         AND (d.not_before_boot IS NULL OR d.not_before_boot <= ?3) AND d.failures < ?4 {} ORDER BY d.message_id {} LIMIT ?5",
        if hive_fault::planted!(BackoffBlocks) {
            "AND NOT EXISTS (SELECT 1 FROM delivery b WHERE b.agent_id = d.agent_id AND b.state = 1 AND b.not_before_boot > ?3)"
        } else {
            ""
        },
        if hive_fault::planted!(NewestFirst) { "DESC" } else { "" },
    );
    conn.prepare_cached(&sql)?
        .query_map((agent.0, lane.code(), now.boot.0, failures_below, rows), from_row)?
        .collect()
}

/// Returns when the next delivery in backoff becomes due. Deliveries that are due already do not
/// count: a waiter that did not get them may not have them, and would poll again and again.
pub fn next_due(conn: &Connection, agent: AgentKey, now: Now) -> Result<Option<BootTime>> {
    let mut select = conn.prepare_cached(
        "SELECT min(not_before_boot) FROM delivery INDEXED BY delivery_ready \
         WHERE agent_id = ?1 AND state = 1 AND not_before_boot > ?2",
    )?;
    select
        .query_row((agent.0, now.boot.0), |row| row.get::<_, Option<i64>>(0))
        .map(|due| due.map(BootTime))
}

/// Returns consumers' leases that have expired.
pub fn expired(conn: &Connection, now: Now, rows: u32) -> Result<Vec<DeliveryRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM delivery d WHERE d.state = 2 AND d.lease_until_boot IS NOT NULL AND d.lease_until_boot <= ?1 \
         ORDER BY d.lease_until_boot LIMIT ?2"
    );
    conn.prepare_cached(&sql)?.query_map((now.boot.0, rows), from_row)?.collect()
}

/// Returns when the next consumer's lease expires.
pub fn next_expiry(conn: &Connection) -> Result<Option<BootTime>> {
    conn.prepare_cached("SELECT min(lease_until_boot) FROM delivery WHERE state = 2 AND lease_until_boot IS NOT NULL")?
        .query_row([], |row| row.get::<_, Option<i64>>(0))
        .map(|due| due.map(BootTime))
}

/// Extends every consumer's lease to at least its own length from now, because consumers could not
/// reach the broker while it was down.
pub fn renew_consumer_leases(tx: &Tx<'_>) -> Result<usize> {
    tx.execute(
        "UPDATE delivery SET lease_until_boot = max(lease_until_boot, ?1 + coalesce(lease_ms, 0)) \
         WHERE state = 2 AND lease_until_boot IS NOT NULL AND lease_until_boot > 0",
        [tx.now.boot.0],
    )
}

/// Writes a changed delivery. `before` is the state in which it was read.
pub fn save(tx: &Tx<'_>, row: &mut DeliveryRow, before: State) -> Result<()> {
    if row.progress.state != before {
        row.state_time = tx.now.wall;
    }
    let lease = row.lease.as_ref();
    tx.prepare_cached(
        "UPDATE delivery SET state = ?3, failures = ?4, cause = ?5, not_before_boot = ?6, lease_token = ?7, lease_turn_id = ?8, \
         lease_until_boot = ?9, lease_ms = ?10, turn_id = ?11, last_error = ?12, output_tail = ?13, settled_by = ?14, state_time = ?15 \
         WHERE agent_id = ?1 AND message_id = ?2",
    )?
    .execute(rusqlite::params![
        row.agent.0,
        integer(row.message.get()),
        row.progress.state.code(),
        row.progress.failures,
        row.progress.cause.map(crate::store::codec::Coded::code),
        row.progress.not_before.map(|time| time.0),
        lease.map(|lease| lease.token.as_str()),
        lease.and_then(|lease| lease.turn).map(|turn| integer(turn.get())),
        lease.and_then(|lease| lease.until).map(|until| until.0),
        lease.and_then(|lease| lease.length_ms).map(integer),
        row.turn.map(|turn| integer(turn.get())),
        row.last_error,
        row.output_tail,
        row.settled_by,
        row.state_time.0,
    ])?;
    let after = row.progress.state;
    if after.is_settled() && !before.is_settled() {
        inbox::settled(tx, row.agent, row.sender, row.body_bytes)?;
    }
    if after == State::Ready {
        tx.after_commit(Effect::Wake(row.agent));
    }
    if after == State::Leased && lease.is_some_and(|lease| lease.until.is_some()) {
        tx.after_commit(Effect::Due);
    }
    Ok(())
}

/// Returns conditions for deliveries in a state that show which partial index applies. A bound
/// parameter would hide it, and the whole history would be read. Leased rows are in two such
/// indexes.
fn in_state(state: State) -> &'static [&'static str] {
    match state {
        State::Ready => &["state = 1"],
        State::Leased => &[
            "state = 2 AND lease_turn_id IS NOT NULL",
            "state = 2 AND lease_until_boot IS NOT NULL",
        ],
        State::Held => &["state IN (3, 4) AND state = 3"],
        State::Dead => &["state IN (3, 4) AND state = 4"],
        State::Acked => &["state = 5"],
        State::Dropped => &["state = 6"],
        State::Superseded => &["state = 7"],
    }
}

/// Returns the statement that counts deliveries in a state, of the agents that `whose` selects.
/// Only the index of ready ones begins with the agent; for the others the `+` keeps SQLite from
/// reading the whole inbox by the primary key.
fn count_sql(whose: &str, state: State) -> String {
    let agent = if state == State::Ready { "agent_id" } else { "+agent_id" };
    let count = |condition: &&str| {
        format!("(SELECT count(*) FROM delivery WHERE {agent} {whose} AND {condition})")
    };
    let counts: Vec<String> = in_state(state).iter().map(count).collect();
    format!("SELECT {}", counts.join(" + "))
}

/// Returns how many deliveries of an inbox are in a state.
pub fn count(conn: &Connection, agent: AgentKey, state: State) -> Result<u32> {
    conn.prepare_cached(&count_sql("= ?1", state))?.query_row([agent.0], |row| unsigned(row, 0))
}

/// Returns how many deliveries of all agents (the operator's not counted) are in a state.
pub fn count_all(conn: &Connection, state: State) -> Result<u64> {
    conn.prepare_cached(&count_sql("<> 1", state))?.query_row([], |row| unsigned(row, 0))
}

/// Returns when the oldest ready message of an inbox was accepted.
pub fn oldest_ready(conn: &Connection, agent: AgentKey) -> Result<Option<WallTime>> {
    conn.prepare_cached(
        "SELECT m.accept_time FROM delivery d INDEXED BY delivery_ready JOIN message m ON m.id = d.message_id \
         WHERE d.agent_id = ?1 AND d.state = 1 ORDER BY d.message_id LIMIT 1",
    )?
    .query_row([agent.0], |row| row.get(0))
    .optional()
    .map(|time| time.map(WallTime))
}

/// The deliveries that a page shows.
#[derive(Clone, Debug)]
pub struct Filter {
    /// Only those of this inbox.
    pub agent: Option<AgentKey>,
    /// Only those in one of these states.
    pub states: Vec<State>,
    /// Only those after this one.
    pub after: Option<(MessageId, AgentKey)>,
}

/// Returns deliveries in the order of their messages, at most `rows` and well under one reply's
/// bytes; and whether there are more.
pub fn page(
    conn: &Connection,
    filter: &Filter,
    now: Now,
    rows: u32,
) -> Result<(Vec<(AgentKey, Delivery)>, bool)> {
    let states =
        filter.states.iter().map(|state| state.code().to_string()).collect::<Vec<_>>().join(",");
    let first = message::COLUMN_COUNT;
    let agent = if filter.agent.is_some() { "d.agent_id = ?1" } else { "?1 IS NULL" };
    // Held and dead deliveries must be found without reading the history.
    let apart = !filter.states.is_empty()
        && filter.states.iter().all(|state| matches!(state, State::Held | State::Dead));
    let (index, state) = if filter.states == [State::Ready] && filter.agent.is_some() {
        ("INDEXED BY delivery_ready", "d.state = 1".to_owned())
    } else if apart {
        ("INDEXED BY delivery_apart", format!("d.state IN (3, 4) AND d.state IN ({states})"))
    } else {
        ("", format!("d.state IN ({states})"))
    };
    let sql = format!(
        "SELECT {}, d.agent_id, (SELECT coalesce(purged_name, name) FROM agent WHERE id = d.agent_id), d.lane, d.state, d.failures, d.cause, d.last_error, \
         d.output_tail, d.turn_id, d.not_before_boot, d.state_time, d.settled_by FROM delivery d {index} \
         JOIN message m ON m.id = d.message_id WHERE {agent} AND {state} AND (d.message_id, d.agent_id) > (?2, ?3) \
         ORDER BY d.message_id, d.agent_id LIMIT ?4",
        message::COLUMNS
    );
    let mut select = conn.prepare_cached(&sql)?;
    let (after_message, after_agent) =
        filter.after.map_or((0, 0), |(message, agent)| (integer(message.get()), agent.0));
    let found = select.query_map(
        (filter.agent.map(|key| key.0), after_message, after_agent, rows + 1),
        |row| {
            let (state, cause): (State, _) =
                (coded(row, first + 3)?, coded_option(row, first + 5)?);
            let not_before = row.get::<_, Option<i64>>(first + 9)?.map(BootTime);
            let progress =
                Progress { state, failures: unsigned(row, first + 4)?, cause, not_before };
            let settled_by: String = row.get(first + 11)?;
            let delivery = Delivery {
                message: message::from_row(row, 0)?,
                agent: row.get(first + 1)?,
                lane: coded(row, first + 2)?,
                state,
                attempt: progress.attempt(!settled_by.is_empty()),
                cause,
                last_error: row.get(first + 6)?,
                output_tail: row.get(first + 7)?,
                turn_id: id_option(row, first + 8, TurnId::new)?,
                not_before: not_before.map(|boot| now.wall_at(boot)),
                state_time: WallTime(row.get(first + 10)?),
                settled_by,
            };
            Ok((AgentKey(row.get(first)?), delivery))
        },
    )?;
    let mut deliveries = Vec::new();
    let mut bytes = 0;
    for found in found {
        let (key, mut delivery) = found?;
        bytes +=
            delivery.message.body.len() + delivery.output_tail.len() + delivery.last_error.len();
        if deliveries.len() == rows as usize || (bytes > PAGE_BYTES_MAX && !deliveries.is_empty()) {
            return Ok((deliveries, true));
        }
        message::recipients(conn, &mut delivery.message)?;
        deliveries.push((key, delivery));
    }
    Ok((deliveries, false))
}

/// Returns a delivery for display, with its message.
pub fn view(conn: &Connection, row: &DeliveryRow, now: Now) -> Result<Delivery> {
    let message = message::get(conn, row.message)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    Ok(Delivery {
        message,
        agent: super::agent::name_of(conn, row.agent)?,
        lane: row.lane,
        state: row.progress.state,
        attempt: row.progress.attempt(!row.settled_by.is_empty()),
        cause: row.progress.cause,
        last_error: row.last_error.clone(),
        output_tail: row.output_tail.clone(),
        turn_id: row.turn,
        not_before: row.progress.not_before.map(|boot| now.wall_at(boot)),
        state_time: row.state_time,
        settled_by: row.settled_by.clone(),
    })
}

#[cfg(test)]
mod tests;
