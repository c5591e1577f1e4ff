//! What earlier attempts at a message did already: the part of the redelivery note that keeps a
//! model from doing it again.
//!
//! Invariant: each thing is one line behind the frame, and every word in it that a model or a
//! sender wrote is inert.

use hive_proto::v1;

use crate::prompt::inert;
use crate::prompt::occasion::NAME_CHARS_MAX;

/// Longest piece that is shown of a text, in characters.
const TEXT_CHARS_MAX: usize = 300;
/// Most things of a kind that are listed.
const LISTED_MAX: usize = 20;

/// What was sent, asked and set; empty if nothing was.
pub(super) fn words(begun: &v1::BeginTurnResponse) -> String {
    let mut words = String::new();
    list(&mut words, "Earlier attempts sent this already:", begun.already_sent.iter().map(message));
    list(
        &mut words,
        "Earlier attempts asked this already, and the outcome comes as a message:",
        begun.already_asked.iter().map(question),
    );
    list(
        &mut words,
        "Earlier attempts set these reminders already:",
        begun.already_reminded.iter().map(reminder),
    );
    words
}

fn list(words: &mut String, heading: &str, lines: impl ExactSizeIterator<Item = String>) {
    let count = lines.len();
    if count == 0 {
        return;
    }
    words.push_str(&format!("\n{heading}"));
    for line in lines.take(LISTED_MAX) {
        words.push_str(&format!("\n{}{line}", inert::FRAME));
    }
    if count > LISTED_MAX {
        words.push_str(&format!("\nand {} more.", count - LISTED_MAX));
    }
}

fn message(message: &v1::Message) -> String {
    let to = inert::one_line(&message.recipients.join(", "), NAME_CHARS_MAX);
    format!("message {} to {to}: {}", message.id, inert::one_line(&message.body, TEXT_CHARS_MAX))
}

fn question(question: &v1::Question) -> String {
    let to = inert::one_line(&question.target, NAME_CHARS_MAX);
    let state = match question.state() {
        v1::QuestionState::Unspecified | v1::QuestionState::Open => "",
        v1::QuestionState::Answered => " (answered)",
        v1::QuestionState::Expired => " (expired)",
        v1::QuestionState::Cancelled => " (withdrawn)",
    };
    format!(
        "question {} to {to}{state}: {}",
        question.id,
        inert::one_line(&question.text, TEXT_CHARS_MAX)
    )
}

fn reminder(reminder: &v1::Reminder) -> String {
    let due = reminder.due_time.map(|time| prost_types::Timestamp { nanos: 0, ..time });
    let due = due.map(|time| format!(" for {time}")).unwrap_or_default();
    let state = match reminder.state() {
        v1::ReminderState::Unspecified | v1::ReminderState::Pending => "",
        v1::ReminderState::Fired => " (its time has come)",
        v1::ReminderState::Cancelled => " (withdrawn)",
    };
    format!(
        "reminder {}{due}{state}: {}",
        reminder.id,
        inert::one_line(&reminder.body, TEXT_CHARS_MAX)
    )
}
