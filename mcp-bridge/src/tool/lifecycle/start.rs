//! `start`: lets a stopped agent run turns again, and decides when its harness runs.

use hive_proto::v1::lifecycle_service_client::LifecycleServiceClient;
use hive_proto::v1::{Agent, StartChildRequest};
use rmcp::model::ToolAnnotations;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{name, named, noticed};
use crate::call::Call;
use crate::error::Refusal;
use crate::group::Group;
use crate::peer::Peer;
use crate::tool::{Tool, adds, schema};

pub(in crate::tool) struct Start;

/// The arguments of `start`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::tool) struct Input {
    /// Name of a child, or of any agent below you if your policy lets you.
    agent: String,
    /// Run its harness only while it has mail, or always; as before if left out.
    #[serde(default, deserialize_with = "schema::flag")]
    #[schemars(with = "bool")]
    on_demand: Option<bool>,
}

impl Tool for Start {
    const NAME: &'static str = "start";
    const GROUP: Group = Group::Lifecycle;
    const DESCRIPTION: &'static str = "Let a stopped child run turns again, beginning with the mail that waited. It does not wait for the harness: a notice follows.";
    type Input = Input;

    fn annotations() -> ToolAnnotations {
        adds(true)
    }

    async fn run(broker: &Peer, call: &Call, input: Input) -> Result<String, Refusal> {
        let Input { agent, on_demand } = input;
        let request = StartChildRequest {
            request_id: call.request_id.clone(),
            name: named(&agent)?,
            on_demand,
        };
        let started = broker
            .call(call, request, |channel, request| async move {
                LifecycleServiceClient::new(channel).start_child(request).await
            })
            .await?;
        Ok(render(&started.agent.unwrap_or_default()))
    }
}

fn render(agent: &Agent) -> String {
    let name = name(agent);
    if agent.running {
        return format!("{name} is started, and its harness is attached.");
    }
    let begins = if agent.on_demand {
        "its harness begins when there is mail"
    } else {
        "it runs turns once its harness is attached"
    };
    format!("{name} is started; {begins}. {}", noticed(agent))
}

#[cfg(test)]
mod tests {
    use super::super::kim;
    use super::*;

    #[test]
    fn the_text_says_when_the_harness_begins() {
        let stored = "This is stored; its parent alice gets a notice when it is done.";
        assert_eq!(
            render(&kim()),
            format!("kim is started; it runs turns once its harness is attached. {stored}")
        );
        let on_demand = Agent { on_demand: true, ..kim() };
        assert_eq!(
            render(&on_demand),
            format!("kim is started; its harness begins when there is mail. {stored}")
        );
        let running = Agent { running: true, ..on_demand };
        assert_eq!(render(&running), "kim is started, and its harness is attached.");
    }
}
