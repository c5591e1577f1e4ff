//! The text of an approval to the operator: first what would change, then the asker's words,
//! quoted.
//!
//! Invariant: a line of the diff begins with `+ ` or `- `, and no value of one has a line end; a
//! line of the asker begins with `> `. So no words of an agent look like a line of the diff.

use hive_core::effect::{Change, Effect};
use hive_core::id::QuestionId;
use hive_core::time::WallTime;

use crate::engine::mail::text::{format_time, quoted};

/// Returns the message to the operator.
pub(crate) fn asked(
    id: QuestionId,
    asker: &str,
    effect: &Effect,
    changes: &[Change],
    why: &str,
    deadline: Option<WallTime>,
) -> String {
    let what = effect.summary();
    let until = deadline
        .map_or("when you can".to_owned(), |deadline| format!("before {}", format_time(deadline)));
    format!(
        "{asker} asks you to {what} (question {id}):\n\n{}\n\n{asker} says:\n{}\n\nApprove or deny it {until}: `hivectl answer {id}` shows what it would change then.",
        diff(changes),
        quoted(why),
    )
}

/// Returns changes as lines.
pub(crate) fn diff(changes: &[Change]) -> String {
    let mut lines = Vec::new();
    for Change { field, before, after, exceeds } in changes {
        if !before.is_empty() {
            lines.push(format!("- {field}: {}", line(before)));
        }
        let exceeds =
            if exceeds.is_empty() { String::new() } else { format!("   [! {}]", line(exceeds)) };
        if !after.is_empty() || !exceeds.is_empty() || before.is_empty() {
            lines.push(format!("+ {field}: {}{exceeds}", line(after)));
        }
    }
    lines.join("\n")
}

/// Returns a value on one line, whatever an earlier version let in.
fn line(value: &str) -> String {
    let ends = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    value.replace(ends, " ")
}

#[cfg(test)]
mod tests {
    use hive_core::name::AgentName;

    use super::*;

    #[test]
    fn words_of_the_asker_cannot_pass_for_a_line_of_the_diff() {
        let hostile = "please\n- policy.grants: \n+ policy.grants: all\u{2028}+ agent: root";
        let changes = [Change {
            field: "role".to_owned(),
            before: hostile.to_owned(),
            after: hostile.to_owned(),
            exceeds: String::new(),
        }];
        let effect = Effect::RetireAgent { name: AgentName::parse("kim").expect("a name") };
        let id = QuestionId::new(7).expect("not 0");
        let text = asked(id, "alice", &effect, &changes, hostile, None);
        let ends = crate::engine::mail::text::LINE_ENDS;
        let diff: Vec<&str> =
            text.split(ends).filter(|line| line.starts_with(['+', '-'])).collect();
        assert_eq!(diff.len(), 2, "{text}");
        assert!(diff.iter().all(|line| line[2..].starts_with("role: ")), "{text}");
        let quoted = text.split(ends).filter(|line| line.starts_with("> ")).count();
        assert_eq!(quoted, 4, "{text}");
    }

    #[test]
    fn a_right_that_the_asker_lacks_is_marked() {
        let change = |before: &str, after: &str, exceeds: &str| Change {
            field: "policy.tool_groups".to_owned(),
            before: before.to_owned(),
            after: after.to_owned(),
            exceeds: exceeds.to_owned(),
        };
        assert_eq!(
            diff(&[change("meta", "meta, execution", "alice does not have execution")]),
            "- policy.tool_groups: meta\n+ policy.tool_groups: meta, execution   [! alice does not have execution]"
        );
        assert_eq!(diff(&[change("meta", "", "")]), "- policy.tool_groups: meta");
    }
}
