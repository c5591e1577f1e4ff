//! An agent and what its harness is doing.

use hive_core::agent::LIFECYCLE;
use hive_core::time::WallTime;
use hive_proto::v1;
use schemars::JsonSchema;
use serde::Serialize;

use super::wire::{from_wire, optional, present, same};
use super::{
    Iso, Word, cell, fields, id, isolation, line_cell, optional_word, prefixed, text, word,
};
use crate::output::style::Style;
use crate::output::text::visible_line;
use crate::output::{Row, Text, time};

/// One agent.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct Agent {
    /// The name of the agent.
    pub(crate) name: String,
    /// The purpose of the agent.
    role: Option<String>,
    /// The parent of the agent; none: the agent is a root, and answers to the operator.
    pub(crate) parent: Option<String>,
    /// The source of the declaration.
    #[schemars(with = "Word<v1::AgentSource>")]
    source: Option<String>,
    /// The state of its harness.
    #[schemars(with = "Word<v1::HarnessState>")]
    pub(crate) state: Option<String>,
    /// The start of this state.
    #[serde(with = "Iso")]
    pub(crate) state_time: Option<WallTime>,
    /// Whether a harness is attached.
    running: bool,
    /// The status that the agent set.
    pub(crate) status_text: Option<String>,
    /// The time at which the status was set.
    #[serde(with = "Iso")]
    status_time: Option<WallTime>,
    /// The model that it is set to; none: the default of its harness.
    model: Option<String>,
    /// Tokens in its context.
    context_tokens: Option<u64>,
    /// The size of its context window, in tokens.
    context_window_tokens: Option<u64>,
    /// The name of its hive.
    hive_name: Option<String>,
    /// The name of its hive's swarm.
    swarm_name: Option<String>,
    /// The version of its harness.
    revision: Option<String>,
    /// The permissions of the agent.
    policy: Policy,
    /// The reason why the agent starts no turns; none: it is not parked.
    pub(crate) park: Option<Park>,
    /// Whether it is retired.
    pub(crate) retired: bool,
    /// Deliveries that wait in its inbox.
    pub(crate) ready_count: u32,
    /// The number of dead letters in its inbox.
    pub(crate) dead_count: u32,
    /// The isolation of its programs from the operator, the broker and the other agents; none: no
    /// harness has attached.
    #[schemars(with = "Word<v1::Isolation>")]
    isolation: Option<String>,
    /// The gaps in its isolation, one sentence each.
    isolation_notes: Vec<String>,
    /// The turns that run, oldest first.
    open_turn_ids: Vec<u64>,
    /// When the size of its context was measured.
    #[serde(with = "Iso")]
    context_time: Option<WallTime>,
    /// Models that it may be switched to; empty: any.
    available_models: Vec<String>,
    /// Whether it was stopped.
    pub(crate) stopped: bool,
    /// Whether its harness runs on demand only: while there is mail for it.
    pub(crate) on_demand: bool,
    /// How many restarts of its harness were requested.
    restart_count: u64,
    /// The model of the newest turn that reported one.
    model_in_use: Option<String>,
    /// When a new session of its harness notifies it to go on.
    #[schemars(with = "Word<v1::KickOnStart>")]
    kick_on_start: Option<String>,
    /// An opaque text that changes with what is declared of the agent, for --etag.
    etag: String,
}

/// The permissions of an agent; no recipients: everyone.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct Policy {
    /// The tool groups that it gets.
    tool_groups: Vec<String>,
    /// The agents that it may send to and ask, besides its parent; empty: everyone.
    allowed_recipients: Vec<String>,
    /// The further rights of the agent.
    capabilities: Vec<String>,
    /// Maximum sends per minute; none: the hive's limit.
    sends_per_minute_max: Option<u32>,
    /// Bytes of unsettled bodies that it may have stored; none: the hive's limit.
    sender_stored_bytes_max: Option<u64>,
    /// Open questions that it may have asked; none: the hive's limit.
    questions_open_max: Option<u32>,
    /// Pending reminders that it may have; none: the hive's limit.
    reminders_pending_max: Option<u32>,
    /// What it may do without asking the operator.
    grants: Vec<String>,
    /// Maximum agents below it, for creating by a grant.
    children_max: Option<u32>,
    /// Maximum schedules of its own that have not ended; none: the hive's limit.
    schedules_max: Option<u32>,
    /// An opaque text that changes with the policy, for --etag of `hivectl agent set-policy`.
    etag: String,
}

/// Why an agent starts no turns.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct Park {
    /// The outcome of the turn that led to it.
    #[schemars(with = "Word<v1::TurnOutcome>")]
    pub(crate) cause: Option<String>,
    /// When it ends by itself; none: when the operator acts.
    #[serde(with = "Iso")]
    pub(crate) until_time: Option<WallTime>,
    /// The error of that turn.
    error: Option<String>,
}

