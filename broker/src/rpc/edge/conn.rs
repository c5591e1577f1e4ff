//! Connections: a unix stream that knows whose socket accepted it, who the peer is, and when it has
//! to end.
//!
//! Invariant: what a connection says of itself was read from the kernel when it was accepted, and
//! never changes.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hive_core::caller::Peer;
use hive_core::limits::{
    AGENT_CALLS_AT_WORK_MAX, AGENT_CALLS_MAX, AGENT_CONNECTIONS_MAX, OPERATOR_CALLS_AT_WORK_MAX,
    OPERATOR_CALLS_MAX, OPERATOR_CONNECTIONS_MAX,
};
use hive_core::name::AgentName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::UnixStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::transport::server::Connected;

use super::peer;
use crate::engine::sandboxes::{Place, Sandboxes};

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

/// What may be open on one socket at once, over all connections to it.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Connections.
    pub connections: Arc<Semaphore>,
    /// Calls, until their answers are read.
    pub calls: Arc<Semaphore>,
    /// How many calls that is.
    pub calls_max: usize,
    /// Calls that are worked on; the others wait their turn, first come, first served.
    pub at_work: Arc<Semaphore>,
    /// Calls of those that read pages.
    pub pages: Arc<Semaphore>,
}

impl Bounds {
    /// Those of a socket.
    #[must_use]
    pub fn of(owner: &Owner) -> Self {
        let (connections, calls_max, at_work) = match owner {
            Owner::Agent(_) => (AGENT_CONNECTIONS_MAX, AGENT_CALLS_MAX, AGENT_CALLS_AT_WORK_MAX),
            Owner::Operator => {
                (OPERATOR_CONNECTIONS_MAX, OPERATOR_CALLS_MAX, OPERATOR_CALLS_AT_WORK_MAX)
            }
        };
        let of = |places| Arc::new(Semaphore::new(places));
        Self {
            connections: of(connections),
            calls: of(calls_max),
            calls_max,
            at_work: of(at_work),
            pages: of(1),
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
    /// What may be open on that socket.
    pub bounds: Bounds,
    /// In which sandbox the peer is; `None` without a supervisor.
    pub place: Option<Arc<Place>>,
}

/// An accepted connection.
#[derive(Debug)]
pub struct Conn {
    stream: UnixStream,
    info: ConnInfo,
    close: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Done when the sandbox that the agent had at that time is no longer trusted.
    cut: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    _place: OwnedSemaphorePermit,
}

impl Conn {
    /// Wraps an accepted stream in its place among the connections of its socket; it ends when
    /// `close` is cancelled.
    pub fn new(
        stream: UnixStream,
        place: OwnedSemaphorePermit,
        (owner, trust, bounds): (Owner, Arc<Trust>, Bounds),
        sandboxes: &Sandboxes,
        close: CancellationToken,
    ) -> io::Result<Self> {
        let credentials = stream.peer_cred()?;
        let peer = Peer { uid: credentials.uid(), pid: credentials.pid() };
        // Before the peer is looked at: what is registered later has a token of its own, and cuts
        // this connection.
        let registered = match &owner {
            Owner::Agent(agent) => sandboxes.ended(agent),
            Owner::Operator => None,
        };
        let seen = sandboxes.is_supervised().then(|| Arc::new(peer::place(&stream, peer.pid)));
        Ok(Self {
            stream,
            info: ConnInfo { owner, peer, trust, bounds, place: seen },
            close: Box::pin(close.cancelled_owned()),
            cut: registered.map(|token| Box::pin(token.cancelled_owned())),
            _place: place,
        })
    }

    fn is_closed(&mut self, cx: &mut Context<'_>) -> bool {
        let is_cut = self.cut.as_mut().is_some_and(|cut| cut.as_mut().poll(cx).is_ready());
        is_cut || self.close.as_mut().poll(cx).is_ready()
    }
}

impl Connected for Conn {
    type ConnectInfo = ConnInfo;
    fn connect_info(&self) -> ConnInfo {
        self.info.clone()
    }
}

impl AsyncRead for Conn {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_closed(cx) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
        }
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Conn {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
