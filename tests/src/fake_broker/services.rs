//! The services that the bridge uses; every other RPC is unimplemented.

use std::sync::Arc;

use hive_proto::PROCESS_TOKEN_KEY;
use hive_proto::status;
use hive_proto::v1::inbox_service_server::{InboxService, InboxServiceServer};
use hive_proto::v1::loose_end_service_server::LooseEndServiceServer;
use hive_proto::v1::message_service_server::{MessageService, MessageServiceServer};
use hive_proto::v1::question_service_server::QuestionServiceServer;
use hive_proto::v1::reminder_service_server::ReminderServiceServer;
use hive_proto::v1::status_service_server::StatusServiceServer;
use hive_proto::v1::topology_service_server::{TopologyService, TopologyServiceServer};
use hive_proto::v1::turn_service_server::{TurnService, TurnServiceServer};
use hive_proto::v1::*;
use tonic::transport::Server;
use tonic::transport::server::Router;
use tonic::{Request, Response, Status, Streaming, async_trait};

use super::{Reaction, Recorded, Rpc, Shared, State};

pub(super) fn router(shared: &Arc<Shared>) -> Router {
    let service = || Service(Arc::clone(shared));
    Server::builder()
        .add_service(MessageServiceServer::new(service()))
        .add_service(InboxServiceServer::new(service()))
        .add_service(TopologyServiceServer::new(service()))
        .add_service(TurnServiceServer::new(service()))
        .add_service(QuestionServiceServer::new(service()))
        .add_service(ReminderServiceServer::new(service()))
        .add_service(LooseEndServiceServer::new(service()))
        .add_service(StatusServiceServer::new(service()))
}

pub(super) struct Service(Arc<Shared>);

/// Counts a call as dropped unless it was answered.
struct Guard {
    shared: Arc<Shared>,
    answered: bool,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.answered {
            self.shared.change(|state| state.dropped_count += 1);
        }
    }
}

impl Service {
    /// Records a call, and does what the test wants done with it; `act` is the effect.
    pub(super) async fn take<M: Clone, R>(
        &self,
        request: &Request<M>,
        rpc: impl FnOnce(M) -> Rpc,
        act: impl FnOnce(&mut State) -> Result<R, Status>,
    ) -> Result<Response<R>, Status> {
        let mut guard = Guard { shared: Arc::clone(&self.0), answered: false };
        let process_token = request
            .metadata()
            .get(PROCESS_TOKEN_KEY)
            .and_then(|token| token.to_str().ok())
            .map(str::to_owned);
        let rpc = rpc(request.get_ref().clone());
        let reaction = self.0.change(|state| {
            state.calls.push(Recorded { rpc, process_token });
            state.reactions.pop_front()
        });
        let answer = match reaction {
            None => self.0.change(act),
            Some(Reaction::Refuse(status)) => Err(status),
            Some(Reaction::ActAndHang) => {
                let _ = self.0.change(act);
                std::future::pending().await
            }
            Some(Reaction::Hang) => std::future::pending().await,
        };
        guard.answered = true;
        answer.map(Response::new)
    }
}

#[async_trait]
impl MessageService for Service {
    async fn send_message(
        &self,
        request: Request<SendMessageRequest>,
    ) -> Result<Response<SendMessageResponse>, Status> {
        let asked = request.get_ref().clone();
        self.take(&request, Rpc::Send, |state| {
            let known = state.receipts.get(&asked.request_id).copied();
            let message_id = known.unwrap_or_else(|| state.next_id());
            state.receipts.insert(asked.request_id, message_id);
            Ok(SendMessageResponse {
                message_id,
                recipient_count: 1,
                ..SendMessageResponse::default()
            })
        })
        .await
    }

    async fn get_message(
        &self,
        _: Request<GetMessageRequest>,
    ) -> Result<Response<GetMessageResponse>, Status> {
        Err(Status::unimplemented("GetMessage"))
    }

    async fn list_messages(
        &self,
        _: Request<ListMessagesRequest>,
    ) -> Result<Response<ListMessagesResponse>, Status> {
        Err(Status::unimplemented("ListMessages"))
    }

