//! Lines of logs and of previews, made harmless for a model and a terminal.
//!
//! A harness, a service of the host, and a program may repeat text of strangers. Invariant: a line
//! has no escape sequence, no control character but tabs, and no character that hides or reorders
//! text; there are no more lines and bytes than allowed.

use hive_core::hidden::hides;

/// Maximum lines of one answer.
pub const LINES_MAX: u32 = 500;
/// Lines of an answer if the caller does not say how many.
pub const LINES_DEFAULT: u32 = 100;
/// Maximum bytes of the lines of one answer, with one for the end of each line.
pub const BYTES_MAX: usize = 64 * 1024;

/// The last lines of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// The lines, oldest first.
    pub lines: Vec<String>,
    /// Whether lines that were wanted are left out because of the limit of bytes.
    pub truncated: bool,
}

/// Returns the last lines of a text, harmless.
pub(crate) fn last(text: &str, count: u32, truncated: bool) -> Lines {
    last_within(text, count, BYTES_MAX, truncated)
}

/// Returns the last lines of a text, harmless, in at most so many bytes.
pub(crate) fn last_within(text: &str, count: u32, bytes_max: usize, truncated: bool) -> Lines {
    let mut last = Lines { lines: Vec::new(), truncated };
    let mut bytes = 0;
    for line in text.lines().rev().take(count as usize) {
        let line = harmless(line);
        bytes += line.len() + 1;
        if bytes > bytes_max {
            last.truncated = true;
            break;
        }
        last.lines.push(line);
    }
    last.lines.reverse();
    last
}

fn harmless(line: &str) -> String {
    let text = anstream::adapter::strip_str(line).to_string();
    text.chars().filter(|c| (!c.is_control() || *c == '\t') && !hides(*c)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_sequences_and_characters_that_deceive_are_removed() {
        let text = "\u{1b}[31mred\u{1b}[0m\ta\u{1b}]0;title\u{7}b\u{1b}[2Jc\u{8}\n\
                    x\u{202e}y\u{ad}z\u{e0041}\u{9b}\u{7f}\r\nä字🙂\u{200d}";
        assert_eq!(last(text, 9, false).lines, ["red\tabc", "xyz", "ä字🙂\u{200d}"]);
        assert_eq!(last("\u{1b}[", 9, false).lines, [""], "a sequence that does not end");
    }

    #[test]
    fn the_last_lines_are_kept_and_the_limits_hold() {
        let text: String = (0..600).map(|number| format!("{number}\n")).collect();
        let few = last(&text, 3, false);
        assert_eq!(
            (few.lines, few.truncated),
            (vec!["597".into(), "598".into(), "599".into()], false)
        );
        let long = format!("{}\n{}\nend\n", "x".repeat(BYTES_MAX), "é".repeat(BYTES_MAX / 4));
        let cut = last(&long, 9, false);
        assert_eq!((cut.lines.len(), cut.truncated), (2, true));
        assert!(last("one", 9, true).truncated, "the launcher left some out");
        assert_eq!(last("", 9, false), Lines::default());
    }
}
