//! `ServerInfoService`.

use hive_proto::convert::{IntoWire as _, request as fields};
use hive_proto::handshake::REVISION;
use hive_proto::v1;
use tonic::{Request, Response, Status};

use crate::rpc::Rpc;
use crate::rpc::edge::caller;
use crate::store::SCHEMA_VERSION;

/// The version of this broker.
pub(in crate::rpc) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A broker of an older version lacks some.
const CAPABILITIES: v1::Capabilities = v1::Capabilities {
    questions: true,
    reminders: true,
    loose_ends: true,
    search: true,
    login_dialogues: true,
    backups: true,
    schedules: true,
};

#[tonic::async_trait]
impl v1::server_info_service_server::ServerInfoService for Rpc {
    async fn get_server_info(
        &self,
        request: Request<v1::GetServerInfoRequest>,
    ) -> Result<Response<v1::GetServerInfoResponse>, Status> {
        let caller = caller::identify(&request)?;
        let v1::GetServerInfoRequest { client_name, client_version, contract_revision } =
            request.into_inner();
        let client = fields::client_text(client_name, "client_name")?;
        let version = fields::client_text(client_version, "client_version")?;
        tracing::debug!(caller = %caller.name(), client, version, contract_revision, "a client connected");
        Ok(Response::new(v1::GetServerInfoResponse {
            version: VERSION.to_owned(),
            schema_version: SCHEMA_VERSION,
            capabilities: Some(CAPABILITIES),
            limits: Some(self.engine.limits().into_wire()),
            hive_name: self.engine.identity().hive_name.clone(),
            contract_revision: REVISION,
            log_id: self.engine.log_id().to_owned(),
        }))
    }
}
