//! Calls without a rule of their own, by their names; the request's parts are joined in one text.
//!
//! Invariant: every part of the request is in the text, so that a repetition requests the same.

use hive_history::Reply;
use hive_proto::in_session;
use hive_proto::v1;
use hive_proto::v1::admin_service_client::AdminServiceClient;
use hive_proto::v1::launcher_service_client::LauncherServiceClient;
use hive_proto::v1::lifecycle_service_client::LifecycleServiceClient;
use hive_proto::v1::loose_end_service_client::LooseEndServiceClient;
use hive_proto::v1::status_service_client::StatusServiceClient;
use hive_proto::v1::turn_service_client::TurnServiceClient;
use tonic::Status;
use tonic::transport::Channel;

use super::perform::Carried;

/// The separator between two parts.
const BETWEEN: char = '|';

/// The part of a removal request that asks for a purge.
pub(crate) const PURGE: &str = "purge";

/// The reports of a launcher.
pub(crate) const STARTED: &str = "started";
pub(crate) const STOPPED: &str = "stopped";
pub(crate) const CRASHED: &str = "crashed";
pub(crate) const STEADY: &str = "steady";

/// Joins these parts into one text.
pub(crate) fn parts(parts: &[&str]) -> String {
    parts.join(&BETWEEN.to_string())
}

/// Returns how an agent is wanted, and how often it was to be restarted.
fn wanted(agent: Option<v1::Agent>) -> String {
    let v1::Agent { stopped, on_demand, restart_count, .. } = agent.unwrap_or_default();
    parts(&[&stopped.to_string(), &on_demand.to_string(), &restart_count.to_string()])
}

/// Returns the report with this name.
fn report(word: &str) -> v1::HarnessReport {
    match word {
        STARTED => v1::HarnessReport::Started,
        STOPPED => v1::HarnessReport::Stopped,
        CRASHED => v1::HarnessReport::Crashed,
        STEADY => v1::HarnessReport::Steady,
        other => panic!("there is no report {other}"),
    }
}

/// Returns the command with this name.
fn command(word: &str, model: String) -> v1::command::Command {
    use v1::command::Command;
    match word {
        "new session" => Command::StartNewSession(v1::StartNewSession {}),
        "model" => Command::SetModel(v1::SetModel { model }),
        "restart" => Command::RestartHarness(v1::RestartHarness {}),
        "compact" => Command::CompactSession(v1::CompactSession {}),
        other => panic!("there is no command {other}"),
    }
}

