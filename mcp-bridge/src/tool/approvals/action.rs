//! `request_NAME`: a tool for each action of the configuration that the agent may ask for.
//!
//! Invariant: the broker alone decides which actions and arguments there are. A list that is missed
//! hides tools until the next process of claude, and allows nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hive_proto::v1::action_service_client::ActionServiceClient;
use hive_proto::v1::effect::Effect;
use hive_proto::v1::{Action, GetActionsRequest, RunActionEffect};
use rmcp::model::{JsonObject, Tool};
use serde_json::{Value, json};

use super::ask;
use crate::call::Call;
use crate::error::Refusal;
use crate::peer::Peer;
use crate::render::one_line;
use crate::tool::adds;

/// What precedes the name of an action in the name of its tool.
pub(crate) const PREFIX: &str = "request_";
/// Maximum time for the list: claude waits for it at its start.
const LIST_MAX: Duration = Duration::from_secs(2);
const TEXT_CHARS_MAX: usize = 300;
/// Arguments of the tool itself; no action has such an argument.
const WHY: &str = "why";
const TTL: &str = "ttl_seconds";

/// Returns the tools of the actions that the broker lists.
pub(crate) async fn tools(broker: &Peer, call: &Call) -> Vec<Tool> {
    let list = broker.call(call, GetActionsRequest {}, |channel, request| async move {
        ActionServiceClient::new(channel).get_actions(request).await
    });
    match tokio::time::timeout(LIST_MAX, list).await {
        Ok(Ok(listed)) => listed.actions.iter().map(tool).collect(),
        Ok(Err(error)) => {
            tracing::warn!(%error, "the actions are not known, so their tools are missing");
            Vec::new()
        }
        Err(_) => {
            tracing::warn!("the broker has not listed the actions, so their tools are missing");
            Vec::new()
        }
    }
}

fn tool(action: &Action) -> Tool {
    let mut properties = JsonObject::new();
    for arg in &action.args {
        let pattern = one_line(&arg.pattern, TEXT_CHARS_MAX);
        properties.insert(arg.name.clone(), json!({"type": "string", "pattern": pattern}));
    }
    properties.insert(WHY.to_owned(), json!({"type": "string"}));
    properties.insert(TTL.to_owned(), json!({"type": "integer", "minimum": 1}));
    let mut required: Vec<&str> = action.args.iter().map(|arg| arg.name.as_str()).collect();
    required.push(WHY);
    let schema = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    let schema = schema.as_object().cloned().unwrap_or_default();
    let name = &action.name;
    let description = match one_line(&action.description, TEXT_CHARS_MAX) {
        text if text.is_empty() => format!("Ask the operator to run the action {name}."),
        text => format!("Ask the operator to run the action {name}: {text}"),
    };
    Tool::new(format!("{PREFIX}{name}"), description, Arc::new(schema))
        .with_annotations(adds(false))
}

/// Asks the operator to run an action.
pub(crate) async fn run(
    broker: &Peer,
    call: &Call,
    action: String,
    arguments: JsonObject,
) -> Result<String, Refusal> {
    let (mut args, mut why, mut ttl_seconds) = (BTreeMap::new(), String::new(), None);
    for (name, value) in arguments {
        match (name.as_str(), value) {
            (WHY, Value::String(text)) => why = text,
            (TTL, Value::Null) => {}
            (TTL, value) => {
                let seconds = value.as_u64().or_else(|| value.as_str()?.trim().parse().ok());
                ttl_seconds = Some(seconds.ok_or_else(|| {
                    Refusal::arguments(format_args!("`{TTL}`: a whole number is needed"))
                })?);
            }
            (_, Value::String(text)) => drop(args.insert(name, text)),
            (_, Value::Number(number)) => drop(args.insert(name, number.to_string())),
            (_, Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) => {
                let name = one_line(&name, 60);
                return Err(Refusal::arguments(format_args!("`{name}`: a text is needed")));
            }
        }
    }
    let effect = RunActionEffect { action, args: args.into_iter().collect() };
    ask(broker, call, Effect::RunAction(effect), why, ttl_seconds).await
}

#[cfg(test)]
mod tests {
    use hive_proto::v1::ActionArgument;

    use super::*;

    #[test]
    fn a_tool_has_the_arguments_of_its_action() {
        let arg =
            |name: &str| ActionArgument { name: name.to_owned(), pattern: "[0-9a-f]{4}".into() };
        let action = Action {
            name: "apply".to_owned(),
            description: "Applies\na commit.".to_owned(),
            args: vec![arg("commit")],
        };
        let tool = tool(&action);
        assert_eq!(tool.name, "request_apply");
        let says = tool.description.as_deref();
        assert_eq!(says, Some("Ask the operator to run the action apply: Applies⏎a commit."));
        let wanted = json!({
            "type": "object",
            "properties": {
                "commit": {"type": "string", "pattern": "[0-9a-f]{4}"},
                "why": {"type": "string"},
                "ttl_seconds": {"type": "integer", "minimum": 1},
            },
            "required": ["commit", "why"],
            "additionalProperties": false,
        });
        assert_eq!(Value::Object((*tool.input_schema).clone()), wanted);
    }
}
