//! `AdminService`: the operator's tools. It is not registered on agents' sockets.

use hive_core::command::Order;
use hive_core::delivery::Decision;
use hive_proto::convert::{
    self, FromWire as _, IntoWire, agent as agents, delivery, message, time,
};
use hive_proto::status::bad_field;
use hive_proto::v1;
use hive_proto::v1::command::Command as WireOrder;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use super::schedule::schedule_id;
use crate::engine::background::TaskStatus;
use crate::engine::launch::wanted::Wish;
use crate::engine::operator::agents::Create;
use crate::engine::operator::backup::Checked;
use crate::engine::operator::commands::NewCommand;
use crate::engine::operator::etag::Target;
use crate::rpc::Rpc;
use crate::rpc::edge::{page, request};
use crate::store::Health;
use hive_core::agent::PolicyPart;

impl Rpc {
    async fn decided(
        &self,
        caller: hive_core::caller::Caller,
        key: crate::store::request::RequestKey,
        named: Option<v1::DeliveryKey>,
        decision: Decision,
    ) -> Result<(), Status> {
        let (agent, message) = delivery::key(named, "key")?;
        Ok(self.engine.decide(caller, key, agent, message, decision).await?)
    }
}

/// Returns the agent that a command changes; `path` is the field of the etag.
fn target(name: &str, etag: String, path: &str) -> Result<Target, Status> {
    let name = message::agent_name(name, "name")?;
    Ok(Target { name, etag: convert::request::etag(etag, path)? })
}

/// Returns the parts of a policy that a mask names; without a mask, all.
fn parts(mask: Option<prost_types::FieldMask>) -> Result<Vec<PolicyPart>, Status> {
    let paths = mask.map(|mask| mask.paths).unwrap_or_default();
    if paths.is_empty() {
        return Ok(PolicyPart::ALL.to_vec());
    }
    Ok(agents::masked_parts(&paths, "update_mask")?)
}

#[tonic::async_trait]
impl v1::admin_service_server::AdminService for Rpc {
    async fn create_agent(
        &self,
        request: Request<v1::CreateAgentRequest>,
    ) -> Result<Response<v1::CreateAgentResponse>, Status> {
        let (caller, key, create) = request::command(request)?;
        let v1::CreateAgentRequest { request_id: _, name, parent, role, model, policy, adopt } =
            create;
        let name = message::agent_name(&name, "name")?;
        let parent = message::optional_agent_name(&parent, "parent")?;
        let policy = policy.map(agents::policy).unwrap_or_default();
        let socket = self.sockets.agent_socket(&name);
        let create = Create { name: name.clone(), parent, role, model, policy, adopt };
        let rpc = self.clone();
        let created = self.to_its_end(async move {
            let (seat, short) = match rpc.sockets.seat(&name) {
                Ok(seat) => (seat, None),
                Err(short) => (None, Some(short)),
            };
            let agent = rpc.engine.create_agent_unless(caller, key, create, short).await?;
            rpc.reconcile_socket(&name, seat).await?;
            Ok(agent)
        });
        let agent = created.await?;
        Ok(Response::new(v1::CreateAgentResponse {
            agent: Some(agent.into_wire()),
            socket_path: socket.display().to_string(),
        }))
    }

    async fn retire_agent(
        &self,
        request: Request<v1::RetireAgentRequest>,
    ) -> Result<Response<v1::RetireAgentResponse>, Status> {
        let (caller, key, retire) = request::command(request)?;
        let v1::RetireAgentRequest { request_id: _, name, purge, etag } = retire;
        let target = target(&name, etag, "etag")?;
        let rpc = self.clone();
        let retired = self.to_its_end(async move {
            let name = target.name.clone();
            let response = if purge {
                let purged = rpc.engine.purge_agent(caller, key, target).await?;
                let purge_id = purged.directories.unwrap_or_default();
                v1::RetireAgentResponse { kept_count: 0, dropped_count: purged.dropped, purge_id }
            } else {
                let kept_count = rpc.engine.retire_agent(caller, key, target).await?;
                v1::RetireAgentResponse { kept_count, ..v1::RetireAgentResponse::default() }
            };
            rpc.close_retired(&name, purge).await?;
            Ok(response)
        });
        Ok(Response::new(retired.await?))
    }

    async fn stop_agent(
        &self,
        request: Request<v1::StopAgentRequest>,
    ) -> Result<Response<v1::StopAgentResponse>, Status> {
        let (caller, key, stop) = request::command(request)?;
        let target = target(&stop.name, stop.etag, "etag")?;
        let agent = self.engine.wish(caller, key, target, Wish::Stop).await?;
        Ok(Response::new(v1::StopAgentResponse { agent: Some(agent.into_wire()) }))
    }

