//! Text of peers, made harmless for a terminal: control characters and characters that reorder text
//! are shown, not obeyed.
//!
//! Invariant: the returned text has no control character except, in a block, line breaks and tabs.

use hive_core::hidden::hides;

pub(crate) fn visible_line(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut line, c| {
        match c {
            '\n' => line.push('⏎'),
            '\t' => line.push(' '),
            c => push(&mut line, c),
        }
        line
    })
}

/// Returns a text on as many lines as it has.
pub(crate) fn visible_block(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut block, c| {
        match c {
            '\n' | '\t' => block.push(c),
            c => push(&mut block, c),
        }
        block
    })
}

pub(crate) fn indented(block: &str, by: &str) -> String {
    block.lines().map(|line| format!("{by}{line}")).collect::<Vec<_>>().join("\n")
}

fn push(text: &mut String, c: char) {
    // Joiners are made visible too: on a terminal they can make two names equal.
    if c.is_control() || hides(c) || matches!(c, '\u{200c}' | '\u{200d}') {
        text.extend(c.escape_unicode());
    } else {
        text.push(c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_peer_steers_the_terminal() {
        assert_eq!(visible_line("a\u{1b}[2Jb\r\nc\td\u{9b}"), "a\\u{1b}[2Jb\\u{d}⏎c d\\u{9b}");
        assert_eq!(visible_block("a\n\tb\u{7}\u{202e}ä"), "a\n\tb\\u{7}\\u{202e}ä");
        assert_eq!(visible_line("a\u{ad}\u{3164}\u{e0041}b"), "a\\u{ad}\\u{3164}\\u{e0041}b");
    }
}
