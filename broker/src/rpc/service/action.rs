//! `ActionService`: what an agent may ask to run.

use hive_proto::v1;
use tonic::{Request, Response, Status};

use crate::rpc::Rpc;
use crate::rpc::edge::caller;

#[tonic::async_trait]
impl v1::action_service_server::ActionService for Rpc {
    async fn get_actions(
        &self,
        request: Request<v1::GetActionsRequest>,
    ) -> Result<Response<v1::GetActionsResponse>, Status> {
        let caller = caller::actor(&request)?.caller;
        let actions = self.engine.actions_of(caller).await?;
        let actions = actions.into_iter().map(|(name, action)| v1::Action {
            name,
            description: action.description,
            args: action
                .args
                .into_iter()
                .map(|(name, pattern)| {
                    let pattern = pattern.as_str().to_owned();
                    v1::ActionArgument { name, pattern }
                })
                .collect(),
        });
        Ok(Response::new(v1::GetActionsResponse { actions: actions.collect() }))
    }
}
