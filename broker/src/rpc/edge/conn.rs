//! Connections: a unix stream with the owner of its socket, its peer, and the reasons for which it
//! has to end.
//!
//! Invariant: the properties of a connection were read from the kernel when it was accepted, and
//! never change.

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
use tokio::time::Sleep;
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::closing::{Closing, LAST_WORDS};
use super::peer;
use super::room::ConnFile;
use crate::engine::sandboxes::{Place, Sandboxes};

/// The owner of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The agent of this name.
    Agent(AgentName),
    /// The operator of the hive.
    Operator,
}

/// The peers that may use a socket. None at all is the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Peers {
    /// Only these users, as the host numbers them; empty: any, if there is a unit.
    pub uids: Vec<u32>,
    /// Only processes of this unit of systemd.
    pub unit: Option<String>,
}

/// Who may use a socket, among those that the file's mode lets in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Only these.
    Peers(Peers),
    /// All users that the file's mode lets in: a group was configured for it.
    FileMode,
}

impl Trust {
    /// Returns why the peer of a connection may not use the socket; `None` if it may.
    pub(super) fn refuses(&self, stream: &UnixStream, peer: &Peer) -> Option<String> {
        let Self::Peers(Peers { uids, unit }) = self else { return None };
        let is_user = uids.contains(&peer.uid) || (uids.is_empty() && unit.is_some());
        if !is_user {
            return Some(format!(
                "user id {} may not use this socket; the configuration names those who may (`uids`, `users`)",
                peer.uid
            ));
        }
        let wanted = unit.as_ref()?;
        let found = match peer::unit(stream, peer) {
            Ok(Some(found)) if found == *wanted => return None,
            Ok(Some(found)) => format!("a process of {found}"),
            Ok(None) => "a process of no unit of systemd".to_owned(),
            Err(why) => format!("a process whose unit is not known ({why})"),
        };
        Some(format!(
            "{found} may not use this socket; the configuration requires {wanted} (`unit`, `agent_unit`)"
        ))
    }
}

/// The limits of one socket, over all connections to it.
#[derive(Clone, Debug)]
pub struct Slots {
    /// Slots of connections.
    pub connections: Arc<Semaphore>,
    /// Slots of calls; a call keeps its slot until its answer is read.
    pub calls: Arc<Semaphore>,
    /// The number of slots of calls.
    pub calls_max: usize,
    /// Permits to work; other calls wait in a queue.
    pub at_work: Arc<Semaphore>,
    /// The one permit for a call that reads a page of a list; other such calls wait.
    pub pages: Arc<Semaphore>,
    /// The one permit for a call that settles a long list of deliveries; other such calls wait.
    pub lists: Arc<Semaphore>,
}

impl Slots {
    /// Returns the limits of a socket.
    #[must_use]
    pub fn new(owner: &Owner) -> Self {
        let (connections, calls_max, at_work) = match owner {
            Owner::Agent(_) => (AGENT_CONNECTIONS_MAX, AGENT_CALLS_MAX, AGENT_CALLS_AT_WORK_MAX),
            Owner::Operator => {
                (OPERATOR_CONNECTIONS_MAX, OPERATOR_CALLS_MAX, OPERATOR_CALLS_AT_WORK_MAX)
            }
        };
        let slots = |count| Arc::new(Semaphore::new(count));
        Self {
            connections: slots(connections),
            calls: slots(calls_max),
            calls_max,
            at_work: slots(at_work),
            pages: slots(1),
            lists: slots(1),
        }
    }
}

/// The properties of a connection. Its calls share them.
#[derive(Debug)]
pub struct ConnInfo {
    /// The owner of the socket.
    pub owner: Owner,
    /// The process at the other end.
    pub peer: Peer,
    /// Who may use the socket.
    pub trust: Arc<Trust>,
    /// Why the peer may not; each of its calls is refused with this sentence.
    pub refused: Option<Box<str>>,
    /// The limits of the socket; a peer that may not use it has limits of its own.
    pub slots: Slots,
    /// The pid namespace of the peer; `None` if the broker does not run under `hivectl up`.
    pub place: Option<Place>,
}

/// What a connection has of the limits: a slot of its socket, and for agents a file.
pub(super) type Held = (OwnedSemaphorePermit, Option<ConnFile>);

/// What a connection has got when it was accepted.
#[derive(Debug)]
pub(super) struct Admitted {
    pub(super) held: Held,
    pub(super) slots: Slots,
    /// Why its calls are refused.
    pub(super) refused: Option<Box<str>>,
}

/// The end of a connection that has stopped reading.
#[derive(Debug)]
struct LastWords {
    close: Pin<Box<WaitForCancellationFutureOwned>>,
    /// The time that is left to write.
    left: Pin<Box<Sleep>>,
}

/// An accepted connection.
#[derive(Debug)]
pub struct Conn {
    stream: UnixStream,
    info: Arc<ConnInfo>,
    closing: Closing,
    /// Ready when it stops reading, or closes at once.
    leave: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Set when it stops reading.
    last_words: Option<Box<LastWords>>,
    /// Ready when the registration that the agent's sandbox had when this connection was accepted
    /// is replaced or removed. `None` if there was none.
    cut: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    _held: Held,
}

