//! Backups and checks: long readings of the whole database, beside which everything else goes on.
//!
//! Invariant: there is one backup and one check at a time, and either is given up when its caller
//! goes away or the broker drains.

use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio_util::sync::CancellationToken;

use super::{Engine, Refusal, permit};
use crate::store::backup::Copied;
pub use crate::store::check::Checked;

/// Held by the check that is under way.
pub(super) type Checking = Mutex<()>;

/// A backup that is ready to be read. While it is kept, no other begins.
#[derive(Debug)]
pub struct Backup {
    /// The copy, from its beginning.
    pub file: tokio::fs::File,
    /// Its length.
    pub bytes: u64,
    _place: OwnedMutexGuard<()>,
}

impl Engine {
    /// Makes a copy of the database as it stands now.
    pub async fn backup(&self) -> Result<Backup, Refusal> {
        self.check_open()?;
        permit::release();
        let stop = CancellationToken::new();
        // Dropped with the call, which stops the work also where the caller went away.
        let _stops = stop.clone().drop_guard();
        let Copied { file, bytes, place } = tokio::select! {
            copied = self.store.copy(stop) => copied?,
            () = self.draining.cancelled() => return Err(Refusal::Draining),
        };
        tracing::info!(bytes, "a backup was made");
        Ok(Backup { file: tokio::fs::File::from_std(file), bytes, _place: place })
    }

    /// Reads the whole database and says what is not right with it. Who comes meanwhile waits.
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
