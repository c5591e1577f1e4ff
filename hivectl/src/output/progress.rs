//! How far long work is: one line on stderr that is written over, for somebody who sits there.
//!
//! Invariant: where stderr is no terminal nothing is written, and when the work is over the line is
//! gone.

use std::io::{self, IsTerminal as _, Write as _};

/// A line that tells how far something is.
#[derive(Debug)]
pub(crate) struct Progress {
    /// What stands there now; none where nobody sees it.
    shown: Option<String>,
}

impl Progress {
    pub(crate) fn begin(line: &str) -> Self {
        let mut progress = Self { shown: io::stderr().is_terminal().then(String::new) };
        progress.tell(line);
        progress
    }

    /// Writes a line in place of the one before.
    pub(crate) fn tell(&mut self, line: &str) {
        let Some(shown) = self.shown.as_mut().filter(|shown| *shown != line) else { return };
        // With spaces over what was longer, which every terminal understands.
        let rest = shown.chars().count().saturating_sub(line.chars().count());
        let mut stderr = io::stderr();
        // Where nobody looks any more, nothing is lost.
        let _ = write!(stderr, "\r{line}{}\r", " ".repeat(rest)).and_then(|()| stderr.flush());
        line.clone_into(shown);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.tell("");
    }
}
