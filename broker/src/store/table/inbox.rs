//! Table `inbox`: the counts of an inbox that change with every message.
//!
//! Invariant: `open_count` is the number of unsettled deliveries, and `stored_bytes` the bytes of
//! unsettled bodies that its owner sent.

use rusqlite::{Connection, Result};

use crate::store::codec::integer;
use crate::store::columns::columns;
use crate::store::key::AgentKey;
use crate::store::statement::{one, run};
use crate::store::write::tx::Tx;

columns! {
    /// The counts of an inbox.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct InboxRow, const COLUMNS {
        /// Unsettled deliveries in it.
        pub open_count: u32 = "open_count",
        /// Bytes of unsettled bodies that its owner sent to others.
        pub stored_bytes: u64 = "stored_bytes",
        /// System deliveries served in a row.
        pub system_run: u32 = "system_run",
    }
}

/// Returns the counts of an inbox.
pub fn get(conn: &Connection, key: AgentKey) -> Result<InboxRow> {
    one(conn, &format!("SELECT {COLUMNS} FROM inbox WHERE agent_id = ?1"), [key.0])
}

/// Counts a new delivery, from a sender whose bytes count.
pub fn opened(
    tx: &Tx<'_>,
    agent: AgentKey,
    sender: Option<AgentKey>,
    body_bytes: u64,
) -> Result<()> {
    run(tx, "UPDATE inbox SET open_count = open_count + 1 WHERE agent_id = ?1", [agent.0])?;
    if let Some(sender) = sender {
        run(
            tx,
            "UPDATE inbox SET stored_bytes = stored_bytes + ?2 WHERE agent_id = ?1",
            (sender.0, integer(body_bytes)),
        )?;
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
    run(tx, "UPDATE inbox SET open_count = open_count - 1 WHERE agent_id = ?1", [agent.0])?;
    if let Some(sender) = sender {
        run(
            tx,
            "UPDATE inbox SET stored_bytes = stored_bytes - ?2 WHERE agent_id = ?1",
            (sender.0, integer(body_bytes)),
        )?;
    }
    Ok(())
}

/// Stores how many system deliveries were served in a row.
pub fn set_system_run(tx: &Tx<'_>, key: AgentKey, system_run: u32) -> Result<()> {
    run(
        tx,
        "UPDATE inbox SET system_run = ?2 WHERE agent_id = ?1 AND system_run <> ?2",
        (key.0, system_run),
    )
}
