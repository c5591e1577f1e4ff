//! The operator's tools, as the script has them.

use std::sync::atomic::Ordering;
use std::time::Duration;

use hive_core::reason::Reason;
use hive_proto::status::{bad_field, refusal};
use hive_proto::v1::admin_service_server::AdminService;
use hive_proto::v1::command::Command as Order;
use hive_proto::v1::*;
use tokio_stream::{StreamExt as _, iter, pending};
use tonic::{Request, Response};

use super::people::Streaming;
use super::{Answer, Script, data, refused};

/// How large the scripted database is.
pub(crate) const DATABASE_BYTES: usize = 3500;

fn key(key: Option<DeliveryKey>) -> String {
    let key = key.expect("a key");
    format!("{} of {}", key.message_id, key.agent)
}

#[tonic::async_trait]
impl AdminService for Script {
    async fn create_agent(
        &self,
        request: Request<CreateAgentRequest>,
    ) -> Answer<CreateAgentResponse> {
        let CreateAgentRequest { request_id, name, parent, role, model, policy, adopt } =
            request.into_inner();
        self.change(
            &request_id,
            format!(
                "create {name} below {parent:?}, {role:?}, {model:?}, {policy:?}, adopt {adopt}"
            ),
        );
        match name.as_str() {
            "ada" => refused(Reason::AgentExists, "there is an agent `ada` already"),
            "Bad" => Err(bad_field("name", "`Bad` is no name")),
            _ => {
                let agent =
                    Agent { name, parent, state: HarnessState::Offline.into(), ..Agent::default() };
                Ok(Response::new(CreateAgentResponse {
                    agent: Some(agent),
                    socket_path: "/run/x/hive.sock".to_owned(),
                }))
            }
        }
    }

    async fn remove_agent(
        &self,
        request: Request<RemoveAgentRequest>,
    ) -> Answer<RemoveAgentResponse> {
        let RemoveAgentRequest { request_id, name, purge } = request.into_inner();
        self.change(&request_id, format!("{} {name}", if purge { "purge" } else { "remove" }));
        let (kept_count, dropped_count) = if purge { (0, 3) } else { (3, 0) };
        Ok(Response::new(RemoveAgentResponse { kept_count, dropped_count, purge_id: 0 }))
    }

    async fn stop_agent(&self, request: Request<StopAgentRequest>) -> Answer<StopAgentResponse> {
        let StopAgentRequest { request_id, name } = request.into_inner();
        self.change(&request_id, format!("stop {name}"));
        let agent = data::agents()
            .into_iter()
            .find(|agent| agent.name == name)
            .map(|agent| Agent { stopped: true, ..agent });
        Ok(Response::new(StopAgentResponse { agent }))
    }

    async fn start_agent(&self, request: Request<StartAgentRequest>) -> Answer<StartAgentResponse> {
        let StartAgentRequest { request_id, name } = request.into_inner();
        self.change(&request_id, format!("start {name}"));
        let agent = data::agents().into_iter().find(|agent| agent.name == name);
        Ok(Response::new(StartAgentResponse { agent }))
    }

    async fn list_purges(&self, _: Request<ListPurgesRequest>) -> Answer<ListPurgesResponse> {
        Ok(Response::new(ListPurgesResponse::default()))
    }

    async fn finish_purge(
        &self,
        request: Request<FinishPurgeRequest>,
    ) -> Answer<FinishPurgeResponse> {
        let FinishPurgeRequest { request_id, purge_id } = request.into_inner();
        self.change(&request_id, format!("purge {purge_id} is finished"));
        Ok(Response::new(FinishPurgeResponse {}))
    }

    async fn set_parent(&self, request: Request<SetParentRequest>) -> Answer<SetParentResponse> {
        let SetParentRequest { request_id, name, parent } = request.into_inner();
        self.change(&request_id, format!("parent of {name} is {parent:?}"));
        if parent == "bob" {
            return refused(Reason::TopologyCycle, "`ada` would be its own ancestor");
        }
        let agent = data::agents()
            .into_iter()
            .find(|agent| agent.name == name)
            .map(|agent| Agent { parent, ..agent });
        Ok(Response::new(SetParentResponse { agent }))
    }

    async fn set_policy(&self, request: Request<SetPolicyRequest>) -> Answer<SetPolicyResponse> {
        let SetPolicyRequest { request_id, name, policy, update_mask } = request.into_inner();
        let (policy, mask) =
            (policy.expect("a policy"), update_mask.expect("a mask").paths.join(", "));
        self.change(&request_id, format!("policy of {name}, {mask}: {policy:?}"));
        if policy.tool_groups.iter().any(|group| group == "magic") {
            return Err(bad_field("policy.tool_groups", "there is no tool group `magic`"));
        }
        let agent = data::agents().into_iter().find(|agent| agent.name == name);
        let agent = agent.ok_or_else(|| {
            refusal(Reason::AgentNotFound, format!("there is no agent `{name}`"), None)
        })?;
        Ok(Response::new(SetPolicyResponse {
            agent: Some(Agent { policy: Some(policy), ..agent }),
        }))
    }

    async fn list_dead_letters(
        &self,
        request: Request<ListDeadLettersRequest>,
    ) -> Answer<ListDeadLettersResponse> {
        let agent = request.into_inner().agent;
        let mut deliveries = if self.empty { Vec::new() } else { data::dead_letters() };
        deliveries.retain(|delivery| agent.is_empty() || delivery.agent == agent);
        Ok(Response::new(ListDeadLettersResponse { deliveries, next_page_token: String::new() }))
    }

