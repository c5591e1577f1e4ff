//! `ServerInfoService`.

use hive_proto::v1;
use tonic::{Request, Response, Status};

use super::Rpc;
use crate::store::SCHEMA_VERSION;

/// The version of this broker.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

#[tonic::async_trait]
impl v1::server_info_service_server::ServerInfoService for Rpc {
    async fn get_server_info(
        &self,
        _request: Request<v1::GetServerInfoRequest>,
    ) -> Result<Response<v1::GetServerInfoResponse>, Status> {
        Ok(Response::new(v1::GetServerInfoResponse {
            version: VERSION.to_owned(),
            schema_version: SCHEMA_VERSION,
            features: Vec::new(),
            limits: Some(self.engine.limits().into()),
            hive_name: self.engine.identity().hive_name.clone(),
        }))
    }
}
