//! Table `delivery`: one row for each message and recipient.
//!
//! Invariant: `save` is the only statement that changes a delivery's state, and it keeps the
//! inbox's counts in step.

use hive_core::delivery::{Delivery, Lane, Progress, RedeliveryCause, State};
use hive_core::id::{MessageId, TurnId};
use hive_core::message::Message;
use hive_core::time::{BootTime, Now, WallTime};
use rusqlite::{Connection, Result};

use crate::store::codec::{Coded, integer};
use crate::store::columns::{columns, name_of};
use crate::store::effect::Effect;
use crate::store::key::AgentKey;
use crate::store::statement::{all, first, insert, one, page as read_page, update};
use crate::store::table::lease::{LEASE, Lease};
use crate::store::table::{inbox, message};
use crate::store::write::tx::Tx;

columns! {
    const PROGRESS: Progress {
        state: State = "d.state",
        failures: u32 = "d.failures",
        cause: Option<RedeliveryCause> = "d.cause",
        not_before: Option<BootTime> = "d.not_before_boot",
    }
}

columns! {
    /// The row of a delivery, without the message's text.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct DeliveryRow, pub(super) const COLUMNS {
        /// The recipient.
        pub agent: AgentKey = "d.agent_id",
        pub message: MessageId = "d.message_id",
        /// The lane in which it is served.
        pub lane: Lane = "d.lane",
        /// The state, the attempts and the backoff.
        pub progress: Progress = PROGRESS,
        /// When its state last changed.
        pub state_time: WallTime = "d.state_time",
        /// The present claim, or the last one: it stays after settling, so that a repeated
        /// settlement is recognised.
        pub lease: Option<Lease> = LEASE,
        /// The turn that holds it, or held it last.
        pub turn: Option<TurnId> = "d.turn_id",
        /// The error of the last failed run.
        pub last_error: String = "d.last_error",
        /// The end of that run's output.
        pub output_tail: String = "d.output_tail",
        /// The account of the operator that settled it.
        pub settled_by: String = "d.settled_by",
        /// The sender whose stored bytes it counts into.
        pub sender: Option<AgentKey> = "d.sender_id",
        /// The size of the body in bytes.
        pub body_bytes: u64 = "d.body_bytes",
    }
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
    insert!(tx, into delivery {
        agent_id: agent.0,
        message_id: integer(message.get()),
        lane: lane.code(),
        state: State::Ready.code(),
        state_time: tx.now.wall.0,
        sender_id: sender.map(|key| key.0),
        body_bytes: integer(body_bytes),
    })?;
    inbox::opened(tx, agent, sender, body_bytes)?;
    tx.after_commit(Effect::Hint(agent));
    Ok(())
}

/// Returns one delivery.
pub fn get(conn: &Connection, agent: AgentKey, message: MessageId) -> Result<Option<DeliveryRow>> {
    let sql =
        format!("SELECT {COLUMNS} FROM delivery d WHERE d.agent_id = ?1 AND d.message_id = ?2");
    first(conn, &sql, (agent.0, integer(message.get())))
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
    all(conn, &sql, [integer(turn.get())])
}

/// Returns all leased deliveries of an agent, in order.
pub fn leased_of(conn: &Connection, agent: AgentKey) -> Result<Vec<DeliveryRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM delivery d WHERE d.agent_id = ?1 AND d.state = 2 ORDER BY d.message_id"
    );
    all(conn, &sql, [agent.0])
}

/// Returns the ready, held and dead deliveries of an agent, at most `rows` of each kind.
pub fn unsettled_of(conn: &Connection, agent: AgentKey, rows: u32) -> Result<Vec<DeliveryRow>> {
    let ready = format!(
        "SELECT {COLUMNS} FROM delivery d INDEXED BY delivery_ready WHERE d.agent_id = ?1 AND d.state = 1 LIMIT ?2"
    );
    let apart = format!(
        "SELECT {COLUMNS} FROM delivery d INDEXED BY delivery_apart WHERE d.state IN (3, 4) AND d.agent_id = ?1 LIMIT ?2"
    );
    let mut found = all(conn, &ready, (agent.0, rows))?;
    found.extend(all::<DeliveryRow>(conn, &apart, (agent.0, rows))?);
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
    all(conn, &sql, (agent.0, lane.code(), now.boot.0, failures_below, rows))
}

/// Returns when the next delivery in backoff becomes due. Deliveries that are due already do not
/// count: a waiter that did not get them may not have them, and would poll again and again.
pub fn next_due(conn: &Connection, agent: AgentKey, now: Now) -> Result<Option<BootTime>> {
    let sql = "SELECT min(not_before_boot) FROM delivery INDEXED BY delivery_ready \
         WHERE agent_id = ?1 AND state = 1 AND not_before_boot > ?2";
    one(conn, sql, (agent.0, now.boot.0))
}

/// Returns consumers' leases that have expired.
pub fn expired(conn: &Connection, now: Now, rows: u32) -> Result<Vec<DeliveryRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM delivery d WHERE d.state = 2 AND d.lease_until_boot IS NOT NULL AND d.lease_until_boot <= ?1 \
         ORDER BY d.lease_until_boot LIMIT ?2"
    );
    all(conn, &sql, (now.boot.0, rows))
}

/// Returns when the next consumer's lease expires.
pub fn next_expiry(conn: &Connection) -> Result<Option<BootTime>> {
    let sql = "SELECT min(lease_until_boot) FROM delivery WHERE state = 2 AND lease_until_boot IS NOT NULL";
    one(conn, sql, [])
}