    async fn redrive_delivery(
        &self,
        request: Request<RedriveDeliveryRequest>,
    ) -> Answer<RedriveDeliveryResponse> {
        let request = request.into_inner();
        self.change(&request.request_id, format!("redrive {}", key(request.key)));
        Ok(Response::new(RedriveDeliveryResponse {}))
    }

    async fn drop_delivery(
        &self,
        request: Request<DropDeliveryRequest>,
    ) -> Answer<DropDeliveryResponse> {
        let request = request.into_inner();
        self.change(&request.request_id, format!("drop {}", key(request.key)));
        Ok(Response::new(DropDeliveryResponse {}))
    }

    async fn release_delivery(
        &self,
        request: Request<ReleaseDeliveryRequest>,
    ) -> Answer<ReleaseDeliveryResponse> {
        let request = request.into_inner();
        self.change(&request.request_id, format!("release {}", key(request.key)));
        Ok(Response::new(ReleaseDeliveryResponse {}))
    }

    async fn send_command(
        &self,
        request: Request<SendCommandRequest>,
    ) -> Answer<SendCommandResponse> {
        let SendCommandRequest { request_id, agent, command } = request.into_inner();
        let order = match command.and_then(|command| command.command).expect("an order") {
            Order::CancelTurn(cancel) => format!("cancel turn {}", cancel.turn_id),
            Order::StartNewSession(StartNewSession {}) => "new session".to_owned(),
            Order::SetModel(model) => format!("model {}", model.model),
            Order::CompactSession(CompactSession {}) => "compact".to_owned(),
            Order::RestartHarness(RestartHarness {}) => "restart".to_owned(),
        };
        self.change(&request_id, format!("{agent}: {order}"));
        Ok(Response::new(SendCommandResponse { command_id: 30 }))
    }

    async fn get_broker_status(
        &self,
        _: Request<GetBrokerStatusRequest>,
    ) -> Answer<GetBrokerStatusResponse> {
        let quiet = GetBrokerStatusResponse {
            version: "0.1.0".to_owned(),
            pid: 77,
            start_time: data::at(0),
            storage_ok: true,
            database_path: "/var/lib/hive/hive.db".to_owned(),
            database_bytes: 40_960,
            ..GetBrokerStatusResponse::default()
        };
        if self.empty {
            return Ok(Response::new(quiet));
        }
        if self.sick {
            let sick = GetBrokerStatusResponse {
                version: "0.0.9".to_owned(),
                storage_ok: false,
                storage_error: "disk I/O error".to_owned(),
                draining: true,
                ..quiet
            };
            let mut response = Response::new(sick);
            let noon = "Sun, 01 Mar 2020 12:00:00 GMT".parse().expect("text");
            response.metadata_mut().insert("date", noon);
            return Ok(response);
        }
        Ok(Response::new(GetBrokerStatusResponse {
            agent_count: 2,
            attached_count: 2,
            ready_count: 2,
            leased_count: 1,
            held_count: 1,
            dead_count: 1,
            operator_unread_count: 2,
            not_isolated_agents: vec!["ada".to_owned()],
            partly_isolated_agents: vec!["bob".to_owned()],
            last_event_sequence: 13,
            operator_question_count: 2,
            open_question_count: 3,
            pending_reminder_count: 1,
            background_tasks: vec![
                background_task("leases", 0, ""),
                background_task("search-index", 3, "the disk is\nfull"),
            ],
            ..quiet
        }))
    }

    type BackupStream = Streaming<BackupResponse>;

    async fn backup(&self, _: Request<BackupRequest>) -> Answer<Self::BackupStream> {
        if self.empty {
            let reason = Reason::StorageUnavailable;
            return Err(refusal(
                reason,
                "another backup is under way",
                Some(Duration::from_secs(10)),
            ));
        }
        // Every byte value, so that nothing takes it for text.
        let bytes: Vec<u8> = (0..=255).cycle().take(DATABASE_BYTES).collect();
        let total_bytes = bytes.len() as u64;
        let pieces = bytes.chunks(1000).take(if self.sick { 2 } else { usize::MAX });
        let pieces: Vec<_> =
            pieces.map(|chunk| Ok(BackupResponse { chunk: chunk.to_vec(), total_bytes })).collect();
        if self.stalls.load(Ordering::SeqCst) {
            let _ = self.watched.send(());
            return Ok(Response::new(Box::pin(iter(pieces.into_iter().take(1)).chain(pending()))));
        }
        Ok(Response::new(Box::pin(iter(pieces))))
    }

    async fn check_integrity(
        &self,
        _: Request<CheckIntegrityRequest>,
    ) -> Answer<CheckIntegrityResponse> {
        let problems =
            ["the file is damaged: Tree 5 page 7: it is\u{1b}[31m red", "agent `ada` has no inbox"];
        let problems = problems.map(str::to_owned).into_iter().filter(|_| self.sick).collect();
        Ok(Response::new(CheckIntegrityResponse { problems, page_count: 10 }))
    }

    async fn drain(&self, _: Request<DrainRequest>) -> Answer<DrainResponse> {
        self.change("", "drain".to_owned());
        Ok(Response::new(DrainResponse {}))
    }

    type LoginStream = Streaming<LoginResponse>;

    async fn login(
        &self,
        request: Request<tonic::Streaming<LoginRequest>>,
    ) -> Answer<Self::LoginStream> {
        self.serve_login(request.into_inner()).await.map(Response::new)
    }
}

fn background_task(name: &str, failure_count: u32, error: &str) -> BackgroundTask {
    let error = error.to_owned();
    BackgroundTask { name: name.to_owned(), last_run_time: data::at(60), failure_count, error }
}
