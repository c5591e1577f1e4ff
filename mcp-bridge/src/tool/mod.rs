//! The tools, one file each, and their common parts.
//!
//! To add one: a file here with a type that implements [`Tool`], and its line in [`TOOLS`] (or
//! [`bash`], for the server of that name).

mod answer;
pub(crate) mod approvals;
mod ask;
mod bash;
mod cancel_loose_end;
mod diagnostics;
mod get_agent_meta;
mod get_loose_ends;
mod lifecycle;
mod lines;
mod list_agents;
mod recipient;
mod recv;
mod remind;
mod request_next_turn;
mod scheduling;
mod schema;
mod send;
mod set_status;

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::Arc;

use rmcp::model::{JsonObject, ToolAnnotations};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::call::Call;
use crate::error::Refusal;
use crate::group::Group;
use crate::peer::Peer;

/// A tool of the bridge.
trait Tool: Sized {
    /// Name for claude, after `mcp__hive__` or `mcp__bash__`.
    const NAME: &'static str;
    /// The group whose agents are offered it.
    const GROUP: Group;
    /// When to use it, in one or two sentences.
    const DESCRIPTION: &'static str;
    /// The arguments; their documentation is the schema's.
    type Input: DeserializeOwned + JsonSchema + Send;

    /// Returns hints for clients about its effects.
    fn annotations() -> ToolAnnotations;

    /// Runs the tool.
    fn run(
        peer: &Peer,
        call: &Call,
        input: Self::Input,
    ) -> impl Future<Output = Result<String, Refusal>> + Send;
}

type Run = for<'a> fn(
    &'a Peer,
    &'a Call,
    JsonObject,
) -> Pin<Box<dyn Future<Output = Result<String, Refusal>> + Send + 'a>>;

/// A tool of a server.
#[derive(Clone, Debug)]
pub struct Offer {
    /// The entry in `tools/list`.
    pub tool: rmcp::model::Tool,
    /// The group whose agents are offered it.
    pub group: Group,
    /// Runs the tool.
    pub run: Run,
}

/// The tools of the server `hive`, in the order of their listing. A tool is made only if it is
/// offered: its schema is generated, and each turn pays for that.
const TOOLS: [(Group, fn() -> Offer); 26] = [
    entry::<send::Send>(),
    entry::<recv::Recv>(),
    entry::<ask::Ask>(),
    entry::<answer::Answer>(),
    entry::<get_loose_ends::GetLooseEnds>(),
    entry::<cancel_loose_end::CancelLooseEnd>(),
    entry::<remind::Remind>(),
    entry::<request_next_turn::RequestNextTurn>(),
    entry::<set_status::SetStatus>(),
    entry::<get_agent_meta::GetAgentMeta>(),
    entry::<list_agents::ListAgents>(),
    entry::<lifecycle::start::Start>(),
    entry::<lifecycle::kill::Kill>(),
    entry::<lifecycle::restart::Restart>(),
    entry::<lifecycle::list_containers::ListContainers>(),
    entry::<approvals::create_agent::RequestCreateAgent>(),
    entry::<approvals::retire_agent::RequestRetireAgent>(),
    entry::<approvals::set_agent::RequestSetAgent>(),
    entry::<approvals::set_policy::RequestSetPolicy>(),
    entry::<diagnostics::get_logs::GetLogs>(),
    entry::<diagnostics::get_host_journal::GetHostJournal>(),
    entry::<scheduling::request::RequestSchedulePrompt>(),
    entry::<scheduling::edit::EditSchedule>(),
    entry::<scheduling::cancel::CancelSchedule>(),
    entry::<scheduling::fire::FireScheduleNow>(),
    entry::<scheduling::list::ListSchedules>(),
];

/// Returns all tools of the server `hive`.
#[must_use]
pub fn all() -> Vec<Offer> {
    TOOLS.iter().map(|(_, make)| make()).collect()
}

/// Returns the tools of the server `hive` for an agent with these groups.
#[must_use]
pub fn of_groups(groups: &BTreeSet<Group>) -> Vec<Offer> {
    let offered = TOOLS.iter().filter(|(group, _)| groups.contains(group));
    let mut offers: Vec<Offer> = offered.map(|(_, make)| make()).collect();
    // Schedules are asked for as approvals.
    if groups.contains(&Group::Approvals) || groups.contains(&Group::Scheduling) {
        offers.iter_mut().for_each(cancel_loose_end::offer_approvals);
    }
    offers
}