    async fn start_agent(
        &self,
        request: Request<v1::StartAgentRequest>,
    ) -> Result<Response<v1::StartAgentResponse>, Status> {
        let (caller, key, start) = request::command(request)?;
        let target = target(&start.name, start.etag, "etag")?;
        let wish = Wish::Start { on_demand: start.on_demand };
        let agent = self.engine.wish(caller, key, target, wish).await?;
        Ok(Response::new(v1::StartAgentResponse { agent: Some(agent.into_wire()) }))
    }

    async fn list_purges(
        &self,
        request: Request<v1::ListPurgesRequest>,
    ) -> Result<Response<v1::ListPurgesResponse>, Status> {
        let page = page::take(&mut request.into_inner())?;
        let (found, more) = self.engine.list_purges(page.after.unwrap_or(0), page.rows).await?;
        let next = found.last().filter(|_| more).map(|row| row.id);
        let purges = found.into_iter().map(|row| v1::Purge {
            id: row.id,
            name: row.name,
            purge_time: Some(time::timestamp(row.time)),
        });
        Ok(Response::new(v1::ListPurgesResponse {
            purges: purges.collect(),
            next_page_token: page.next(next),
        }))
    }

    async fn finish_purge(
        &self,
        request: Request<v1::FinishPurgeRequest>,
    ) -> Result<Response<v1::FinishPurgeResponse>, Status> {
        let (caller, key, finish) = request::command(request)?;
        let id = convert::bounded(finish.purge_id, "purge_id")?;
        self.engine.finish_purge(caller, key, id).await?;
        Ok(Response::new(v1::FinishPurgeResponse {}))
    }

    async fn set_policy(
        &self,
        request: Request<v1::SetPolicyRequest>,
    ) -> Result<Response<v1::SetPolicyResponse>, Status> {
        let (caller, key, set) = request::command(request)?;
        let v1::SetPolicyRequest { request_id: _, name, policy, update_mask } = set;
        let mut policy = convert::required(policy, "policy")?;
        let target = target(&name, std::mem::take(&mut policy.etag), "policy.etag")?;
        let parts = parts(update_mask)?;
        let policy = agents::with_default_groups(agents::policy(policy), &parts);
        let agent = self.engine.set_policy(caller, key, target, policy, parts).await?;
        Ok(Response::new(v1::SetPolicyResponse { agent: Some(agent.into_wire()) }))
    }

    async fn set_parent(
        &self,
        request: Request<v1::SetParentRequest>,
    ) -> Result<Response<v1::SetParentResponse>, Status> {
        let (caller, key, set) = request::command(request)?;
        let target = target(&set.name, set.etag, "etag")?;
        let parent = message::optional_agent_name(&set.parent, "parent")?;
        let agent = self.engine.set_parent(caller, key, target, parent).await?;
        Ok(Response::new(v1::SetParentResponse { agent: Some(agent.into_wire()) }))
    }

    async fn list_dead_letters(
        &self,
        request: Request<v1::ListDeadLettersRequest>,
    ) -> Result<Response<v1::ListDeadLettersResponse>, Status> {
        let mut list = request.into_inner();
        let page = page::take(&mut list)?;
        let (deliveries, next) =
            self.engine.list_dead_letters(list.agent, page.after, page.rows).await?;
        Ok(Response::new(v1::ListDeadLettersResponse {
            deliveries: deliveries.into_iter().map(IntoWire::into_wire).collect(),
            next_page_token: page.next(next),
        }))
    }

    async fn redrive_delivery(
        &self,
        request: Request<v1::RedriveDeliveryRequest>,
    ) -> Result<Response<v1::RedriveDeliveryResponse>, Status> {
        let (caller, key, redrive) = request::command(request)?;
        self.decided(caller, key, redrive.key, Decision::Redrive).await?;
        Ok(Response::new(v1::RedriveDeliveryResponse {}))
    }

    async fn drop_delivery(
        &self,
        request: Request<v1::DropDeliveryRequest>,
    ) -> Result<Response<v1::DropDeliveryResponse>, Status> {
        let (caller, key, dropped) = request::command(request)?;
        self.decided(caller, key, dropped.key, Decision::Drop).await?;
        Ok(Response::new(v1::DropDeliveryResponse {}))
    }

    async fn release_delivery(
        &self,
        request: Request<v1::ReleaseDeliveryRequest>,
    ) -> Result<Response<v1::ReleaseDeliveryResponse>, Status> {
        let (caller, key, release) = request::command(request)?;
        self.decided(caller, key, release.key, Decision::Release).await?;
        Ok(Response::new(v1::ReleaseDeliveryResponse {}))
    }

    async fn send_command(
        &self,
        request: Request<v1::SendCommandRequest>,
    ) -> Result<Response<v1::SendCommandResponse>, Status> {
        let (caller, key, send) = request::command(request)?;
        let v1::SendCommandRequest { request_id: _, agent, command } = send;
        let name = message::agent_name(&agent, "agent")?;
        let tell = match command.and_then(|command| command.command) {
            None => return Err(bad_field("command", "say what the harness is to do")),
            Some(WireOrder::CancelTurn(v1::CancelTurn { turn_id: 0 })) => {
                NewCommand::CancelOpenTurn
            }
            Some(order) => NewCommand::Order(
                Order::from_wire(order).map_err(|invalid| invalid.within("command"))?,
            ),
        };
        let id = self.engine.create_command(caller, key, name, tell).await?;
        Ok(Response::new(v1::SendCommandResponse { command_id: id.get() }))
    }

