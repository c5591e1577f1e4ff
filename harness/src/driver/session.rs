//! The attached session: its stream is opened again after every loss.
//!
//! Invariant: a session that another harness has taken over is never taken back; only a fresh start
//! may take over, and only once.

use std::time::Duration;

use hive_core::reason::Reason;
use hive_proto::handshake::Channel;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tonic::Status;

use crate::driver::LoopEvent;
use crate::driver::backoff::Backoff;
use crate::exit::{self, Failure, describe};
use crate::wire::session::{self, BrokerMessage, Stream};

/// Maximum time in which the broker notices that an earlier harness is gone.
const ATTACHED_PATIENCE: Duration = Duration::from_secs(5);

/// News of a session.
#[derive(Debug)]
pub enum SessionEvent {
    /// The broker sent something over its stream.
    Message(BrokerMessage),
    /// The stream broke; it is opened again.
    Lost,
    /// Another session has replaced this one.
    Fenced(String),
    /// The broker refused the attachment.
    Refused(Failure),
}

/// The end of one attempt to attach.
enum AttemptEnd {
    Again(Status),
    Over(SessionEvent),
}

/// Keeps a session attached until it is over or the task is aborted.
pub async fn keep(channel: Channel, take_over: bool, number: u64, to: mpsc::Sender<LoopEvent>) {
    let mut session = Session { token: String::new(), take_over, number, to, refused_since: None };
    let mut backoff = Backoff::default();
    let mut was_logged = false;
    loop {
        let attach = session::attach(channel.clone(), session.token.clone(), session.take_over);
        let end = match attach.await {
            Ok(stream) => session.follow(stream, &mut backoff).await,
            Err(status) => session.refused(status),
        };
        match end {
            AttemptEnd::Again(status) => {
                if !std::mem::replace(&mut was_logged, true) || !session.token.is_empty() {
                    tracing::warn!(reason = %describe(&status), "not attached to the broker, trying again");
                }
                session.send(SessionEvent::Lost).await;
            }
            AttemptEnd::Over(event) => return session.send(event).await,
        }
        backoff.rest().await;
    }
}

struct Session {
    token: String,
    take_over: bool,
    number: u64,
    to: mpsc::Sender<LoopEvent>,
    refused_since: Option<Instant>,
}

impl Session {
    async fn send(&self, event: SessionEvent) {
        // The loop is gone only when the program ends.
        let _ = self.to.send(LoopEvent::Session(self.number, event)).await;
    }

    async fn follow(&mut self, mut stream: Stream, backoff: &mut Backoff) -> AttemptEnd {
        loop {
            match stream.next().await {
                Ok(Some(sent)) => {
                    if let BrokerMessage::Attached(attached) = &sent {
                        backoff.reset();
                        self.refused_since = None;
                        self.take_over = false;
                        self.token.clone_from(&attached.session_token);
                    }
                    self.send(SessionEvent::Message(sent)).await;
                }
                Ok(None) => {
                    return AttemptEnd::Again(Status::unavailable("the broker closed the stream"));
                }
                Err(status) => return self.refused(status),
            }
        }
    }

    fn refused(&mut self, status: Status) -> AttemptEnd {
        if hive_proto::status::is_transient(&status) {
            return AttemptEnd::Again(status);
        }
        let reason = hive_proto::status::reason(&status);
        if !self.token.is_empty() {
            // We had a session: everything that runs in it must end first.
            return AttemptEnd::Over(SessionEvent::Fenced(describe(&status)));
        }
        if reason == Some(Reason::AgentPurging) {
            return AttemptEnd::Again(status);
        }
        if reason == Some(Reason::AlreadyAttached) {
            let since = *self.refused_since.get_or_insert_with(Instant::now);
            if since.elapsed() < ATTACHED_PATIENCE {
                return AttemptEnd::Again(status);
            }
            let next = "stop the other harness, or take over from it with --take-over";
            let (what, why) = ("this agent has a harness already", describe(&status));
            let failure = Failure::new(exit::FAILURE, what, why, next);
            return AttemptEnd::Over(SessionEvent::Refused(failure));
        }
        let failure = Failure::refused("the broker refuses this harness", &status);
        AttemptEnd::Over(SessionEvent::Refused(failure))
    }
}
