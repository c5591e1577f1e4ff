//! The effects of earlier attempts at a message: the part of the redelivery note that keeps a model
//! from repeating them.
//!
//! Invariant: each entry is one line behind the frame, and every word in it of a model or a sender
//! is inert.

use hive_core::message::Message;
use hive_core::question::{self, Question};
use hive_core::reminder::{self, Reminder};
use hive_core::time::WallTime;

use crate::prompt::inert;
use crate::turn::input::Begun;
use crate::wire::rfc3339;

/// Longest list of names that is shown, in characters.
const NAME_CHARS_MAX: usize = 80;
/// Longest excerpt of a text, in characters.
const TEXT_CHARS_MAX: usize = 300;
/// Maximum entries of a kind.
const LISTED_MAX: usize = 20;

/// Lists what was sent, asked and set; empty if nothing was.
pub(super) fn render(begun: &Begun) -> String {
    let mut text = String::new();
    list(&mut text, "Earlier attempts sent this already:", begun.already_sent.iter().map(message));
    list(
        &mut text,
        "Earlier attempts asked this already, and the outcome comes as a message:",
        begun.already_asked.iter().map(question),
    );
    list(
        &mut text,
        "Earlier attempts set these reminders already:",
        begun.already_reminded.iter().map(reminder),
    );
    text
}

fn list(text: &mut String, heading: &str, lines: impl ExactSizeIterator<Item = String>) {
    let count = lines.len();
    if count == 0 {
        return;
    }
    text.push_str(&format!("\n{heading}"));
    for line in lines.take(LISTED_MAX) {
        text.push_str(&format!("\n{}{line}", inert::FRAME));
    }
    if count > LISTED_MAX {
        text.push_str(&format!("\nand {} more.", count - LISTED_MAX));
    }
}

fn message(message: &Message) -> String {
    let to = if message.broadcast {
        "everyone".to_owned()
    } else {
        inert::one_line(&message.recipients.join(", "), NAME_CHARS_MAX)
    };
    format!("message {} to {to}: {}", message.id, inert::one_line(&message.body, TEXT_CHARS_MAX))
}

fn question(question: &Question) -> String {
    let to = inert::one_line(&question.target, NAME_CHARS_MAX);
    let state = match question.state {
        question::State::Open => "",
        question::State::Answered => " (answered)",
        question::State::Expired => " (expired)",
        question::State::Cancelled => " (withdrawn)",
    };
    format!(
        "question {} to {to}{state}: {}",
        question.id,
        inert::one_line(&question.wording.text, TEXT_CHARS_MAX)
    )
}

fn reminder(reminder: &Reminder) -> String {
    let due = rfc3339(WallTime(reminder.due_time.0.div_euclid(1000).saturating_mul(1000)));
    let state = match reminder.state {
        reminder::State::Pending => "",
        reminder::State::Fired => " (its time has come)",
        reminder::State::Cancelled => " (withdrawn)",
    };
    format!(
        "reminder {} for {due}{state}: {}",
        reminder.id,
        inert::one_line(&reminder.body, TEXT_CHARS_MAX)
    )
}
