//! Text for a model: origins, causes, times, and text made harmless.
//!
//! Invariant: no text from outside can move the cursor, hide, or begin a line of its own.

use hive_core::hidden::hides;
use hive_proto::v1::{
    HarnessState, Message, Origin, OriginKind, QuestionState, RedeliveryCause, SystemKind,
};

/// Makes every invisible character visible; line breaks stay.
#[must_use]
pub fn visible(text: &str) -> String {
    text.chars().map(|c| if c == '\n' || c == '\t' { c } else { visible_char(c) }).collect()
}

/// Returns text as one line, cut after `chars_max` characters.
#[must_use]
pub fn one_line(text: &str, chars_max: usize) -> String {
    let mut line: String = text
        .trim_end()
        .chars()
        .take(chars_max)
        .map(|c| if c == '\t' { ' ' } else { visible_char(c) })
        .collect();
    if text.trim_end().chars().nth(chars_max).is_some() {
        line.push('…');
    }
    line
}

/// Replaces one character by one character, so that nothing grows.
fn visible_char(c: char) -> char {
    match c {
        '\n' | '\u{2028}' | '\u{2029}' | '\u{85}' => '⏎',
        '\u{7f}' => '␡',
        // The control pictures are in the order of the characters that they show.
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'),
        c if hides(c) => '\u{fffd}',
        c => c,
    }
}

/// Returns the sender of a message.
#[must_use]
pub fn origin(message: &Message) -> String {
    let Some(Origin { kind, name }) = &message.origin else { return "unknown".to_owned() };
    match OriginKind::try_from(*kind).unwrap_or(OriginKind::Unspecified) {
        OriginKind::Agent => one_line(name, 63),
        OriginKind::Operator => "operator".to_owned(),
        OriginKind::System => notice(message)
            .map_or_else(|| "system".to_owned(), |notice| format!("system ({notice})")),
        OriginKind::External => format!("external:{}", one_line(name, 63)),
        OriginKind::Unspecified => "unknown".to_owned(),
    }
}

/// Returns the subject of a message of the broker; `None` if it has none.
fn notice(message: &Message) -> Option<String> {
    let Message { question_id, reminder_id, .. } = message;
    Some(match message.system_kind() {
        SystemKind::Unspecified => return None,
        SystemKind::TurnFailed => "a turn failed".to_owned(),
        SystemKind::DeadLetter => "dead letter".to_owned(),
        SystemKind::Restarted => "restarted".to_owned(),
        SystemKind::Unavailable => "unavailable".to_owned(),
        SystemKind::QuestionAsked => {
            format!("question #{question_id} for you: close it with answer")
        }
        SystemKind::QuestionAnswered => format!("question #{question_id} is answered"),
        SystemKind::QuestionExpired => format!("question #{question_id} has expired"),
        SystemKind::QuestionCancelled => format!("question #{question_id} is withdrawn"),
        SystemKind::Reminder => format!("your reminder #{reminder_id}"),
        SystemKind::Problem => "something around a child does not work".to_owned(),
        SystemKind::Started => "a child was started".to_owned(),
        SystemKind::Stopped => "a child is stopped".to_owned(),
        SystemKind::Crashed => "a child crashed".to_owned(),
        SystemKind::LoggedIn => "a child was logged in".to_owned(),
        SystemKind::ActionEnded => "an action has ended".to_owned(),
        SystemKind::ScheduleEnded => "a schedule has ended".to_owned(),
        SystemKind::Heartbeat => "your heartbeat".to_owned(),
        SystemKind::Recovered => "a child works again".to_owned(),
    })
}

/// Returns the state of a question.
#[must_use]
pub fn question_state(state: QuestionState) -> &'static str {
    match state {
        QuestionState::Unspecified => "unknown",
        QuestionState::Open => "open",
        QuestionState::Answered => "answered",
        QuestionState::Expired => "expired",
        QuestionState::Cancelled => "withdrawn",
    }
}

/// Returns why a delivery was requeued.
#[must_use]
pub fn cause(cause: RedeliveryCause) -> Option<&'static str> {
    match cause {
        RedeliveryCause::Unspecified => None,
        RedeliveryCause::TurnFailed => Some("the turn that had it failed"),
        RedeliveryCause::HarnessVanished => Some("the harness vanished in mid-turn"),
        RedeliveryCause::RateLimited => Some("the rate limit was hit"),
        RedeliveryCause::AuthFailed => Some("there was no login"),
        RedeliveryCause::Unavailable => Some("the model was not available"),
        RedeliveryCause::Drained => Some("the harness was shut down"),
        RedeliveryCause::Released => Some("the operator released it after a cancel"),
        RedeliveryCause::Redriven => Some("the operator redrove it"),
        RedeliveryCause::NotReceived => Some("the result that carried it did not reach you"),
        RedeliveryCause::Nacked => Some("a consumer gave it back"),
        RedeliveryCause::LeaseExpired => Some("a consumer's lease ran out"),
        RedeliveryCause::Restored => Some("the hive was restored from a backup"),
    }
}

/// Returns the state of a harness.
#[must_use]
pub fn harness_state(state: HarnessState) -> &'static str {
    match state {
        HarnessState::Unspecified => "unknown",
        HarnessState::Offline => "offline",
        HarnessState::Starting => "starting",
        HarnessState::Idle => "idle",
        HarnessState::Thinking => "in a turn",
        HarnessState::Compacting => "compacting",
        HarnessState::RateLimited => "parked: rate limit",
        HarnessState::NeedsLogin => "parked: needs login",
        HarnessState::Unavailable => "parked: unavailable",
        HarnessState::Stopped => "stopped",
    }
}

/// Returns a time, to the second.
#[must_use]
pub fn instant(time: &prost_types::Timestamp) -> String {
    prost_types::Timestamp { seconds: time.seconds, nanos: 0 }.to_string()
}

/// `1 message`, `2 messages`.
#[must_use]
pub fn count(number: impl Into<u64>, noun: &str) -> String {
    let number = number.into();
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_made_visible_and_nothing_grows() {
        let hostile = "a\u{1b}[2J\r\0\u{7f}\u{9b}\u{202e}\u{2028}b\u{e0041}";
        let shown = visible(hostile);
        assert_eq!(shown, "a␛[2J␍␀␡��⏎b�");
        assert_eq!(shown.chars().count(), hostile.chars().count());
        assert_eq!(visible("a\tb\nc"), "a\tb\nc");
        assert_eq!(visible("a\u{3164}b\u{115f}c\u{e01f0}"), "a�b�c�");
    }

    #[test]
    fn a_notice_names_its_subject() {
        let kind = OriginKind::System.into();
        let from_system = Some(Origin { kind, name: String::new() });
        let mut message = Message { origin: from_system, reminder_id: 7, ..Message::default() };
        message.set_system_kind(SystemKind::Reminder);
        assert_eq!(origin(&message), "system (your reminder #7)");
        message.set_system_kind(SystemKind::ScheduleEnded);
        assert_eq!(origin(&message), "system (a schedule has ended)");
    }

    #[test]
    fn a_line_is_one_line() {
        assert_eq!(one_line("a\nb\tc\n", 10), "a⏎b c");
        assert_eq!(one_line("abcdef", 3), "abc…");
    }
}
