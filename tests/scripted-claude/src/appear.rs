//! Waiting for a file to exist, by inotify and without polling.

use std::io;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;

/// Waits until `path` exists; its directory has to.
pub async fn wait(path: &Path) -> io::Result<()> {
    let directory =
        path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    watch(directory, WatchFlags::CREATE | WatchFlags::MOVED_TO, || path.exists()).await
}

/// Waits until the file at `path` contains a text this many times; the file must exist.
pub async fn said(path: &Path, text: &str, times: usize) -> io::Result<()> {
    let says = || {
        std::fs::read(path)
            .is_ok_and(|bytes| String::from_utf8_lossy(&bytes).matches(text).count() >= times)
    };
    watch(path, WatchFlags::MODIFY, says).await
}

async fn watch(path: &Path, flags: WatchFlags, done: impl Fn() -> bool) -> io::Result<()> {
    let notices = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
    inotify::add_watch(&notices, path, flags)?;
    // The descriptor is read like a pipe: bytes come when something happens.
    let mut notices = Receiver::from_owned_fd_unchecked(notices)?;
    // The check is made after the watch is set, so that no change is missed.
    while !done() {
        // The content of the notices does not matter, only that one came.
        if notices.read(&mut [0; 4096]).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_that_comes_later_is_seen_and_another_is_not_taken_for_it() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("wanted");
        let make = async {
            std::fs::write(dir.path().join("other"), b"").expect("it is written");
            tokio::task::yield_now().await;
            std::fs::write(&path, b"").expect("it is written");
        };
        let (waited, ()) = tokio::join!(wait(&path), make);
        waited.expect("it is seen");
        wait(&path).await.expect("it is there already");
        assert!(wait(&dir.path().join("no/such/directory")).await.is_err());
    }
}
