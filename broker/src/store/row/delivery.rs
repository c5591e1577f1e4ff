//! The row of a delivery.
//!
//! Invariant: the queue of an open delivery follows from its lane and its state.

use hive_core::delivery::{Lane, Progress, RedeliveryCause, State};
use hive_core::id::{MessageId, TurnId};
use hive_core::time::{BootTime, WallTime};
use rusqlite::Result;

use crate::store::codec::{Coded, integer};
use crate::store::columns::columns;
use crate::store::key::AgentKey;
use crate::store::row::lease::{LEASE, Lease, LeaseRequest};
use crate::store::statement::{Sql, Statements, change, insert_all};

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
    pub struct DeliveryRow, pub(in crate::store) const COLUMNS {
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

/// The queue of leased deliveries.
const LEASED: i64 = 0;
/// The queue of deliveries that are held or dead.
const APART: i64 = 4;

/// Returns the queue of open deliveries in a state.
pub(in crate::store) fn queue_of(lane: Lane, state: State) -> i64 {
    match state {
        State::Ready => lane.code(),
        State::Leased => LEASED,
        State::Held | State::Dead | State::Acked | State::Dropped | State::Superseded => APART,
    }
}

/// Returns whether a queue is one of ready deliveries.
pub(in crate::store) fn is_ready(queue: i64) -> bool {
    queue != LEASED && queue != APART
}

impl DeliveryRow {
    /// Returns the delivery of a message that was just accepted.
    pub(in crate::store) fn new(
        agent: AgentKey,
        message: MessageId,
        lane: Lane,
        accepted: WallTime,
    ) -> Self {
        Self {
            agent,
            message,
            lane,
            progress: Progress::default(),
            state_time: accepted,
            lease: None,
            turn: None,
            last_error: String::new(),
            output_tail: String::new(),
            settled_by: String::new(),
            sender: None,
            body_bytes: 0,
        }
    }

    /// Returns the turn that has its lease, as the row stores it.
    pub(in crate::store) fn lease_turn(&self) -> Option<i64> {
        self.lease.as_ref().and_then(|lease| lease.turn).map(|turn| integer(turn.get()))
    }
}

/// Adds open deliveries.
pub(in crate::store) fn insert(to: &impl Statements, rows: &[&DeliveryRow]) -> Result<()> {
    insert_all!(to, rows, |row: DeliveryRow| into open_delivery {
        agent_id: row.agent.0,
        queue: queue_of(row.lane, row.progress.state),
        message_id: integer(row.message.get()),
        lane: row.lane.code(),
        state: row.progress.state.code(),
        failures: row.progress.failures,
        cause: row.progress.cause.map(Coded::code),
        not_before_boot: row.progress.not_before.map(|time| time.0),
        lease_token: row.lease.as_ref().map(|lease| lease.token.as_str()),
        lease_turn_id: row.lease_turn(),
        lease_until_boot: row.lease.as_ref().and_then(|lease| lease.until).map(|until| until.0),
        lease_ms: row.lease.as_ref().and_then(|lease| lease.length_ms).map(integer),
        lease_stream: row.lease.as_ref().and_then(|lease| lease.stream.as_deref()),
        lease_request:
            row.lease.as_ref().and_then(|lease| lease.request.as_ref()).map(LeaseRequest::bytes),
        lease_end: row.lease.as_ref().and_then(|lease| lease.end).map(Coded::code),
        turn_id: row.turn.map(|turn| integer(turn.get())),
        state_time: row.state_time.0,
        sender_id: row.sender.map(|key| key.0),
        body_bytes: integer(row.body_bytes),
        last_error: row.last_error.as_str(),
        output_tail: row.output_tail.as_str(),
    })
}

/// Removes an open delivery, which must be there.
pub(in crate::store) fn delete(
    from: &impl Statements,
    agent: AgentKey,
    queue: i64,
    message: MessageId,
) -> Result<()> {
    const SQL: &str =
        "DELETE FROM open_delivery WHERE agent_id = ?1 AND queue = ?2 AND message_id = ?3";
    match change(from, Sql::Direct(SQL), (agent.0, queue, integer(message.get())))? {
        1 => Ok(()),
        _ => Err(rusqlite::Error::QueryReturnedNoRows),
    }
}
