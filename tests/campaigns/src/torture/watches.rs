//! The watch of agents and that of the launcher, as reads that go on.

use hive_proto::v1::launcher_service_client::LauncherServiceClient;
use hive_proto::v1::topology_service_client::TopologyServiceClient;
use hive_proto::v1::{self, watch_agents_response};
use tonic::Status;
use tonic::transport::Channel;

use super::cast::AGENTS;
use super::facts::Facts;
use super::reads::{WATCH_STEPS, WATCH_WAIT};
use super::voice::Voice;

/// Watches agents: the snapshot ends, an agent is shown only itself and its children, and positions
/// do not go back.
pub(super) async fn agents(
    voice: &Voice,
    facts: &Facts,
    client: &mut TopologyServiceClient<Channel>,
) -> Result<(), Status> {
    let request = v1::WatchAgentsRequest::default();
    let mut stream = client.watch_agents(request).await?.into_inner();
    let (mut complete, mut position) = (false, 0);
    for _ in 0..WATCH_STEPS {
        let Ok(step) = tokio::time::timeout(WATCH_WAIT, stream.message()).await else { break };
        let Some(step) = step?.and_then(|step| step.step) else { break };
        let (agents, sequence) = match step {
            watch_agents_response::Step::Snapshot(part) => {
                facts.hold(!complete, || "a snapshot of agents went on after its end".to_owned());
                complete |= part.complete;
                (part.agents, part.sequence)
            }
            watch_agents_response::Step::Batch(batch) => {
                facts.hold(complete, || "agents changed before the snapshot ended".to_owned());
                (batch.agents, batch.sequence)
            }
            watch_agents_response::Step::Progress(progress) => (Vec::new(), progress.sequence),
        };
        facts.hold(sequence >= position, || format!("position {sequence} came after {position}"));
        position = sequence;
        for agent in agents.iter().filter(|_| voice.name != "operator") {
            let own = agent.name == voice.name || agent.parent == voice.name;
            facts.hold(own, || format!("{} is shown {}", voice.name, agent.name));
        }
    }
    Ok(())
}

/// Attaches as a launcher: until the first steps are complete they name each agent once, by name.
pub(super) async fn launch(voice: &Voice, facts: &Facts) -> Result<(), Status> {
    let mut client = LauncherServiceClient::new(voice.channel());
    let mut stream = client.launch(v1::LaunchRequest {}).await?.into_inner();
    let mut named: Vec<String> = Vec::new();
    while let Some(step) = stream.message().await? {
        for wanted in &step.harnesses {
            let is_known = wanted.wanted() != v1::WantedState::Unspecified;
            facts.hold(is_known, || format!("a harness is wanted in no way: {wanted:?}"));
        }
        named.extend(step.harnesses.into_iter().map(|wanted| wanted.name));
        if step.complete {
            facts.hold(named.is_sorted_by(|one, next| one < next), || {
                format!("a launcher is to start {named:?}, which is not in order")
            });
            for name in AGENTS {
                let is_named = named.iter().any(|named| named == name);
                facts.hold(is_named, || format!("a launcher is not to start {name}"));
            }
            return Ok(());
        }
    }
    Err(Status::unknown("the stream ended before it was complete"))
}
