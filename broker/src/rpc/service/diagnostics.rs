//! `DiagnosticsService`: logs, for agents.

use hive_proto::convert::{message, time};
use hive_proto::v1;
use tonic::{Request, Response, Status};

use crate::engine::launch::lines::Lines;
use crate::launches::asked::Source;
use crate::rpc::Rpc;
use crate::rpc::edge::caller;

#[tonic::async_trait]
impl v1::diagnostics_service_server::DiagnosticsService for Rpc {
    async fn get_logs(
        &self,
        request: Request<v1::GetLogsRequest>,
    ) -> Result<Response<v1::GetLogsResponse>, Status> {
        let actor = caller::actor(&request)?;
        let v1::GetLogsRequest { agent, lines } = request.into_inner();
        let source = Source::Harness(message::agent_name(&agent, "agent")?);
        let Lines { lines, truncated } = self.engine.read_logs(actor, source, lines).await?;
        Ok(Response::new(v1::GetLogsResponse { lines, truncated }))
    }

    async fn get_host_journal(
        &self,
        request: Request<v1::GetHostJournalRequest>,
    ) -> Result<Response<v1::GetHostJournalResponse>, Status> {
        let actor = caller::actor(&request)?;
        let v1::GetHostJournalRequest { unit, since, lines } = request.into_inner();
        let since = time::optional_wall_time(since, "since")?;
        let source = Source::Journal { unit, since };
        let Lines { lines, truncated } = self.engine.read_logs(actor, source, lines).await?;
        Ok(Response::new(v1::GetHostJournalResponse { lines, truncated }))
    }
}
