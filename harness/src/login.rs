//! Detection of a login of claude: the newest change and the number of files under `~/.claude`.
//!
//! Every claude process writes there too, so the first snapshot is taken when the failed one is
//! dead, and no other runs in the meantime. Invariant: a login never counts if it was there at the
//! first snapshot.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Interval of the snapshots. Only an agent that waits for a login takes them.
const INTERVAL: Duration = Duration::from_secs(1);
/// Maximum entries of a snapshot.
const ENTRIES_MAX: u64 = 200_000;

/// The state of a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirSnapshot {
    newest: Option<SystemTime>,
    files: u64,
}

impl DirSnapshot {
    /// Takes a snapshot of a directory and everything in it. Unreadable entries count as absent.
    pub fn capture(dir: &Path) -> Self {
        let mut snapshot = Self::default();
        let mut open: Vec<PathBuf> = vec![dir.to_path_buf()];
        while let Some(dir) = open.pop() {
            for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
                let Ok(metadata) = entry.metadata() else { continue };
                if snapshot.files >= ENTRIES_MAX {
                    return snapshot;
                }
                if metadata.is_dir() {
                    open.push(entry.path());
                } else {
                    snapshot.files += 1;
                    snapshot.newest = snapshot.newest.max(metadata.modified().ok());
                }
            }
        }
        snapshot
    }

    /// Returns whether something was written since `earlier`. The number of files helps if times
    /// cannot be read.
    pub fn advanced_since(&self, earlier: &Self) -> bool {
        self.newest > earlier.newest || self.files != earlier.files
    }
}

/// Waits until something is written under `dir` after `first`, and claude then reports a login.
/// Asking claude writes there too, so its own writes count as old.
pub async fn wait<L: Future<Output = bool>>(
    dir: &Path,
    mut first: DirSnapshot,
    is_logged_in: impl Fn() -> L,
) {
    loop {
        let seen = DirSnapshot::capture(dir);
        if seen.advanced_since(&first) {
            if is_logged_in().await {
                return;
            }
            // Writes from this snapshot on count, including those while claude was asked.
            first = seen;
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_newer_file_or_another_number_of_files_is_an_advance() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("a/credentials.json");
        std::fs::create_dir(dir.path().join("a")).expect("created");
        let empty = DirSnapshot::capture(dir.path());
        std::fs::write(&path, "old").expect("written");
        let first = DirSnapshot::capture(dir.path());
        assert!(first.advanced_since(&empty) && !first.advanced_since(&first));
        let file = std::fs::File::options().write(true).open(&path).expect("there");
        let now = file.metadata().and_then(|metadata| metadata.modified()).expect("a time");
        file.set_modified(now + Duration::from_secs(5)).expect("set");
        let touched = DirSnapshot::capture(dir.path());
        assert!(touched.advanced_since(&first));
        // A time that goes back is no login; a file that goes is a change.
        assert!(!first.advanced_since(&touched));
        std::fs::remove_file(&path).expect("removed");
        assert!(DirSnapshot::capture(dir.path()).advanced_since(&touched));
    }
}
