//! The three lists: waiting, stuck, and agents.

use hive_core::time::Now;
use hive_proto::v1::{Agent, Delivery, Question};
use ratatui::layout::Rect;

use super::paint::{Canvas, Cell};
use super::tree;
use crate::output::wrap::width;
use crate::top::details::cause;
use crate::top::item::{Item, message_id, sender};
use crate::top::layout;
use crate::top::span;
use crate::top::state::{Link, Pane, State};

/// Columns for when; `in 23h 59m`.
const WHEN: u16 = 10;
/// Most columns for the kind of a row, and for its agent.
const WORDS_MAX: u16 = 20;

pub(super) fn panes(canvas: &mut Canvas<'_>, state: &State, now: Now, area: Rect) {
    let lists = Pane::ALL.map(|pane| state.items(pane));
    let mut y = area.y;
    for ((pane, items), rows) in Pane::ALL.into_iter().zip(lists).zip(state.rows()) {
        let focused = state.focus == pane;
        let words = format!("{}{}", if focused { "▸ " } else { "  " }, title(state, pane, &items));
        let style = if focused { canvas.theme.head() } else { canvas.theme.plain() };
        canvas.title(Rect { y, height: 1, ..area }, &words, style);
        y += 1;
        let chosen = state.choice(pane).index;
        let first = layout::first_row(chosen, items.len(), rows);
        let shown = &items[first..items.len().min(first + usize::from(rows))];
        let list = Rect { y, height: rows, ..area };
        match pane {
            Pane::Agents => tree::tree(canvas, state, now, first, list),
            Pane::Waiting | Pane::Stuck => list_rows(canvas, now, shown, list),
        }
        if focused && !shown.is_empty() {
            let row = Rect { y: y + u16::try_from(chosen - first).unwrap_or(0), height: 1, ..list };
            canvas.put(row.x, row.y, 1, ">", canvas.theme.head());
            canvas.tint(row, canvas.theme.chosen());
        }
        y += rows;
    }
}