/// Writes a changed delivery. `before` is the state in which it was read.
pub fn save(tx: &Tx<'_>, row: &mut DeliveryRow, before: State) -> Result<()> {
    if row.progress.state != before {
        row.state_time = tx.now.wall;
    }
    let lease = row.lease.as_ref();
    update!(tx, delivery {
        state: row.progress.state.code(),
        failures: row.progress.failures,
        cause: row.progress.cause.map(Coded::code),
        not_before_boot: row.progress.not_before.map(|time| time.0),
        lease_token: lease.map(|lease| lease.token.as_str()),
        lease_turn_id: lease.and_then(|lease| lease.turn).map(|turn| integer(turn.get())),
        lease_until_boot: lease.and_then(|lease| lease.until).map(|until| until.0),
        lease_ms: lease.and_then(|lease| lease.length_ms).map(integer),
        lease_stream: lease.and_then(|lease| lease.stream.as_deref()),
        lease_end: lease.and_then(|lease| lease.end).map(Coded::code),
        turn_id: row.turn.map(|turn| integer(turn.get())),
        last_error: row.last_error,
        output_tail: row.output_tail,
        settled_by: row.settled_by,
        state_time: row.state_time.0,
    } where {
        agent_id: row.agent.0,
        message_id: integer(row.message.get()),
    })?;
    let after = row.progress.state;
    if after.is_settled() && !before.is_settled() {
        inbox::settled(tx, row.agent, row.sender, row.body_bytes)?;
    }
    let frees_window = before == State::Leased
        && after != State::Leased
        && lease.is_some_and(|lease| lease.stream.is_some());
    if after == State::Ready || frees_window {
        tx.after_commit(Effect::Hint(row.agent));
    }
    if after == State::Leased && lease.is_some_and(|lease| lease.until.is_some()) {
        tx.after_commit(Effect::Due);
    }
    Ok(())
}

/// Returns conditions for deliveries in a state that show which partial index applies. A bound
/// parameter would hide it, and the whole history would be read. Leased rows are in two such
/// indexes.
pub(in crate::store) fn in_state(state: State) -> &'static [&'static str] {
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
pub(in crate::store) fn count_sql(whose: &str, state: State) -> String {
    let agent = if state == State::Ready { "agent_id" } else { "+agent_id" };
    let count = |condition: &&str| {
        format!("(SELECT count(*) FROM delivery WHERE {agent} {whose} AND {condition})")
    };
    let counts: Vec<String> = in_state(state).iter().map(count).collect();
    format!("SELECT {}", counts.join(" + "))
}

/// Returns how many deliveries of an inbox are in a state.
pub fn count(conn: &Connection, agent: AgentKey, state: State) -> Result<u32> {
    one(conn, &count_sql("= ?1", state), [agent.0])
}

/// Returns how many deliveries of all agents (the operator's not counted) are in a state.
pub fn count_all(conn: &Connection, state: State) -> Result<u64> {
    one(conn, &count_sql("<> 1", state), [])
}

/// Returns when the oldest ready message of an inbox was accepted.
pub fn oldest_ready(conn: &Connection, agent: AgentKey) -> Result<Option<WallTime>> {
    let sql = "SELECT m.accept_time FROM delivery d INDEXED BY delivery_ready JOIN message m ON m.id = d.message_id \
         WHERE d.agent_id = ?1 AND d.state = 1 ORDER BY d.message_id LIMIT 1";
    first(conn, sql, [agent.0])
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
        "SELECT {COLUMNS}, {}, {} FROM delivery d {index} JOIN message m ON m.id = d.message_id \
         WHERE {agent} AND {state} AND (d.message_id, d.agent_id) > (?2, ?3) ORDER BY d.message_id, d.agent_id LIMIT ?4",
        message::COLUMNS,
        name_of!("d.agent_id"),
    );
    let (after_message, after_agent) =
        filter.after.map_or((0, 0), |(message, agent)| (integer(message.get()), agent.0));
    let values = (filter.agent.map(|key| key.0), after_message, after_agent, rows + 1);
    let bytes_of = |(row, message, _): &(DeliveryRow, Message, String)| {
        message.body.len() + row.output_tail.len() + row.last_error.len()
    };
    let (found, more) = read_page(conn, &sql, values, rows, bytes_of)?;
    let mut deliveries = Vec::with_capacity(found.len());
    for (row, message, agent) in found {
        deliveries.push((row.agent, shown(row, message, agent, now)));
    }
    Ok((deliveries, more))
}

/// Returns a delivery for display, with its message.
pub fn view(conn: &Connection, row: &DeliveryRow, now: Now) -> Result<Delivery> {
    let message = message::get(conn, row.message)?.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    Ok(shown(row.clone(), message, super::agent::name_of(conn, row.agent)?, now))
}

fn shown(row: DeliveryRow, message: Message, agent: String, now: Now) -> Delivery {
    Delivery {
        message,
        agent,
        lane: row.lane,
        state: row.progress.state,
        attempt: row.progress.attempt(!row.settled_by.is_empty()),
        cause: row.progress.cause,
        last_error: row.last_error,
        output_tail: row.output_tail,
        turn_id: row.turn,
        not_before: row.progress.not_before.map(|boot| now.wall_at(boot)),
        state_time: row.state_time,
        settled_by: row.settled_by,
    }
}
