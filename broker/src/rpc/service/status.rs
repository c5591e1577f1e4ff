//! `StatusService`.

use hive_core::agent::HarnessState;
use hive_proto::convert::{self, request as fields, time};
use hive_proto::v1;
use tonic::{Request, Response, Status};

use crate::rpc::Rpc;
use crate::rpc::edge::caller;
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

    async fn report_harness_status(
        &self,
        request: Request<v1::ReportHarnessStatusRequest>,
    ) -> Result<Response<v1::ReportHarnessStatusResponse>, Status> {
        let caller = caller::identify(&request)?;
        let v1::ReportHarnessStatusRequest { session_token, state, until_time } =
            request.into_inner();
        let state = convert::value::<v1::HarnessState, HarnessState>(state, "state")?;
        // The broker decides how long a park lasts; the time of the harness is only checked for
        // form.
        time::optional_wall_time(until_time, "until_time")?;
        self.engine
            .report_harness(caller, fields::token(session_token, "session_token")?, state)
            .await?;
        Ok(Response::new(v1::ReportHarnessStatusResponse {}))
    }
}
