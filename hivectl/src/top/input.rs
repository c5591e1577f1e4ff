//! Keys from the terminal, as they are pressed.
//!
//! A thread reads stdin, because a read of a terminal waits, and the terminal's mode is left alone: other programs share it. The thread ends
//! with the terminal, or with the process.
//!
//! Invariant: keys come in the order in which they were pressed, and whoever waits for one may stop waiting without losing it.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use rustix::io::Errno;
use tokio::sync::mpsc::{self, Receiver, Sender};

use super::key::{Key, Keys};

/// What follows an escape in a sequence comes with it, or very soon.
const TORN_PATIENCE: Duration = Duration::from_millis(50);
/// Reads that may wait until somebody looks at them.
const READS_WAITING: usize = 16;

/// What is pressed.
#[derive(Debug)]
pub(super) struct Input {
    read: Receiver<Vec<u8>>,
    keys: Keys,
    pressed: VecDeque<Key>,
}

impl Input {
    /// The keys of stdin, which has to be a terminal.
    pub(super) fn open() -> io::Result<Self> {
        let (tell, read) = mpsc::channel(READS_WAITING);
        std::thread::Builder::new().name("keys".to_owned()).spawn(move || listen(&tell))?;
        Ok(Self { read, keys: Keys::default(), pressed: VecDeque::new() })
    }

    /// The next key; `None` when the terminal is gone.
    pub(super) async fn next(&mut self) -> Option<Key> {
        loop {
            if let Some(key) = self.pressed.pop_front() {
                return Some(key);
            }
            let read = self.read.recv();
            let bytes = if self.keys.is_torn() {
                let Ok(bytes) = tokio::time::timeout(TORN_PATIENCE, read).await else {
                    self.pressed.extend(self.keys.flush());
                    continue;
                };
                bytes
            } else {
                read.await
            };
            self.pressed.extend(self.keys.feed(&bytes?));
        }
    }
}

/// Until the terminal is gone, or nobody wants its keys.
fn listen(tell: &Sender<Vec<u8>>) {
    let mut bytes = [0; 4096];
    loop {
        match rustix::io::read(rustix::stdio::stdin(), &mut bytes) {
            Ok(0) => return,
            Ok(count) => {
                if tell.blocking_send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
            Err(Errno::INTR) => {}
            Err(_) => return,
        }
    }
}
