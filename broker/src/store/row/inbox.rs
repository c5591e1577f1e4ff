//! The row of an inbox, which a batch writes once.

use rusqlite::Result;

use crate::store::codec::integer;
use crate::store::columns::{columns, sql};
use crate::store::key::AgentKey;
use crate::store::statement::{Sql, Statements, one, run};

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
    one(conn, Sql::Direct(SQL), [key.0])
}

/// Writes the counts of an inbox.
pub(in crate::store) fn write(conn: &impl Statements, key: AgentKey, row: InboxRow) -> Result<()> {
    let InboxRow { open_count, stored_bytes, system_run, ready_count, leased_count } = row;
    const SQL: &str = "UPDATE inbox SET open_count = ?2, stored_bytes = ?3, system_run = ?4, ready_count = ?5, leased_count = ?6 \
         WHERE agent_id = ?1";
    let values = (key.0, open_count, integer(stored_bytes), system_run, ready_count, leased_count);
    run(conn, Sql::Direct(SQL), values)
}
