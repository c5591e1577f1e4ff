//! Dialogs over the panes: help, and the form of an answer.

use ratatui::layout::{Position, Rect};

use super::paint::Canvas;
use crate::output::text::visible_line;
use crate::output::wrap::width;
use crate::top::answer::Form;
use crate::top::layout;
use crate::top::press::KEYS;

const NAMES: u16 = 14;

pub(super) fn help(canvas: &mut Canvas<'_>, area: Rect) {
    canvas.title(Rect { height: 1, ..area }, "▸ Keys", canvas.theme.head());
    for (y, (name, words)) in (area.y + 1..area.bottom()).zip(KEYS) {
        canvas.put(area.x + 2, y, NAMES, name, canvas.theme.head());
        canvas.put(
            area.x + 2 + NAMES,
            y,
            area.width.saturating_sub(2 + NAMES),
            words,
            canvas.theme.plain(),
        );
    }
    let below = area.y + 2 + u16::try_from(KEYS.len()).unwrap_or(0);
    let words = [
        "An agent's line: state, since when, how full its context is, unread (2m),",
        "dead letters (1d), loose ends (3l), turn (t21), model, status.",
    ];
    for (y, words) in (below..area.bottom()).zip(words) {
        canvas.put(area.x + 2, y, area.width - 2, words, canvas.theme.faint());
    }
}

/// Draws the form of an answer; returns the position of the cursor.
pub(super) fn answer(canvas: &mut Canvas<'_>, form: &Form, area: Rect) -> Option<Position> {
    let title = format!("▸ Question {} from {}", form.question, form.asker);
    canvas.title(Rect { height: 1, ..area }, &title, canvas.theme.head());
    let (options, room) = layout::form(area.height, form.wording.options.len());
    let lines = form.lines(usize::from(area.width));
    let cut = lines.len() > room;
    for (y, line) in (area.y + 1..).zip(lines.iter().take(room)) {
        canvas.put(area.x, y, area.width, line, canvas.theme.plain());
    }
    if cut && room > 0 {
        let y = area.y + u16::try_from(room).unwrap_or(0);
        canvas.put(
            area.x,
            y,
            area.width,
            "… (leave with Esc; Enter shows all of it)",
            canvas.theme.faint(),
        );
    }
    let taken = u16::try_from(lines.len().min(room)).unwrap_or(0);
    let list = Rect { y: area.y + 1 + taken, height: options, ..area };
    draw_options(canvas, form, list);
    let text = Rect { y: list.bottom(), height: 1, ..area };
    if let Some(fault) = &form.fault {
        canvas.put(text.x, text.y + 1, text.width, &format!("! {fault}"), canvas.theme.bad());
    }
    draw_text(canvas, form, text)
}

fn draw_options(canvas: &mut Canvas<'_>, form: &Form, area: Rect) {
    let first = layout::first_row(form.at, form.wording.options.len(), area.height);
    let options = form.wording.options.iter().enumerate().skip(first);
    for (y, (index, option)) in (area.y..area.bottom()).zip(options) {
        let mark = match (form.chosen.contains(&index), form.wording.multi) {
            (true, true) => "[x]",
            (false, true) => "[ ]",
            (true, false) => "(x)",
            (false, false) => "( )",
        };
        let number = if index < 9 { (index + 1).to_string() } else { " ".to_owned() };
        let row = Rect { y, height: 1, ..area };
        let here = !form.typing && index == form.at;
        canvas.put(
            row.x,
            y,
            row.width,
            &format!("{} {number} {mark} {option}", if here { ">" } else { " " }),
            canvas.theme.plain(),
        );
        if here {
            canvas.tint(row, canvas.theme.chosen());
        }
    }
}

fn draw_text(canvas: &mut Canvas<'_>, form: &Form, area: Rect) -> Option<Position> {
    let label = if form.wording.options.is_empty() {
        "> your answer: "
    } else if form.typing {
        "> or in words: "
    } else {
        "  or in words: "
    };
    let used = canvas.put(area.x, area.y, area.width, label, canvas.theme.head());
    let field = Rect { x: area.x + used, width: area.width - used, ..area };
    let (before, after) = form.field.halves();
    let (before, after) = (visible_line(before), visible_line(after));
    // The text before the cursor is always visible; one column is left for the cursor.
    let room = usize::from(field.width).saturating_sub(1);
    let mut start = 0;
    while width(&before[start..]) > room {
        start += before[start..].chars().next().map_or(1, char::len_utf8);
    }
    let x =
        field.x + canvas.put(field.x, field.y, field.width, &before[start..], canvas.theme.plain());
    canvas.put(x, field.y, field.right().saturating_sub(x), &after, canvas.theme.plain());
    form.typing.then_some(Position { x, y: area.y })
}
