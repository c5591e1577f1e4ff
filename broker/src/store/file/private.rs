//! Private files, and those that SQLite keeps beside a database.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Opens a file for writing; creates it if it is missing, for this user alone. SQLite gives the
/// files beside a database the mode of the database.
pub(in crate::store) fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)
}

/// Removes a database and the files beside it; returns whether there were any.
pub(in crate::store) fn remove(database: &Path) -> bool {
    let mut found = false;
    for suffix in ["", "-journal", "-wal", "-shm"] {
        let mut name = database.as_os_str().to_owned();
        name.push(suffix);
        // A file that cannot be removed shows when the database is opened.
        found |= std::fs::remove_file(name).is_ok();
    }
    found
}

/// Removes the files beside a database; returns whether there were any.
pub(in crate::store) fn remove_beside(database: &Path) -> io::Result<bool> {
    let mut found = false;
    for suffix in ["-journal", "-wal", "-shm"] {
        let mut name = database.as_os_str().to_owned();
        name.push(suffix);
        match std::fs::remove_file(name) {
            Ok(()) => found = true,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}
