//! Drawing text: made visible, cut to its area, in few colours.
//!
//! Invariant: in a screen without colours none is used, and nothing is shown by colour alone.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use crate::output::text::visible_line;
use crate::output::wrap::width;

#[derive(Clone, Copy, Debug)]
pub(super) struct Theme {
    color: bool,
}

impl Theme {
    pub(super) fn plain(self) -> Style {
        Style::new()
    }

    pub(super) fn head(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(super) fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    pub(super) fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    pub(super) fn good(self) -> Style {
        self.colored(Color::Green)
    }

    pub(super) fn bad(self) -> Style {
        self.colored(Color::Red)
    }

    pub(super) fn busy(self) -> Style {
        self.colored(Color::Yellow)
    }

    fn colored(self, color: Color) -> Style {
        if self.color { Style::new().fg(color) } else { Style::new() }
    }
}

/// A cell of a row: its columns, its text, and its style.
#[derive(Debug)]
pub(super) struct Cell {
    pub(super) columns: u16,
    pub(super) text: String,
    pub(super) style: Style,
    pub(super) right: bool,
}

impl Cell {
    pub(super) fn new(columns: u16, text: impl Into<String>, style: Style) -> Self {
        Self { columns, text: text.into(), style, right: false }
    }

    /// Makes a cell with a number, or a text that is aligned like one.
    pub(super) fn number(columns: u16, text: impl Into<String>, style: Style) -> Self {
        Self { right: true, ..Self::new(columns, text, style) }
    }
}

#[derive(Debug)]
pub(super) struct Canvas<'b> {
    buffer: &'b mut Buffer,
    pub(super) theme: Theme,
}

impl<'b> Canvas<'b> {
    pub(super) fn new(buffer: &'b mut Buffer, color: bool) -> Self {
        Self { buffer, theme: Theme { color } }
    }

    /// Draws a text, cut to this many columns; returns the columns that it took.
    pub(super) fn put(&mut self, x: u16, y: u16, columns: u16, text: &str, style: Style) -> u16 {
        let columns = columns.min(self.buffer.area.right().saturating_sub(x));
        if columns == 0 || y >= self.buffer.area.bottom() {
            return 0;
        }
        let text = visible_line(text);
        if width(&text) <= usize::from(columns) {
            let (end, _) = self.buffer.set_stringn(x, y, &text, usize::from(columns), style);
            return end - x;
        }
        let (end, _) = self.buffer.set_stringn(x, y, &text, usize::from(columns - 1), style);
        self.buffer.set_stringn(end, y, "…", 1, style);
        end + 1 - x
    }

    /// Puts texts one after the other into an area's first line.
    pub(super) fn line(&mut self, area: Rect, parts: &[(&str, Style)]) -> u16 {
        let mut x = area.x;
        for (text, style) in parts {
            x += self.put(x, area.y, area.right().saturating_sub(x), text, *style);
        }
        x
    }

    /// Draws a row of cells in an area's first line, one column apart. The last cell gets the
    /// remaining width.
    pub(super) fn row(&mut self, area: Rect, cells: &[Cell]) {
        let mut x = area.x;
        for (number, cell) in cells.iter().enumerate() {
            let left = area.right().saturating_sub(x);
            let columns = if number + 1 == cells.len() { left } else { cell.columns.min(left) };
            let taken = u16::try_from(width(&visible_line(&cell.text))).unwrap_or(u16::MAX);
            let indent = if cell.right { columns.saturating_sub(taken) } else { 0 };
            self.put(x + indent, area.y, columns - indent, &cell.text, cell.style);
            x = x.saturating_add(columns + 1).min(area.right());
        }
    }

    /// A title with a rule to the right end.
    pub(super) fn title(&mut self, area: Rect, words: &str, style: Style) {
        let x = self.line(area, &[(words, style), (" ", self.theme.plain())]);
        let rule = "─".repeat(usize::from(area.right().saturating_sub(x)));
        self.put(x, area.y, area.right().saturating_sub(x), &rule, self.theme.faint());
    }

    pub(super) fn tint(&mut self, area: Rect, style: Style) {
        self.buffer.set_style(Rect { height: 1, ..area }, style);
    }
}
