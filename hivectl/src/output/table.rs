//! Tables: columns as wide as their widest cell, the last one cut to the remaining width.

use super::style::Style;

/// The least room that the last column gets, however narrow the terminal is.
const LAST_COLUMN_MIN: usize = 20;

/// Renders rows under a heading; each row has as many cells as the heading.
pub(crate) fn render(header: &[&str], rows: Vec<Vec<String>>, style: &Style) -> String {
    let last = header.len().saturating_sub(1);
    let mut widths: Vec<usize> = header.iter().map(|cell| shown_width(cell)).collect();
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(shown_width(cell));
        }
    }
    let before_last: usize = widths[..last].iter().map(|width| width + 2).sum();
    let room = style.width.saturating_sub(before_last).max(LAST_COLUMN_MIN);
    let mut text = String::new();
    let heading: Vec<String> = header.iter().map(|cell| style.head(cell)).collect();
    for row in std::iter::once(heading).chain(rows) {
        let mut line = String::new();
        for (index, cell) in row.iter().enumerate() {
            if index == last {
                line.push_str(&cut(cell, room));
            } else {
                line.push_str(cell);
                line.extend(std::iter::repeat_n(' ', widths[index] + 2 - shown_width(cell)));
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Characters that a cell takes on the screen, escape sequences not counted.
fn shown_width(cell: &str) -> usize {
    let mut width = 0;
    let mut in_escape = false;
    for c in cell.chars() {
        match (in_escape, c) {
            (false, '\u{1b}') => in_escape = true,
            (true, 'm') => in_escape = false,
            (true, _) => {}
            (false, _) => width += 1,
        }
    }
    width
}

fn cut(cell: &str, room: usize) -> String {
    // A cell with colour is one of our own words, and short.
    if shown_width(cell) <= room || cell.contains('\u{1b}') {
        return cell.to_owned();
    }
    let mut text: String = cell.chars().take(room - 1).collect();
    text.push('…');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_the_last_is_cut() {
        let rows = vec![
            vec!["1".to_owned(), "\u{1b}[31mready\u{1b}[0m".to_owned(), "x".repeat(200)],
            vec!["100".to_owned(), "ok".to_owned(), String::new()],
        ];
        let mut style = Style::plain();
        style.width = 40;
        let text = render(&["ID", "STATE", "BODY"], rows, &style);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "ID   STATE  BODY");
        assert_eq!(lines[1], format!("1    \u{1b}[31mready\u{1b}[0m  {}…", "x".repeat(27)));
        assert_eq!(lines[2], "100  ok");
    }
}
