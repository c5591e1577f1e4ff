//! `WakeService`.

use hive_core::id::MessageId;
use hive_core::reason::Reason;
use hive_proto::convert::{message, request as fields};
use hive_proto::status::refusal;
use hive_proto::v1;
use tonic::{Request, Response, Status};

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
        let (actor, holds_tokens) = (caller::actor(&request)?, caller::holds_tokens(&request));
        let mut wake = request.into_inner();
        // A later session may repeat the same wake.
        let session_token = std::mem::take(&mut wake.session_token);
        if !holds_tokens && !session_token.is_empty() {
            let sentence = "a session token counts only from the agent's own harness; leave `session_token` empty";
            return Err(refusal(Reason::PeerNotTrusted, sentence, None));
        }
        let key = request::key(&mut wake)?;
        let v1::WakeRequest { request_id: _, label, body, coalescing_key, session_token: _ } = wake;
        let wake = Wake {
            label: message::label(&label, "label")?,
            body,
            coalescing_key: fields::coalescing_key(coalescing_key, "coalescing_key")?,
            session_token: (!session_token.is_empty()).then_some(session_token),
        };
        let woken = self.engine.wake(actor, key, wake).await?;
        Ok(Response::new(v1::WakeResponse {
            message_id: woken.message.get(),
            superseded_message_id: woken.superseded.map_or(0, MessageId::get),
        }))
    }
}
