//! `MessageService`.

use hive_core::id::MessageId;
use hive_proto::convert::{self, IntoWire, Invalid, time};
use hive_proto::v1;
use tonic::{Request, Response, Status, Streaming};

use super::sends;
use crate::engine::mail::search::{Hit, Search};
use crate::engine::mail::send::{Receipt, Send};
use crate::rpc::Rpc;
use crate::rpc::edge::caller;
use crate::rpc::edge::page;
use crate::rpc::edge::request;

fn wire_hit(hit: Hit) -> v1::search_hit::Hit {
    match hit {
        Hit::Message(message) => v1::search_hit::Hit::Message(message.into_wire()),
        Hit::Question(question) => v1::search_hit::Hit::Question(question.into_wire()),
    }
}

/// Parses a message to send.
pub(super) fn send(wire: v1::SendMessageRequest) -> Result<Send, Invalid> {
    let v1::SendMessageRequest { request_id: _, to, body, in_reply_to } = wire;
    Ok(Send {
        to: convert::required_as(to, "to")?,
        body,
        in_reply_to: convert::optional_id(in_reply_to, MessageId::new, "in_reply_to")?,
    })
}

/// Returns a receipt on the wire.
pub(super) fn receipt(receipt: Receipt) -> v1::SendMessageResponse {
    let Receipt { message, already_sent, skipped, recipients, accept_time, ahead } = receipt;
    v1::SendMessageResponse {
        message_id: message.get(),
        already_sent,
        skipped_agents: skipped,
        recipient_count: recipients,
        accept_time: Some(time::timestamp(accept_time)),
        ahead_count: ahead,
    }
}

#[tonic::async_trait]
impl v1::message_service_server::MessageService for Rpc {
    async fn send_message(
        &self,
        request: Request<v1::SendMessageRequest>,
    ) -> Result<Response<v1::SendMessageResponse>, Status> {
        let (actor, key, message) = request::sending(request)?;
        Ok(Response::new(receipt(self.engine.send(actor, key, send(message)?).await?)))
    }

    type StreamMessagesStream = sends::Answers;

    async fn stream_messages(
        &self,
        request: Request<Streaming<v1::StreamMessagesRequest>>,
    ) -> Result<Response<Self::StreamMessagesStream>, Status> {
        sends::open(self, request)
    }

    async fn get_message(
        &self,
        request: Request<v1::GetMessageRequest>,
    ) -> Result<Response<v1::GetMessageResponse>, Status> {
        let caller = caller::identify(&request)?;
        let id = convert::id(request.into_inner().message_id, MessageId::new, "message_id")?;
        let message = self.engine.get_message(caller, id).await?;
        Ok(Response::new(v1::GetMessageResponse { message: Some(message.into_wire()) }))
    }

    async fn list_messages(
        &self,
        request: Request<v1::ListMessagesRequest>,
    ) -> Result<Response<v1::ListMessagesResponse>, Status> {
        let caller = caller::identify(&request)?;
        let mut list = request.into_inner();
        let page = page::take(&mut list)?;
        let thread = convert::optional_id(list.thread_of, MessageId::new, "thread_of")?;
        let (messages, more) =
            self.engine.list_messages(caller, list.agent, thread, page.after, page.rows).await?;
        let next = messages.last().filter(|_| more).map(|message| message.id);
        Ok(Response::new(v1::ListMessagesResponse {
            messages: messages.into_iter().map(IntoWire::into_wire).collect(),
            next_page_token: page.next(next),
        }))
    }

    async fn list_recipients(
        &self,
        request: Request<v1::ListRecipientsRequest>,
    ) -> Result<Response<v1::ListRecipientsResponse>, Status> {
        let caller = caller::identify(&request)?;
        let mut list = request.into_inner();
        let page = page::take(&mut list)?;
        let id = convert::id(list.message_id, MessageId::new, "message_id")?;
        let after = page.after.clone().unwrap_or_default();
        let (names, next) = self.engine.list_recipients(caller, id, after, page.rows).await?;
        Ok(Response::new(v1::ListRecipientsResponse {
            recipients: names.into_iter().map(|name| v1::MessageRecipient { name }).collect(),
            next_page_token: page.next(next),
        }))
    }

    async fn search_messages(
        &self,
        request: Request<v1::SearchMessagesRequest>,
    ) -> Result<Response<v1::SearchMessagesResponse>, Status> {
        let caller = caller::identify(&request)?;
        let mut search = request.into_inner();
        let page = page::take(&mut search)?;
        let v1::SearchMessagesRequest { query, agent, .. } = search;
        let search = Search { query, agent, before: page.after, rows: page.rows };
        let (hits, next) = self.engine.search_messages(caller, search).await?;
        Ok(Response::new(v1::SearchMessagesResponse {
            hits: hits.into_iter().map(|hit| v1::SearchHit { hit: Some(wire_hit(hit)) }).collect(),
            next_page_token: page.next(next),
        }))
    }
}
