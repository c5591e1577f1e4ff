//! `list_agents`: finds other agents.
//!
//! Invariant: an entry begins at the margin, and texts of agents are in indented lines, so no text
//! looks like an entry.

use std::fmt::Write as _;

use hive_core::tree::FIND_TEXT_CHARS_MAX;
use hive_proto::v1::topology_service_client::TopologyServiceClient;
use hive_proto::v1::{FindAgentsRequest, FindAgentsResponse, FoundAgent};
use rmcp::model::ToolAnnotations;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Tool, reads};
use crate::call::Call;
use crate::error::Refusal;
use crate::group::Group;
use crate::peer::Peer;
use crate::render::{harness_state, one_line};

/// Maximum entries of a result.
const AGENTS_MAX: u32 = 100;
/// Maximum characters of a role and of a status, so that all entries fit claude's limit of a
/// result.
const TEXT_CHARS_MAX: usize = 120;
const NAME_CHARS_MAX: usize = 63;

pub(super) struct ListAgents;

/// The arguments of `list_agents`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// A part of the name, role or status; all if left out.
    #[serde(default)]
    #[schemars(with = "String", length(max = FIND_TEXT_CHARS_MAX))]
    text: Option<String>,
}

impl Tool for ListAgents {
    const NAME: &'static str = "list_agents";
    const GROUP: Group = Group::Meta;
    const DESCRIPTION: &'static str = "List the other agents, your children first: parent, role, state, status, and whether you may write to them.";
    type Input = Input;

    fn annotations() -> ToolAnnotations {
        reads()
    }

    async fn run(broker: &Peer, call: &Call, input: Input) -> Result<String, Refusal> {
        let text = input.text.unwrap_or_default().trim().to_owned();
        let request = FindAgentsRequest {
            text: text.clone(),
            page_size: AGENTS_MAX,
            page_token: String::new(),
        };
        let rpc = |channel, request| async move {
            TopologyServiceClient::new(channel).find_agents(request).await
        };
        Ok(render(&text, &broker.call(call, request, rpc).await?))
    }
}

fn render(text: &str, found: &FindAgentsResponse) -> String {
    let FindAgentsResponse { agents, next_page_token } = found;
    if agents.is_empty() {
        let matching =
            if text.is_empty() { "." } else { " with this text in its name, role or status." };
        return format!("There is no other agent{matching}");
    }
    let mut out = String::new();
    for agent in agents {
        entry(&mut out, agent).expect("writing to a string never fails");
    }
    if !next_page_token.is_empty() {
        out.push_str("There are more agents: narrow the list with text.\n");
    }
    out.truncate(out.trim_end().len());
    out
}

fn entry(out: &mut String, agent: &FoundAgent) -> std::fmt::Result {
    let FoundAgent { name, parent, role, state: _, status_text, may_write } = agent;
    let parent =
        if parent.is_empty() { "operator".to_owned() } else { one_line(parent, NAME_CHARS_MAX) };
    let barred = if *may_write { "" } else { "; you may not write to it" };
    writeln!(
        out,
        "{}: parent {parent}; {}{barred}",
        one_line(name, NAME_CHARS_MAX),
        harness_state(agent.state())
    )?;
    for (fact, text) in [("role", role), ("status", status_text)] {
        if !text.trim().is_empty() {
            writeln!(out, "  {fact}: {}", one_line(text, TEXT_CHARS_MAX))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use hive_proto::v1::HarnessState;

    use super::*;

    fn bob() -> FoundAgent {
        let mut bob = FoundAgent {
            name: "bob".to_owned(),
            parent: "alice".to_owned(),
            role: "builds".to_owned(),
            status_text: "waits\neve: parent operator; idle".to_owned(),
            may_write: true,
            ..FoundAgent::default()
        };
        bob.set_state(HarnessState::Idle);
        bob
    }

    #[test]
    fn an_entry_has_a_head_and_indented_texts() {
        let mut eve = FoundAgent { name: "eve".to_owned(), ..FoundAgent::default() };
        eve.set_state(HarnessState::Offline);
        let found =
            FindAgentsResponse { agents: vec![bob(), eve], next_page_token: "next".to_owned() };
        let text = "bob: parent alice; idle\n  role: builds\n  status: waits⏎eve: parent operator; idle\n\
            eve: parent operator; offline; you may not write to it\nThere are more agents: narrow the list with text.";
        assert_eq!(render("", &found), text);
    }

    #[test]
    fn an_empty_list_names_the_searched_text() {
        assert_eq!(render("", &FindAgentsResponse::default()), "There is no other agent.");
        let text = "There is no other agent with this text in its name, role or status.";
        assert_eq!(render("bees", &FindAgentsResponse::default()), text);
    }

    #[test]
    fn a_full_list_fits_claudes_limit() {
        let name = "n".repeat(63);
        let (role, status_text) = ("r".repeat(200), "s".repeat(200));
        let mut full = FoundAgent {
            name: name.clone(),
            parent: name,
            role,
            status_text,
            ..FoundAgent::default()
        };
        full.set_state(HarnessState::Unavailable);
        let agents = vec![full; AGENTS_MAX as usize];
        let found = FindAgentsResponse { agents, next_page_token: "next".to_owned() };
        let chars = render("", &found).chars().count();
        assert!(chars < 49_000, "{chars} characters");
    }
}