from_wire! {
    Agent => Agent {
        same => name, running, retired, ready_count, dead_count, isolation_notes, available_models,
            stopped, on_demand, restart_count, open_turn_ids, etag;
        text => role, parent, status_text, model, hive_name, swarm_name, revision, model_in_use;
        id => context_tokens, context_window_tokens;
        time::from_wire => state_time, status_time, context_time;
        optional => park;
        present => policy;
        word::<v1::AgentSource> => source;
        word::<v1::HarnessState> => state;
        optional_word::<v1::Isolation> => isolation;
        word::<v1::KickOnStart> => kick_on_start;
    }
}

from_wire! {
    Policy => Policy {
        same => tool_groups, allowed_recipients, capabilities, sends_per_minute_max,
            sender_stored_bytes_max, questions_open_max, reminders_pending_max, grants, children_max,
            schedules_max, etag;
    }
}

impl Policy {
    fn rows(&self) -> [(&'static str, String); 10] {
        let words = |words: &[String], none: &str| {
            if words.is_empty() { none.to_owned() } else { visible_line(&words.join(", ")) }
        };
        fn at_most(most: Option<impl ToString>) -> String {
            most.map_or_else(
                || "as the hive's limits say".to_owned(),
                |most| format!("at most {}", most.to_string()),
            )
        }
        [
            ("tools", words(&self.tool_groups, "-")),
            ("may send to", words(&self.allowed_recipients, "everyone")),
            ("capabilities", words(&self.capabilities, "-")),
            ("grants", words(&self.grants, "-")),
            ("agents below it", at_most(self.children_max)),
            ("sends a minute", at_most(self.sends_per_minute_max)),
            ("stored bytes", at_most(self.sender_stored_bytes_max)),
            ("open questions", at_most(self.questions_open_max)),
            ("reminders", at_most(self.reminders_pending_max)),
            ("schedules", at_most(self.schedules_max)),
        ]
    }
}

from_wire! {
    Park => Park {
        text => error;
        time::from_wire => until_time;
        word::<v1::TurnOutcome> => cause;
    }
    // What remains follows from `until_time`.
    without remaining
}

impl Park {
    pub(crate) fn needs_login(&self) -> bool {
        self.cause.as_deref() == Some("auth_failed")
    }

    /// Returns the cause and the end, in one line.
    pub(crate) fn line(&self, style: &Style) -> String {
        let cause = self.cause.as_deref().unwrap_or("parked");
        let until = self
            .until_time
            .map(|time| format!(" until {}", style.time(Some(time))))
            .unwrap_or_default();
        let error = prefixed(": ", &self.error);
        format!("{cause}{until}{error}")
    }
}

impl Agent {
    pub(crate) fn state_cell(&self, style: &Style) -> String {
        let state = self.state.as_deref().unwrap_or("-");
        if self.retired {
            return style.faint("retired");
        }
        match state {
            "idle" => style.good(state),
            "thinking" | "compacting" | "starting" => style.busy(state),
            "offline" if self.on_demand => style.faint("on demand"),
            "offline" | "stopped" => style.faint(state),
            "rate_limited" | "needs_login" | "unavailable" => style.bad(state),
            _ => state.to_owned(),
        }
    }

    fn turns_cell(&self) -> String {
        let turns: Vec<_> = self.open_turn_ids.iter().map(u64::to_string).collect();
        if turns.is_empty() { "-".to_owned() } else { turns.join(", ") }
    }

    /// Returns its isolation in coloured words; an incomplete one is marked.
    fn isolation_cell(&self, style: &Style) -> String {
        let Some(word) = self.isolation.as_deref() else { return "-".to_owned() };
        let known =
            v1::Isolation::from_str_name(&format!("ISOLATION_{}", word.to_ascii_uppercase()));
        let words =
            known.and_then(isolation::label).map_or_else(|| visible_line(word), str::to_owned);
        match known {
            Some(v1::Isolation::None | v1::Isolation::Partly) => style.bad(&words),
            Some(
                v1::Isolation::Unspecified
                | v1::Isolation::Sandbox
                | v1::Isolation::Uid
                | v1::Isolation::Unit,
            )
            | None => words,
        }
    }

    /// Returns whether a launcher has to do something for it: it runs on demand, or may start and
    /// stop agents.
    pub(crate) fn needs_launcher(&self) -> bool {
        let manages = || self.policy.tool_groups.iter().any(|group| group == LIFECYCLE);
        !self.retired && ((self.on_demand && !self.stopped) || manages())
    }

    /// Returns its unread mail and dead letters, then `more`, then its status text.
    pub(crate) fn news(&self, more: &str, style: &Style) -> String {
        let mut news = String::new();
        if self.ready_count > 0 {
            news.push_str(&format!("  {} unread", self.ready_count));
        }
        if self.dead_count > 0 {
            news.push_str(&format!("  {}", style.bad(&format!("{} dead", self.dead_count))));
        }
        news.push_str(more);
        if let Some(status) = &self.status_text {
            news.push_str(&format!("  \"{}\"", visible_line(status)));
        }
        news
    }

