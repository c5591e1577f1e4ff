//! The effect of each key.
//!
//! Invariant: a change that cannot be undone needs a confirmation that names its object.

use hive_core::effect::APPROVE;
use hive_core::time::Now;
use hive_proto::v1::Delivery;

use super::answer::{Filled, Form};
use super::change::Change;
use super::details::{self, Details};
use super::item::{Item, Key as Name, message_id};
use super::key::{Key, Move};
use super::layout;
use super::state::{Dialog, Link, Pane, State, Tone};
use super::update::Action;
use crate::connect::Settlement;

/// The keys and their effects, as help lists them.
pub(crate) const KEYS: [(&str, &str); 15] = [
    ("up/down, j/k", "choose a row"),
    ("PgUp/PgDn", "a page of rows"),
    ("Home/End", "the first, the last row"),
    ("Tab", "the next pane"),
    ("Enter", "all of it: the whole text, error and output"),
    ("a", "answer a question"),
    ("c", "cancel a question, or an agent's running turn"),
    ("C", "compact an agent's conversation, once no turn runs"),
    ("m", "mark mail as read"),
    ("d", "redrive a dead letter: all attempts anew"),
    ("r", "release what a cancelled turn held"),
    ("x", "drop a dead letter or what is held"),
    ("Ctrl-L", "draw the screen anew"),
    ("?", "this list"),
    ("q, Ctrl-C", "quit"),
];

pub(crate) fn press(state: &mut State, key: Key, now: Now, actions: &mut Vec<Action>) {
    if key == Key::Ctrl('c') {
        return actions.push(Action::Quit);
    }
    if key == Key::Ctrl('l') {
        return actions.push(Action::Redraw);
    }
    match state.dialog.take() {
        // Any key closes it.
        Some(Dialog::Help) => {}
        Some(Dialog::Confirm(change)) => confirm(state, change, &key, actions),
        Some(Dialog::Answer(form)) => fill(state, form, key, actions),
        None if state.details.is_some() => read(state, &key, actions),
        None => choose(state, &key, now, actions),
    }
}

fn confirm(state: &mut State, change: Change, key: &Key, actions: &mut Vec<Action>) {
    if matches!(key, Key::Char('y' | 'Y')) {
        begin(state, change, actions);
    } else if matches!(key, Key::Char('n' | 'N' | 'q') | Key::Escape) {
        state.say(Tone::Plain, "left as it is");
    } else {
        state.dialog = Some(Dialog::Confirm(change));
    }
}

fn fill(state: &mut State, mut form: Box<Form>, key: Key, actions: &mut Vec<Action>) {
    match form.press(key) {
        Filled::Open => state.dialog = Some(Dialog::Answer(form)),
        Filled::Left => {
            state.say(
                Tone::Plain,
                format!("question {} not answered; what you wrote is kept", form.question),
            );
            state.draft = Some(*form);
        }
        Filled::Sent(change) if hides_changes(&form, &change, state.size) => {
            form.hide();
            state.dialog = Some(Dialog::Answer(form));
        }
        Filled::Sent(change) => {
            // If the change fails, the text is still there.
            state.draft = Some(*form);
            begin(state, change, actions);
        }
    }
}

/// Returns whether a change approves what is not on the screen as a whole.
fn hides_changes(form: &Form, change: &Change, (columns, rows): (u16, u16)) -> bool {
    let (Some(shown), Change::Answer { choices, .. }) = (&form.approval, change) else {
        return false;
    };
    let (_, room) = layout::form(layout::body(rows), form.wording.options.len());
    let approves = choices.iter().any(|choice| choice == APPROVE);
    // One line less: where the text is cut, the last line says so.
    approves && shown.lines(usize::from(columns)).len() >= room
}

/// Returns the direction of a key, or of a letter with the same effect.
fn direction(key: &Key) -> Option<Move> {
    if let Key::Move(to) = key {
        return Some(*to);
    }
    let Key::Char(letter) = key else { return None };
    match letter {
        'k' => Some(Move::Up),
        'j' => Some(Move::Down),
        'g' => Some(Move::Home),
        'G' => Some(Move::End),
        ' ' => Some(Move::PageDown),
        _ => None,
    }
}

fn rows(to: Move, page: usize) -> isize {
    let page = page.max(1).cast_signed();
    match to {
        Move::Up => -1,
        Move::Down => 1,
        Move::PageUp => -page,
        Move::PageDown => page,
        Move::Home => isize::MIN,
        Move::End => isize::MAX,
        Move::Left | Move::Right => 0,
    }
}

fn read(state: &mut State, key: &Key, actions: &mut Vec<Action>) {
    if let Some(to) = direction(key) {
        if let Some(shown) = &mut state.details {
            shown.scroll(rows(to, Details::room(state.size.1)), state.size);
        }
        return;
    }
    if matches!(key, Key::Escape | Key::Enter | Key::Char('q')) {
        state.details = None;
    } else if let Key::Char(letter) = key {
        act(state, *letter, actions);
    }
}

