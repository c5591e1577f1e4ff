//! `TopologyService`.

use hive_proto::convert::{message, request as fields};
use hive_proto::status::bad_field;
use hive_proto::v1;
use tonic::{Request, Response, Status};

use crate::rpc::Rpc;
use crate::rpc::edge::caller;

/// Rows of a page of agents: the default, and the limit.
const AGENT_ROWS_DEFAULT: u32 = 200;
const AGENT_ROWS_MAX: u32 = 1000;

#[tonic::async_trait]
impl v1::topology_service_server::TopologyService for Rpc {
    async fn get_self(
        &self,
        request: Request<v1::GetSelfRequest>,
    ) -> Result<Response<v1::GetSelfResponse>, Status> {
        let agent = self.engine.get_self(caller::identify(&request)?).await?;
        Ok(Response::new(v1::GetSelfResponse { agent: Some(agent.into()) }))
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
        Ok(Response::new(v1::GetAgentResponse { agent: Some(agent.into()) }))
    }

    async fn list_agents(
        &self,
        request: Request<v1::ListAgentsRequest>,
    ) -> Result<Response<v1::ListAgentsResponse>, Status> {
        self.engine.check_lookup(caller::identify(&request)?).await?;
        let v1::ListAgentsRequest { page_size, page_token, include_retired } = request.into_inner();
        let after = message::optional_agent_name(&page_token, "page_token").map_err(|_| {
            bad_field("page_token", "is not a token of an earlier page; begin again without one")
        })?;
        let rows = fields::page_rows_of(page_size, AGENT_ROWS_DEFAULT, AGENT_ROWS_MAX);
        let after = after.map(String::from).unwrap_or_default();
        let (agents, more) = self.engine.list_agents(after, include_retired, rows).await?;
        let next_page_token =
            agents.last().filter(|_| more).map(|agent| agent.name.to_string()).unwrap_or_default();
        let agents = agents.into_iter().map(v1::Agent::from).collect();
        Ok(Response::new(v1::ListAgentsResponse { agents, next_page_token }))
    }

    async fn list_children(
        &self,
        request: Request<v1::ListChildrenRequest>,
    ) -> Result<Response<v1::ListChildrenResponse>, Status> {
        let caller = caller::identify(&request)?;
        self.engine.check_lookup(caller.clone()).await?;
        let name = message::optional_agent_name(&request.into_inner().name, "name")?;
        let agents = self.engine.list_children(caller, name).await?;
        let agents = agents.into_iter().map(v1::Agent::from).collect();
        Ok(Response::new(v1::ListChildrenResponse { agents }))
    }

    async fn find_agents(
        &self,
        request: Request<v1::FindAgentsRequest>,
    ) -> Result<Response<v1::FindAgentsResponse>, Status> {
        let caller = caller::identify(&request)?;
        let (agents, more) = self.engine.find_agents(caller, request.into_inner().text).await?;
        Ok(Response::new(v1::FindAgentsResponse {
            agents: agents.into_iter().map(Into::into).collect(),
            more,
        }))
    }
}