    async fn search_messages(
        &self,
        _: Request<SearchMessagesRequest>,
    ) -> Result<Response<SearchMessagesResponse>, Status> {
        Err(Status::unimplemented("SearchMessages"))
    }
}

impl State {
    /// Hands out what fits, the same again for the same request id; `None` where nothing is there
    /// yet.
    fn lease(&mut self, asked: &ReceiveMessagesRequest) -> Option<ReceiveMessagesResponse> {
        if !self.leases.contains_key(&asked.request_id) {
            if self.mail.is_empty() || self.served_alone {
                return None;
            }
            let count = self.mail.len().min(asked.max_deliveries.max(1) as usize);
            let deliveries = self.mail.drain(..count).collect();
            self.leases.insert(asked.request_id.clone(), deliveries);
        }
        let leased = |delivery: &Delivery| LeasedDelivery {
            delivery: Some(delivery.clone()),
            ..LeasedDelivery::default()
        };
        let deliveries = self.leases[&asked.request_id].iter().map(leased).collect();
        Some(ReceiveMessagesResponse { deliveries, ..self.nothing() })
    }

    fn nothing(&self) -> ReceiveMessagesResponse {
        let pending_count = u32::try_from(self.mail.len()).unwrap_or(u32::MAX);
        ReceiveMessagesResponse {
            deliveries: Vec::new(),
            pending_count,
            served_alone: self.served_alone,
        }
    }
}

#[async_trait]
impl InboxService for Service {
    async fn receive_messages(
        &self,
        request: Request<ReceiveMessagesRequest>,
    ) -> Result<Response<ReceiveMessagesResponse>, Status> {
        let asked = request.get_ref().clone();
        let first = self.take(&request, Rpc::Receive, |state| Ok(state.lease(&asked))).await?;
        if let Some(response) = first.into_inner() {
            return Ok(Response::new(response));
        }
        let mut guard = Guard { shared: Arc::clone(&self.0), answered: false };
        let wait = asked
            .wait
            .and_then(|wait| std::time::Duration::try_from(wait).ok())
            .unwrap_or_default();
        let mut changed = self.0.changed.subscribe();
        let found = tokio::time::timeout(wait, async {
            loop {
                if let Some(response) = self.0.state().lease(&asked) {
                    return response;
                }
                changed.changed().await.expect("the sender lives as long as the service");
            }
        });
        let response = match found.await {
            Ok(response) => response,
            Err(_) => self.0.state().nothing(),
        };
        guard.answered = true;
        Ok(Response::new(response))
    }

    async fn ack_delivery(
        &self,
        _: Request<AckDeliveryRequest>,
    ) -> Result<Response<AckDeliveryResponse>, Status> {
        Err(Status::unimplemented("AckDelivery"))
    }

    async fn nack_delivery(
        &self,
        _: Request<NackDeliveryRequest>,
    ) -> Result<Response<NackDeliveryResponse>, Status> {
        Err(Status::unimplemented("NackDelivery"))
    }

    async fn extend_lease(
        &self,
        _: Request<ExtendLeaseRequest>,
    ) -> Result<Response<ExtendLeaseResponse>, Status> {
        Err(Status::unimplemented("ExtendLease"))
    }

    async fn get_inbox_status(
        &self,
        _: Request<GetInboxStatusRequest>,
    ) -> Result<Response<GetInboxStatusResponse>, Status> {
        Err(Status::unimplemented("GetInboxStatus"))
    }

    async fn list_deliveries(
        &self,
        _: Request<ListDeliveriesRequest>,
    ) -> Result<Response<ListDeliveriesResponse>, Status> {
        Err(Status::unimplemented("ListDeliveries"))
    }
}

#[async_trait]
impl TopologyService for Service {
    async fn get_self(
        &self,
        request: Request<GetSelfRequest>,
    ) -> Result<Response<GetSelfResponse>, Status> {
        self.take(
            &request,
            |_| Rpc::GetSelf,
            |state| Ok(GetSelfResponse { agent: state.agents.first().cloned() }),
        )
        .await
    }

