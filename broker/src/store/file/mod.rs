//! Files: opening, migrating, reading, copying and checking the database, and the file of turn
//! lines.
//!
//! `open` locks the state directory (`lock`), migrates (`before`, `migrate`, `sql/`, `progress`)
//! and syncs; `create` makes a new database. `reader` has the connections that cannot write. `fold`
//! shortens the log, and `vfs` gathers the writes to it (`gathered`) and measures its syncs
//! (`timing`). `backup` copies a database file, `archive` keeps copies by their time, `restore`
//! puts a copy in place of the database, `check` reads all of it, `numbers` its highest ids,
//! `content` how much it contains, `mark` the mark of a backup.

pub mod archive;
pub mod backup;
pub mod before;
pub mod check;
pub mod content;
pub mod restore;
pub mod turn_events;

pub(in crate::store) mod create;
pub(in crate::store) mod fold;
pub(in crate::store) mod gathered;
pub(in crate::store) mod lock;
pub(in crate::store) mod mark;
pub(in crate::store) mod migrate;
pub(in crate::store) mod numbers;
pub(in crate::store) mod open;
pub(in crate::store) mod private;
pub(in crate::store) mod progress;
pub(in crate::store) mod reader;
pub(in crate::store) mod timing;
pub(in crate::store) mod vfs;
