//! `restart`: replaces the harness of an agent by a fresh one.

use hive_proto::v1::lifecycle_service_client::LifecycleServiceClient;
use hive_proto::v1::{Agent, RestartChildRequest};
use rmcp::model::ToolAnnotations;

use super::{Child, handed_back, name, named, noticed};
use crate::call::Call;
use crate::error::Refusal;
use crate::group::Group;
use crate::peer::Peer;
use crate::tool::{Tool, removes};

pub(in crate::tool) struct Restart;

impl Tool for Restart {
    const NAME: &'static str = "restart";
    const GROUP: Group = Group::Lifecycle;
    const DESCRIPTION: &'static str = "Replace the harness of a child by a fresh one, if it hangs or shall take up new settings. A running turn is handed back and runs again.";
    type Input = Child;

    fn annotations() -> ToolAnnotations {
        // Each call ends a harness, once more.
        removes(false)
    }

    async fn run(broker: &Peer, call: &Call, input: Child) -> Result<String, Refusal> {
        let request =
            RestartChildRequest { request_id: call.request_id.clone(), name: named(&input.agent)? };
        let requested = broker
            .call(call, request, |channel, request| async move {
                LifecycleServiceClient::new(channel).restart_child(request).await
            })
            .await?;
        Ok(render(&requested.agent.unwrap_or_default()))
    }
}

fn render(agent: &Agent) -> String {
    let (name, turn) = (name(agent), handed_back(agent));
    format!("A restart of {name} is requested{turn}. {}", noticed(agent))
}

#[cfg(test)]
mod tests {
    use super::super::kim;
    use super::*;

    #[test]
    fn the_text_does_not_say_that_it_has_happened() {
        let stored = "This is stored; its parent alice gets a notice when it is done.";
        assert_eq!(render(&kim()), format!("A restart of kim is requested. {stored}"));
        let in_a_turn = Agent { open_turn_ids: vec![7], running: true, ..kim() };
        assert_eq!(
            render(&in_a_turn),
            format!(
                "A restart of kim is requested; its running turn is handed back, which costs its mail no attempt. {stored}"
            )
        );
    }
}
