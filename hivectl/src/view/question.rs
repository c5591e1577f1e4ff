//! A question: its asker and target, its options, and its one outcome.

use hive_core::message::OPERATOR;
use hive_core::time::WallTime;
use hive_proto::v1;
use schemars::JsonSchema;
use serde::Serialize;

use super::approval::Approval;
use super::wire::{from_wire, optional, same};
use super::{Iso, Word, fields, id, prefixed, text, word};
use crate::output::style::Style;
use crate::output::text::{indented, visible_block, visible_line};
use crate::output::wrap::wrap_marked;
use crate::output::{Row, Text, time};

/// One question.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct Question {
    /// The id of the question.
    pub(crate) id: u64,
    /// The asker: an agent's name, or `operator`.
    asker: String,
    /// The target: an agent's name, or `operator`.
    target: String,
    /// The text of the question.
    text: String,
    /// The options; free text is accepted in any case.
    pub(crate) options: Vec<String>,
    /// Whether several options may be chosen.
    pub(crate) multi: bool,
    /// The state of the question.
    #[schemars(with = "Word<v1::QuestionState>")]
    pub(crate) state: Option<String>,
    /// When it was asked.
    #[serde(with = "Iso")]
    create_time: Option<WallTime>,
    /// When it expires; none: never.
    #[serde(with = "Iso")]
    deadline_time: Option<WallTime>,
    /// Set where it is answered.
    answer: Option<Answer>,
    /// The caller that closed the question; none while it is open or if it expired.
    pub(crate) closed_by: Option<String>,
    /// Whether the operator answered in the place of the target.
    operator_override: bool,
    /// When it was closed.
    #[serde(with = "Iso")]
    close_time: Option<WallTime>,
    /// The turn that asked it.
    turn_id: Option<u64>,
    /// The message that brought it to its target.
    pub(crate) message_id: Option<u64>,
    /// Set if the operator is asked to approve a change.
    pub(crate) approval: Option<Approval>,
}

/// The answer to a question.
#[derive(Clone, Debug, JsonSchema, Serialize)]
struct Answer {
    /// The options that were chosen.
    choices: Vec<String>,
    /// The free text.
    text: Option<String>,
}

from_wire! {
    Question => Question {
        same => id, asker, target, text, options, multi, operator_override;
        text => closed_by;
        id => turn_id, message_id;
        time::from_wire => create_time, deadline_time, close_time;
        optional => answer, approval;
        word::<v1::QuestionState> => state;
    }
}

from_wire! {
    Answer => Answer {
        same => choices;
        text => text;
    }
}

impl Question {
    pub(crate) fn is_open(&self) -> bool {
        self.state.as_deref() == Some("open")
    }

    pub(crate) fn preview(&self) -> String {
        let kind = if self.approval.is_some() { "[approval] " } else { "" };
        format!("{kind}{}", visible_line(self.text.trim_end()))
    }

    pub(crate) fn between(&self) -> String {
        format!("{} to {}", visible_line(&self.asker), visible_line(&self.target))
    }

    /// Returns the asker, the target, and the time of its state, on one line.
    pub(crate) fn head(&self, style: &Style) -> String {
        let time = self.close_time.or(self.create_time);
        format!(
            "{}  {}  {} asks {}",
            self.id,
            style.time(time),
            visible_line(&self.asker),
            visible_line(&self.target)
        )
    }

    /// Returns its outcome on one line, as `answered by bob: yes`; `open` if it has none.
    pub(crate) fn outcome(&self) -> String {
        let state = self.state.as_deref().unwrap_or("-");
        let by = prefixed(" by ", &self.closed_by);
        let number = if self.operator_override {
            format!(" in the place of {}", visible_line(&self.target))
        } else {
            String::new()
        };
        let answer =
            self.answer.as_ref().map(|answer| format!(": {}", answer.line())).unwrap_or_default();
        format!("{state}{by}{number}{answer}")
    }

    /// Returns the answer alone: each choice on a line, then the text.
    pub(crate) fn answer(&self, style: &Style) -> String {
        let Some(Answer { choices, text }) = &self.answer else { return String::new() };
        let lines: Vec<String> = choices.iter().chain(text).map(|line| style.body(line)).collect();
        lines.join("\n")
    }

    /// Returns all of it while it is open, and its outcome in a line once it is closed.
    pub(crate) fn progress(&self, style: &Style) -> String {
        let head = style.head(&self.head(style));
        if !self.is_open() {
            return format!("{head}, {}", self.outcome());
        }
        format!("{head}{}\n{}", self.deadline(style), self.asked(style))
    }

