//! The progress of long work: one line on a terminal's stderr, which is overwritten.
//!
//! Invariant: where stderr is no terminal nothing is written, and when the work is over the line is
//! gone.

use std::io::{self, IsTerminal as _, Write as _};

#[derive(Debug)]
pub(crate) struct Progress {
    /// The text of the line; `None` without a terminal.
    shown: Option<String>,
}

impl Progress {
    pub(crate) fn begin(line: &str) -> Self {
        let mut progress = Self { shown: io::stderr().is_terminal().then(String::new) };
        progress.show(line);
        progress
    }

    pub(crate) fn show(&mut self, line: &str) {
        let Some(shown) = self.shown.as_mut().filter(|shown| *shown != line) else { return };
        // Overwrites the rest with spaces, which every terminal understands.
        let rest = shown.chars().count().saturating_sub(line.chars().count());
        let mut stderr = io::stderr();
        // A closed stderr is no failure.
        let _ = write!(stderr, "\r{line}{}\r", " ".repeat(rest)).and_then(|()| stderr.flush());
        line.clone_into(shown);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.show("");
    }
}
