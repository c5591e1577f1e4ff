//! One row in full.

use ratatui::layout::Rect;

use super::paint::Canvas;
use crate::top::details::Details;

/// Draws a row in full, from its first visible line on.
pub(super) fn details(canvas: &mut Canvas<'_>, shown: &Details, area: Rect) {
    let lines = shown.lines(area.width);
    let room = usize::from(area.height - 1);
    let first = shown.first.min(lines.len().saturating_sub(room));
    let last = lines.len().min(first + room);
    let place = if lines.len() > room {
        format!(", lines {} to {last} of {}", first + 1, lines.len())
    } else {
        String::new()
    };
    let gone = if shown.gone { " (it is settled: this is how it was)" } else { "" };
    canvas.title(
        Rect { height: 1, ..area },
        &format!("▸ {}{gone}{place}", shown.title),
        canvas.theme.head(),
    );
    for (y, line) in (area.y + 1..area.bottom()).zip(&lines[first..last]) {
        let style = if line.heading { canvas.theme.head() } else { canvas.theme.plain() };
        canvas.put(area.x, y, area.width, &line.text, style);
    }
}
