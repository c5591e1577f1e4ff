//! The calls on the wire: from a requested operation to its RPC, and from its end to an answer.
//!
//! Invariant: an answer is a refusal only if the broker gives a reason that means no; every other
//! failure is unknown.

use std::time::Duration;

use hive_core::reason::Reason;
use hive_history::{Answer, Counts, Decision, Due, Op, Reply};
use hive_proto::v1::ack_delivery_request::Target;
use hive_proto::v1::admin_service_client::AdminServiceClient;
use hive_proto::v1::create_reminder_request::Due as WireDue;
use hive_proto::v1::inbox_service_client::InboxServiceClient;
use hive_proto::v1::message_service_client::MessageServiceClient;
use hive_proto::v1::question_service_client::QuestionServiceClient;
use hive_proto::v1::reminder_service_client::ReminderServiceClient;
use hive_proto::v1::turn_service_client::TurnServiceClient;
use hive_proto::v1::wake_service_client::WakeServiceClient;
use hive_proto::v1::{self, attach_response};
use hive_proto::{PROCESS_TOKEN_KEY, in_session};
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};

use super::{effect, other, seen, settle};

/// The parts of a call that do not belong to its request.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    /// The process token; empty for none.
    pub(crate) process: String,
    /// The wait of a receive.
    pub(crate) wait: Duration,
    /// Receives the stream of an attachment.
    pub(crate) stream: std::sync::Mutex<Option<Streaming<v1::AttachResponse>>>,
    /// Receives the commands that a beginning turn finds open.
    pub(crate) commands: std::sync::Mutex<Vec<u64>>,
    /// Settlements that ride on a receive.
    pub(crate) settlements: Vec<Op>,
    /// Receives their answers.
    pub(crate) results: std::sync::Mutex<Vec<Answer>>,
}

impl Carried {
    pub(crate) fn process(token: &str) -> Self {
        Self { process: token.to_owned(), ..Self::default() }
    }

    pub(crate) fn waiting(wait: Duration) -> Self {
        Self { wait, ..Self::default() }
    }

    pub(crate) fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if !self.process.is_empty() {
            request
                .metadata_mut()
                .insert(PROCESS_TOKEN_KEY, self.process.parse().expect("a token is plain text"));
        }
        request
    }
}

pub(crate) async fn perform(channel: &Channel, id: &str, op: &Op, carried: &Carried) -> Answer {
    match call(channel, id.to_owned(), op, carried).await {
        Ok(reply) => Answer::Ok(reply),
        Err(status) => refusal(&status),
    }
}

/// Returns what the error of a call says about its outcome.
pub(super) fn refusal(status: &Status) -> Answer {
    match hive_proto::status::reason(status) {
        Some(
            Reason::StorageUnavailable | Reason::Draining | Reason::CallLimit | Reason::Internal,
        )
        | None => Answer::Unknown(format!("{:?}: {}", status.code(), status.message())),
        Some(reason) => Answer::Refused(reason.as_str().to_owned()),
    }
}

pub(super) fn span(ms: u64) -> prost_types::Duration {
    prost_types::Duration {
        seconds: (ms / 1000).cast_signed(),
        nanos: i32::try_from(ms % 1000).unwrap_or(0) * 1_000_000,
    }
}