impl Conn {
    /// Wraps an accepted stream that has a place among the connections of its socket, or of
    /// strangers.
    pub(super) fn new(
        stream: UnixStream,
        peer: Peer,
        Admitted { held, slots, refused }: Admitted,
        (owner, trust): (Owner, Arc<Trust>),
        sandboxes: &Sandboxes,
        closing: &Closing,
    ) -> Self {
        // Taken before the peer's namespace is read. If the agent's registration is replaced from
        // here on, this token is cancelled, and the connection ends.
        let registration_ended = match &owner {
            Owner::Agent(agent) => sandboxes.ended(agent),
            Owner::Operator => None,
        };
        let place = sandboxes.is_supervised().then(|| peer::place(&stream, peer.pid));
        Self {
            stream,
            info: Arc::new(ConnInfo { owner, peer, trust, refused, slots, place }),
            closing: closing.clone(),
            leave: Box::pin(closing.until_soon()),
            last_words: None,
            cut: registration_ended.map(|token| Box::pin(token.cancelled_owned())),
            _held: held,
        }
    }

    /// Returns its properties.
    pub(super) fn info(&self) -> &Arc<ConnInfo> {
        &self.info
    }

    fn is_cut(&mut self, cx: &mut Context<'_>) -> bool {
        self.cut.as_mut().is_some_and(|cut| cut.as_mut().poll(cx).is_ready())
    }

    /// Returns an error if it is over. Every poll asks, because HTTP/2 does not read while it owes
    /// an answer and the peer has no room for it.
    fn check(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.is_cut(cx) || matches!(self.is_leaving(cx), Some(Poll::Ready(()))) {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        Ok(())
    }

    /// Returns `None` while it reads; then whether its last second is over, or it closes at once.
    fn is_leaving(&mut self, cx: &mut Context<'_>) -> Option<Poll<()>> {
        if self.last_words.is_none() && self.leave.as_mut().poll(cx).is_ready() {
            let (close, left) = (self.closing.until_now(), tokio::time::sleep(LAST_WORDS));
            self.last_words =
                Some(Box::new(LastWords { close: Box::pin(close), left: Box::pin(left) }));
        }
        let LastWords { close, left } = self.last_words.as_deref_mut()?;
        let is_over = close.as_mut().poll(cx).is_ready() || left.as_mut().poll(cx).is_ready();
        Some(if is_over { Poll::Ready(()) } else { Poll::Pending })
    }
}

impl AsyncRead for Conn {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(cx)?;
        if self.last_words.is_some() {
            return Poll::Pending;
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
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(cx)?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    /// With vectored writes, h2 would write the trailers of an answer of more than 256 bytes by
    /// themselves, which wakes the client twice; without them, of one with more than 1,024.
    fn is_write_vectored(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use tokio::time::{Instant, timeout};
    use tokio_util::sync::CancellationToken;

    use super::*;

    /// A connection whose peer is the second value, and its end.
    fn connection() -> (Conn, UnixStream, Closing) {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let slots = Slots::new(&Owner::Operator);
        let slot = Arc::clone(&slots.connections).try_acquire_owned().expect("a slot");
        let closing = Closing::of(&CancellationToken::new());
        let admitted = Admitted { held: (slot, None), slots, refused: None };
        let of = (Owner::Operator, Arc::new(Trust::FileMode));
        let peer = Peer { uid: 0, pid: None };
        let conn = Conn::new(ours, peer, admitted, of, &Sandboxes::default(), &closing);
        (conn, theirs, closing)
    }

    /// Writes until there is no more room, and then waits for it.
    async fn fill(conn: &mut Conn) -> io::Error {
        let bytes = [0; 65_536];
        loop {
            let written = poll_fn(|cx| Pin::new(&mut *conn).poll_write(cx, &bytes)).await;
            if let Err(error) = written {
                return error;
            }
        }
    }

    #[tokio::test]
    async fn one_that_closes_soon_ends_although_its_peer_reads_nothing() {
        let (mut conn, peer, closing) = connection();
        assert!(
            timeout(Duration::from_millis(1), fill(&mut conn)).await.is_err(),
            "it has no room"
        );
        let start = Instant::now();
        closing.soon();
        assert_eq!(fill(&mut conn).await.kind(), io::ErrorKind::ConnectionAborted);
        assert!(start.elapsed() >= LAST_WORDS, "it may write until then");
        drop(peer);
    }

    #[tokio::test]
    async fn one_that_closes_now_ends_at_once_although_its_peer_reads_nothing() {
        let (mut conn, peer, closing) = connection();
        assert!(
            timeout(Duration::from_millis(1), fill(&mut conn)).await.is_err(),
            "it has no room"
        );
        closing.now();
        assert_eq!(fill(&mut conn).await.kind(), io::ErrorKind::ConnectionAborted);
        drop(peer);
    }

    #[tokio::test]
    async fn one_that_closes_soon_reads_nothing_more() {
        let (mut conn, peer, closing) = connection();
        peer.try_write(b"a request").expect("written");
        closing.soon();
        let mut bytes = [0; 16];
        let mut buffer = ReadBuf::new(&mut bytes);
        let read = poll_fn(|cx| Pin::new(&mut conn).poll_read(cx, &mut buffer)).await;
        assert_eq!(read.expect_err("it is over").kind(), io::ErrorKind::ConnectionAborted);
        assert!(buffer.filled().is_empty());
    }
}
