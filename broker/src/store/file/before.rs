//! Before a migration: what it would do, and the copy that is kept of the database.
//!
//! Invariant: the copy is whole and on disk under its name before the first statement of the
//! migration; the name tells the version, so an older broker can be started on it.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::store::file::migrate::{self, SCHEMA_VERSION};
use crate::store::file::open::{self, OpenError, Place};
use crate::store::file::progress::{Migrating, mib};
use crate::store::file::{backup, private};

/// Bytes of a database that a migration does in a second on the machine of docs/performance.md.
const BYTES_PER_SECOND: u64 = 40 << 20;
/// The name of the copy until it is whole.
const UNFINISHED: &str = "migration.tmp";

/// How a database of an older version is opened.
#[derive(Clone, Copy)]
pub struct Migration<'a> {
    /// Gets the progress, on any thread.
    pub report: &'a (dyn Fn(&Migrating) + Sync),
    /// Whether a copy of the database is kept.
    pub keeps_copy: bool,
}

impl fmt::Debug for Migration<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Migration").field("keeps_copy", &self.keeps_copy).finish_non_exhaustive()
    }
}

impl Migration<'_> {
    /// One without reports and without a copy, for databases that a test or a simulation makes.
    pub(in crate::store) const SILENT: Self = Self { report: &|_| {}, keeps_copy: false };
}

/// Copies a database of an older version whose log is folded into it. Returns the path of the copy.
pub(in crate::store) fn copy(database: &Path, found: u32) -> io::Result<PathBuf> {
    let dir = database.parent().unwrap_or(Path::new("."));
    let kept = path(dir, found);
    // A disk that is filled by each of many attempts harms every other program on it.
    if free(dir)? < std::fs::metadata(database)?.len() {
        return Err(Errno::NOSPC.into());
    }
    let copy = backup::Named::create(dir.join(UNFINISHED))?;
    std::fs::copy(database, &copy.0)?;
    File::open(&copy.0)?.sync_all()?;
    std::fs::rename(&copy.0, &kept)?;
    File::open(dir)?.sync_all()?;
    Ok(kept)
}

/// Returns the free bytes of a directory's disk.
fn free(dir: &Path) -> io::Result<u64> {
    let disk = rustix::fs::statvfs(dir)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Removes what a broker left that was killed while it copied.
pub(in crate::store) fn remove_leftovers(dir: &Path) {
    private::remove(&dir.join(UNFINISHED));
}

fn path(dir: &Path, found: u32) -> PathBuf {
    dir.join(format!("hive.version-{found}.db"))
}

/// What the next start would do with a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The database.
    pub database: PathBuf,
    /// Its version; `None` if there is none yet.
    pub found: Option<u32>,
    /// Its bytes, with those of its log.
    pub bytes: u64,
    /// Free bytes on its disk.
    pub free: u64,
    /// Whether a copy would be kept.
    pub keeps_copy: bool,
}

impl Plan {
    /// Reads a database, which may be in use. Nothing is changed.
    pub fn read(dir: &Path, keeps_copy: bool) -> Result<Self, OpenError> {
        let database = dir.join("hive.db");
        let at = Place { dir, database: &database };
        let free = free(dir).map_err(|error| at.directory(error))?;
        if open::is_missing(&database).map_err(|source| at.directory(source))? {
            return Ok(Self { database, found: None, bytes: 0, free, keeps_copy });
        }
        let conn = backup::long_reader(&database, tokio_util::sync::CancellationToken::new());
        let conn = conn.map_err(|error| at.sqlite(error))?;
        let found = migrate::check(&conn).map_err(|error| at.migrate(error))?;
        let mut log = database.as_os_str().to_owned();
        log.push("-wal");
        let len = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        let bytes = len(&database) + len(Path::new(&log));
        Ok(Self { found: Some(found), bytes, free, database, keeps_copy })
    }

    /// Returns whether the next start migrates the database.
    #[must_use]
    pub fn migrates(&self) -> bool {
        self.found.is_some_and(|found| (1..SCHEMA_VERSION).contains(&found))
    }

    /// Returns the bytes that have to be free: for the copy, and for the log of the transaction.
    #[must_use]
    pub fn needed(&self) -> u64 {
        let files = if self.keeps_copy { 2 } else { 1 };
        if self.migrates() { files * self.bytes } else { 0 }
    }

    /// Returns whether the disk has that room.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.free >= self.needed()
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let database = self.database.display();
        let Some(found) = self.found else {
            return write!(f, "{database}: there is none; the next start of hived makes one");
        };
        if !self.migrates() {
            return write!(f, "{database}: nothing to migrate, it has schema version {found}");
        }
        let kept = match path(Path::new(""), found) {
            kept if self.keeps_copy => format!("A copy is kept as {}", kept.display()),
            _ => "No copy is kept".to_owned(),
        };
        write!(
            f,
            "{database}: the next start of hived migrates it from schema version {found} to {SCHEMA_VERSION}.\n\
             It has {} MiB, so this takes about {} s, or several times that on a slow disk.\n\
             {kept}. Up to {} MiB of room are needed; {} MiB are free.",
            mib(self.bytes),
            self.bytes.div_ceil(BYTES_PER_SECOND),
            mib(self.needed()),
            self.free >> 20
        )
    }
}
