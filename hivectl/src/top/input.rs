//! Keys from the terminal, as they are pressed.
//!
//! Invariant: keys come in the order of their presses, and a caller that stops waiting loses none.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use tokio::sync::mpsc::Receiver;

use super::key::{Key, Keys};
use crate::input::typed;

/// Maximum wait for the rest of a sequence after its escape.
const TORN_PATIENCE: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) struct Input {
    read: Receiver<Vec<u8>>,
    keys: Keys,
    pressed: VecDeque<Key>,
}

impl Input {
    /// Returns the keys of stdin, which has to be a terminal.
    pub(super) fn open() -> io::Result<Self> {
        Ok(Self { read: typed()?, keys: Keys::default(), pressed: VecDeque::new() })
    }

    /// Returns the next key; `None` when the terminal is gone.
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
