//! `LifecycleService`: agents that start, stop and restart those below them.

use hive_proto::convert::{IntoWire, message};
use hive_proto::v1;
use tonic::{Request, Response, Status};

use crate::engine::launch::wanted::Wish;
use crate::rpc::Rpc;
use crate::rpc::edge::{caller, request};

impl Rpc {
    /// Carries out the wish of an agent about another one; returns the other one.
    async fn wish_below<M: request::Identified>(
        &self,
        request: Request<M>,
        read: impl FnOnce(M) -> (String, Wish),
    ) -> Result<v1::Agent, Status> {
        let actor = caller::actor(&request)?;
        let mut message = request.into_inner();
        let key = request::key(&mut message)?;
        let (name, wish) = read(message);
        let name = message::agent_name(&name, "name")?;
        Ok(self.engine.wish_below(actor, key, name, wish).await?.into_wire())
    }
}

#[tonic::async_trait]
impl v1::lifecycle_service_server::LifecycleService for Rpc {
    async fn start_child(
        &self,
        request: Request<v1::StartChildRequest>,
    ) -> Result<Response<v1::StartChildResponse>, Status> {
        let read =
            |start: v1::StartChildRequest| (start.name, Wish::Start { on_demand: start.on_demand });
        let agent = Some(self.wish_below(request, read).await?);
        Ok(Response::new(v1::StartChildResponse { agent }))
    }

    async fn stop_child(
        &self,
        request: Request<v1::StopChildRequest>,
    ) -> Result<Response<v1::StopChildResponse>, Status> {
        let agent = Some(self.wish_below(request, |stop| (stop.name, Wish::Stop)).await?);
        Ok(Response::new(v1::StopChildResponse { agent }))
    }

    async fn restart_child(
        &self,
        request: Request<v1::RestartChildRequest>,
    ) -> Result<Response<v1::RestartChildResponse>, Status> {
        let agent = Some(self.wish_below(request, |restart| (restart.name, Wish::Restart)).await?);
        Ok(Response::new(v1::RestartChildResponse { agent }))
    }
}
