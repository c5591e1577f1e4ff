//! One check of `hivectl doctor`, and its result.
//!
//! Invariant: with a warning or a problem `hivectl doctor` ends with 8, and each has a next step.

use schemars::JsonSchema;
use serde::Serialize;

use crate::output::Text;
use crate::output::style::Style;
use crate::output::text::visible_line;

/// Columns before the sentence: the words of a state and the longest name, with two spaces behind
/// each.
const STATE_WIDTH: usize = 13;
const NAME_WIDTH: usize = 14;

/// The result of a check.
#[derive(Clone, Copy, Debug, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// No problem was found.
    Ok,
    /// The subject works, but needs attention.
    Warning,
    /// The subject does not work.
    Problem,
    /// The check could not run; this is no fault.
    NotChecked,
}

/// One check.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct Check {
    /// The name: `socket`, `broker`, `version`, `storage`, `draining`, `clock`, `schema`, `disk`,
    /// `agents`, `isolation`, `dead_letters`, `held`, `questions`, `mail`, `config`, `claude`,
    /// `bubblewrap`, `integrity`. There may be several of one.
    pub(crate) name: &'static str,
    /// The result of the check.
    pub(crate) state: State,
    /// The agent concerned.
    pub(crate) agent: Option<String>,
    /// The findings.
    pub(crate) sentence: String,
    /// The next step; always present with a warning or a problem.
    pub(crate) next: Option<String>,
}

impl Text for Check {
    fn text(&self, style: &Style) -> String {
        let (word, painted) = match self.state {
            State::Ok => ("ok", style.good("ok")),
            State::Warning => ("warning", style.busy("warning")),
            State::Problem => ("problem", style.bad("problem")),
            State::NotChecked => ("not checked", style.faint("not checked")),
        };
        let space = " ".repeat(STATE_WIDTH.saturating_sub(word.len()));
        let mut text = format!(
            "{painted}{space}{:NAME_WIDTH$}{}",
            self.name.replace('_', " "),
            visible_line(&self.sentence)
        );
        if let Some(next) = &self.next {
            text.push_str(&format!(
                "\n{:width$}next: {}",
                "",
                visible_line(next),
                width = STATE_WIDTH + NAME_WIDTH
            ));
        }
        text
    }
}