fn title(state: &State, pane: Pane, items: &[Item<'_>]) -> String {
    let read = !matches!(state.link, Link::Beginning);
    match pane {
        Pane::Waiting if !read => "Waits on you".to_owned(),
        Pane::Stuck if !read => "Stuck".to_owned(),
        Pane::Agents if !read => "Agents".to_owned(),
        Pane::Waiting => {
            let logins = items.iter().filter(|item| matches!(item, Item::Login(_))).count();
            let mail = state.hive.mail().count();
            // Asks that are shown as questions are in the count too.
            let asks = state.hive.mail.len() - mail;
            let unread = count(state.hive.status.operator_unread_count).saturating_sub(asks);
            let questions = count(state.hive.status.operator_question_count);
            list_of(
                "Waits on you",
                &[
                    (state.hive.questions.len(), questions, "question"),
                    (logins, logins, "login"),
                    (mail, unread, "unread"),
                ],
            )
        }
        Pane::Stuck => {
            let parked = items.iter().filter(|item| matches!(item, Item::Parked(_))).count();
            let (dead, held) = (state.hive.status.dead_count, state.hive.status.held_count);
            list_of(
                "Stuck",
                &[
                    (state.hive.dead_letters.len(), count(dead), "dead letter"),
                    (state.hive.held.len(), count(held), "held"),
                    (parked, parked, "parked"),
                ],
            )
        }
        Pane::Agents => tree::title(items.len(), count(state.hive.status.agent_count.into())),
    }
}

fn count(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Formats counts; if not all rows were read, with their total.
fn list_of(name: &str, counts: &[(usize, usize, &str)]) -> String {
    let parts: Vec<String> = counts
        .iter()
        .filter(|(shown, all, _)| *shown > 0 || *all > 0)
        .map(|(shown, all, word)| {
            let plural = if matches!(*word, "question" | "login" | "dead letter")
                && (*all).max(*shown) != 1
            {
                "s"
            } else {
                ""
            };
            if all > shown {
                format!("{shown} of {all} {word}{plural}")
            } else {
                format!("{shown} {word}{plural}")
            }
        })
        .collect();
    format!("{name}: {}", if parts.is_empty() { "nothing".to_owned() } else { parts.join(", ") })
}

struct RowText {
    what: String,
    who: String,
    when: String,
    text: String,
    bad: bool,
}

fn list_rows(canvas: &mut Canvas<'_>, now: Now, items: &[Item<'_>], area: Rect) {
    let rows: Vec<RowText> = items.iter().map(|item| row(*item, now)).collect();
    let widest = |text: fn(&RowText) -> &str| {
        let widest = rows.iter().map(|row| width(text(row))).max().unwrap_or(0);
        u16::try_from(widest).unwrap_or(u16::MAX).min(WORDS_MAX)
    };
    let (what, who) = (widest(|row| &row.what), widest(|row| &row.who));
    for (y, row) in (area.y..area.bottom()).zip(&rows) {
        let theme = canvas.theme;
        let cells = [
            Cell::new(what, row.what.as_str(), if row.bad { theme.bad() } else { theme.head() }),
            Cell::new(who, row.who.as_str(), theme.plain()),
            Cell::number(WHEN, row.when.as_str(), theme.busy()),
            Cell::new(0, row.text.as_str(), theme.plain()),
        ];
        canvas.row(Rect { x: area.x + 2, y, width: area.width - 2, height: 1 }, &cells);
    }
}

fn row(item: Item<'_>, now: Now) -> RowText {
    match item {
        Item::Question(question) => question_row(question, now),
        Item::Mail(delivery) => {
            let from = delivery.message.as_ref().map_or_else(|| "-".to_owned(), sender);
            let body = delivery.message.as_ref().map_or("", |message| message.body.trim_end());
            RowText {
                what: format!("mail {}", message_id(delivery)),
                who: from,
                when: accepted(delivery, now),
                text: body.to_owned(),
                bad: false,
            }
        }
        Item::DeadLetter(delivery) => {
            let error = if delivery.last_error.is_empty() {
                body(delivery)
            } else {
                delivery.last_error.trim_end()
            };
            stuck_row(format!("dead letter {}", message_id(delivery)), delivery, error, now)
        }
        Item::Held(delivery) => {
            stuck_row(format!("held {}", message_id(delivery)), delivery, body(delivery), now)
        }
        Item::Login(agent) => agent_row("login", agent, now),
        Item::Parked(agent) | Item::Agent(agent) => agent_row("parked", agent, now),
    }
}

fn question_row(question: &Question, now: Now) -> RowText {
    let options = question.options.iter().map(|option| format!(" [{option}]")).collect::<String>();
    let when = span::until_of(question.deadline_time, now.wall);
    RowText {
        what: format!("question {}", question.id),
        who: question.asker.clone(),
        when,
        text: format!("{}{options}", question.text.trim_end()),
        bad: false,
    }
}

fn stuck_row(what: String, delivery: &Delivery, text: &str, now: Now) -> RowText {
    let when = span::age_of(delivery.state_time, now.wall);
    RowText { what, who: delivery.agent.clone(), when, text: text.to_owned(), bad: true }
}

fn agent_row(what: &str, agent: &Agent, now: Now) -> RowText {
    let park = agent.park.clone().unwrap_or_default();
    let when = span::until_of(park.until_time, now.wall);
    let error =
        if park.error.is_empty() { String::new() } else { format!(": {}", park.error.trim_end()) };
    RowText {
        what: what.to_owned(),
        who: agent.name.clone(),
        when,
        text: format!("{}{error}", cause(&park)),
        bad: true,
    }
}

fn body(delivery: &Delivery) -> &str {
    delivery.message.as_ref().map_or("", |message| message.body.trim_end())
}

fn accepted(delivery: &Delivery, now: Now) -> String {
    span::age_of(delivery.message.as_ref().and_then(|message| message.accept_time), now.wall)
}