    pub(crate) fn policy(&self, _: &Style) -> String {
        let name = ("name", visible_line(&self.name));
        let rows: Vec<_> = [name].into_iter().chain(self.policy.rows()).collect();
        fields(&rows)
    }

    /// Returns how full its context is, and when that was measured.
    fn context(&self, style: &Style) -> String {
        let size = match (self.context_tokens, self.context_window_tokens) {
            (Some(used), Some(window)) => {
                let percent = u128::from(used) * 100 / u128::from(window);
                format!("{used} of {window} tokens ({percent} %)")
            }
            (Some(used), None) => format!("{used} tokens"),
            (None, _) => return "-".to_owned(),
        };
        let measured = self
            .context_time
            .map(|time| format!(", measured {}", style.time(Some(time))))
            .unwrap_or_default();
        format!("{size}{measured}")
    }
}

impl Row for Agent {
    const HEADER: &'static [&'static str] =
        &["NAME", "PARENT", "STATE", "SINCE", "MODEL", "UNREAD", "DEAD", "TURN", "STATUS"];
    const NONE: &'static str = "no agents";

    fn cells(&self, style: &Style) -> Vec<String> {
        vec![
            visible_line(&self.name),
            cell(self.parent.as_ref()),
            self.state_cell(style),
            style.time(self.state_time),
            line_cell(if self.model_in_use.is_some() { &self.model_in_use } else { &self.model }),
            self.ready_count.to_string(),
            self.dead_count.to_string(),
            self.turns_cell(),
            self.status_text.as_deref().map_or_else(String::new, visible_line),
        ]
    }
}

impl Text for Agent {
    fn text(&self, style: &Style) -> String {
        let hive = [self.hive_name.as_deref(), self.swarm_name.as_deref()]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(", ");
        let harness = if self.running {
            format!("attached, version {}", line_cell(&self.revision))
        } else {
            "none".to_owned()
        };
        let status = match &self.status_text {
            Some(status) => format!("{} ({})", visible_line(status), style.time(self.status_time)),
            None => "-".to_owned(),
        };
        let model = self.model.as_deref().unwrap_or("the default of its harness");
        let model = visible_line(model);
        let models = match &self.available_models[..] {
            [] => "any model".to_owned(),
            models => visible_line(&models.join(", ")),
        };
        let rows = [
            ("name", visible_line(&self.name)),
            ("role", line_cell(&self.role)),
            ("parent", self.parent.as_deref().map_or_else(|| "operator".to_owned(), visible_line)),
            ("declared in", line_cell(&self.source)),
            ("hive", if hive.is_empty() { "-".to_owned() } else { visible_line(&hive) }),
            ("state", format!("{} since {}", self.state_cell(style), style.time(self.state_time))),
            ("harness", harness),
            ("runs", (if self.on_demand { "on demand" } else { "always" }).to_owned()),
            ("parked", self.park.as_ref().map_or_else(|| "no".to_owned(), |park| park.line(style))),
            ("turn", self.turns_cell()),
            ("status", status),
            ("model", model),
            ("model in use", line_cell(&self.model_in_use)),
            ("may run on", models),
            ("context", self.context(style)),
            ("kick on start", line_cell(&self.kick_on_start)),
            ("unread", self.ready_count.to_string()),
            ("dead letters", self.dead_count.to_string()),
            ("restarts", self.restart_count.to_string()),
        ];
        let notes = self.isolation_notes.iter().map(|note| ("missing", visible_line(note)));
        let isolation = [("isolation", self.isolation_cell(style))].into_iter().chain(notes);
        let rows: Vec<_> = rows.into_iter().chain(self.policy.rows()).chain(isolation).collect();
        fields(&rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_park_that_ends_with_a_login_differs_from_others() {
        let parked = |cause: v1::TurnOutcome| {
            Park::from(v1::Park { cause: cause.into(), ..v1::Park::default() })
        };
        assert!(parked(v1::TurnOutcome::AuthFailed).needs_login());
        assert!(!parked(v1::TurnOutcome::RateLimited).needs_login());
    }

    #[test]
    fn the_context_is_shown_with_its_share_of_the_window() {
        let context = |context_tokens, context_window_tokens| {
            let agent = v1::Agent { context_tokens, context_window_tokens, ..v1::Agent::default() };
            Agent::from(agent).context(&Style::plain())
        };
        assert_eq!([context(0, 200_000), context(150_000, 0)], ["-", "150000 tokens"]);
        assert_eq!(
            [context(150_000, 200_000), context(250_000, 200_000)]
                .map(|context| context.replace(" tokens", "")),
            ["150000 of 200000 (75 %)", "250000 of 200000 (125 %)"]
        );
    }
}