pub(crate) async fn call(
    channel: &Channel,
    request_id: String,
    rpc: &str,
    content: String,
    carried: &Carried,
) -> Result<Reply, Status> {
    let part = |place: usize| content.split(BETWEEN).nth(place).unwrap_or("").to_owned();
    let number = |place: usize| part(place).parse().expect("a number was put in");
    let admin = || AdminServiceClient::new(channel.clone());
    let turns = || TurnServiceClient::new(channel.clone());
    let ends = || LooseEndServiceClient::new(channel.clone());
    let below = || LifecycleServiceClient::new(channel.clone());
    let status = || StatusServiceClient::new(channel.clone());
    let done = match rpc {
        "CreateAgent" => {
            let (name, parent) = (part(0), part(1));
            let request = v1::CreateAgentRequest {
                request_id,
                name,
                parent,
                adopt: true,
                ..v1::CreateAgentRequest::default()
            };
            admin().create_agent(request).await?.into_inner().agent.unwrap_or_default().name
        }
        "RetireAgent" => {
            let request = v1::RetireAgentRequest {
                request_id,
                name: part(0),
                purge: part(1) == PURGE,
                etag: String::new(),
            };
            let removed = admin().retire_agent(request).await?.into_inner();
            // For a purge, the id under which its directories are to be deleted; else what is kept.
            if part(1) == PURGE {
                removed.purge_id.to_string()
            } else {
                removed.kept_count.to_string()
            }
        }
        "StopAgent" => {
            let stopped = admin()
                .stop_agent(v1::StopAgentRequest { request_id, name: part(0), etag: String::new() })
                .await?
                .into_inner();
            stopped.agent.unwrap_or_default().stopped.to_string()
        }
        "StartAgent" => {
            let started = admin()
                .start_agent(v1::StartAgentRequest {
                    request_id,
                    name: part(0),
                    on_demand: part(1).parse().ok(),
                    ..Default::default()
                })
                .await?
                .into_inner();
            started.agent.unwrap_or_default().stopped.to_string()
        }
        "StartChild" => {
            let on_demand = part(1).parse().ok();
            let request = v1::StartChildRequest { request_id, name: part(0), on_demand };
            wanted(below().start_child(request).await?.into_inner().agent)
        }
        "StopChild" => {
            let request = v1::StopChildRequest { request_id, name: part(0) };
            wanted(below().stop_child(request).await?.into_inner().agent)
        }
        "RestartChild" => {
            let request = v1::RestartChildRequest { request_id, name: part(0) };
            wanted(below().restart_child(request).await?.into_inner().agent)
        }
        "ReportHarness" => {
            let (name, report) = (part(0), report(&part(1)).into());
            let (restart_count, text) = (number(2), part(3));
            let request = v1::ReportHarnessRequest { name, report, restart_count, text };
            let mut launcher = LauncherServiceClient::new(channel.clone());
            launcher.report_harness(request).await.map(|_| String::new())?
        }
        "FinishPurge" => {
            let request = v1::FinishPurgeRequest { request_id, purge_id: number(0) };
            admin().finish_purge(request).await.map(|_| String::new())?
        }
        "SetParent" => {
            let request = v1::SetParentRequest {
                request_id,
                name: part(0),
                parent: part(1),
                etag: String::new(),
            };
            admin().set_parent(request).await.map(|_| String::new())?
        }
        "SetPolicy" => {
            let most = u32::try_from(number(1)).expect("a small number was put in");
            let policy =
                Some(v1::Policy { sends_per_minute_max: Some(most), ..v1::Policy::default() });
            let update_mask =
                Some(prost_types::FieldMask { paths: vec!["sends_per_minute_max".to_owned()] });
            let request = v1::SetPolicyRequest { request_id, name: part(0), policy, update_mask };
            admin().set_policy(request).await.map(|_| String::new())?
        }
        "SendCommand" => {
            let command = Some(v1::Command {
                command: Some(command(&part(1), part(2))),
                ..v1::Command::default()
            });
            let request = v1::SendCommandRequest { request_id, agent: part(0), command };
            admin().send_command(request).await?.into_inner().command_id.to_string()
        }
        "AckCommand" => {
            let request = v1::AckCommandRequest { command_id: number(1), error: part(2) };
            turns().ack_command(in_session(request, &part(0))).await.map(|_| String::new())?
        }
        "Heartbeat" => {
            let request = in_session(v1::HeartbeatRequest {}, &content);
            let open = turns().heartbeat(request).await?.into_inner().open_turn_ids;
            open.first().copied().unwrap_or_default().to_string()
        }
        "Leave" => {
            let request = in_session(v1::LeaveRequest {}, &content);
            turns().leave(request).await?.into_inner().left.to_string()
        }
        "RequestNextTurn" => {
            let request = carried.request(v1::RequestNextTurnRequest {});
            turns().request_next_turn(request).await.map(|_| String::new())?
        }
        "ReportTurnEvents" => {
            let mut event =
                v1::TurnEvent { sequence: number(2), line: part(3), ..v1::TurnEvent::default() };
            event.set_stream(v1::TurnEventStream::Stdout);
            let request = v1::ReportTurnEventsRequest { turn_id: number(1), events: vec![event] };
            turns()
                .report_turn_events(in_session(tokio_stream::iter([request]), &part(0)))
                .await?
                .into_inner()
                .kept_count
                .to_string()
        }
        "ReportHarnessStatus" => {
            let mut request = v1::ReportHarnessStatusRequest::default();
            request.set_state(if part(1) == "idle" {
                v1::HarnessState::Idle
            } else {
                v1::HarnessState::Thinking
            });
            turns()
                .report_harness_status(in_session(request, &part(0)))
                .await
                .map(|_| String::new())?
        }
        "SetStatusText" => {
            let request = v1::SetStatusTextRequest { request_id, text: content };
            status().set_status_text(carried.request(request)).await.map(|_| String::new())?
        }
        "CancelLooseEnd" => {
            let mut request = v1::CancelLooseEndRequest {
                request_id,
                id: number(0),
                ..v1::CancelLooseEndRequest::default()
            };
            request.set_kind(v1::LooseEndKind::Reminder);
            ends().cancel_loose_end(carried.request(request)).await.map(|_| String::new())?
        }
        "ReplaceLooseEnds" => {
            let entry = v1::PublishedLooseEnd { key: content.clone(), text: content };
            let request = v1::ReplaceLooseEndsRequest {
                request_id,
                label: "torture".to_owned(),
                loose_ends: vec![entry],
            };
            ends().replace_loose_ends(request).await.map(|_| String::new())?
        }
        "Drain" => admin().drain(v1::DrainRequest {}).await.map(|_| String::new())?,
        other => panic!("nobody knows how to call {other}"),
    };
    Ok(Reply::Done(done))
}
