//! Accepting: the connections of one socket, as long as it listens.
//!
//! Invariant: a socket has a limited number of connections, and one that cannot be accepted delays
//! only its own socket.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixListener;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::closing::Closing;
use super::conn::{Conn, Owner, Slots, Trust};
use crate::engine::sandboxes::Sandboxes;

/// Pause after a connection that could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Period in which each socket logs at most one line about rejected connections.
const COMPLAINT_PERIOD: Duration = Duration::from_secs(60);
/// The answer to one connection too many, in HTTP/2: empty settings, and a GOAWAY with
/// ENHANCE_YOUR_CALM and the reason as text.
const TOO_MANY: &[u8] =
    b"\0\0\0\x04\0\0\0\0\0\0\0\x1c\x07\0\0\0\0\0\0\0\0\0\0\0\0\x0btoo many connections";

/// Accepts connections until the socket closes.
pub(super) async fn accept(
    listener: UnixListener,
    (owner, trust): (Owner, Arc<Trust>),
    sandboxes: Arc<Sandboxes>,
    out: mpsc::Sender<io::Result<Conn>>,
    closing: Closing,
) {
    let slots = Slots::new(&owner);
    let mut complaints = Complaints::default();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = closing.begun() => return,
        };
        let conn = accepted.and_then(|(stream, _)| {
            match Arc::clone(&slots.connections).try_acquire_owned() {
                Ok(slot) => {
                    let owner = (owner.clone(), Arc::clone(&trust), slots.clone());
                    Conn::new(stream, slot, owner, &sandboxes, &closing).map(Some)
                }
                Err(_) => {
                    // If a client does not read it, it sees the connection end.
                    drop(stream.try_write(TOO_MANY));
                    complaints.note(&owner, &"there are as many already as may be");
                    Ok(None)
                }
            }
        });
        match conn {
            Ok(Some(conn)) => {
                if out.send(Ok(conn)).await.is_err() {
                    return;
                }
            }
            Ok(None) => {}
            Err(error) => {
                // Too many open files, or a peer that left at once: the next attempt may succeed,
                // but must not run in a tight loop.
                complaints.note(&owner, &error);
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
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
