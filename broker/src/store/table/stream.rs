//! Streams: the leases of deliveries that a stream of a consumer holds.
//!
//! Invariant: a lease of a stream lasts until the stream ends, and then has its grace. So its row
//! is written once when it is leased, and not again while the stream lives.

use hive_core::limits::ALONE_FROM_ATTEMPT;
use hive_core::time::BootTime;
use rusqlite::{Connection, Result};

use crate::store::codec::integer;
use crate::store::columns::columns;
use crate::store::effect::Effect;
use crate::store::key::AgentKey;
use crate::store::statement::{all, one};
use crate::store::table::delivery::{COLUMNS, DeliveryRow};
use crate::store::write::tx::Tx;

/// The end of a lease whose stream lives.
pub const LASTING: BootTime = BootTime(i64::MAX);

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

columns! {
    const HELD: Held {
        deliveries: u32 = "count(*)",
        bytes: u64 = "coalesce(sum(body_bytes), 0)",
        failures: u32 = "coalesce(max(failures), 0)",
    }
}

/// Returns what a stream holds.
pub fn held(conn: &Connection, agent: AgentKey, stream: &str) -> Result<Held> {
    let sql = format!(
        "SELECT {HELD} FROM delivery INDEXED BY delivery_stream \
         WHERE state = 2 AND lease_stream IS NOT NULL AND agent_id = ?1 AND lease_stream = ?2"
    );
    one(conn, &sql, (agent.0, stream))
}

/// Returns the deliveries that a stream holds, in order; without a name those of all streams of the
/// agent.
pub fn leased(
    conn: &Connection,
    agent: AgentKey,
    stream: Option<&str>,
) -> Result<Vec<DeliveryRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM delivery d INDEXED BY delivery_stream WHERE d.state = 2 AND d.lease_stream IS NOT NULL \
         AND d.agent_id = ?1 AND (?2 IS NULL OR d.lease_stream = ?2) ORDER BY d.message_id"
    );
    all(conn, &sql, (agent.0, stream))
}

/// Makes the leases of a stream last as long as one that begins, with its grace.
pub fn renew(tx: &Tx<'_>, agent: AgentKey, stream: &str, grace_ms: u64) -> Result<usize> {
    tx.after_commit(Effect::Due);
    tx.prepare_cached(
        "UPDATE delivery INDEXED BY delivery_stream SET lease_until_boot = ?3, lease_ms = ?4 \
         WHERE state = 2 AND lease_stream IS NOT NULL AND agent_id = ?1 AND lease_stream = ?2",
    )?
    .execute((agent.0, stream, LASTING.0, integer(grace_ms)))
}

/// Ends the leases of a stream at this time, where they do not end already.
pub fn begin_grace(tx: &Tx<'_>, agent: AgentKey, stream: &str, until: BootTime) -> Result<usize> {
    tx.after_commit(Effect::Due);
    tx.prepare_cached(
        "UPDATE delivery INDEXED BY delivery_stream SET lease_until_boot = ?3 \
         WHERE state = 2 AND lease_stream IS NOT NULL AND agent_id = ?1 AND lease_stream = ?2 \
             AND lease_until_boot = ?4",
    )?
    .execute((agent.0, stream, until.0, LASTING.0))
}
