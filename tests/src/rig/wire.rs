//! A wire between a client and a socket of the hive that can lose the replies: the request is
//! carried out, and the client never gets the answer.
//!
//! Invariant: a connection that has lost a byte carries no reply any more, so no client gets half
//! of one.

use std::path::{Path, PathBuf};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

/// A socket that passes everything on to another.
#[derive(Debug)]
pub struct Wire {
    path: PathBuf,
    loses: watch::Sender<bool>,
    life: AbortHandle,
}

impl Wire {
    /// Lays one from `path`, which must not exist, to the socket at `to`.
    pub fn lay(path: &Path, to: &Path) -> Self {
        let listener = UnixListener::bind(path).expect("a socket");
        let (loses, losing) = watch::channel(false);
        let to = to.to_path_buf();
        let life = tokio::spawn(async move {
            // The connections end with this task.
            let mut connections = JoinSet::new();
            while let Ok((near, _)) = listener.accept().await {
                let (to, losing) = (to.clone(), losing.clone());
                connections.spawn(async move {
                    // Without a listener the connection ends at once, as it would without the wire.
                    if let Ok(far) = UnixStream::connect(&to).await {
                        carry(near, far, losing).await;
                    }
                });
            }
        });
        Self { path: path.to_path_buf(), loses, life: life.abort_handle() }
    }

    /// Returns the path of the socket for clients.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// With `true`, replies are lost from now on, also on open connections. With `false`, they are
    /// carried again, but not on a connection that has already lost one.
    pub fn lose_replies(&self, lose: bool) {
        self.loses.send_replace(lose);
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.life.abort();
    }
}

async fn carry(near: UnixStream, far: UnixStream, losing: watch::Receiver<bool>) {
    let ((mut from_near, to_near), (from_far, mut to_far)) = (near.into_split(), far.into_split());
    // The first end of either ends both.
    tokio::select! {
        _ = tokio::io::copy(&mut from_near, &mut to_far) => {}
        () = replies(from_far, to_near, losing) => {}
    }
}

async fn replies(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, losing: watch::Receiver<bool>) {
    let mut lost = false;
    let mut buffer = [0; 8192];
    while let Ok(count) = from.read(&mut buffer).await
        && count > 0
    {
        lost |= *losing.borrow();
        if !lost && to.write_all(&buffer[..count]).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rig::soon;

    #[tokio::test]
    async fn the_request_arrives_and_the_reply_is_lost() {
        let dir = tempfile::tempdir().expect("a directory");
        let far = UnixListener::bind(dir.path().join("far")).expect("a socket");
        let wire = Wire::lay(&dir.path().join("near"), &dir.path().join("far"));
        let mut word = [0; 2];
        let mut near = UnixStream::connect(wire.path()).await.expect("it listens");
        let (mut there, _) = soon("the wire connects", far.accept()).await.expect("a connection");
        there.write_all(b"hi").await.expect("sent");
        soon("it is carried", near.read_exact(&mut word)).await.expect("two bytes");
        wire.lose_replies(true);
        near.write_all(b"yo").await.expect("sent");
        soon("it is carried", there.read_exact(&mut word)).await.expect("two bytes");
        assert_eq!(&word, b"yo");
        there.write_all(b"no").await.expect("sent");
        drop(there);
        assert_eq!(soon("the end is carried", near.read(&mut word)).await.expect("the end"), 0);

        wire.lose_replies(false);
        let mut near = UnixStream::connect(wire.path()).await.expect("it listens");
        let (mut there, _) = soon("the wire connects", far.accept()).await.expect("a connection");
        there.write_all(b"ok").await.expect("sent");
        soon("it is carried", near.read_exact(&mut word)).await.expect("two bytes");
        assert_eq!(&word, b"ok");
    }
}
