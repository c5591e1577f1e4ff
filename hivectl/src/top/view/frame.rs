//! The frame of the panes: the state of the hive at the top; the last note and the keys at the
//! bottom.

use hive_core::time::Now;
use jiff::Timestamp;
use ratatui::layout::Rect;

use super::paint::Canvas;
use crate::output::wrap::width;
use crate::top::item::Key;
use crate::top::press::letters;
use crate::top::span;
use crate::top::state::{Dialog, Link, State, Tone};

pub(super) fn header(canvas: &mut Canvas<'_>, state: &State, now: Now, area: Rect) {
    let time =
        Timestamp::from_millisecond(now.wall.0).unwrap_or_default().to_zoned(state.zone.clone());
    let clock = time.strftime("%H:%M:%S").to_string();
    let columns = u16::try_from(width(&clock)).unwrap_or(0);
    canvas.put(area.right() - columns, area.y, columns, &clock, canvas.theme.plain());
    let area = Rect { width: area.width - columns - 1, ..area };
    let theme = canvas.theme;
    let status = &state.hive.status;
    let (words, style) = match &state.link {
        Link::Beginning => ("reading the hive ...".to_owned(), theme.plain()),
        Link::Down { since, why } => (
            format!("broker not reachable, reconnecting ({}): {why}", span::age(*since, now.wall)),
            theme.bad(),
        ),
        Link::Up if !status.storage_ok => {
            (format!("the database cannot be written: {}", status.storage_error), theme.bad())
        }
        Link::Up if status.draining => ("the broker is shutting down".to_owned(), theme.bad()),
        Link::Up => (hive_in_a_line(state), theme.plain()),
    };
    canvas.line(area, &[("hivectl top  ", theme.head()), (&words, style)]);
}

fn hive_in_a_line(state: &State) -> String {
    let status = &state.hive.status;
    let name = state
        .hive
        .agents
        .first()
        .map(|agent| agent.hive_name.as_str())
        .filter(|name| !name.is_empty());
    let name = name.map(|name| format!("{name}: ")).unwrap_or_default();
    let turns = state.hive.agents.iter().filter(|agent| !agent.open_turn_ids.is_empty()).count();
    let agents = if status.agent_count == 1 { "agent" } else { "agents" };
    format!(
        "{name}{} {agents}, {} with a harness, {turns} in a turn, {} ready",
        status.agent_count, status.attached_count, status.ready_count
    )
}

pub(super) fn footer(canvas: &mut Canvas<'_>, state: &State, area: Rect) {
    let theme = canvas.theme;
    if let Some(Dialog::Confirm(change)) = &state.dialog {
        let words = change.confirmation().unwrap_or_default();
        canvas.put(area.x, area.y, area.width, &words, theme.head());
    } else if let Some(note) = &state.note {
        let (mark, style) = match note.tone {
            Tone::Plain => ("", theme.plain()),
            Tone::Good => ("", theme.good()),
            Tone::Bad => ("! ", theme.bad()),
        };
        canvas.line(area, &[(mark, style), (&note.text, style)]);
    }
    let area = Rect { y: area.y + 1, height: 1, ..area };
    canvas.put(area.x, area.y, area.width, &key_help(state), theme.faint());
}

fn key_help(state: &State) -> String {
    match &state.dialog {
        Some(Dialog::Help) => return "any key goes back".to_owned(),
        Some(Dialog::Confirm(_)) => return "y yes  n no".to_owned(),
        Some(Dialog::Answer(form)) if form.wording.options.is_empty() => {
            return "Enter sends  Alt-Enter new line  Esc leaves".to_owned();
        }
        Some(Dialog::Answer(form)) if form.typing => {
            return "Enter sends  Tab options  Alt-Enter new line  Esc leaves".to_owned();
        }
        Some(Dialog::Answer(_)) => {
            return "1-9, space choose  Enter sends  Tab or letters: text  Esc leaves".to_owned();
        }
        None => {}
    }
    let subject = state.subject();
    let turn_open = subject
        .as_ref()
        .and_then(|key| state.hive.find(key))
        .and_then(|item| item.agent())
        .is_some_and(|agent| !agent.open_turn_ids.is_empty());
    let actions = subject.as_ref().map_or("", |key: &Key| letters(key, turn_open));
    if state.details.is_some() {
        return format!("{actions}up/down scroll  Esc back  ? help");
    }
    let enter = if subject.is_some() { "Enter all of it  " } else { "" };
    format!("{actions}{enter}Tab pane  ? help  q quit")
}
