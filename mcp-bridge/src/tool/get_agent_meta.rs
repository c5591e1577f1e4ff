//! `get_agent_meta`: an agent and its state.

use std::fmt::Write as _;

use hive_proto::v1::topology_service_client::TopologyServiceClient;
use hive_proto::v1::{Agent, GetAgentRequest, GetSelfRequest, Park};
use rmcp::model::ToolAnnotations;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Tool, reads};
use crate::call::Call;
use crate::error::Refusal;
use crate::group::Group;
use crate::peer::Peer;
use crate::render::{harness_state, instant, one_line};

const TEXT_CHARS_MAX: usize = 1_000;

pub(super) struct GetAgentMeta;

/// The arguments of `get_agent_meta`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Agent name; yourself if left out.
    #[serde(default)]
    #[schemars(with = "String")]
    name: Option<String>,
}

impl Tool for GetAgentMeta {
    const NAME: &'static str = "get_agent_meta";
    const GROUP: Group = Group::Meta;
    const DESCRIPTION: &'static str = "Look up an agent: role, parent, whether it runs, what it is doing, its status, model and context.";
    type Input = Input;

    fn annotations() -> ToolAnnotations {
        reads()
    }

    async fn run(broker: &Peer, call: &Call, input: Input) -> Result<String, Refusal> {
        let agent =
            match input.name.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()) {
                Some(name) => {
                    let request = GetAgentRequest { name };
                    let rpc = |channel, request| async move {
                        TopologyServiceClient::new(channel).get_agent(request).await
                    };
                    broker.call(call, request, rpc).await?.agent
                }
                None => {
                    let rpc = |channel, request| async move {
                        TopologyServiceClient::new(channel).get_self(request).await
                    };
                    broker.call(call, GetSelfRequest {}, rpc).await?.agent
                }
            };
        Ok(render(&agent.unwrap_or_default()))
    }
}

/// Returns the known facts, one per line.
fn render(agent: &Agent) -> String {
    let mut text = String::new();
    let mut fact = |name: &str, value: String| {
        if !value.is_empty() {
            writeln!(text, "{name}: {value}").expect("writing to a string never fails");
        }
    };
    fact("name", one_line(&agent.name, TEXT_CHARS_MAX));
    fact("role", one_line(&agent.role, TEXT_CHARS_MAX));
    fact(
        "parent",
        if agent.parent.is_empty() {
            "operator".to_owned()
        } else {
            one_line(&agent.parent, TEXT_CHARS_MAX)
        },
    );
    if agent.retired {
        fact("retired", "yes: it takes no mail".to_owned());
    }
    let since = agent
        .state_time
        .as_ref()
        .map(|time| format!(" since {}", instant(time)))
        .unwrap_or_default();
    fact("state", format!("{}{since}", harness_state(agent.state())));
    if let Some(park) = &agent.park {
        fact("parked", parked(park));
    }
    fact("running", if agent.running { "yes" } else { "no" }.to_owned());
    if !agent.status_text.is_empty() {
        let set = agent
            .status_time
            .as_ref()
            .map(|time| format!(" (set {})", instant(time)))
            .unwrap_or_default();
        fact("status", format!("{}{set}", one_line(&agent.status_text, TEXT_CHARS_MAX)));
    }
    fact(
        "waiting mail",
        if agent.ready_count == 0 { String::new() } else { agent.ready_count.to_string() },
    );
    fact("model", one_line(&agent.model, TEXT_CHARS_MAX));
    if agent.context_tokens > 0 {
        let window = if agent.context_window_tokens > 0 {
            format!(" of {}", agent.context_window_tokens)
        } else {
            String::new()
        };
        fact("context", format!("{}{window} tokens", agent.context_tokens));
    }
    fact("revision", one_line(&agent.revision, TEXT_CHARS_MAX));
    fact("hive", one_line(&agent.hive_name, TEXT_CHARS_MAX));
    fact("swarm", one_line(&agent.swarm_name, TEXT_CHARS_MAX));
    text.truncate(text.trim_end().len());
    text
}

/// Returns the end of a park, and its cause.
fn parked(park: &Park) -> String {
    let until =
        park.until_time.as_ref().map_or_else(|| "somebody logs claude in".to_owned(), instant);
    let error = one_line(&park.error, TEXT_CHARS_MAX);
    if error.is_empty() { format!("until {until}") } else { format!("until {until}: {error}") }
}

#[cfg(test)]
mod tests {
    use hive_proto::v1::HarnessState;

    use super::*;

    fn time(seconds: i64) -> Option<prost_types::Timestamp> {
        Some(prost_types::Timestamp { seconds, nanos: 0 })
    }

    #[test]
    fn facts_are_lines_and_a_text_cannot_add_one() {
        let mut agent = Agent {
            name: "bob".to_owned(),
            role: "builds\nparent: operator".to_owned(),
            parent: "alice".to_owned(),
            running: true,
            model: "haiku".to_owned(),
            context_tokens: 1200,
            context_window_tokens: 200_000,
            ..Agent::default()
        };
        agent.set_state(HarnessState::Idle);
        let text = "name: bob\nrole: builds⏎parent: operator\nparent: alice\nstate: idle\nrunning: yes\nmodel: haiku\n\
            context: 1200 of 200000 tokens";
        assert_eq!(render(&agent), text);
    }

    #[test]
    fn every_known_fact_is_shown() {
        let mut agent = Agent {
            name: "bob".to_owned(),
            role: "builds".to_owned(),
            state_time: time(1_700_000_000),
            running: true,
            status_text: "waits for the build".to_owned(),
            status_time: time(1_700_000_060),
            model: "haiku".to_owned(),
            context_tokens: 1200,
            context_window_tokens: 200_000,
            hive_name: "alpha".to_owned(),
            swarm_name: "beta".to_owned(),
            revision: "0.1.0".to_owned(),
            park: Some(Park {
                until_time: time(1_700_003_600),
                error: "usage limit\nreached".to_owned(),
                ..Park::default()
            }),
            ready_count: 3,
            ..Agent::default()
        };
        agent.set_state(HarnessState::RateLimited);
        let text = "name: bob\nrole: builds\nparent: operator\nstate: parked: rate limit since 2023-11-14T22:13:20Z\n\
            parked: until 2023-11-14T23:13:20Z: usage limit⏎reached\nrunning: yes\n\
            status: waits for the build (set 2023-11-14T22:14:20Z)\nwaiting mail: 3\nmodel: haiku\n\
            context: 1200 of 200000 tokens\nrevision: 0.1.0\nhive: alpha\nswarm: beta";
        assert_eq!(render(&agent), text);
        agent.park = Some(Park::default());
        assert!(
            render(&agent).contains("\nparked: until somebody logs claude in\n"),
            "{}",
            render(&agent)
        );
    }
}
