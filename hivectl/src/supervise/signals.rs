//! The signals that `hivectl up` acts on.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// The signals that this program acts on.
#[derive(Debug)]
pub(crate) struct Signals {
    pub(crate) stop: Stop,
    /// SIGHUP: the configuration is read again.
    pub(crate) hangup: Signal,
    pub(crate) child: Signal,
}

impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        let stop = Stop {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        };
        Ok(Self {
            stop,
            hangup: signal(SignalKind::hangup())?,
            child: signal(SignalKind::child())?,
        })
    }
}

#[derive(Debug)]
pub(crate) struct Stop {
    interrupt: Signal,
    terminate: Signal,
}

impl Stop {
    /// Waits until the next signal arrives.
    pub(crate) async fn asked(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
