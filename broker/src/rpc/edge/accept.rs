//! Accepting: the connections of one socket, as long as it listens.
//!
//! Invariant: a socket has a limited number of connections, none of which a peer has that may not
//! use it; and one that cannot be accepted delays only its own socket.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use hive_core::caller::Peer;
use tokio::net::unix::SocketAddr;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::closing::Closing;
use super::conn::{Admitted, Conn, Held, Owner, Slots, Trust};
use super::room::Seat;
use super::strangers::Strangers;
use crate::engine::sandboxes::Sandboxes;

/// Pause after a connection that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Period in which each socket logs at most one line about rejected connections.
const COMPLAINT_PERIOD: Duration = Duration::from_secs(60);
/// The answer to one connection too many, in HTTP/2: empty settings, and a GOAWAY with
/// ENHANCE_YOUR_CALM and the reason as text.
const TOO_MANY: &[u8] =
    b"\0\0\0\x04\0\0\0\0\0\0\0\x1c\x07\0\0\0\0\0\0\0\0\0\0\0\0\x0btoo many connections";

/// The socket whose connections are accepted.
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) owner: Owner,
    pub(super) trust: Arc<Trust>,
    pub(super) sandboxes: Arc<Sandboxes>,
    pub(super) strangers: Arc<Strangers>,
}

/// Accepts connections until the socket closes, as many as its seat and its slots allow.
pub(super) async fn accept(
    listener: UnixListener,
    socket: Socket,
    out: mpsc::Sender<Conn>,
    closing: Closing,
    seat: Option<Seat>,
) {
    let slots = Slots::new(&socket.owner);
    let mut complaints = Complaints::default();
    loop {
        let next = tokio::select! {
            next = next(&listener, &slots, seat.as_ref()) => next,
            () = closing.begun() => return,
        };
        let Some((accepted, held)) = next else { continue };
        // Outside of this future, which each agent has: it would have room for every part.
        let pause = match socket.connection(accepted, held, &slots, &closing) {
            Ok(conn) => {
                let is_stranger = conn.info().refused.is_some();
                if out.send(conn).await.is_err() {
                    return;
                }
                if !is_stranger {
                    continue;
                }
                socket.strangers.pause()
            }
            Err(NotAccepted::Closed(problem)) => {
                complaints.note(&socket.owner, &problem);
                socket.strangers.pause()
            }
            Err(NotAccepted::Failed(error)) => {
                // Too many open files, or a peer that left at once: the next attempt may succeed,
                // but must not run in a tight loop.
                complaints.note(&socket.owner, &error);
                ACCEPT_PAUSE
            }
        };
        if pause.is_zero() {
            // A peer that connects without end must not keep a thread from other tasks.
            tokio::task::yield_now().await;
        } else {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = closing.begun() => return,
            }
        }
    }
}

/// Why there is no connection.
enum NotAccepted {
    /// It was closed, because there is no place for it.
    Closed(&'static str),
    /// The host returned an error.
    Failed(io::Error),
}

impl Socket {
    /// Makes a connection of what was accepted, if there is a place for it.
    fn connection(
        &self,
        accepted: io::Result<(UnixStream, SocketAddr)>,
        held: Result<Held, &'static str>,
        slots: &Slots,
        closing: &Closing,
    ) -> Result<Conn, NotAccepted> {
        let (stream, _) = accepted.map_err(NotAccepted::Failed)?;
        let credentials = stream.peer_cred().map_err(NotAccepted::Failed)?;
        let peer = Peer { uid: credentials.uid(), pid: credentials.pid() };
        match self.admit(&stream, &peer, held, slots) {
            Ok(admitted) => {
                let of = (self.owner.clone(), Arc::clone(&self.trust));
                Ok(Conn::new(stream, peer, admitted, of, &self.sandboxes, closing))
            }
            Err(problem) => {
                // If a client does not read it, it sees the connection end.
                drop(stream.try_write(TOO_MANY));
                Err(NotAccepted::Closed(problem))
            }
        }
    }

    /// Gives a connection its place: one of the socket's, or, if its peer may not use the socket,
    /// one of strangers.
    fn admit(
        &self,
        stream: &UnixStream,
        peer: &Peer,
        held: Result<Held, &'static str>,
        slots: &Slots,
    ) -> Result<Admitted, &'static str> {
        match self.trust.refuses(stream, peer) {
            None => Ok(Admitted { held: held?, slots: slots.clone(), refused: None }),
            Some(refused) => {
                // What was taken for it is free again before it has anything else.
                drop(held);
                let place = self.strangers.place().ok_or("their peers may not use the socket")?;
                let slots = Slots::new(&self.owner);
                Ok(Admitted { held: (place, None), slots, refused: Some(refused.into()) })
            }
        }
    }
}

/// A connection, and what it has of the limits or lacks.
type Next = (io::Result<(UnixStream, SocketAddr)>, Result<Held, &'static str>);

/// Waits until there may be a connection, and returns it if it is there at once. What it needs is
/// taken first, and released while there is none: so one that waits for a file waits in the kernel,
/// and has no file here.
async fn next(listener: &UnixListener, slots: &Slots, seat: Option<&Seat>) -> Option<Next> {
    let mut held = Some(hold(slots, seat).await);
    poll_fn(|cx| match held.take() {
        Some(had) => listener.poll_accept(cx).map(|accepted| Some((accepted, had))),
        None => Poll::Ready(None),
    })
    .await
}

/// Takes what one more connection needs of the limits, or returns what it lacks.
async fn hold(slots: &Slots, seat: Option<&Seat>) -> Result<Held, &'static str> {
    let slot = Arc::clone(&slots.connections).try_acquire_owned();
    let slot = slot.map_err(|_| "there are as many already as may be")?;
    let file = match seat {
        Some(seat) => seat.connection().await.map(Some),
        None => Some(None),
    };
    Ok((slot, file.ok_or("agents have all files open that they may have")?))
}

/// The log of a socket about rejected connections, with a limited rate.
#[derive(Debug, Default)]
struct Complaints {
    last: Option<Instant>,
    unsaid: u64,
}

impl Complaints {
    fn note(&mut self, owner: &Owner, problem: &dyn std::fmt::Display) {
        self.unsaid += 1;
        if self.last.is_none_or(|last| last.elapsed() >= COMPLAINT_PERIOD) {
            tracing::warn!(%problem, ?owner, connections = self.unsaid, "connections were not accepted");
            *self = Self { last: Some(Instant::now()), unsaid: 0 };
        }
    }
}
