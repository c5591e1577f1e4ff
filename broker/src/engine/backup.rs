//! Backups and checks: long readings of the whole database, beside which everything else goes on.
//!
//! Invariant: there is one backup and one check at a time, and either is given up when its caller goes away or the broker drains.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::{Engine, Refusal};
use crate::store::check::Checked;

/// Who reads the whole database now.
#[derive(Debug)]
pub(super) struct LongReads {
    backup: Arc<Semaphore>,
    check: Semaphore,
}

impl Default for LongReads {
    fn default() -> Self {
        Self { backup: Arc::new(Semaphore::new(1)), check: Semaphore::new(1) }
    }
}

/// A backup that is ready to be read. While it is kept, no other begins.
#[derive(Debug)]
pub struct Backup {
    /// The copy, from its beginning.
    pub file: tokio::fs::File,
    /// Its length.
    pub bytes: u64,
    _place: OwnedSemaphorePermit,
}

impl Engine {
    /// Makes a copy of the database as it stands now.
    pub async fn backup(&self) -> Result<Backup, Refusal> {
        self.check_open()?;
        let place = Arc::clone(&self.long_reads.backup).try_acquire_owned().map_err(|_| Refusal::BackupUnderWay)?;
        let stop = CancellationToken::new();
        // Dropped with the call, which stops the work also where the caller went away.
        let _stops = stop.clone().drop_guard();
        let copied = tokio::select! {
            copied = self.store.copy(stop) => copied?,
            () = self.draining.cancelled() => return Err(Refusal::Draining),
        };
        tracing::info!(bytes = copied.bytes, "a backup was made");
        Ok(Backup { file: tokio::fs::File::from_std(copied.file), bytes: copied.bytes, _place: place })
    }

    /// Reads the whole database and says what is not right with it. Who comes meanwhile waits.
    pub async fn check_integrity(&self) -> Result<Checked, Refusal> {
        self.check_open()?;
        let stop = CancellationToken::new();
        let _stops = stop.clone().drop_guard();
        let work = async {
            let _place = self.long_reads.check.acquire().await;
            self.store.check(stop).await
        };
        let checked = tokio::select! {
            checked = work => checked?,
            () = self.draining.cancelled() => return Err(Refusal::Draining),
        };
        for problem in &checked.problems {
            tracing::error!(problem, "the database is not right");
        }
        Ok(checked)
    }
}
