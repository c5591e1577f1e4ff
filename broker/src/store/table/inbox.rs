//! Table `inbox`: the counts of an inbox that change with every message.
//!
//! Invariant: `open_count` is the number of unsettled deliveries, and `stored_bytes` the bytes of
//! unsettled bodies that its owner sent.

use rusqlite::{Connection, Result};

use crate::store::codec::{integer, unsigned};
use crate::store::key::AgentKey;
use crate::store::write::tx::Tx;

/// The counts of an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InboxRow {
    /// Unsettled deliveries in it.
    pub open_count: u32,
    /// Bytes of unsettled bodies that its owner sent to others.
    pub stored_bytes: u64,
    /// System deliveries served in a row.
    pub system_run: u32,
}

/// Returns the counts of an inbox.
pub fn get(conn: &Connection, key: AgentKey) -> Result<InboxRow> {
    conn.prepare_cached(
        "SELECT open_count, stored_bytes, system_run FROM inbox WHERE agent_id = ?1",
    )?
    .query_row([key.0], |row| {
        Ok(InboxRow {
            open_count: unsigned(row, 0)?,
            stored_bytes: unsigned(row, 1)?,
            system_run: unsigned(row, 2)?,
        })
    })
}

/// Counts a new delivery, from a sender whose bytes count.
pub fn opened(
    tx: &Tx<'_>,
    agent: AgentKey,
    sender: Option<AgentKey>,
    body_bytes: u64,
) -> Result<()> {
    tx.prepare_cached("UPDATE inbox SET open_count = open_count + 1 WHERE agent_id = ?1")?
        .execute([agent.0])?;
    if let Some(sender) = sender {
        tx.prepare_cached("UPDATE inbox SET stored_bytes = stored_bytes + ?2 WHERE agent_id = ?1")?
            .execute((sender.0, integer(body_bytes)))?;
    }
    Ok(())
}

/// Counts a delivery as settled.
pub fn settled(
    tx: &Tx<'_>,
    agent: AgentKey,
    sender: Option<AgentKey>,
    body_bytes: u64,
) -> Result<()> {
    tx.prepare_cached("UPDATE inbox SET open_count = open_count - 1 WHERE agent_id = ?1")?
        .execute([agent.0])?;
    if let Some(sender) = sender {
        tx.prepare_cached("UPDATE inbox SET stored_bytes = stored_bytes - ?2 WHERE agent_id = ?1")?
            .execute((sender.0, integer(body_bytes)))?;
    }
    Ok(())
}

/// Stores how many system deliveries were served in a row.
pub fn set_system_run(tx: &Tx<'_>, key: AgentKey, system_run: u32) -> Result<()> {
    tx.prepare_cached("UPDATE inbox SET system_run = ?2 WHERE agent_id = ?1 AND system_run <> ?2")?
        .execute((key.0, system_run))
        .map(|_| ())
}
