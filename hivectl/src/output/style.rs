//! The style of output: colour, width, characters, time zone.
//!
//! Invariant: without a terminal, or with NO_COLOR, no escape sequence is written.

use std::io;
use std::os::fd::AsFd;

use anstyle::{AnsiColor, Style as Ansi};
use hive_core::time::WallTime;

use super::{text, time};

/// The width to which texts in a table are cut without a terminal.
const PLAIN_WIDTH: usize = 160;

#[derive(Clone, Debug)]
pub(crate) struct Style {
    color: bool,
    /// Whether a person's terminal shows it; only then are control characters of bodies replaced.
    pub(crate) terminal: bool,
    /// Whether drawings may use block characters; otherwise they are plain ASCII.
    pub(crate) blocks: bool,
    pub(crate) width: usize,
    zone: jiff::tz::TimeZone,
    now: jiff::Timestamp,
}

/// Returns the width of a terminal.
pub(crate) fn columns(terminal: impl AsFd) -> usize {
    let size = rustix::termios::tcgetwinsize(terminal).map_or(0, |size| usize::from(size.ws_col));
    // A terminal of unknown width reports 0.
    if size == 0 { 80 } else { size }
}

fn is_utf8() -> bool {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = set("LC_ALL")
        .or_else(|| set("LC_CTYPE"))
        .or_else(|| set("LANG"))
        .unwrap_or_default()
        .to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

impl Style {
    pub(crate) fn terminal() -> Self {
        let color = std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty())
            && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        Self { color, terminal: true, width: columns(io::stdout()), ..Self::plain() }
    }

    pub(crate) fn plain() -> Self {
        Self {
            color: false,
            terminal: false,
            blocks: is_utf8(),
            width: PLAIN_WIDTH,
            zone: jiff::tz::TimeZone::system(),
            now: jiff::Timestamp::now(),
        }
    }

    /// The plain style with times in UTC, for tests.
    #[cfg(test)]
    pub(crate) fn utc() -> Self {
        Self { zone: jiff::tz::TimeZone::UTC, ..Self::plain() }
    }

    pub(crate) fn head(&self, text: &str) -> String {
        self.paint(text, Ansi::new().bold())
    }

    pub(crate) fn good(&self, text: &str) -> String {
        self.paint(text, Ansi::new().fg_color(Some(AnsiColor::Green.into())))
    }

    pub(crate) fn bad(&self, text: &str) -> String {
        self.paint(text, Ansi::new().fg_color(Some(AnsiColor::Red.into())))
    }

    pub(crate) fn busy(&self, text: &str) -> String {
        self.paint(text, Ansi::new().fg_color(Some(AnsiColor::Yellow.into())))
    }

    pub(crate) fn found(&self, text: &str) -> String {
        self.paint(text, Ansi::new().bold().fg_color(Some(AnsiColor::Yellow.into())))
    }

    pub(crate) fn faint(&self, text: &str) -> String {
        self.paint(text, Ansi::new().dimmed())
    }

    /// Formats a time, short and local; `-` for none.
    pub(crate) fn time(&self, time: Option<WallTime>) -> String {
        time.map_or_else(|| "-".to_owned(), |time| time::short(time, self.now, &self.zone))
    }

    /// Formats the time that is left until then, counted from now; `-` for never.
    pub(crate) fn until(&self, time: Option<WallTime>) -> String {
        time.map_or_else(
            || "-".to_owned(),
            |time| time::until(time, jiff::Timestamp::now(), &self.zone),
        )
    }

    pub(crate) fn clock(&self) -> String {
        jiff::Timestamp::now().to_zoned(self.zone.clone()).strftime("%H:%M:%S").to_string()
    }

    /// A body or another longer text of a peer: as it is into a file, made visible on a terminal.
    pub(crate) fn body(&self, body: &str) -> String {
        if self.terminal { text::visible_block(body) } else { body.to_owned() }
    }

    fn paint(&self, text: &str, ansi: Ansi) -> String {
        if self.color && !text.is_empty() {
            format!("{ansi}{text}{ansi:#}")
        } else {
            text.to_owned()
        }
    }
}
