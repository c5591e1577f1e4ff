//! One line of a turn's output. Claude's JSON lines are shown to people as text; programs get the
//! line unchanged.

use hive_core::time::WallTime;
use hive_proto::v1;
use schemars::JsonSchema;
use serde::Serialize;

use super::said::{Said, Tone, said};
use super::{Iso, Word, word};
use crate::output::style::Style;
use crate::output::text::visible_line;
use crate::output::wrap::{cut, width, wrap};
use crate::output::{Text, time};

/// The least room for words, however narrow the terminal is.
const COLUMNS_MIN: usize = 20;

/// One line.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct TurnEvent {
    /// The turn.
    turn_id: u64,
    /// Its number within the turn.
    pub(crate) sequence: u64,
    /// The stream of the line.
    #[schemars(with = "Word<v1::TurnEventStream>")]
    pub(crate) stream: Option<String>,
    /// The line as it was.
    pub(crate) line: String,
    /// When it was written.
    #[serde(with = "Iso")]
    time: Option<WallTime>,
}

impl TurnEvent {
    pub(crate) fn new(turn_id: u64, event: v1::TurnEvent) -> Self {
        let v1::TurnEvent { sequence, stream, line, time } = event;
        Self {
            turn_id,
            sequence,
            stream: word::<v1::TurnEventStream>(stream),
            line,
            time: time::from_wire(time),
        }
    }

    /// Returns the text for a person; `None` if there is none.
    pub(crate) fn render(&self, style: &Style) -> Option<String> {
        let pieces = match self.stream.as_deref() {
            Some("stdout") => said(&self.line, style)
                .unwrap_or_else(|| vec![Said::cut(Tone::Plain, visible_line(&self.line))]),
            Some("stderr") => vec![Said::whole(Tone::Bad, visible_line(&self.line))],
            Some(_) | None => {
                vec![Said::whole(Tone::Faint, format!("({})", visible_line(&self.line)))]
            }
        };
        let time = style.time(self.time);
        let mut lines = Vec::new();
        for piece in &pieces {
            for (number, line) in shown(piece, width(&time) + 2, style).into_iter().enumerate() {
                let mark =
                    if number == 0 { piece.mark.to_owned() } else { " ".repeat(piece.mark.len()) };
                let column =
                    if lines.is_empty() { style.faint(&time) } else { " ".repeat(width(&time)) };
                lines.push(
                    format!("{column}  {mark}{}", painted(piece.tone, &line, style))
                        .trim_end()
                        .to_owned(),
                );
            }
        }
        (!lines.is_empty()).then(|| lines.join("\n"))
    }
}

fn shown(piece: &Said, begins: usize, style: &Style) -> Vec<String> {
    let columns = style.width.saturating_sub(begins + piece.mark.len()).max(COLUMNS_MIN);
    if piece.whole {
        // In a file a text keeps its own lines.
        return wrap(&piece.text, if style.terminal { columns } else { usize::MAX });
    }
    piece.text.lines().map(|line| cut(&visible_line(line), columns)).collect()
}

fn painted(tone: Tone, line: &str, style: &Style) -> String {
    match tone {
        Tone::Plain => line.to_owned(),
        Tone::Faint => style.faint(line),
        Tone::Busy => style.busy(line),
        Tone::Bad => style.bad(line),
    }
}

