//! The terminal in raw mode: every key goes to the dialogue, Ctrl-C too.
//!
//! Invariant: dropping [`Raw`] restores the terminal; a panic restores it before its message.

use std::io;

use ratatui::crossterm::terminal::{disable_raw_mode, enable_raw_mode};

use crate::input::before_panic;

/// Resets what a dialogue may have changed: colours, the cursor, pasting, focus, the mouse, and the
/// encoding of keys.
pub(super) const RESET: &[u8] =
    b"\x1b[0m\x1b[?25h\x1b[?2004l\x1b[?1004l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[<u\x1b[>4m\r";

/// The terminal of stdin, in raw mode.
#[derive(Debug)]
pub(super) struct Raw {}

impl Raw {
    pub(super) fn open() -> io::Result<Self> {
        before_panic(restore);
        enable_raw_mode()?;
        Ok(Self {})
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the terminal, if it still exists. Unread input is dropped: it may contain responses of
/// the terminal, which the operator's shell must not run.
fn restore() {
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
    let _ = disable_raw_mode();
}
