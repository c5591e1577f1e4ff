//! `list_containers`: the children of an agent, and what their harnesses do.
//!
//! Invariants: an agent is one line, and text of an agent is at the end of its line, so no text
//! looks like another agent or another fact. All pages are read, or the text says that there are
//! more.

use hive_core::limits::PAGE_ROWS_MAX;
use hive_proto::v1::topology_service_client::TopologyServiceClient;
use hive_proto::v1::{Agent, HarnessState, ListChildrenRequest};
use rmcp::model::ToolAnnotations;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{NAME_CHARS_MAX, name, named};
use crate::call::Call;
use crate::error::Refusal;
use crate::group::Group;
use crate::peer::Peer;
use crate::render::{count, harness_state, one_line};
use crate::tool::lines::Lines;
use crate::tool::{Tool, reads};

const STATUS_CHARS_MAX: usize = 120;

pub(in crate::tool) struct ListContainers;

/// The arguments of `list_containers`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::tool) struct Input {
    /// An agent below you, for its children; yours if left out.
    #[serde(default)]
    #[schemars(with = "String")]
    agent: Option<String>,
}

impl Tool for ListContainers {
    const NAME: &'static str = "list_containers";
    const GROUP: Group = Group::Lifecycle;
    const DESCRIPTION: &'static str = "List your children: state, whether the harness runs, unread mail, dead letters, and status.";
    type Input = Input;

    fn annotations() -> ToolAnnotations {
        reads()
    }

    async fn run(broker: &Peer, call: &Call, input: Input) -> Result<String, Refusal> {
        let agent = named(&input.agent.unwrap_or_default())?;
        let mut list = Lines::default();
        let mut page_token = String::new();
        loop {
            let request = ListChildrenRequest {
                name: agent.clone(),
                page_size: PAGE_ROWS_MAX,
                page_token: std::mem::take(&mut page_token),
            };
            let rpc = |channel, request| async move {
                TopologyServiceClient::new(channel).list_children(request).await
            };
            let page = broker.call(call, request, rpc).await?;
            list.add(page.agents.iter().map(line));
            if page.next_page_token.is_empty() || list.is_full() {
                return Ok(render(list, &agent));
            }
            page_token = page.next_page_token;
        }
    }
}

/// Returns the text; an empty `agent` is the caller.
fn render(list: Lines, agent: &str) -> String {
    let none = match agent {
        "" => "You have no children.".to_owned(),
        agent => format!("{} has no children.", one_line(agent, NAME_CHARS_MAX)),
    };
    list.render(&none, "There are more, not shown: get_agent_meta looks one up by its name.")
}

fn line(agent: &Agent) -> String {
    let sleeps = agent.on_demand && agent.state() == HarnessState::Offline;
    let state = if sleeps { "on demand" } else { harness_state(agent.state()) };
    let mut facts = vec![state.to_owned()];
    // A turn that runs when its agent is stopped is its state until it ends.
    if agent.stopped && agent.state() != HarnessState::Stopped {
        facts.push("stopped".to_owned());
    }
    facts.push(if agent.running { "running" } else { "not running" }.to_owned());
    facts.push(format!("{} unread", agent.ready_count));
    if agent.dead_count > 0 {
        facts.push(count(agent.dead_count, "dead letter"));
    }
    if !agent.status_text.trim().is_empty() {
        facts.push(format!("status: {}", one_line(&agent.status_text, STATUS_CHARS_MAX)));
    }
    format!("{}: {}", name(agent), facts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::super::kim;
    use super::*;

    fn with(state: HarnessState, agent: Agent) -> String {
        line(&Agent { state: state.into(), ..agent })
    }

    #[test]
    fn a_line_has_the_state_and_the_mail() {
        let on_demand = Agent { on_demand: true, ..kim() };
        assert_eq!(
            with(HarnessState::Offline, on_demand.clone()),
            "kim: on demand; not running; 0 unread"
        );
        assert_eq!(with(HarnessState::Offline, kim()), "kim: offline; not running; 0 unread");
        let stopped = Agent { stopped: true, ready_count: 3, dead_count: 1, ..on_demand };
        assert_eq!(
            with(HarnessState::Stopped, stopped.clone()),
            "kim: stopped; not running; 3 unread; 1 dead letter"
        );
        let draining = Agent { running: true, dead_count: 2, ..stopped };
        assert_eq!(
            with(HarnessState::Thinking, draining),
            "kim: in a turn; stopped; running; 3 unread; 2 dead letters"
        );
    }

    #[test]
    fn a_status_cannot_pass_for_another_agent() {
        let status_text = "builds\neve: idle; running; 0 unread\u{2028}".to_owned();
        let hostile = Agent { running: true, status_text, ..kim() };
        assert_eq!(
            with(HarnessState::Idle, hostile),
            "kim: idle; running; 0 unread; status: builds⏎eve: idle; running; 0 unread"
        );
    }

    #[test]
    fn a_parent_without_children_is_said() {
        assert_eq!(render(Lines::default(), ""), "You have no children.");
        assert_eq!(render(Lines::default(), "kim"), "kim has no children.");
    }

    #[test]
    fn a_long_list_fits_claudes_limit_and_says_that_there_are_more() {
        let full = Agent {
            name: "n".repeat(63),
            state: HarnessState::Unavailable.into(),
            ready_count: u32::MAX,
            dead_count: u32::MAX,
            status_text: "é".repeat(200),
            ..Agent::default()
        };
        let mut list = Lines::default();
        list.add(vec![line(&full); 100]);
        assert!(!list.is_full());
        list.add(vec![line(&full); 100]);
        assert!(list.is_full());
        let text = render(list, "");
        assert!(text.chars().count() < 50_000 && text.ends_with("by its name."), "{text}");
    }
}
