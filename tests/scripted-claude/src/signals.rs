//! The signals that claude handles.

use std::io;
use std::sync::atomic::Ordering;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::turn::Deaf;

/// The exit code on SIGTERM.
pub(super) const TERMINATED: u8 = 143;

/// A signal to obey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// SIGTERM.
    Terminate,
    /// SIGINT.
    Interrupt,
}

/// A listener for signals.
#[derive(Debug)]
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
    deaf: Deaf,
}

impl Signals {
    /// Listens from now on; ignored signals have no effect.
    pub(super) fn listen(deaf: &Deaf) -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            deaf: deaf.clone(),
        })
    }

    /// Waits for a signal that is not ignored.
    pub(super) async fn heard(&mut self) -> Heard {
        loop {
            tokio::select! {
                Some(()) = self.terminate.recv() => {
                    if !self.deaf.to_sigterm.load(Ordering::SeqCst) {
                        return Heard::Terminate;
                    }
                }
                Some(()) = self.interrupt.recv() => {
                    if !self.deaf.to_sigint.load(Ordering::SeqCst) {
                        return Heard::Interrupt;
                    }
                }
            }
        }
    }
}