    /// Returns the deadline, to follow a comma.
    fn deadline(&self, style: &Style) -> String {
        let deadline = self.deadline_time;
        deadline
            .map(|time| format!(", to be answered {}", style.until(Some(time))))
            .unwrap_or_default()
    }

    /// Returns the text and the options for a terminal of this width, even if stdout is none.
    pub(crate) fn on_terminal(&self, columns: usize) -> String {
        self.with_options(&visible_block(&self.text), Some(columns))
    }

    fn asked(&self, style: &Style) -> String {
        self.with_options(&style.body(&self.text), style.terminal.then_some(style.width))
    }

    fn with_options(&self, text: &str, columns: Option<usize>) -> String {
        let mut asked = String::new();
        if let Some(approval) = &self.approval {
            // A terminal would continue a long value where a line of the diff begins.
            let marked = |text: &str, first: &str, rest: &str| match columns {
                Some(columns) => wrap_marked(text, columns, first, rest).join("\n"),
                None => indented(text, first),
            };
            // First, and from the broker alone; the words of the asker follow, and are quoted.
            asked = marked(&approval.diff(), "    ", "        ");
            asked.push_str(&format!("\n\n    {} says:\n", visible_line(&self.asker)));
            asked.push_str(&marked(text, "    > ", "    > "));
        } else {
            asked.push_str(&indented(text, "    "));
        }
        for (number, option) in (1..).zip(&self.options) {
            asked.push_str(&format!("\n    {number:>4}. {}", visible_line(option)));
        }
        asked
    }

    /// Returns a heading for the person who answers: the asker and the deadline.
    pub(crate) fn heading(&self, style: &Style) -> String {
        let deadline = self.deadline(style);
        let target = if self.target == OPERATOR {
            String::new()
        } else {
            format!(" to {}", visible_line(&self.target))
        };
        format!("question {} of {}{target}{deadline}:", self.id, visible_line(&self.asker))
    }

    fn state_cell(&self, style: &Style) -> String {
        let state = self.state.as_deref().unwrap_or("-");
        match state {
            "open" => style.busy(state),
            "answered" => style.good(state),
            _ => style.faint(state),
        }
    }

    fn deadline_cell(&self, style: &Style) -> String {
        if self.is_open() { style.until(self.deadline_time) } else { "-".to_owned() }
    }
}

impl Answer {
    fn line(&self) -> String {
        let choices =
            self.choices.iter().map(|choice| visible_line(choice)).collect::<Vec<_>>().join(", ");
        let words = self.text.as_deref().map(|text| visible_line(text.trim_end()));
        [text(choices), words].into_iter().flatten().collect::<Vec<_>>().join("; ")
    }
}

impl Row for Question {
    const HEADER: &'static [&'static str] =
        &["ID", "ASKED", "FROM", "TO", "STATE", "DEADLINE", "QUESTION"];
    const NONE: &'static str = "no questions";

    fn cells(&self, style: &Style) -> Vec<String> {
        vec![
            self.id.to_string(),
            style.time(self.create_time),
            visible_line(&self.asker),
            visible_line(&self.target),
            self.state_cell(style),
            self.deadline_cell(style),
            self.preview(),
        ]
    }
}

impl Text for Question {
    fn text(&self, style: &Style) -> String {
        let turn = self.turn_id.map(|turn| format!(", in turn {turn}")).unwrap_or_default();
        let deadline = match self.deadline_time {
            Some(time) if self.is_open() => {
                let (then, left) = (style.time(Some(time)), style.until(Some(time)));
                if then == left { then } else { format!("{then} ({left})") }
            }
            deadline => style.time(deadline),
        };
        let outcome = if self.is_open() { style.busy("open") } else { self.outcome() };
        let mut rows = vec![
            ("question", self.id.to_string()),
            ("from", visible_line(&self.asker)),
            ("to", visible_line(&self.target)),
            ("asked", format!("{}{turn}", style.time(self.create_time))),
            ("message", super::cell(self.message_id.as_ref())),
            ("deadline", deadline),
            ("outcome", outcome),
        ];
        if let Some(time) = self.close_time {
            rows.push(("closed", style.time(Some(time))));
        }
        if !self.options.is_empty() {
            rows.push(("choose", if self.multi { "one or more" } else { "one" }.to_owned()));
        }
        format!("{}\n\n{}", fields(&rows), self.asked(style))
    }
}

/// A question that was just closed: its outcome in a sentence; as JSON it is the question.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[serde(transparent)]
pub(crate) struct Closed(pub(crate) Question);

impl Text for Closed {
    fn text(&self, _: &Style) -> String {
        let question = &self.0;
        format!("question {}, {}: {}", question.id, question.between(), question.outcome())
    }
}
