//! `kill`: stops an agent.

use hive_proto::v1::lifecycle_service_client::LifecycleServiceClient;
use hive_proto::v1::{Agent, StopChildRequest};
use rmcp::model::ToolAnnotations;

use super::{Child, handed_back, name, named, noticed};
use crate::call::Call;
use crate::error::Refusal;
use crate::group::Group;
use crate::peer::Peer;
use crate::tool::{Tool, removes};

pub(in crate::tool) struct Kill;

impl Tool for Kill {
    const NAME: &'static str = "kill";
    const GROUP: Group = Group::Lifecycle;
    const DESCRIPTION: &'static str = "Stop a child: its harness ends after some seconds, a running turn is handed back, and mail waits until start. Nothing is lost.";
    type Input = Child;

    fn annotations() -> ToolAnnotations {
        removes(true)
    }

    async fn run(broker: &Peer, call: &Call, input: Child) -> Result<String, Refusal> {
        let request =
            StopChildRequest { request_id: call.request_id.clone(), name: named(&input.agent)? };
        let stopped = broker
            .call(call, request, |channel, request| async move {
                LifecycleServiceClient::new(channel).stop_child(request).await
            })
            .await?;
        Ok(render(&stopped.agent.unwrap_or_default()))
    }
}

fn render(agent: &Agent) -> String {
    let name = name(agent);
    if agent.running {
        let turn = handed_back(agent);
        format!("{name} is stopped{turn}. Mail waits until start. {}", noticed(agent))
    } else {
        format!("{name} is stopped, and no harness is attached. Mail waits until start.")
    }
}

#[cfg(test)]
mod tests {
    use super::super::kim;
    use super::*;

    #[test]
    fn the_text_says_what_becomes_of_the_turn() {
        let stored = "Mail waits until start. This is stored; its parent alice gets a notice when it is done.";
        let idle = Agent { running: true, ..kim() };
        assert_eq!(render(&idle), format!("kim is stopped. {stored}"));
        let in_a_turn = Agent { open_turn_ids: vec![7], ..idle };
        assert_eq!(
            render(&in_a_turn),
            format!(
                "kim is stopped; its running turn is handed back, which costs its mail no attempt. {stored}"
            )
        );
        assert_eq!(
            render(&kim()),
            "kim is stopped, and no harness is attached. Mail waits until start."
        );
    }
}