    async fn get_broker_status(
        &self,
        _request: Request<v1::GetBrokerStatusRequest>,
    ) -> Result<Response<v1::GetBrokerStatusResponse>, Status> {
        let storage = self.engine.storage();
        let mut problem = match &storage {
            Health::Ok => String::new(),
            Health::Faulted(problem) => problem.to_string(),
        };
        // A broker that cannot read its database can still report that.
        let totals = match self.engine.totals().await {
            Ok(totals) => totals,
            Err(refusal) => {
                if problem.is_empty() {
                    problem = refusal.to_string();
                }
                crate::engine::operator::operate::Totals::default()
            }
        };
        let path = self.engine.store().path().to_path_buf();
        let database_bytes = ["", "-wal"].iter().map(|suffix| {
            let mut file = path.clone().into_os_string();
            file.push(suffix);
            std::fs::metadata(file).map_or(0, |found| found.len())
        });
        Ok(Response::new(v1::GetBrokerStatusResponse {
            version: super::server_info::VERSION.to_owned(),
            pid: std::process::id(),
            start_time: Some(time::timestamp(self.engine.start_time())),
            storage_ok: problem.is_empty(),
            storage_error: problem,
            database_bytes: database_bytes.sum(),
            database_path: path.display().to_string(),
            agent_count: totals.agents,
            attached_count: totals.attached,
            ready_count: totals.ready,
            leased_count: totals.leased,
            held_count: totals.held,
            dead_count: totals.dead,
            operator_unread_count: totals.operator_unread,
            not_isolated_agents: totals.not_isolated,
            last_event_sequence: totals.last_event,
            draining: self.engine.draining().is_cancelled(),
            operator_question_count: totals.operator_questions,
            open_question_count: totals.open_questions,
            pending_reminder_count: totals.pending_reminders,
            partly_isolated_agents: totals.partly_isolated,
            isolation_accepted_agents: totals.isolation_accepted,
            launcher_attached: self.engine.has_launcher(),
            background_tasks: self
                .engine
                .background_tasks()
                .into_iter()
                .map(background_task)
                .collect(),
        }))
    }

    type BackupStream = ReceiverStream<Result<v1::BackupResponse, Status>>;

    async fn backup(
        &self,
        _request: Request<v1::BackupRequest>,
    ) -> Result<Response<Self::BackupStream>, Status> {
        let backup = self.engine.backup().await?;
        Ok(Response::new(self.in_pieces(backup)))
    }

    async fn check_integrity(
        &self,
        _request: Request<v1::CheckIntegrityRequest>,
    ) -> Result<Response<v1::CheckIntegrityResponse>, Status> {
        let Checked { problems, pages } = self.engine.check_integrity().await?;
        Ok(Response::new(v1::CheckIntegrityResponse { problems, page_count: pages }))
    }

    async fn pause_schedule(
        &self,
        request: Request<v1::PauseScheduleRequest>,
    ) -> Result<Response<v1::PauseScheduleResponse>, Status> {
        let (caller, key, pause) = request::command(request)?;
        let id = schedule_id(pause.schedule_id)?;
        let schedule = self.engine.pause_schedule(caller, key, id).await?;
        Ok(Response::new(v1::PauseScheduleResponse { schedule: Some(schedule.into_wire()) }))
    }

    async fn resume_schedule(
        &self,
        request: Request<v1::ResumeScheduleRequest>,
    ) -> Result<Response<v1::ResumeScheduleResponse>, Status> {
        let (caller, key, resume) = request::command(request)?;
        let id = schedule_id(resume.schedule_id)?;
        let schedule = self.engine.resume_schedule(caller, key, id).await?;
        Ok(Response::new(v1::ResumeScheduleResponse { schedule: Some(schedule.into_wire()) }))
    }

    async fn drain(
        &self,
        _request: Request<v1::DrainRequest>,
    ) -> Result<Response<v1::DrainResponse>, Status> {
        tracing::info!("the operator asked for a drain");
        self.shutdown.cancel();
        Ok(Response::new(v1::DrainResponse {}))
    }

    type LoginStream = ReceiverStream<Result<v1::LoginResponse, Status>>;

    async fn login(
        &self,
        request: Request<Streaming<v1::LoginRequest>>,
    ) -> Result<Response<Self::LoginStream>, Status> {
        self.begin_login(request).await
    }
}

fn background_task(status: TaskStatus) -> v1::BackgroundTask {
    let TaskStatus { name, last_run, failure_count, error } = status;
    v1::BackgroundTask {
        name: name.to_owned(),
        last_run_time: Some(time::timestamp(last_run)),
        failure_count,
        error,
    }
}
