//! Seeing that somebody logged claude in: the newest change and the number of files under
//! `~/.claude`.
//!
//! Every claude process writes there too, so the first look is taken when the failed one is dead,
//! and nothing else runs meanwhile. Invariant: what was there at the first look never counts as a
//! login, however it came about.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How often it is looked at. Only an agent that waits for a login looks at all.
const INTERVAL: Duration = Duration::from_secs(1);
/// Most entries that are looked at.
const ENTRIES_MAX: u64 = 200_000;

/// What a directory looked like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirSnapshot {
    newest: Option<SystemTime>,
    files: u64,
}

impl DirSnapshot {
    /// Looks at a directory and everything in it. What cannot be read is as if it were not there.
    #[must_use]
    pub fn take(dir: &Path) -> Self {
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

    /// Whether something was written since `earlier`. The number of files helps where times cannot
    /// be read.
    #[must_use]
    pub fn advanced_since(&self, earlier: &Self) -> bool {
        self.newest > earlier.newest || self.files != earlier.files
    }
}

/// Waits until something is written under `dir` after `first`, and claude says that it has a login
/// then. Asking claude writes there too, so what it wrote is taken for old.
pub async fn wait<L: Future<Output = bool>>(
    dir: &Path,
    mut first: DirSnapshot,
    is_logged_in: impl Fn() -> L,
) {
    loop {
        let seen = DirSnapshot::take(dir);
        if seen.advanced_since(&first) {
            if is_logged_in().await {
                return;
            }
            // What is written from this look on counts, also while claude was asked.
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
        let empty = DirSnapshot::take(dir.path());
        std::fs::write(&path, "old").expect("written");
        let first = DirSnapshot::take(dir.path());
        assert!(first.advanced_since(&empty) && !first.advanced_since(&first));
        let file = std::fs::File::options().write(true).open(&path).expect("there");
        let now = file.metadata().and_then(|metadata| metadata.modified()).expect("a time");
        file.set_modified(now + Duration::from_secs(5)).expect("set");
        let touched = DirSnapshot::take(dir.path());
        assert!(touched.advanced_since(&first));
        // A time that goes back is no login; a file that goes is a change.
        assert!(!first.advanced_since(&touched));
        std::fs::remove_file(&path).expect("removed");
        assert!(DirSnapshot::take(dir.path()).advanced_since(&touched));
    }
}
