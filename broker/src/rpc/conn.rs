//! Connections: a unix stream that knows whose socket accepted it, who the peer is, and when it has to end.
//!
//! Invariant: what a connection says of itself was read from the kernel when it was accepted, and never changes.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hive_core::caller::Peer;
use hive_core::name::AgentName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::transport::server::Connected;

/// Whose socket it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// An agent's.
    Agent(AgentName),
    /// The operator's.
    Operator,
}

/// Who may use a socket, besides what the file's mode allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Only these users, as the host numbers them.
    Uids(Vec<u32>),
    /// Whoever the file's mode lets in: a group was configured for it.
    FileMode,
}

impl Trust {
    /// Whether this user may.
    #[must_use]
    pub fn allows(&self, uid: u32) -> bool {
        match self {
            Self::Uids(uids) => uids.contains(&uid),
            Self::FileMode => true,
        }
    }
}

/// What the broker knows of a connection.
#[derive(Clone, Debug)]
pub struct ConnInfo {
    /// Whose socket accepted it.
    pub owner: Owner,
    /// Who is at the other end.
    pub peer: Peer,
    /// Who may be.
    pub trust: Arc<Trust>,
}

/// An accepted connection.
#[derive(Debug)]
pub struct Conn {
    stream: UnixStream,
    info: ConnInfo,
    close: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Conn {
    /// Wraps an accepted stream; it ends when `close` is cancelled.
    pub fn new(stream: UnixStream, owner: Owner, trust: Arc<Trust>, close: CancellationToken) -> io::Result<Self> {
        let credentials = stream.peer_cred()?;
        let peer = Peer { uid: credentials.uid(), pid: credentials.pid() };
        Ok(Self { stream, info: ConnInfo { owner, peer, trust }, close: Box::pin(close.cancelled_owned()) })
    }

    fn is_closed(&mut self, cx: &mut Context<'_>) -> bool {
        self.close.as_mut().poll(cx).is_ready()
    }
}

impl Connected for Conn {
    type ConnectInfo = ConnInfo;
    fn connect_info(&self) -> ConnInfo {
        self.info.clone()
    }
}

impl AsyncRead for Conn {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.is_closed(cx) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Conn {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bufs: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
