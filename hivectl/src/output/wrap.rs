//! Texts cut to lines of a width, as the terminal counts it.
//!
//! Invariant: no line is wider, and nothing of a text is left out but the spaces at which it was
//! cut. What peers wrote is made visible first.

use ratatui::style::Style;
use ratatui::text::Span;

use super::text::visible_block;

/// Columns that a text takes.
pub(crate) fn width(text: &str) -> usize {
    Span::raw(text).width()
}

pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    wrap_marked(text, columns, "", "")
}

/// Cuts a text with a mark before each of its lines, and another one before the rest of a line that
/// is cut. So the rest of a line never looks like a line.
pub(crate) fn wrap_marked(text: &str, columns: usize, first: &str, rest: &str) -> Vec<String> {
    let room = columns.saturating_sub(width(first).max(width(rest))).max(2);
    let marked = |(number, part): (usize, String)| {
        let mark = if number == 0 { first } else { rest };
        format!("{mark}{part}")
    };
    let text = visible_block(text.trim_end_matches('\n')).replace('\t', "    ");
    text.split('\n')
        .flat_map(|line| wrap_line(line, room).into_iter().enumerate().map(marked))
        .collect()
}

/// Cuts a line to a width; its characters are visible already.
pub(crate) fn cut(line: &str, columns: usize) -> String {
    if width(line) <= columns {
        return line.to_owned();
    }
    let (mut kept, mut used) = (String::new(), 0);
    for grapheme in Span::raw(line).styled_graphemes(Style::new()) {
        used += width(grapheme.symbol);
        // One column is for the ellipsis.
        if used >= columns {
            break;
        }
        kept.push_str(grapheme.symbol);
    }
    kept.push('…');
    kept
}

fn wrap_line(line: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut current, mut used) = (String::new(), 0);
    // The last place for a line break, in bytes.
    let mut space = None;
    let span = Span::raw(line);
    for grapheme in span.styled_graphemes(Style::new()) {
        let wide = width(grapheme.symbol);
        if used + wide > columns {
            let rest = match space {
                Some(at) => current.split_off(at),
                None => String::new(),
            };
            let rest = rest.trim_start().to_owned();
            lines.push(current.trim_end().to_owned());
            (used, current, space) = (width(&rest), rest, None);
        }
        current.push_str(grapheme.symbol);
        used += wide;
        if grapheme.symbol == " " && !current.trim().is_empty() {
            space = Some(current.len());
        }
    }
    lines.push(current);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_line_has_a_mark_of_its_own() {
        let lines = wrap_marked("+ a: b\n+ role: x + agent: root", 17, "", "    ");
        assert_eq!(lines, ["+ a: b", "+ role: x +", "    agent: root"]);
        // Spaces at which no line is cut.
        let lines = wrap_marked("+ role: xx +\u{a0}agent:\u{a0}root", 17, "", "    ");
        assert_eq!(lines, ["+ role: xx", "    +\u{a0}agent:\u{a0}root"]);
        assert_eq!(wrap_marked("one two", 6, "> ", "> "), ["> one", "> two"]);
        assert_eq!(wrap_marked("ab", 1, "> ", "> "), ["> ab"], "no room at all");
    }

    #[test]
    fn lines_are_cut_at_spaces_and_long_words_anywhere() {
        assert_eq!(wrap("the quick brown fox", 10), ["the quick", "brown fox"]);
        assert_eq!(wrap("abcdefghijkl mn", 5), ["abcde", "fghij", "kl mn"]);
        assert_eq!(wrap("a\n\n  b\n\n", 5), ["a", "", "  b"]);
        assert_eq!(wrap("", 5), [""]);
    }

    #[test]
    fn wide_characters_are_counted_as_the_terminal_does() {
        assert_eq!(wrap("日本語です", 4), ["日本", "語で", "す"]);
        assert_eq!(wrap("e\u{301}e\u{301}e\u{301}", 2), ["e\u{301}e\u{301}", "e\u{301}"]);
    }

    #[test]
    fn a_line_is_cut_to_its_columns() {
        assert_eq!(
            [cut("abcde", 5), cut("abcdef", 5), cut("日本語", 5), cut("a", 0)],
            ["abcde", "abcd…", "日本…", "…"]
        );
    }

    #[test]
    fn nothing_of_a_peer_is_a_control_character_any_more() {
        assert_eq!(wrap("a\u{1b}[2J\tb", 40), ["a\\u{1b}[2J    b"]);
        for columns in 0..30 {
            for line in wrap("日本 one two\u{7} three-four 🐝🐝\u{202e}x", columns) {
                assert!(width(&line) <= columns.max(2), "{line:?} is wider than {columns}");
            }
        }
    }
}
