//! Mail, as the script has it. Some recipients stand for a refusal.

use std::time::Duration;

use hive_core::reason::Reason;
use hive_proto::status::refusal;
use hive_proto::v1::ack_delivery_request::Target;
use hive_proto::v1::inbox_service_server::InboxService;
use hive_proto::v1::message_service_server::MessageService;
use hive_proto::v1::recipient::To;
use hive_proto::v1::*;
use tonic::{Request, Response, Status};

use super::{Answer, Script, data, open, refused, unused};

#[tonic::async_trait]
impl MessageService for Script {
    async fn send_message(
        &self,
        request: Request<SendMessageRequest>,
    ) -> Answer<SendMessageResponse> {
        let SendMessageRequest { request_id, to, body, in_reply_to, .. } = request.into_inner();
        let to = match to.and_then(|to| to.to).expect("a recipient") {
            To::Agent(name) => name,
            To::Everyone(EveryoneRecipient {}) => "*".to_owned(),
            To::Operator(_) | To::Parent(_) => {
                return Err(Status::internal("the operator never sends there"));
            }
        };
        let tries = self.change(&request_id, format!("send {to}: {body:?}, answers {in_reply_to}"));
        match to.as_str() {
            "bbo" => {
                return Err(refusal(
                    Reason::AgentNotFound,
                    "there is no agent `bbo`; did you mean `bob`?",
                    None,
                ));
            }
            "walled" => {
                return Err(refusal(
                    Reason::RecipientNotAllowed,
                    "you may not send to `walled`",
                    None,
                ));
            }
            "hasty" => {
                return Err(refusal(
                    Reason::RateLimited,
                    "600 messages a minute are allowed",
                    Some(Duration::from_secs(2)),
                ));
            }
            "silent" => std::future::pending().await,
            "draining" => {
                return refused(Reason::Draining, "the broker is shutting down");
            }
            // The connection breaks after the request was read, once.
            "flaky" if tries == 1 => return Err(Status::unavailable("transport lost")),
            "lost" => return Err(Status::unavailable("transport lost")),
            _ => {}
        }
        Ok(Response::new(SendMessageResponse {
            message_id: 20,
            recipient_count: if to == "*" { 2 } else { 1 },
            skipped_agents: if to == "*" { vec!["full".to_owned()] } else { Vec::new() },
            accept_time: data::at(6000),
            already_sent: false,
            ahead_count: (to != "*").then_some(3),
        }))
    }

    async fn get_message(&self, request: Request<GetMessageRequest>) -> Answer<GetMessageResponse> {
        let id = request.into_inner().message_id;
        let message = data::message(id);
        let message = message.ok_or_else(|| {
            refusal(Reason::MessageNotFound, format!("there is no message {id}"), None)
        })?;
        Ok(Response::new(GetMessageResponse { message: Some(message) }))
    }

    async fn list_messages(
        &self,
        request: Request<ListMessagesRequest>,
    ) -> Answer<ListMessagesResponse> {
        let thread = request.into_inner().thread_of;
        let mut messages = vec![data::answer(), data::question()];
        messages.retain(|message| message.id == thread || message.in_reply_to == thread);
        Ok(Response::new(ListMessagesResponse { messages, next_page_token: String::new() }))
    }

    /// Everything is found by every word but `nothing`; `many` finds 60.
    async fn search_messages(
        &self,
        request: Request<SearchMessagesRequest>,
    ) -> Answer<SearchMessagesResponse> {
        let SearchMessagesRequest { query, page_size, page_token, agent } = request.into_inner();
        if agent == "bbo" {
            return Err(refusal(
                Reason::AgentNotFound,
                "there is no agent `bbo`; did you mean `bob`?",
                None,
            ));
        }
        let all: Vec<search_hit::Hit> = match (query.as_str(), agent.as_str()) {
            ("nothing", _) => Vec::new(),
            ("many", _) => (0..60).map(|_| search_hit::Hit::Message(data::answer())).collect(),
            (_, "ada") => vec![search_hit::Hit::Message(data::answer())],
            (_, _) => vec![
                search_hit::Hit::Question(open::deploy()),
                search_hit::Hit::Message(data::answer()),
            ],
        };
        let first = page_token.parse().unwrap_or(0_usize);
        let next = first + usize::try_from(page_size).expect("few");
        let hits = all
            .iter()
            .skip(first)
            .take(next - first)
            .map(|hit| SearchHit { hit: Some(hit.clone()) })
            .collect();
        let next_page_token = if next < all.len() { next.to_string() } else { String::new() };
        Ok(Response::new(SearchMessagesResponse { hits, next_page_token }))
    }
}

#[tonic::async_trait]
impl InboxService for Script {
    async fn receive_messages(
        &self,
        _: Request<ReceiveMessagesRequest>,
    ) -> Answer<ReceiveMessagesResponse> {
        unused()
    }

    async fn ack_delivery(
        &self,
        request: Request<AckDeliveryRequest>,
    ) -> Answer<AckDeliveryResponse> {
        let AckDeliveryRequest { request_id, target } = request.into_inner();
        let Some(Target::Key(key)) = target else {
            return Err(Status::internal("the operator has no lease"));
        };
        self.change(&request_id, format!("ack {} of {}", key.message_id, key.agent));
        if key.message_id == 12 {
            return refused(Reason::WrongState, "message 12 is dead, not waiting");
        }
        Ok(Response::new(AckDeliveryResponse {}))
    }

    async fn nack_delivery(&self, _: Request<NackDeliveryRequest>) -> Answer<NackDeliveryResponse> {
        unused()
    }

    async fn extend_lease(&self, _: Request<ExtendLeaseRequest>) -> Answer<ExtendLeaseResponse> {
        unused()
    }

    async fn get_inbox_status(
        &self,
        _: Request<GetInboxStatusRequest>,
    ) -> Answer<GetInboxStatusResponse> {
        let mail = if self.empty { Vec::new() } else { data::mail() };
        Ok(Response::new(GetInboxStatusResponse {
            ready_count: u32::try_from(mail.len()).expect("few"),
            oldest_ready_time: mail.first().and_then(|delivery| delivery.state_time),
            ..GetInboxStatusResponse::default()
        }))
    }

    /// Pages of one row, so that paging is used.
    async fn list_deliveries(
        &self,
        request: Request<ListDeliveriesRequest>,
    ) -> Answer<ListDeliveriesResponse> {
        let ListDeliveriesRequest { page_size: _, page_token, agent, states } =
            request.into_inner();
        let all = match agent.as_str() {
            _ if self.empty => Vec::new(),
            "" => data::mail(),
            "ada" => data::held(),
            _ => Vec::new(),
        };
        let all: Vec<Delivery> = all
            .into_iter()
            .filter(|delivery| states.is_empty() || states.contains(&delivery.state))
            .collect();
        let first = page_token.parse().unwrap_or(0_usize);
        let next_page_token =
            if first + 1 < all.len() { (first + 1).to_string() } else { String::new() };
        Ok(Response::new(ListDeliveriesResponse {
            deliveries: all.into_iter().skip(first).take(1).collect(),
            next_page_token,
        }))
    }
}
