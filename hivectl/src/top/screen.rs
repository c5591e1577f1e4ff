//! The terminal: taken when the screen opens, and restored at its end.
//!
//! Invariant: dropping [`Screen`] restores the terminal; a panic restores it before its message.

use std::io::{self, Stdout, Write as _};

use hive_core::time::Now;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{self, EnterAlternateScreen, LeaveAlternateScreen};

use super::state::State;
use super::view::view;
use crate::input::before_panic;

#[derive(Debug)]
pub(super) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    pub(super) fn open() -> io::Result<Self> {
        before_panic(restore);
        terminal::enable_raw_mode()?;
        let opened = execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste)
            .and_then(|()| Terminal::new(CrosstermBackend::new(io::stdout())))
            .map(|terminal| Self { terminal })
            .and_then(|mut screen| screen.clear().map(|()| screen));
        opened.inspect_err(|_| restore())
    }

    pub(super) fn draw(&mut self, state: &State, now: Now) -> io::Result<()> {
        self.terminal.draw(|frame| view(state, now, frame))?;
        Ok(())
    }

    /// Forces the next draw to write every cell.
    pub(super) fn clear(&mut self) -> io::Result<()> {
        // `Terminal::clear` would ask the terminal where its cursor is, and take the answer from
        // among the keys.
        let area = self.terminal.size()?;
        self.terminal.resize(area.into())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

pub(super) fn size() -> (u16, u16) {
    terminal::size().unwrap_or((80, 24))
}

/// Restores the terminal, if it still exists.
fn restore() {
    let _ = execute!(io::stdout(), DisableBracketedPaste, LeaveAlternateScreen, Show);
    let _ = terminal::disable_raw_mode();
    let _ = io::stdout().flush();
}