impl Text for TurnEvent {
    fn text(&self, style: &Style) -> String {
        self.render(style).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(stream: v1::TurnEventStream, line: &str) -> TurnEvent {
        let time = Some(prost_types::Timestamp { seconds: 1_583_064_000, nanos: 0 });
        TurnEvent::new(
            7,
            v1::TurnEvent { sequence: 1, stream: stream.into(), line: line.to_owned(), time },
        )
    }

    fn terminal(columns: usize) -> Style {
        let mut style = Style::plain();
        (style.terminal, style.width) = (true, columns);
        style
    }

    #[test]
    fn on_a_terminal_words_are_wrapped_below_each_other_and_calls_are_cut() {
        let line = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"First I look at the mail, then I answer bob."},{"type":"tool_use","name":"mcp__hive__send","input":{"body":"It is forty-two, as I said.","to":"bob"}}]}}"#;
        let text = event(v1::TurnEventStream::Stdout, line)
            .render(&terminal(50))
            .expect("it says something");
        let begins = text.find("First").expect("the text");
        for line in text.lines() {
            assert!(width(line) <= 50, "{line}");
        }
        let words: Vec<&str> = text.lines().map(|line| &line[begins..]).collect();
        assert_eq!(words.first(), Some(&"First I look at the mail, then"), "{text}");
        assert_eq!(words[1], "I answer bob.");
        assert!(
            words[2].starts_with("-> mcp__hive__send body=")
                && words[2].ends_with('…')
                && words.len() == 3,
            "{text}"
        );
    }

    #[test]
    fn nothing_of_any_stream_reaches_a_terminal_or_a_file_as_a_control_character() {
        use v1::TurnEventStream::{Note, Stderr, Stdout};
        let evil = "a\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}b";
        let json = serde_json::to_string(evil).expect("text");
        let lines = [
            (Note, evil.to_owned()),
            (Stderr, evil.to_owned()),
            (Stdout, evil.to_owned()),
            (Stdout, format!(r#"{{"type":{json},"subtype":{json}}}"#)),
            (
                Stdout,
                format!(r#"{{"type":"result","is_error":true,"subtype":{json},"result":{json}}}"#),
            ),
            (
                Stdout,
                format!(
                    r#"{{"type":"rate_limit_event","rate_limit_info":{{"status":{json},"rateLimitType":{json}}}}}"#
                ),
            ),
            (
                Stdout,
                format!(
                    r#"{{"type":"system","subtype":"init","model":{json},"mcp_servers":[{{"name":{json},"status":{json}}}]}}"#
                ),
            ),
            (
                Stdout,
                format!(
                    r#"{{"type":"system","subtype":"api_retry","error":{json},"error_status":{json}}}"#
                ),
            ),
            (
                Stdout,
                format!(
                    r#"{{"type":"system","subtype":"permission_denied","tool_name":{json},"message":{json}}}"#
                ),
            ),
            (
                Stdout,
                format!(
                    r#"{{"type":"system","subtype":"compact_boundary","compact_metadata":{{"trigger":{json}}}}}"#
                ),
            ),
            (Stdout, format!(r#"{{"type":"user","message":{{"content":{json}}}}}"#)),
            (
                Stdout,
                format!(
                    r#"{{"type":"assistant","message":{{"content":[{{"type":"text","text":{json}}},{{"type":"thinking","thinking":{json}}},{{"type":{json}}},{{"type":"tool_use","name":{json},"input":{{{json}:{json}}}}},{{"type":"tool_use","name":"x","input":[{json}]}}]}}}}"#
                ),
            ),
            (
                Stdout,
                format!(
                    r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","is_error":true,"content":{json}}},{{"type":"tool_result","content":[{{"type":"text","text":{json}}},{{"type":{json}}}]}}]}}}}"#
                ),
            ),
        ];
        for (stream, line) in lines {
            for style in [terminal(60), Style::plain()] {
                let text = event(stream, &line).render(&style).expect("it says something");
                let evil = |c: &char| (c.is_control() && *c != '\n') || *c == '\u{202e}';
                assert_eq!(text.chars().find(evil), None, "{line}: {text:?}");
            }
        }
    }

    #[test]
    fn lines_without_content_are_left_out() {
        let tokens = r#"{"type":"system","subtype":"thinking_tokens","estimated_tokens":2}"#;
        assert_eq!(event(v1::TurnEventStream::Stdout, tokens).render(&Style::plain()), None);
    }
}
