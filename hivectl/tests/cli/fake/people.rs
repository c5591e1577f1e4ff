//! Agents and events, as the script has them.

use std::pin::Pin;

use hive_core::reason::Reason;
use hive_proto::status::refusal;
use hive_proto::v1::event_service_server::EventService;
use hive_proto::v1::topology_service_server::TopologyService;
use hive_proto::v1::watch_events_response::Step;
use hive_proto::v1::*;
use tokio_stream::wrappers::BroadcastStream;
use tokio_stream::{Stream, StreamExt as _, once};
use tonic::{Request, Response, Status};

use super::{Answer, Script, data, unused};

pub(super) type Streaming<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl TopologyService for Script {
    async fn get_self(&self, _: Request<GetSelfRequest>) -> Answer<GetSelfResponse> {
        unused()
    }

    async fn get_agent(&self, request: Request<GetAgentRequest>) -> Answer<GetAgentResponse> {
        let name = request.into_inner().name;
        let agent = data::agents().into_iter().find(|agent| agent.name == name);
        let agent = agent.ok_or_else(|| {
            refusal(Reason::AgentNotFound, format!("there is no agent `{name}`"), None)
        })?;
        Ok(Response::new(GetAgentResponse { agent: Some(agent) }))
    }

    async fn list_agents(&self, request: Request<ListAgentsRequest>) -> Answer<ListAgentsResponse> {
        let mut agents = if self.empty { Vec::new() } else { data::agents() };
        agents.truncate(self.agents);
        if request.into_inner().include_retired {
            agents.push(Agent { name: "old".to_owned(), retired: true, ..Agent::default() });
        }
        Ok(Response::new(ListAgentsResponse { agents, next_page_token: String::new() }))
    }

    async fn list_children(&self, _: Request<ListChildrenRequest>) -> Answer<ListChildrenResponse> {
        unused()
    }

    async fn find_agents(&self, _: Request<FindAgentsRequest>) -> Answer<FindAgentsResponse> {
        unused()
    }
}

#[tonic::async_trait]
impl EventService for Script {
    async fn list_events(&self, request: Request<ListEventsRequest>) -> Answer<ListEventsResponse> {
        let ListEventsRequest { after_sequence, page_size: _, agent } = request.into_inner();
        let mut events = if self.empty { Vec::new() } else { data::events() };
        let last_sequence = events.last().map_or(0, |event| event.sequence);
        events.retain(|event| {
            event.sequence > after_sequence && (agent.is_empty() || event.agent == agent)
        });
        // Short pages, so that paging is used.
        events.truncate(4);
        Ok(Response::new(ListEventsResponse { events, last_sequence }))
    }

    type WatchEventsStream = Streaming<WatchEventsResponse>;

    async fn watch_events(
        &self,
        _: Request<WatchEventsRequest>,
    ) -> Answer<Self::WatchEventsStream> {
        let live = BroadcastStream::new(self.events.subscribe());
        let snapshot = EventSnapshot { first_sequence: 1, last_sequence: 13, gap: false };
        let events = live.map(|event| Step::Event(event.expect("the test sends few")));
        let steps = once(Step::Snapshot(snapshot))
            .chain(events)
            .map(|step| Ok(WatchEventsResponse { step: Some(step) }));
        let _ = self.watched.send(());
        Ok(Response::new(Box::pin(steps)))
    }
}
