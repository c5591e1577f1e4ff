//! Following agents: a snapshot, then every change that others see, for the operator and for an
//! agent and its children.

use hive_proto::v1::status_service_client::StatusServiceClient;
use hive_proto::v1::topology_service_client::TopologyServiceClient;
use hive_proto::v1::watch_agents_response::Step;
use hive_proto::v1::{
    Agent, HarnessState, SetStatusTextRequest, WatchAgentsRequest, WatchAgentsResponse,
};

use hive_tests::rig::{Client, Rig, fresh_id, soon};
use tonic::Streaming;

const TREE: &str = "[agents.ada]\n[agents.bob]\nparent = \"ada\"\n[agents.cyd]\n";

/// A watch of agents and the agents of its snapshot.
struct Watched {
    stream: Streaming<WatchAgentsResponse>,
    names: Vec<String>,
}

async fn step(stream: &mut Streaming<WatchAgentsResponse>) -> Step {
    let step = soon("the watch has a step", stream.message()).await;
    step.expect("it goes on").expect("it goes on").step.expect("a step")
}

async fn watch(client: &Client) -> Watched {
    let mut topology = TopologyServiceClient::new(client.channel());
    let watched = topology.watch_agents(WatchAgentsRequest::default()).await;
    let mut stream = watched.expect("it may watch").into_inner();
    let mut names = Vec::new();
    loop {
        let Step::Snapshot(part) = step(&mut stream).await else {
            panic!("a snapshot comes first")
        };
        assert!(!part.log_id.is_empty());
        names.extend(part.agents.into_iter().map(|agent| agent.name));
        if part.complete {
            return Watched { stream, names };
        }
    }
}

impl Watched {
    /// The next change of an agent that fits.
    async fn until(&mut self, name: &str, fits: impl Fn(&Agent) -> bool) -> Agent {
        loop {
            let Step::Batch(batch) = step(&mut self.stream).await else { continue };
            let mut agents = batch.agents.into_iter();
            if let Some(agent) = agents.find(|agent| agent.name == name && fits(agent)) {
                return agent;
            }
        }
    }
}

async fn set_status(client: &Client, text: &str) {
    let request = SetStatusTextRequest { request_id: fresh_id(), text: text.to_owned() };
    StatusServiceClient::new(client.channel()).set_status_text(request).await.expect("it is set");
}

#[tokio::test]
async fn the_operator_follows_all_agents_and_an_agent_itself_and_its_children() {
    let mut rig = Rig::new(TREE);
    rig.start_broker().await;
    let (mut all, mut adas) =
        (watch(&rig.operator().await).await, watch(&rig.agent("ada").await).await);
    assert_eq!(all.names, ["ada", "bob", "cyd"]);
    assert_eq!(adas.names, ["ada", "bob"]);

    set_status(&rig.agent("cyd").await, "not for ada").await;
    set_status(&rig.agent("bob").await, "busy").await;
    let seen = all.until("cyd", |agent| !agent.status_text.is_empty()).await;
    assert_eq!(seen.status_text, "not for ada");
    let Step::Batch(first) = step(&mut adas.stream).await else { panic!("a change comes") };
    let names: Vec<&str> = first.agents.iter().map(|agent| agent.name.as_str()).collect();
    assert_eq!(names, ["bob"], "the first change that ada hears of is her child's");

    rig.start_harness("bob", &[]);
    let seen = all.until("bob", |agent| agent.state() == HarnessState::Idle).await;
    assert!(seen.running);
    rig.kill_harness("bob").await;
    let seen = all.until("bob", |agent| !agent.running).await;
    assert_eq!(seen.state(), HarnessState::Offline);

    let retired = rig.hivectl(&["agent", "retire", "bob"]).await;
    assert_eq!(retired.code, 0, "{retired:?}");
    adas.until("bob", |agent| agent.retired).await;
    rig.end().await;
}
