//! Conversion of a sender's words to inert text: framed, without `@` attachments, without invisible
//! characters.
//!
//! claude attaches a file for every `@path` at the beginning of a word; a backslash before the `@`
//! keeps it from that. To stay reversible, a word-initial `\@` gets one backslash more too. The
//! frame is a bar and a blank before every line.
//!
//! Invariant: in the result every line begins with the frame, no `@` begins a word, and no
//! character acts on a terminal or is hidden.

use hive_core::hidden::hides;

/// The prefix of every line of a sender's words.
pub const FRAME: &str = "| ";

/// Returns the text in its frame, without a final line end.
pub fn frame(text: &str) -> String {
    let visible = visible(text, true);
    let mut framed = String::with_capacity(visible.len() + visible.len() / 16 + 8);
    for (number, line) in visible.split('\n').enumerate() {
        if number > 0 {
            framed.push('\n');
        }
        framed.push_str(FRAME);
        disarm(line, &mut framed);
    }
    framed
}

/// Returns the text on one line, without a frame, at most `chars_max` characters of it.
pub fn one_line(text: &str, chars_max: usize) -> String {
    let visible = visible(text.trim(), false);
    let mut line = String::new();
    disarm(&visible, &mut line);
    if line.chars().count() > chars_max {
        line = line.chars().take(chars_max).collect();
        line.push('…');
    }
    line
}

/// Writes a line with every word-initial `@` escaped.
fn disarm(line: &str, out: &mut String) {
    // The character before the current run of backslashes.
    let mut before: Option<char> = None;
    for c in line.chars() {
        if c == '@' && !before.is_some_and(is_inside_word) {
            out.push('\\');
        }
        out.push(c);
        if c != '\\' {
            before = Some(c);
        }
    }
}

/// Returns whether an `@` after this character is inside a word, as in a mail address. This is
/// narrower than the CLI's own rule (any character but white space), so that another version of it
/// finds no attachment either.
fn is_inside_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '+' | '%')
}

/// Returns the text with line ends as `\n` (or shown, for one line), and with hidden and control
/// characters shown.
fn visible(text: &str, line_ends: bool) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\r' if line_ends => {
                if chars.peek() == Some(&'\n') {
                    chars.next();
                }
                shown.push('\n');
            }
            '\n' if line_ends => shown.push('\n'),
            '\n' | '\r' => shown.push(' '),
            '\t' => shown.push('\t'),
            '\0'..='\x1f' => shown.extend(char::from_u32(0x2400 + u32::from(c))),
            '\x7f' => shown.push('\u{2421}'),
            c if hides(c) => shown.push_str(&format!("<U+{:04X}>", u32::from(c))),
            c => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
#[path = "inert_tests.rs"]
mod tests;
