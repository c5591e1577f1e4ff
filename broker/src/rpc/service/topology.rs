//! `TopologyService`.

use std::sync::Arc;

use hive_proto::convert::{IntoWire, message};
use hive_proto::v1;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::{agents, watching};
use crate::rpc::Rpc;
use crate::rpc::edge::caller;
use crate::rpc::edge::page;
use crate::spawn::spawn;

#[tonic::async_trait]
impl v1::topology_service_server::TopologyService for Rpc {
    async fn get_self(
        &self,
        request: Request<v1::GetSelfRequest>,
    ) -> Result<Response<v1::GetSelfResponse>, Status> {
        let agent = self.engine.get_self(caller::identify(&request)?).await?;
        Ok(Response::new(v1::GetSelfResponse { agent: Some(agent.into_wire()) }))
    }

    async fn get_agent(
        &self,
        request: Request<v1::GetAgentRequest>,
    ) -> Result<Response<v1::GetAgentResponse>, Status> {
        let caller = caller::identify(&request)?;
        let name = message::agent_name(&request.into_inner().name, "name")?;
        if caller.agent() != Some(&name) {
            self.engine.check_lookup(caller).await?;
        }
        let agent = self.engine.get_agent(name).await?;
        Ok(Response::new(v1::GetAgentResponse { agent: Some(agent.into_wire()) }))
    }

    async fn list_agents(
        &self,
        request: Request<v1::ListAgentsRequest>,
    ) -> Result<Response<v1::ListAgentsResponse>, Status> {
        self.engine.check_lookup(caller::identify(&request)?).await?;
        let mut list = request.into_inner();
        let page = page::take(&mut list)?;
        let after = page.after.clone().unwrap_or_default();
        let (agents, more) =
            self.engine.list_agents(after, list.include_retired, page.rows).await?;
        let next = agents.last().filter(|_| more).map(|agent| agent.name.to_string());
        Ok(Response::new(v1::ListAgentsResponse {
            agents: agents.into_iter().map(IntoWire::into_wire).collect(),
            next_page_token: page.next(next),
        }))
    }

    async fn list_children(
        &self,
        request: Request<v1::ListChildrenRequest>,
    ) -> Result<Response<v1::ListChildrenResponse>, Status> {
        let caller = caller::identify(&request)?;
        self.engine.check_lookup(caller.clone()).await?;
        let mut list = request.into_inner();
        let page = page::take(&mut list)?;
        let name = message::optional_agent_name(&list.name, "name")?;
        let after = page.after.clone().unwrap_or_default();
        let (agents, more) = self.engine.list_children(caller, name, after, page.rows).await?;
        let next = agents.last().filter(|_| more).map(|agent| agent.name.to_string());
        Ok(Response::new(v1::ListChildrenResponse {
            agents: agents.into_iter().map(IntoWire::into_wire).collect(),
            next_page_token: page.next(next),
        }))
    }

    async fn find_agents(
        &self,
        request: Request<v1::FindAgentsRequest>,
    ) -> Result<Response<v1::FindAgentsResponse>, Status> {
        let caller = caller::identify(&request)?;
        let mut find = request.into_inner();
        let page = page::take(&mut find)?;
        let (agents, next) =
            self.engine.find_agents(caller, find.text, page.after.clone(), page.rows).await?;
        Ok(Response::new(v1::FindAgentsResponse {
            agents: agents.into_iter().map(IntoWire::into_wire).collect(),
            next_page_token: page.next(next),
        }))
    }

    type WatchAgentsStream = ReceiverStream<Result<v1::WatchAgentsResponse, Status>>;

    async fn watch_agents(
        &self,
        request: Request<v1::WatchAgentsRequest>,
    ) -> Result<Response<Self::WatchAgentsStream>, Status> {
        let caller = caller::identify(&request)?;
        let scope = self.engine.agent_scope(caller, request.into_inner().agent).await?;
        let (out, stream) = mpsc::channel(watching::STEPS);
        let engine = Arc::clone(&self.engine);
        spawn(&self.streams, async move {
            if let Err(refusal) = agents::watch(&engine, scope, &out).await {
                drop(out.send(Err(refusal.into())).await);
            }
        });
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}