/// Returns the tools of the server `bash`.
#[must_use]
pub fn bash() -> Vec<Offer> {
    vec![offer::<bash::run::Run>(), offer::<bash::status::Status>()]
}

const fn entry<T: Tool + 'static>() -> (Group, fn() -> Offer) {
    (T::GROUP, offer::<T>)
}

fn offer<T: Tool + 'static>() -> Offer {
    let schema = Arc::new(schema::input::<T::Input>());
    let tool =
        rmcp::model::Tool::new(T::NAME, T::DESCRIPTION, schema).with_annotations(T::annotations());
    Offer {
        tool,
        group: T::GROUP,
        run: |peer, call, arguments| Box::pin(run::<T>(peer, call, arguments)),
    }
}

async fn run<T: Tool>(peer: &Peer, call: &Call, arguments: JsonObject) -> Result<String, Refusal> {
    let input = read(arguments).map_err(Refusal::arguments)?;
    hive_fault::point("bridge.call.leaving");
    let answered = T::run(peer, call, input).await;
    hive_fault::point("bridge.call.answered");
    answered
}

/// Parses the arguments of a tool. An error names the argument, which serde's message alone does
/// not for a wrong type.
fn read<I: DeserializeOwned>(arguments: JsonObject) -> Result<I, String> {
    let taken =
        |arguments: JsonObject| serde_json::from_value::<I>(serde_json::Value::Object(arguments));
    let problem = match taken(arguments.clone()) {
        Ok(input) => return Ok(input),
        Err(problem) => problem.to_string(),
    };
    // The faulty argument is the one that is refused with the same message when it is alone.
    let alone = |(name, value): &(String, serde_json::Value)| {
        let problem_alone = taken(JsonObject::from_iter([(name.clone(), value.clone())])).err();
        problem_alone.is_some_and(|alone| alone.to_string() == problem)
    };
    let culprit = arguments.into_iter().find(alone).map(|(name, _)| name);
    // The message already names a missing or an unknown argument.
    let is_named = problem.starts_with("missing field `") || problem.starts_with("unknown field `");
    Err(match culprit.filter(|_| !is_named) {
        Some(name) => format!("`{name}`: {problem}"),
        None => problem,
    })
}

/// Annotations of a tool that changes nothing.
fn reads() -> ToolAnnotations {
    ToolAnnotations::new().read_only(true).open_world(false)
}

/// Annotations of a tool that adds or changes something and removes nothing.
fn adds(idempotent: bool) -> ToolAnnotations {
    ToolAnnotations::new()
        .read_only(false)
        .destructive(false)
        .idempotent(idempotent)
        .open_world(false)
}

/// Annotations of a tool that may do anything, inside of Hive and outside.
fn does_anything() -> ToolAnnotations {
    ToolAnnotations::new().read_only(false).destructive(true).idempotent(false).open_world(true)
}

/// Annotations of a tool that removes something.
fn removes(idempotent: bool) -> ToolAnnotations {
    ToolAnnotations::new()
        .read_only(false)
        .destructive(true)
        .idempotent(idempotent)
        .open_world(false)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problem(arguments: serde_json::Value) -> String {
        let serde_json::Value::Object(arguments) = arguments else { panic!("an object") };
        read::<ask::Input>(arguments).expect_err("it is refused")
    }

    #[test]
    fn an_argument_that_is_refused_is_named() {
        assert!(
            problem(json!({"question": 5})).starts_with("`question`: invalid type: integer `5`")
        );
        assert!(
            problem(json!({"question": "q", "options": [5], "to": "bob"}))
                .starts_with("`options`: a list of texts is needed")
        );
        assert!(
            problem(json!({"to": "bob", "question": "q", "ttl_seconds": -1}))
                .starts_with("`ttl_seconds`: -1 is no whole number")
        );
        let quoting = "x".repeat(700) + "`ttl_seconds`";
        assert!(
            problem(json!({"question": "q", "ttl_seconds": quoting}))
                .starts_with("`ttl_seconds`: \"xxx")
        );
        assert!(problem(json!({"to": "bob"})).starts_with("missing field `question`"));
        assert!(
            problem(json!({"question": "q", "question_text": 1}))
                .starts_with("unknown field `question_text`")
        );
    }
}
