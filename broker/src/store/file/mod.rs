//! Files: opening, migrating, reading, copying and checking the database, and the file of turn
//! lines.
//!
//! `open` locks the state directory (`lock`), migrates (`migrate`, `sql/`) and syncs. `reader` has
//! the connections that cannot write. `backup` copies a database file, `check` reads all of it.

pub mod backup;
pub mod check;
pub mod turn_events;

pub(in crate::store) mod lock;
pub(in crate::store) mod migrate;
pub(in crate::store) mod open;
pub(in crate::store) mod private;
pub(in crate::store) mod reader;
