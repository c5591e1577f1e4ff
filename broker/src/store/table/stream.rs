//! Streams: the leases of deliveries that a stream of a consumer holds.
//!
//! Invariant: a lease of a stream lasts until the stream ends, and then has its grace. So its row
//! is written once when it is leased, and not again while the stream lives.

use hive_core::limits::ALONE_FROM_ATTEMPT;
use hive_core::time::BootTime;
use rusqlite::Result;

use crate::store::codec::integer;
use crate::store::columns::sql;
use crate::store::key::AgentKey;
use crate::store::statement::{Sql, change};
use crate::store::table::delivery::{self, DeliveryRow};
use crate::store::table::lease::{self, LASTING};
use crate::store::write::tx::Tx;

/// The leases of a stream: a part of what is leased from one inbox.
const OF_STREAM: &str = "agent_id = ?1 AND queue = 0 AND lease_stream = ?2";

/// What a stream holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// The number of deliveries.
    pub deliveries: u32,
    /// The bytes of their bodies.
    pub bytes: u64,
    /// The failures of the one that has most.
    pub failures: u32,
}

impl Held {
    /// Returns whether it holds one that is served alone.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.deliveries > 0 && self.failures.saturating_add(1) >= ALONE_FROM_ATTEMPT
    }
}

/// Returns what a stream holds.
pub fn held(tx: &Tx<'_>, agent: AgentKey, stream: &str) -> Result<Held> {
    delivery::all_leased(tx, agent, |rows| {
        let mut held = Held::default();
        for row in rows.values().filter(|row| is_of(row, stream)) {
            held.deliveries += 1;
            held.bytes += row.body_bytes;
            held.failures = held.failures.max(row.progress.failures);
        }
        held
    })
}

fn is_of(row: &DeliveryRow, stream: &str) -> bool {
    row.lease.as_ref().is_some_and(|lease| lease.stream.as_deref() == Some(stream))
}

/// Returns the deliveries that a stream holds, in order; without a name those of all streams of the
/// agent.
pub fn leased(tx: &Tx<'_>, agent: AgentKey, stream: Option<&str>) -> Result<Vec<DeliveryRow>> {
    delivery::leased_as(tx, agent, |lease| match stream {
        Some(stream) => lease.stream.as_deref() == Some(stream),
        None => lease.stream.is_some(),
    })
}

/// Makes the leases of a stream last as long as one that begins, with its grace.
pub fn renew(tx: &Tx<'_>, agent: AgentKey, stream: &str, grace_ms: u64) -> Result<usize> {
    const SQL: &str =
        sql!("UPDATE open_delivery SET lease_until_boot = ?3, lease_ms = ?4 WHERE ", OF_STREAM);
    delivery::write_new(tx, agent)?;
    tx.cache().leases.forget(agent);
    change(tx, Sql::Direct(SQL), (agent.0, stream, LASTING.0, integer(grace_ms)))
}

/// Ends the leases of a stream at this time, where they do not end already.
pub fn begin_grace(tx: &Tx<'_>, agent: AgentKey, stream: &str, until: BootTime) -> Result<usize> {
    const SQL: &str = sql!(
        "UPDATE open_delivery SET lease_until_boot = ?3 WHERE ",
        OF_STREAM,
        " AND lease_until_boot = ?4"
    );
    lease::ends_at(tx, agent, until);
    delivery::write_new(tx, agent)?;
    tx.cache().leases.forget(agent);
    change(tx, Sql::Direct(SQL), (agent.0, stream, until.0, LASTING.0))
}
