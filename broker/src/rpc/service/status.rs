//! `StatusService`.

use hive_proto::v1;
use tonic::{Request, Response, Status};

use crate::rpc::Rpc;
use crate::rpc::edge::request;

#[tonic::async_trait]
impl v1::status_service_server::StatusService for Rpc {
    async fn set_status_text(
        &self,
        request: Request<v1::SetStatusTextRequest>,
    ) -> Result<Response<v1::SetStatusTextResponse>, Status> {
        let (actor, key, status) = request::action(request)?;
        self.engine.set_status_text(actor, key, status.text).await?;
        Ok(Response::new(v1::SetStatusTextResponse {}))
    }
}