async fn call(
    channel: &Channel,
    request_id: String,
    op: &Op,
    carried: &Carried,
) -> Result<Reply, Status> {
    let messages = || MessageServiceClient::new(channel.clone());
    let inbox = || InboxServiceClient::new(channel.clone());
    let turns = || TurnServiceClient::new(channel.clone());
    let questions = || QuestionServiceClient::new(channel.clone());
    let reminders = || ReminderServiceClient::new(channel.clone());
    match op.clone() {
        Op::Send { to, everyone, body, reply_to, turn: _ } => {
            let target = if everyone { "*" } else { to.first().map_or("", String::as_str) };
            let request = v1::SendMessageRequest {
                request_id,
                in_reply_to: reply_to,
                ..hive_tests::rig::request::send(target, body)
            };
            let sent = messages().send_message(carried.request(request)).await?.into_inner();
            Ok(Reply::Sent {
                message: sent.message_id,
                already: sent.already_sent,
                skipped: sent.skipped_agents,
            })
        }
        Op::Wake { label, body, key } => {
            let request = v1::WakeRequest { request_id, label, body, coalescing_key: key };
            let woken = WakeServiceClient::new(channel.clone()).wake(request).await?.into_inner();
            Ok(Reply::Woken { message: woken.message_id, superseded: woken.superseded_message_id })
        }
        Op::Receive { max, lease_ms, turn, tool_use } => {
            let wait_ms = u64::try_from(carried.wait.as_millis()).unwrap_or(0);
            let request = v1::ReceiveMessagesRequest {
                request_id,
                max_deliveries: max,
                max_bytes: 0,
                wait: Some(span(wait_ms)),
                lease_duration: (turn == 0).then(|| span(lease_ms)),
                tool_use_id: tool_use,
                settlements: carried.settlements.iter().filter_map(settle::entry).collect(),
            };
            let received = inbox().receive_messages(carried.request(request)).await?.into_inner();
            *carried.results.lock().expect("nobody panics with it") =
                settle::answers(&carried.settlements, received.settlement_results);
            Ok(Reply::Leased(received.deliveries.iter().map(seen::leased).collect()))
        }
        Op::Ack { token } => {
            let request = v1::AckDeliveryRequest { target: Some(Target::LeaseToken(token)) };
            inbox().ack_delivery(request).await.map(|_| Reply::Acked)
        }
        Op::Nack { token, permanent } => {
            let request = v1::NackDeliveryRequest {
                lease_token: token,
                error: "torture".to_owned(),
                permanent,
            };
            Ok(Reply::Nacked(seen::state(
                inbox().nack_delivery(request).await?.into_inner().state(),
            )))
        }
        Op::Release { .. } => settle::one(channel, op).await,
        Op::Extend { token, lease_ms } => {
            let request =
                v1::ExtendLeaseRequest { lease_token: token, lease_duration: Some(span(lease_ms)) };
            inbox().extend_lease(request).await.map(|_| Reply::Extended)
        }
        Op::Attach { session, take_over } => {
            let request = v1::AttachRequest { take_over, revision: "torture".to_owned() };
            let request = in_session(request, &session);
            let mut stream = turns().attach(request).await?.into_inner();
            let first = stream.message().await?.and_then(|response| response.step);
            let Some(attach_response::Step::Attached(attached)) = first else {
                return Err(Status::unknown("the stream ended before it began"));
            };
            *carried.stream.lock().expect("nobody panics with it") = Some(stream);
            Ok(Reply::Attached {
                session: attached.session_token,
                epoch: attached.session_epoch,
                resumed: attached.resumed,
                open_turn: attached.open_turns.first().map_or(0, |turn| turn.id),
            })
        }
        Op::BeginTurn { session, mail } => {
            let mut request = v1::BeginTurnRequest {
                request_id,
                process_token: carried.process.clone(),
                ..v1::BeginTurnRequest::default()
            };
            request.set_kind(if mail { v1::TurnKind::Mail } else { v1::TurnKind::Continue });
            let begun = turns().begin_turn(in_session(request, &session)).await?.into_inner();
            let commands = begun.commands.iter().map(|command| command.id);
            carried.commands.lock().expect("nobody panics with it").extend(commands);
            Ok(seen::turn(begun.turn.as_ref(), begun.delivery.as_ref()))
        }
        Op::EndTurn { session, turn, outcome, returned } => {
            let mut request = v1::EndTurnRequest {
                request_id,
                turn_id: turn,
                returned_tool_use_ids: returned,
                error: "torture".to_owned(),
                ..v1::EndTurnRequest::default()
            };
            request.set_outcome(seen::wire_outcome(outcome));
            let ended = turns().end_turn(in_session(request, &session)).await?.into_inner();
            let (acked, returned, dead, held) =
                (ended.acked_count, ended.returned_count, ended.dead_count, ended.held_count);
            Ok(Reply::TurnEnded(Counts { acked, returned, dead, held }))
        }
        Op::Ask { target, text, effect: _, ttl_ms, turn: _ } => {
            let (to, ttl) = (hive_tests::rig::to(&target), (ttl_ms > 0).then(|| span(ttl_ms)));
            let options = vec!["tea".to_owned(), "coffee".to_owned()];
            let request = v1::AskQuestionRequest {
                request_id,
                to,
                text,
                options,
                multi: false,
                ttl,
                effect: None,
            };
            let asked = questions().ask_question(carried.request(request)).await?.into_inner();
            Ok(reply(asked))
        }
        Op::Schedule { text, ttl_ms, schedule, terms, turn: _ } => {
            let request = v1::AskQuestionRequest {
                request_id,
                to: hive_tests::rig::to("operator"),
                text,
                ttl: (ttl_ms > 0).then(|| span(ttl_ms)),
                effect: Some(effect::schedule(schedule, terms)),
                ..v1::AskQuestionRequest::default()
            };
            let asked = questions().ask_question(carried.request(request)).await?.into_inner();
            Ok(reply(asked))
        }
        Op::Answer { question, choices, text, digest } => {
            let request = v1::AnswerQuestionRequest {
                request_id,
                question_id: question,
                choices,
                text,
                diff_digest: digest,
            };
            let answered =
                questions().answer_question(carried.request(request)).await?.into_inner();
            Ok(Reply::Question(seen::question(&answered.question.unwrap_or_default())))
        }
        Op::CancelQuestion { question } => {
            let request = v1::CancelQuestionRequest { request_id, question_id: question };
            let cancelled =
                questions().cancel_question(carried.request(request)).await?.into_inner();
            Ok(Reply::Question(seen::question(&cancelled.question.unwrap_or_default())))
        }
        Op::ReadQuestion { question } => {
            let read = questions()
                .get_question(v1::GetQuestionRequest { question_id: question })
                .await?
                .into_inner();
            Ok(Reply::Question(seen::question(&read.question.unwrap_or_default())))
        }
        Op::Remind { body, due, turn: _ } => {
            let due = match due {
                Due::After(ms) => WireDue::Delay(span(ms)),
                Due::At(ms) => WireDue::DueTime(seen::timestamp(ms)),
            };
            let request = v1::CreateReminderRequest { request_id, body, due: Some(due) };
            let set = reminders().create_reminder(carried.request(request)).await?.into_inner();
            let reminder = set.reminder.unwrap_or_default();
            let due = seen::ms(reminder.due_time.as_ref());
            Ok(Reply::Reminded { reminder: reminder.id, due, already: set.already_set })
        }
        Op::CancelReminder { reminder } => {
            let request = v1::CancelReminderRequest { request_id, reminder_id: reminder };
            let cancelled =
                reminders().cancel_reminder(carried.request(request)).await?.into_inner();
            Ok(Reply::Done(cancelled.reminder.unwrap_or_default().body))
        }
        Op::Decide { agent, message, decision } => {
            decide(channel, request_id, agent, message, decision).await
        }
        Op::CancelTurn { agent, turn } => {
            let cancel = v1::command::Command::CancelTurn(v1::CancelTurn { turn_id: turn });
            let command = Some(v1::Command { command: Some(cancel), ..v1::Command::default() });
            let request = v1::SendCommandRequest { request_id, agent, command };
            let sent =
                AdminServiceClient::new(channel.clone()).send_command(request).await?.into_inner();
            Ok(Reply::Done(sent.command_id.to_string()))
        }
        Op::ReportProblem { subject, text } => {
            let request = v1::ReportProblemRequest { request_id, subject, text };
            let request = in_session(request, &carried.process);
            Ok(Reply::Reported {
                message: turns().report_problem(request).await?.into_inner().message_id,
            })
        }
        Op::Other { rpc, content } => {
            other::call(channel, request_id, &rpc, content, carried).await
        }
    }
}

fn reply(asked: v1::AskQuestionResponse) -> Reply {
    let question = asked.question.unwrap_or_default();
    Reply::Asked {
        question: question.id,
        message: question.message_id,
        already: asked.already_asked,
    }
}

async fn decide(
    channel: &Channel,
    request_id: String,
    agent: String,
    message_id: u64,
    decision: Decision,
) -> Result<Reply, Status> {
    let key = Some(v1::DeliveryKey { agent, message_id });
    let mut admin = AdminServiceClient::new(channel.clone());
    match decision {
        Decision::Ack => {
            let request = v1::AckDeliveryRequest { target: key.map(Target::Key) };
            InboxServiceClient::new(channel.clone()).ack_delivery(request).await.map(drop)
        }
        Decision::Drop => {
            admin.drop_delivery(v1::DropDeliveryRequest { request_id, key }).await.map(drop)
        }
        Decision::Release => {
            admin.release_delivery(v1::ReleaseDeliveryRequest { request_id, key }).await.map(drop)
        }
        Decision::Redrive => {
            admin.redrive_delivery(v1::RedriveDeliveryRequest { request_id, key }).await.map(drop)
        }
    }?;
    Ok(Reply::Done(String::new()))
}
