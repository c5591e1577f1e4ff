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
    /// `secrets`, `bubblewrap`, `files`, `sockets`, `unfinished`, `integrity`. There may be several
    /// of one.
    pub(crate) name: &'static str,
    /// The result of the check.
    pub(crate) state: State,
    /// The agent concerned.
    pub(crate) agent: Option<String>,
    /// The findings.
    pub(crate) sentence: String,
    /// The next step; always present with a warning or a problem.
    pub(crate) next: Option<String>,
    /// The repair by `--fix`; none: a person has to do it, or nothing is to be done.
    pub(crate) fix: Option<Fix>,
}

/// A repair of `hivectl doctor --fix`.
#[derive(Clone, Debug, JsonSchema, PartialEq, Eq, Serialize)]
pub(crate) struct Fix {
    /// The kind: `set_mode`, `remove_socket`, `remove_unfinished`.
    pub(crate) name: &'static str,
    /// The file or directory that it changes or removes.
    pub(crate) path: String,
    /// The change, for a person.
    pub(crate) action: String,
    /// Whether it was made.
    pub(crate) outcome: Outcome,
    /// Why it was not made, or could not be made.
    pub(crate) error: Option<String>,
}

/// What became of a repair.
#[derive(Clone, Copy, Debug, JsonSchema, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// `--fix` would try it.
    Possible,
    /// With `--dry-run`: `--fix` would make it.
    Would,
    /// It was made, and the check has no finding any more.
    Done,
    /// It was not made, or the check still has the finding.
    Failed,
}

impl Fix {
    fn line(&self) -> String {
        let word = match self.outcome {
            Outcome::Possible => "fix",
            Outcome::Would => "would fix",
            Outcome::Done => "fixed",
            Outcome::Failed => "not fixed",
        };
        let error = self.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
        visible_line(&format!("{word}: {}, {}{error}", self.name, self.action))
    }
}

impl Text for Check {
    fn text(&self, style: &Style) -> String {
        let is_fixed = self.fix.as_ref().is_some_and(|fix| fix.outcome == Outcome::Done);
        let (word, painted) = match self.state {
            State::Ok if is_fixed => ("fixed", style.good("fixed")),
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
        let fix = self.fix.as_ref().map(Fix::line);
        let next = self.next.as_ref().map(|next| format!("next: {}", visible_line(next)));
        for line in fix.into_iter().chain(next) {
            text.push_str(&format!("\n{:width$}{line}", "", width = STATE_WIDTH + NAME_WIDTH));
        }
        text
    }
}
