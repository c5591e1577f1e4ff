//! A list of lines whose text fits claude's limit of a result.
//!
//! Invariant: a list with an entry that had no room says so.

/// Maximum characters of the entries: claude's limit of 50,000, less a reserve for other lines.
const RESULT_CHARS_MAX: usize = 45_000;

/// The lines so far.
#[derive(Debug, Default)]
pub(super) struct Lines {
    lines: Vec<String>,
    chars: usize,
    /// Whether an entry had no room.
    is_full: bool,
}

impl Lines {
    /// Adds an entry a line, as long as there is room.
    pub(super) fn add(&mut self, lines: impl IntoIterator<Item = String>) {
        for line in lines {
            self.chars += line.chars().count() + 1;
            if self.chars > RESULT_CHARS_MAX {
                self.is_full = true;
                return;
            }
            self.lines.push(line);
        }
    }

    /// Returns whether an entry had no room.
    pub(super) const fn is_full(&self) -> bool {
        self.is_full
    }

    /// Returns the text: `none` if there are no entries; `more` is its last line if one had no
    /// room.
    pub(super) fn render(self, none: &str, more: &str) -> String {
        let Self { mut lines, chars: _, is_full } = self;
        if is_full {
            lines.push(more.to_owned());
        }
        if lines.is_empty() { none.to_owned() } else { lines.join("\n") }
    }
}
