//! The terminal in raw mode: every key goes to somebody else, Ctrl-C too.
//!
//! Invariant: dropping [`Raw`] gives the terminal back, and so does a panic before it says its
//! words.

use std::io;

use ratatui::crossterm::terminal::{disable_raw_mode, enable_raw_mode};

/// What a dialogue may have changed, set back: colours, the cursor, pasting, focus, the mouse, and
/// the way in which keys are reported.
pub(super) const RESET: &[u8] =
    b"\x1b[0m\x1b[?25h\x1b[?2004l\x1b[?1004l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[<u\x1b[>4m\r";

/// The terminal of stdin, in raw mode.
#[derive(Debug)]
pub(super) struct Raw {}

impl Raw {
    /// Takes the terminal.
    pub(super) fn open() -> io::Result<Self> {
        let tell = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            tell(panic);
        }));
        enable_raw_mode()?;
        Ok(Self {})
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the terminal, unless it is gone. Keys that the dialogue has not read are dropped: among
/// them are answers of the terminal to what the dialogue asked it, and the operator's shell must
/// not run them.
fn restore() {
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
    let _ = disable_raw_mode();
}
