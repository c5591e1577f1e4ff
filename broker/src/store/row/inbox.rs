//! The row of an inbox, which a batch writes once.

use rusqlite::Result;

use crate::store::codec::integer;
use crate::store::columns::{columns, sql};
use crate::store::key::AgentKey;
use crate::store::statement::{Statements, one, update};

columns! {
    /// The counts of an inbox.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct InboxRow, pub(in crate::store) const COLUMNS {
        /// Unsettled deliveries in it.
        pub open_count: u32 = "open_count",
        /// Bytes of unsettled bodies that its owner sent to others.
        pub stored_bytes: u64 = "stored_bytes",
        /// System deliveries served in a row.
        pub system_run: u32 = "system_run",
        /// Ready deliveries in it, due or not.
        pub ready_count: u32 = "ready_count",
        /// Leased deliveries in it.
        pub leased_count: u32 = "leased_count",
    }
}

/// Reads the counts of an inbox.
pub(in crate::store) fn read(conn: &impl Statements, key: AgentKey) -> Result<InboxRow> {
    const SQL: &str = sql!("SELECT ", COLUMNS, " FROM inbox WHERE agent_id = ?1");
    one(conn, SQL, [key.0])
}

/// Writes the counts of an inbox.
pub(in crate::store) fn write(conn: &impl Statements, key: AgentKey, row: InboxRow) -> Result<()> {
    let InboxRow { open_count, stored_bytes, system_run, ready_count, leased_count } = row;
    update!(conn, inbox {
        open_count: open_count,
        stored_bytes: integer(stored_bytes),
        system_run: system_run,
        ready_count: ready_count,
        leased_count: leased_count,
    } where { agent_id: key.0 })
}
