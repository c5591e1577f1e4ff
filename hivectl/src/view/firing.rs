//! A firing at the operator's command: what each target of a schedule got.

use schemars::JsonSchema;
use serde::Serialize;

use super::schedule::Schedule;
use super::wire::{all, from_wire, present, same};
use super::{counted, id, text};
use crate::output::Text;
use crate::output::style::Style;
use crate::output::text::visible_line;

/// What the targets of a schedule got, and the schedule as it is now.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct Firing {
    /// The schedule after it fired.
    schedule: Schedule,
    /// What each target got.
    fired: Vec<Fired>,
}

/// What one target got.
#[derive(Clone, Debug, JsonSchema, Serialize)]
struct Fired {
    /// The name of the target.
    agent: String,
    /// The message; none: it got none.
    message_id: Option<u64>,
    /// Why it got none.
    problem: Option<String>,
}

from_wire! {
    FireScheduleResponse => Firing {
        present => schedule;
        all => fired;
    }
}

from_wire! {
    FiredTarget => Fired {
        same => agent;
        id => message_id;
        text => problem;
    }
}

impl Fired {
    fn line(&self) -> String {
        let agent = visible_line(&self.agent);
        match (self.message_id, &self.problem) {
            (Some(message_id), _) => format!("  {agent}: message {message_id}"),
            (None, Some(problem)) => format!("  {agent}: nothing, {}", visible_line(problem)),
            (None, None) => format!("  {agent}: nothing"),
        }
    }
}

impl Text for Firing {
    fn text(&self, style: &Style) -> String {
        let sent = self.fired.iter().filter(|fired| fired.message_id.is_some()).count();
        let mut lines = vec![format!(
            "{} fired: {} for {}; it {}",
            self.schedule.name(),
            counted(sent as u64, "message", "messages"),
            counted(self.fired.len() as u64, "target", "targets"),
            self.schedule.standing(style)
        )];
        lines.extend(self.fired.iter().map(Fired::line));
        lines.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use hive_proto::v1;

    use super::*;

    #[test]
    fn a_firing_says_what_each_target_got_and_why_not() {
        let fired = |agent: &str, message_id, problem: &str| v1::FiredTarget {
            agent: agent.to_owned(),
            message_id,
            problem: problem.to_owned(),
        };
        let mut schedule =
            v1::Schedule { id: 12, owner: "ada".to_owned(), ..v1::Schedule::default() };
        schedule.set_state(v1::ScheduleState::Ended);
        schedule.end_cause = "it was due once".to_owned();
        let response = v1::FireScheduleResponse {
            schedule: Some(schedule),
            fired: vec![
                fired("bob", 41, ""),
                fired("cy", 0, "its inbox\nis full"),
                fired("dy", 0, ""),
            ],
        };
        insta::assert_snapshot!(Firing::from(response).text(&Style::utc()), @r"
        schedule 12 of ada fired: 1 message for 3 targets; it has ended: it was due once
          bob: message 41
          cy: nothing, its inbox⏎is full
          dy: nothing
        ");
    }
}
