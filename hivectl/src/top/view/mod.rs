//! The screen as it is drawn: a pure function of the state and the time.
//!
//! Invariant: every text goes through [`paint`], which makes it visible and cuts it to its area.

mod details;
mod dialog;
mod frame;
mod paint;
mod panes;
mod tree;

use hive_core::time::Now;
use ratatui::Frame;
use ratatui::layout::Rect;

use self::paint::Canvas;
use super::layout::{self, COLUMNS_MIN, LINES_MIN};
use super::state::{Dialog, State};

pub(crate) fn view(state: &State, now: Now, frame: &mut Frame<'_>) {
    let area = frame.area();
    let mut cursor = None;
    let mut canvas = Canvas::new(frame.buffer_mut(), state.color);
    if layout::too_small((area.width, area.height)) {
        too_small(&mut canvas, area);
        return;
    }
    let body = Rect { y: area.y + 1, height: layout::body(area.height), ..area };
    frame::header(&mut canvas, state, now, Rect { height: 1, ..area });
    match (&state.dialog, &state.details) {
        (Some(Dialog::Help), _) => dialog::help(&mut canvas, body),
        (Some(Dialog::Answer(form)), _) => cursor = dialog::answer(&mut canvas, form, body),
        (Some(Dialog::Confirm(_)) | None, Some(shown)) => {
            details::details(&mut canvas, shown, body);
        }
        (Some(Dialog::Confirm(_)) | None, None) => panes::panes(&mut canvas, state, now, body),
    }
    frame::footer(&mut canvas, state, Rect { y: area.bottom() - 2, height: 2, ..area });
    if let Some(cursor) = cursor {
        frame.set_cursor_position(cursor);
    }
}

fn too_small(canvas: &mut Canvas<'_>, area: Rect) {
    if area.is_empty() {
        return;
    }
    let words = format!("too small: {}x{}", area.width, area.height);
    canvas.put(area.x, area.y, area.width, &words, canvas.theme.bad());
    if area.height > 1 {
        let words = format!("needs {COLUMNS_MIN}x{LINES_MIN}; q quits");
        canvas.put(area.x, area.y + 1, area.width, &words, canvas.theme.plain());
    }
}
