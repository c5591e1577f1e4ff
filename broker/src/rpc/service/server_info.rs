//! `ServerInfoService`.

use hive_proto::v1;
use tonic::{Request, Response, Status};

use crate::rpc::Rpc;
use crate::store::SCHEMA_VERSION;

/// The version of this broker.
pub(in crate::rpc) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Features that a client may check before it uses them; a broker of an older version lacks some.
const FEATURES: [&str; 4] = ["questions", "reminders", "loose_ends", "search"];

#[tonic::async_trait]
impl v1::server_info_service_server::ServerInfoService for Rpc {
    async fn get_server_info(
        &self,
        _request: Request<v1::GetServerInfoRequest>,
    ) -> Result<Response<v1::GetServerInfoResponse>, Status> {
        Ok(Response::new(v1::GetServerInfoResponse {
            version: VERSION.to_owned(),
            schema_version: SCHEMA_VERSION,
            features: FEATURES.map(str::to_owned).to_vec(),
            limits: Some(self.engine.limits().into()),
            hive_name: self.engine.identity().hive_name.clone(),
        }))
    }
}