    async fn get_agent(
        &self,
        request: Request<GetAgentRequest>,
    ) -> Result<Response<GetAgentResponse>, Status> {
        let name = request.get_ref().name.clone();
        self.take(&request, Rpc::GetAgent, |state| {
            match state.agents.iter().find(|agent| agent.name == name) {
                Some(agent) => Ok(GetAgentResponse { agent: Some(agent.clone()) }),
                None => {
                    let sentence = format!("there is no agent `{name}`");
                    Err(status::refusal(hive_core::reason::Reason::AgentNotFound, sentence, None))
                }
            }
        })
        .await
    }

    async fn list_agents(
        &self,
        _: Request<ListAgentsRequest>,
    ) -> Result<Response<ListAgentsResponse>, Status> {
        Err(Status::unimplemented("ListAgents"))
    }

    async fn list_children(
        &self,
        _: Request<ListChildrenRequest>,
    ) -> Result<Response<ListChildrenResponse>, Status> {
        Err(Status::unimplemented("ListChildren"))
    }

    async fn find_agents(
        &self,
        request: Request<FindAgentsRequest>,
    ) -> Result<Response<FindAgentsResponse>, Status> {
        let text = request.get_ref().text.clone();
        self.take(&request, Rpc::FindAgents, |state| {
            let others = state.agents.iter().skip(1).filter(|agent| agent.name.contains(&text));
            let found = others.map(|agent| FoundAgent {
                name: agent.name.clone(),
                parent: agent.parent.clone(),
                role: agent.role.clone(),
                state: agent.state,
                status_text: agent.status_text.clone(),
                may_write: true,
            });
            Ok(FindAgentsResponse { agents: found.collect(), more: false })
        })
        .await
    }
}

#[async_trait]
impl TurnService for Service {
    type AttachStream = tokio_stream::Empty<Result<AttachResponse, Status>>;

    async fn attach(
        &self,
        _: Request<AttachRequest>,
    ) -> Result<Response<Self::AttachStream>, Status> {
        Err(Status::unimplemented("Attach"))
    }

    async fn ack_command(
        &self,
        _: Request<AckCommandRequest>,
    ) -> Result<Response<AckCommandResponse>, Status> {
        Err(Status::unimplemented("AckCommand"))
    }

    async fn begin_turn(
        &self,
        _: Request<BeginTurnRequest>,
    ) -> Result<Response<BeginTurnResponse>, Status> {
        Err(Status::unimplemented("BeginTurn"))
    }

    async fn open_turn(
        &self,
        _: Request<OpenTurnRequest>,
    ) -> Result<Response<OpenTurnResponse>, Status> {
        Err(Status::unimplemented("OpenTurn"))
    }

    async fn request_next_turn(
        &self,
        request: Request<RequestNextTurnRequest>,
    ) -> Result<Response<RequestNextTurnResponse>, Status> {
        self.take(&request, |_| Rpc::RequestNextTurn, |_| Ok(RequestNextTurnResponse {})).await
    }

    async fn heartbeat(
        &self,
        _: Request<HeartbeatRequest>,
    ) -> Result<Response<HeartbeatResponse>, Status> {
        Err(Status::unimplemented("Heartbeat"))
    }

    async fn report_turn_events(
        &self,
        _: Request<Streaming<ReportTurnEventsRequest>>,
    ) -> Result<Response<ReportTurnEventsResponse>, Status> {
        Err(Status::unimplemented("ReportTurnEvents"))
    }

    async fn end_turn(
        &self,
        _: Request<EndTurnRequest>,
    ) -> Result<Response<EndTurnResponse>, Status> {
        Err(Status::unimplemented("EndTurn"))
    }

    async fn report_problem(
        &self,
        _request: Request<ReportProblemRequest>,
    ) -> Result<Response<ReportProblemResponse>, Status> {
        Err(Status::unimplemented("ReportProblem"))
    }

    type ServeLoginStream =
        tokio_stream::wrappers::ReceiverStream<Result<ServeLoginResponse, Status>>;

    async fn serve_login(
        &self,
        _request: Request<Streaming<ServeLoginRequest>>,
    ) -> Result<Response<Self::ServeLoginStream>, Status> {
        Err(Status::unimplemented("ServeLogin"))
    }
}
