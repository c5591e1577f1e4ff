//! The progress of a migration, for the person who waits for it.
//!
//! A migration is one statement after the other in one transaction, so what can be seen of it from
//! outside are the version that it works on and the length of the log. A thread looks at both, so
//! that a long statement, the commit and the folding are reported as well. Invariant: the last
//! report is made before [`watched`] returns.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::store::SCHEMA_VERSION;

/// Pause between two reports.
const PAUSE: Duration = Duration::from_secs(2);

/// How far a migration is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrating {
    /// The version of the database before the migration.
    pub found: u32,
    /// The version that is being made.
    pub version: u32,
    /// Bytes of the database before the migration.
    pub database: u64,
    /// Bytes of the log so far: the changed pages that memory has no room for.
    pub written: u64,
    /// The time since its start.
    pub elapsed: Duration,
}

impl fmt::Display for Migrating {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { found, version, database, written, elapsed } = self;
        write!(
            f,
            "migrating a database of {} MiB from schema version {found} to {SCHEMA_VERSION}: at version {version}, {} MiB \
             written, {} s",
            mib(*database),
            mib(*written),
            elapsed.as_secs()
        )
    }
}

/// Returns a number of bytes in MiB, rounded up.
pub(in crate::store) fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

/// Runs a migration and reports its progress, at its start and now and then. The migration gets the
/// place where it notes the version that it makes.
pub(in crate::store) fn watched<T>(
    database: &Path,
    found: u32,
    report: &(dyn Fn(&Migrating) + Sync),
    migrate: impl FnOnce(&AtomicU32) -> T,
) -> T {
    let (version, start) = (AtomicU32::new(found + 1), Instant::now());
    let mut log = database.as_os_str().to_owned();
    log.push("-wal");
    let (log, bytes) = (PathBuf::from(log), len(database));
    let look = || Migrating {
        found,
        version: version.load(Ordering::Relaxed),
        database: bytes,
        written: len(&log),
        elapsed: start.elapsed(),
    };
    report(&look());
    std::thread::scope(|scope| {
        let (end, ended) = channel::<()>();
        let looking = std::thread::Builder::new().name("migration".to_owned());
        let looked = looking.spawn_scoped(scope, move || {
            while ended.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
                report(&look());
            }
        });
        if let Err(error) = looked {
            tracing::warn!(%error, "the progress of the migration is not reported");
        }
        let migrated = migrate(&version);
        drop(end);
        migrated
    })
}

/// Returns the length of a file; 0 if there is none.
fn len(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.len())
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn a_migration_is_reported_at_its_start_and_while_it_runs() {
        let dir = tempfile::tempdir().expect("a directory");
        let database = dir.path().join("hive.db");
        std::fs::write(&database, vec![0; 3 << 20]).expect("written");
        let (reported, reports) = channel();
        let reported = Mutex::new(reported);
        let report = |now: &Migrating| {
            reported.lock().expect("one at a time").send(*now).expect("it is received");
        };
        watched(&database, 1, &report, |version| {
            let first = reports.recv().expect("a report");
            assert_eq!((first.found, first.version, first.written), (1, 2, 0));
            version.store(10, Ordering::Relaxed);
            std::fs::write(dir.path().join("hive.db-wal"), vec![0; (1 << 20) + 1])
                .expect("written");
            let next = reports.recv().expect("a report");
            assert_eq!((next.version, next.database, next.written), (10, 3 << 20, (1 << 20) + 1));
            let text = format!(
                "migrating a database of 3 MiB from schema version 1 to {SCHEMA_VERSION}: at version 10, 2 MiB written, "
            );
            assert!(next.to_string().starts_with(&text), "{next}");
        });
    }
}
