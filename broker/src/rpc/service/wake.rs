//! `WakeService`.

use hive_core::id::MessageId;
use hive_proto::SESSION_TOKEN_KEY;
use hive_proto::convert::{message, request as fields};
use hive_proto::v1;
use tonic::{Request, Response, Status};

use crate::engine::Refusal;
use crate::engine::mail::wake::Wake;
use crate::rpc::Rpc;
use crate::rpc::edge::caller;
use crate::rpc::edge::request;

#[tonic::async_trait]
impl v1::wake_service_server::WakeService for Rpc {
    async fn wake(
        &self,
        request: Request<v1::WakeRequest>,
    ) -> Result<Response<v1::WakeResponse>, Status> {
        let (actor, holds_tokens) = (caller::sender(&request)?, caller::holds_tokens(&request));
        let session_token = caller::session_token(&request)?;
        if !holds_tokens && session_token.is_some() {
            let sentence = format!(
                "a session token counts only from the agent's own harness; leave `{SESSION_TOKEN_KEY}` out"
            );
            return Err(Refusal::PeerNotTrusted { sentence }.into());
        }
        let mut wake = request.into_inner();
        let key = request::key(&mut wake)?;
        let v1::WakeRequest { request_id: _, label, body, coalescing_key } = wake;
        let wake = Wake {
            label: message::label(&label, "label")?,
            body,
            coalescing_key: fields::coalescing_key(coalescing_key, "coalescing_key")?,
            session_token,
        };
        let woken = self.engine.wake(actor, key, wake).await?;
        Ok(Response::new(v1::WakeResponse {
            message_id: woken.message.get(),
            superseded_message_id: woken.superseded.map_or(0, MessageId::get),
        }))
    }
}
