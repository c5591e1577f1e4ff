//! Leases: what is leased, when it ends, and which receive gave it.
//!
//! Invariant: the writer's memory of leases changes with their rows.

use hive_core::delivery::State;
use hive_core::time::BootTime;
use rusqlite::Result;

use crate::store::columns::sql;
use crate::store::effect::Effect;
use crate::store::key::AgentKey;
use crate::store::row::delivery::COLUMNS;
pub use crate::store::row::lease::{LASTING, Lease, LeaseRequest};
use crate::store::statement::{Statements, all, one, run};
use crate::store::table::delivery::{self, DeliveryRow};
use crate::store::table::inbox::{self, Moved};
use crate::store::write::tx::Tx;

/// Extends every consumer's lease to at least its own length from now, because consumers could not
/// reach the broker while it was down. Leases of streams get their grace from now.
pub fn renew_consumer_leases(tx: &Tx<'_>) -> Result<()> {
    let sql = "UPDATE open_delivery SET lease_until_boot = CASE WHEN lease_stream IS NULL \
             THEN max(lease_until_boot, ?1 + coalesce(lease_ms, 0)) ELSE ?1 + coalesce(lease_ms, 0) END \
         WHERE agent_id = ?2 AND queue = 0 AND lease_until_boot > 0";
    for agent in holders(tx)? {
        run(tx, sql, (tx.now.boot.0, agent.0))?;
        // A lease of a stream has an end from now on.
        tx.cache().lease_ends.add(agent, tx.now.boot);
    }
    tx.after_commit(Effect::Due(tx.now.boot));
    Ok(())
}

/// Notes when a lease ends, or that the agent holds none any more.
pub(super) fn moved(tx: &Tx<'_>, row: &DeliveryRow, moved: Moved) -> Result<()> {
    let Moved { before, after } = moved;
    if after == State::Leased {
        let until = row.lease.as_ref().and_then(|lease| lease.until);
        if let Some(until) = until.filter(|until| *until != LASTING) {
            ends_at(tx, row.agent, until);
        }
    } else if before == State::Leased && inbox::get(tx, row.agent)?.leased_count == 0 {
        tx.cache().lease_ends.set(row.agent, None);
    }
    Ok(())
}

/// Notes that leases of an agent end at this time.
pub(super) fn ends_at(tx: &Tx<'_>, agent: AgentKey, until: BootTime) {
    tx.cache().lease_ends.add(agent, until);
    tx.after_commit(Effect::Due(until));
}

/// Returns consumers' leases that have expired: after the agents that hold them, each in order. At
/// most `rows` agents are read.
pub fn expired(tx: &Tx<'_>, rows: u32) -> Result<Vec<DeliveryRow>> {
    const SQL: &str = sql!(
        "SELECT ",
        COLUMNS,
        " FROM open_delivery d WHERE d.agent_id = ?1 AND d.queue = 0 \
          AND d.lease_until_boot <= ?2 ORDER BY d.message_id LIMIT ?3"
    );
    let ends = &tx.cache().lease_ends;
    if !ends.is_loaded() {
        ends.load(holders(tx)?);
    }
    let mut found: Vec<DeliveryRow> = Vec::new();
    let mut left = rows;
    for agent in ends.due(tx.now.boot, rows as usize) {
        let due = all::<DeliveryRow>(tx, SQL, (agent.0, tx.now.boot.0, left))?;
        if due.is_empty() {
            ends.set(agent, first_end(tx, agent)?);
        }
        left = left.saturating_sub(u32::try_from(due.len()).unwrap_or(u32::MAX));
        found.extend(due);
        if left == 0 {
            break;
        }
    }
    Ok(found)
}

/// Returns when the first lease of an agent ends. A lease of a stream that lives never does.
fn first_end(conn: &impl Statements, agent: AgentKey) -> Result<Option<BootTime>> {
    let sql = "SELECT min(lease_until_boot) FROM open_delivery \
         WHERE agent_id = ?1 AND queue = 0 AND lease_until_boot < ?2";
    one(conn, sql, (agent.0, LASTING.0))
}

/// Returns a time before which no lease expires, once expired ones were looked for.
#[must_use]
pub fn next_expiry(tx: &Tx<'_>) -> Option<BootTime> {
    tx.cache().lease_ends.next()
}

/// Returns the agents with leased deliveries.
pub fn holders(tx: &Tx<'_>) -> Result<Vec<AgentKey>> {
    all(tx, "SELECT agent_id FROM inbox WHERE leased_count > 0", [])
}

/// Returns whether any delivery is leased, as of the last commit.
pub(crate) fn are_held(conn: &impl Statements) -> Result<bool> {
    one(conn, "SELECT EXISTS (SELECT 1 FROM inbox WHERE leased_count > 0)", [])
}

/// Returns a lease with the receive that gives it.
#[must_use]
pub fn give(tx: &Tx<'_>, agent: AgentKey, lease: Lease, request: &LeaseRequest) -> Lease {
    tx.cache().gives(agent, request.hash_of_id());
    Lease { request: Some(request.clone()), ..lease }
}

/// Returns the live leases that an earlier receive with this id gave, in order. The writer knows
/// the ids of an agent's leases, so that a new id costs no read.
pub fn given_by(tx: &Tx<'_>, agent: AgentKey, request: &LeaseRequest) -> Result<Vec<DeliveryRow>> {
    let ids = || {
        delivery::all_leased(tx, agent, |rows| {
            let requests = rows.values().filter_map(|row| row.lease.as_ref()?.request.as_ref());
            requests.map(LeaseRequest::hash_of_id).collect()
        })
    };
    if !tx.cache().may_have_given(agent, request.hash_of_id(), ids)? {
        return Ok(Vec::new());
    }
    delivery::leased_as(tx, agent, |lease| {
        lease.request.as_ref().is_some_and(|given_by| given_by.has_id_of(request))
    })
}
