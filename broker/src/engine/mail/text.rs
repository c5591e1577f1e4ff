//! Parts of the texts that the broker writes: times, and quotations of others.
//!
//! Invariant: every quoted line begins with `> `, so that no agent can make its text look like the
//! broker's.

use hive_core::time::WallTime;

/// Formats a time for people and models: UTC, to the second.
pub(crate) fn format_time(time: WallTime) -> String {
    let instant = jiff::Timestamp::from_millisecond(time.0).unwrap_or(jiff::Timestamp::MAX);
    instant.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Characters that end a line for some readers.
pub(crate) const LINE_ENDS: [char; 7] =
    ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];

/// Marks each line of a text that the broker did not write.
pub(crate) fn quoted(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let lines: Vec<String> = text.split(LINE_ENDS).map(|line| format!("> {line}")).collect();
    lines.join("\n")
}

/// Cuts a text that is too long, and keeps its end.
pub(crate) fn cut_start(text: &mut String, max: usize) {
    if text.len() > max {
        let start = text.ceil_char_boundary(text.len() - max);
        *text = text.split_off(start);
    }
}

/// Returns a text whose control characters are visible; lines and tabs stay as they are.
pub(crate) fn printable(text: &str) -> String {
    let mut printable = String::with_capacity(text.len());
    for c in text.replace("\r\n", "\n").chars() {
        if c.is_control() && !matches!(c, '\n' | '\t') {
            printable.extend(c.escape_unicode());
        } else {
            printable.push(c);
        }
    }
    printable
}
