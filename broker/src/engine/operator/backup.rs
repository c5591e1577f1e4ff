//! Backups and checks: long reads of the whole database, which do not stop other calls.
//!
//! Invariant: there is one backup and one check at a time. Each is stopped when its caller
//! disconnects or the broker drains.

use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio_util::sync::CancellationToken;

use crate::engine::{Engine, Refusal, permit};
use crate::store::backup::Copied;
pub use crate::store::check::Checked;

/// The lock that a running check holds.
pub(crate) type Checking = Mutex<()>;

/// A finished copy. While it exists, no other backup begins.
#[derive(Debug)]
pub struct Backup {
    /// The file, at its beginning.
    pub file: tokio::fs::File,
    /// The length of the file in bytes.
    pub bytes: u64,
    _slot: OwnedMutexGuard<()>,
}

impl Engine {
    /// Copies the database in its present state.
    pub async fn backup(&self) -> Result<Backup, Refusal> {
        self.check_open()?;
        permit::release();
        let stop = CancellationToken::new();
        // Dropped with the call, which stops the work, even if the caller has disconnected.
        let _stops = stop.clone().drop_guard();
        let Copied { file, bytes, slot } = tokio::select! {
            copied = self.store.copy(stop) => copied?,
            () = self.draining.cancelled() => return Err(Refusal::Draining),
        };
        tracing::info!(bytes, "a backup was made");
        Ok(Backup { file: tokio::fs::File::from_std(file), bytes, _slot: slot })
    }

    /// Reads the whole database and reports its problems. Concurrent calls wait.
    pub async fn check_integrity(&self) -> Result<Checked, Refusal> {
        self.check_open()?;
        permit::release();
        let stop = CancellationToken::new();
        let _stops = stop.clone().drop_guard();
        let work = async {
            let _place = self.checking.lock().await;
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
