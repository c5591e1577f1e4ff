//! An approval: what an agent asks the operator to change.
//!
//! Invariant: a line of the diff begins with `+ ` or `- `, and values and sentences are on one line
//! each, with control characters made visible.

use hive_proto::v1;
use schemars::JsonSchema;
use serde::Serialize;

use super::wire::{from_wire, optional, same};
use super::{Word, text, word};
use crate::output::text::visible_line;

/// What a question asks the operator to approve.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct Approval {
    /// While the question is open: what approving it would change now. Once it is approved: what it
    /// has changed.
    changes: Vec<Change>,
    /// The digest of the changes, for `hivectl answer --diff`; none once the question is closed.
    pub(crate) diff_digest: Option<String>,
    /// Why it cannot be approved now; none if it can.
    pub(crate) problem: Option<String>,
    /// How far an approved action is.
    run: Option<Run>,
}

/// How far an approved action is.
#[derive(Clone, Debug, JsonSchema, Serialize)]
struct Run {
    /// Whether it waits, runs or has ended.
    #[schemars(with = "Word<v1::ActionRunState>")]
    state: Option<String>,
    /// How many runs began.
    runs: u32,
    /// How it ended.
    detail: Option<String>,
}

/// One value that approving changes.
#[derive(Clone, Debug, JsonSchema, Serialize)]
struct Change {
    /// The changed value.
    field: String,
    /// The value before.
    before: Option<String>,
    /// The value after it.
    after: Option<String>,
    /// What the asker itself may not do of it.
    exceeds: Option<String>,
}

from_wire! {
    Approval => Approval {
        each => changes;
        text => diff_digest, problem;
        optional => run;
    }
    without effect
}

from_wire! {
    ActionRun => Run {
        same => runs;
        text => detail;
        word::<v1::ActionRunState> => state;
    }
}

from_wire! {
    EffectChange => Change {
        same => field;
        text => before, after, exceeds;
    }
}

fn each(changes: Vec<v1::EffectChange>) -> Vec<Change> {
    changes.into_iter().map(Change::from).collect()
}

impl Approval {
    /// Returns the changes, a line each way; or why there are none.
    pub(crate) fn diff(&self) -> String {
        let mut lines: Vec<String> = self.changes.iter().flat_map(Change::lines).collect();
        if let Some(problem) = &self.problem {
            lines.push(format!("! it cannot be approved now: {}", visible_line(problem)));
        } else if lines.is_empty() && self.diff_digest.is_some() {
            lines.push("! it changes nothing any more".to_owned());
        }
        if let Some(Run { state, runs, detail }) = &self.run {
            let ended = detail.as_ref().map(|how| format!(", {}", visible_line(how)));
            let runs = if *runs > 1 { format!(" (run {runs})") } else { String::new() };
            let state = state.as_deref().unwrap_or("unknown");
            lines.push(format!("  run: {state}{runs}{}", ended.unwrap_or_default()));
        }
        lines.join("\n")
    }
}

impl Change {
    fn lines(&self) -> Vec<String> {
        let line = |sign: &str, value: &str| {
            format!("{sign} {}: {}", visible_line(&self.field), visible_line(value))
        };
        let before = self.before.as_ref().map(|value| line("-", value));
        let exceeds = self.exceeds.as_ref().map(|why| format!("   [! {}]", visible_line(why)));
        let after = match (&self.after, &exceeds) {
            (None, None) if before.is_some() => None,
            (after, _) => Some(line("+", after.as_deref().unwrap_or_default())),
        };
        let after = after.map(|line| line + exceeds.as_deref().unwrap_or_default());
        before.into_iter().chain(after).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(before: &str, after: &str, exceeds: &str, problem: &str) -> String {
        let change = v1::EffectChange {
            field: "role".to_owned(),
            before: before.to_owned(),
            after: after.to_owned(),
            exceeds: exceeds.to_owned(),
        };
        let (problem, diff_digest) = (problem.to_owned(), "d".to_owned());
        let changes = vec![change];
        let approval = v1::Approval { changes, diff_digest, problem, ..v1::Approval::default() };
        Approval::from(approval).diff()
    }

    #[test]
    fn an_approved_action_says_how_far_it_is() {
        let detail = "exit status: 1".to_owned();
        let mut run = v1::ActionRun { runs: 2, detail, ..v1::ActionRun::default() };
        run.set_state(v1::ActionRunState::Failed);
        let approval = v1::Approval { run: Some(run), ..v1::Approval::default() };
        assert_eq!(Approval::from(approval).diff(), "  run: failed (run 2), exit status: 1");
    }

    #[test]
    fn a_value_is_one_line_and_a_lacking_right_is_marked() {
        assert_eq!(
            diff("a", "b\n+ grants: all", "alice lacks it", ""),
            "- role: a\n+ role: b⏎+ grants: all   [! alice lacks it]"
        );
        assert_eq!(diff("a", "", "", ""), "- role: a");
        assert_eq!(diff("", "b", "", ""), "+ role: b");
    }

    #[test]
    fn what_cannot_be_approved_says_so() {
        let text = diff("a", "b", "", "there is an agent `kim` already");
        assert!(text.ends_with("! it cannot be approved now: there is an agent `kim` already"));
        let nothing = v1::Approval { diff_digest: "d".to_owned(), ..v1::Approval::default() };
        assert_eq!(Approval::from(nothing).diff(), "! it changes nothing any more");
    }
}