fn choose(state: &mut State, key: &Key, now: Now, actions: &mut Vec<Action>) {
    if let Some(to) = direction(key) {
        return state.step(rows(to, usize::from(state.rows()[state.focus as usize])));
    }
    if matches!(key, Key::Tab) {
        state.focus = next_pane(state.focus, 1);
    } else if matches!(key, Key::BackTab) {
        state.focus = next_pane(state.focus, 2);
    } else if matches!(key, Key::Enter) {
        if let Some(name) = state.subject() {
            state.details = details::open(state, name, now);
        }
    } else if matches!(key, Key::Char('q')) {
        actions.push(Action::Quit);
    } else if let Key::Char(letter) = key {
        act(state, *letter, actions);
    }
}

fn next_pane(pane: Pane, by: usize) -> Pane {
    Pane::ALL[(pane as usize + by) % Pane::ALL.len()]
}

/// A letter that does something to a row.
fn act(state: &mut State, letter: char, actions: &mut Vec<Action>) {
    if letter == '?' {
        state.dialog = Some(Dialog::Help);
        return;
    }
    if !matches!(letter, 'a' | 'c' | 'C' | 'd' | 'm' | 'r' | 'x') {
        return;
    }
    if state.slipped() {
        return state.say(
            Tone::Bad,
            "the row that you had chosen is gone; press again if you mean this one",
        );
    }
    let Some(name) = state.subject() else {
        return state.say(Tone::Plain, "there is nothing here");
    };
    let Some(item) = state.hive.find(&name) else {
        return state.say(Tone::Plain, "it is gone: another client was faster");
    };
    match effect(letter, item) {
        Ok(Effect::Answer(form)) => {
            let draft = state.draft.take().filter(|draft| draft.question == form.question);
            let form = match draft {
                Some(mut draft) => {
                    draft.fault = None;
                    draft.take_changes(form);
                    draft
                }
                None => form,
            };
            state.dialog = Some(Dialog::Answer(Box::new(form)));
        }
        Ok(Effect::Change(change)) if change.confirmation().is_some() => {
            state.dialog = Some(Dialog::Confirm(change));
        }
        Ok(Effect::Change(change)) => begin(state, change, actions),
        Err(words) => state.say(Tone::Plain, words),
    }
}

enum Effect {
    Answer(Form),
    Change(Change),
}

/// Returns the meaning of a letter on a row, or why it has none.
fn effect(letter: char, item: Item<'_>) -> Result<Effect, String> {
    let settle = |how, delivery: &Delivery| {
        let (agent, message) = (delivery.agent.clone(), message_id(delivery));
        Change::Settle { how, agent, message }
    };
    let change = match (letter, item) {
        ('a', Item::Question(question)) => return Ok(Effect::Answer(Form::new(question))),
        ('c', Item::Question(question)) => Change::CancelQuestion { question: question.id },
        ('c', Item::Agent(agent) | Item::Parked(agent) | Item::Login(agent)) => {
            match agent.open_turn_ids.first() {
                None => return Err(format!("{} has no open turn", agent.name)),
                Some(&turn) => Change::CancelTurn { agent: agent.name.clone(), turn },
            }
        }
        ('C', Item::Agent(agent) | Item::Parked(agent) | Item::Login(agent)) => {
            Change::Compact { agent: agent.name.clone() }
        }
        ('d', Item::DeadLetter(delivery)) => settle(Settlement::Redrive, delivery),
        ('x', Item::DeadLetter(delivery) | Item::Held(delivery)) => {
            settle(Settlement::Drop, delivery)
        }
        ('r', Item::Held(delivery)) => settle(Settlement::Release, delivery),
        ('m', Item::Mail(delivery)) => Change::Ack { message: message_id(delivery) },
        _ => {
            let what = match letter {
                'a' => "answers a question",
                'c' => "cancels a question, or an agent's turn",
                'C' => "compacts an agent's conversation",
                'd' => "redrives a dead letter",
                'm' => "marks mail as read",
                'r' => "releases what is held",
                _ => "drops a dead letter or what is held",
            };
            return Err(format!("`{letter}` {what}; choose one first"));
        }
    };
    Ok(Effect::Change(change))
}

fn begin(state: &mut State, change: Change, actions: &mut Vec<Action>) {
    if let Link::Down { .. } = state.link {
        return state
            .say(Tone::Bad, format!("{}: the broker is not reachable", change.describe().failed));
    }
    let doing = change.describe().doing;
    match state.changes.begin(change) {
        Some(asked) => {
            state.say(Tone::Plain, doing);
            actions.push(Action::Change(asked));
        }
        None => state.say(Tone::Plain, format!("already {doing}")),
    }
}

/// Returns the letters that mean something on a row, as the last line lists them.
pub(crate) fn letters(name: &Name, turn_open: bool) -> &'static str {
    match name {
        Name::Question(_) => "a answer  c cancel  ",
        Name::Mail(_) => "m mark as read  ",
        Name::DeadLetter(..) => "d redrive  x drop  ",
        Name::Held(..) => "r release  x drop  ",
        Name::Login(_) | Name::Parked(_) | Name::Agent(_) if turn_open => {
            "c cancel turn  C compact  "
        }
        Name::Login(_) | Name::Parked(_) | Name::Agent(_) => "C compact  ",
    }
}
