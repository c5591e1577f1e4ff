//! Requests of the contract: bytes to a message, and the message to the values that a server works
//! with.
//!
//! What it is not: the services themselves; what needs the engine is not reached. Invariants: what
//! was decoded is encoded and decoded to the same again; a conversion either succeeds or names a
//! field of that very request, in words of bounded length; what became a value goes back onto the
//! wire and comes out the same. The test `corpus` compares the table with the contract, so that no
//! RPC is left out.

use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::time::Duration;

use hive_core::agent::{HarnessReport, HarnessState};
use hive_core::command::Order;
use hive_core::id::{CommandId, MessageId, QuestionId, ReminderId, ScheduleId, TurnId};
use hive_core::limits::{
    LEASE_DEFAULT, LEASE_MAX, ORPHAN_GRACE_DEFAULT, ORPHAN_GRACE_MAX, RECEIVE_WAIT_MAX,
};
use hive_core::loose_end;
use hive_core::message::Recipient;
use hive_core::reason::Reason;
use hive_core::turn::{Kind, Outcome};
use hive_proto::convert::page::Token;
use hive_proto::convert::{
    self, FromWire as _, IntoWire as _, Invalid, agent, delivery, message, question, reminder,
    request as fields, schedule as schedules, settlement, time, turn,
};
use hive_proto::{FILE_DESCRIPTOR_SET, harness_v1, status, v1};
use prost::Message;
use prost_types::FileDescriptorSet;
use tonic_types::StatusExt as _;

use crate::nouns;

/// Longest sentence of a refusal, in bytes: it quotes at most a name or a number of the request.
const SENTENCE_BYTES_MAX: usize = 1024;

/// An RPC: its path without the slash before it, and the check of its request.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// `hive.v1.MessageService/SendMessage`.
    pub rpc: &'static str,
    /// The name of its request, without the package.
    pub request: &'static str,
    check: fn(&Entry, &[u8]),
}

/// Checks the bytes: the first chooses what they are, the rest is the message.
pub fn check(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else { return };
    let place = usize::from(*first) % (TABLE.len() + nouns::ALL.len());
    match TABLE.get(place) {
        Some(entry) => (entry.check)(entry, rest),
        None => (nouns::ALL[place - TABLE.len()].check)(rest),
    }
}

/// Checks that a decoded value is sent over the wire unchanged.
pub(crate) fn decoded<M: Message + Default + PartialEq + std::fmt::Debug>(
    bytes: &[u8],
) -> Option<M> {
    let message = M::decode(bytes).ok()?;
    let encoded = message.encode_to_vec();
    assert_eq!(encoded.len(), message.encoded_len());
    let again = M::decode(encoded.as_slice()).expect("what was encoded can be decoded");
    assert!(again == message, "another message after a round trip: {message:?} and {again:?}");
    Some(message)
}

fn run<M: Message + Default + PartialEq + std::fmt::Debug>(
    entry: &Entry,
    bytes: &[u8],
    convert: fn(M) -> Result<(), Invalid>,
) {
    let Some(message) = decoded::<M>(bytes) else { return };
    if let Err(fault) = convert(message) {
        refused(&fault);
        let field = fault.path.split(['.', '[']).next().unwrap_or_default();
        let known = fields_of(entry.request);
        assert!(
            known.is_none_or(|known| known.contains(field)),
            "{}: `{}` is no field of it",
            entry.rpc,
            fault.path
        );
    }
}

/// A refusal names a field, in words that fit a line of a log.
pub(crate) fn refused(fault: &Invalid) {
    let Invalid { path, sentence } = fault;
    assert!(!path.is_empty() && !sentence.is_empty(), "{fault:?}");
    assert!(
        path.len() + sentence.len() <= SENTENCE_BYTES_MAX,
        "{} bytes of refusal",
        sentence.len()
    );
    let refusal = tonic::Status::from(fault.clone());
    assert_eq!(status::reason(&refusal), Some(Reason::FieldInvalid));
    assert_eq!(refusal.code(), tonic::Code::InvalidArgument);
    let details = refusal.get_details_bad_request().expect("a field is named");
    assert!(
        matches!(&details.field_violations[..], [violation] if violation.field == *path),
        "{details:?}"
    );
}

/// The fields of a request of the broker's contract, and the names of its choices; `None` for
/// another contract's.
fn fields_of(request: &str) -> Option<&'static BTreeSet<String>> {
    static FIELDS: LazyLock<std::collections::BTreeMap<String, BTreeSet<String>>> =
        LazyLock::new(|| {
            let set = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET)
                .expect("the descriptors of the contract");
            let messages = set.file.into_iter().flat_map(|file| file.message_type);
            messages
                .map(|message| {
                    let choices = message.oneof_decl.iter().map(|choice| choice.name().to_owned());
                    let names = message
                        .field
                        .iter()
                        .map(|field| field.name().to_owned())
                        .chain(choices)
                        .collect();
                    (message.name().to_owned(), names)
                })
                .collect()
        });
    FIELDS.get(request)
}

fn page(token: &str) -> Result<(), Invalid> {
    if !token.is_empty() {
        assert_eq!(Token::decode(token)?.encode(), token, "a token is what the broker makes of it");
    }
    Ok(())
}

fn span(wire: Option<prost_types::Duration>, path: &str) -> Result<(), Invalid> {
    if let Some(span) = time::optional_span(wire, path)? {
        assert_eq!(time::span(time::duration(span), path).ok(), Some(span));
    }
    Ok(())
}

fn bounded(
    wire: Option<prost_types::Duration>,
    default: Duration,
    max: Duration,
    path: &str,
) -> Result<(), Invalid> {
    assert!(fields::bounded_span(wire, default, max, path)? <= max.max(default));
    Ok(())
}

fn instant(wire: Option<prost_types::Timestamp>, path: &str) -> Result<(), Invalid> {
    if let Some(time) = time::optional_wall_time(wire, path)? {
        assert_eq!(time::wall_time(time::timestamp(time), path), Ok(time));
    }
    Ok(())
}

fn recipient(wire: Option<v1::Recipient>) -> Result<(), Invalid> {
    let recipient: Recipient = convert::required_as(wire, "to")?;
    assert_eq!(Recipient::from_wire(recipient.clone().into_wire()), Ok(recipient));
    Ok(())
}

fn name(text: &str, path: &str) -> Result<(), Invalid> {
    assert_eq!(message::agent_name(text, path)?.as_str(), text);
    Ok(())
}

fn optional_name(text: &str, path: &str) -> Result<(), Invalid> {
    message::optional_agent_name(text, path).map(drop)
}

fn schedule(request: &str, id: u64) -> Result<(), Invalid> {
    request_id(request)?;
    convert::id(id, ScheduleId::new, "schedule_id").map(drop)
}

fn request_id(text: &str) -> Result<(), Invalid> {
    fields::request_id(text.to_owned()).map(drop)
}

fn etag(text: String, path: &str) -> Result<(), Invalid> {
    assert_eq!(fields::etag(text.clone(), path)?.unwrap_or_default(), text);
    Ok(())
}

fn token(text: String, path: &str) -> Result<(), Invalid> {
    fields::token(text, path).map(drop)
}

fn settlements(wire: Vec<v1::Settlement>) -> Result<(), Invalid> {
    let count = wire.len();
    assert_eq!(settlement::entries(wire, "settlements")?.len(), count);
    Ok(())
}

fn key(wire: Option<v1::DeliveryKey>) -> Result<(), Invalid> {
    let (agent, message) = delivery::key(wire.clone(), "key")?;
    assert_eq!(Some(v1::DeliveryKey { agent, message_id: message.get() }), wire);
    Ok(())
}

macro_rules! table {
    ($($rpc:literal: $package:ident::$request:ident $convert:expr;)+) => {
        /// Every RPC of the broker's and the harness's contract.
        pub const TABLE: &[Entry] = &[
            $(Entry {
                rpc: $rpc,
                request: stringify!($request),
                check: |entry, bytes| run::<$package::$request>(entry, bytes, $convert),
            },)+
        ];
    };
}

table! {
    "hive.v1.MessageService/SendMessage": v1::SendMessageRequest |m| { request_id(&m.request_id)?; recipient(m.to) };
    "hive.v1.MessageService/StreamMessages": v1::StreamMessagesRequest |m| match m.send {
        // The broker's refusal is that of `SendMessage`.
        Some(send) => {
            let read = || { request_id(&send.request_id)?; recipient(send.to) };
            read().map_err(|fault| fault.within("send"))
        }
        None => Ok(()),
    };
    "hive.v1.MessageService/GetMessage": v1::GetMessageRequest |m| convert::id(m.message_id, MessageId::new, "message_id").map(drop);
    "hive.v1.MessageService/ListMessages": v1::ListMessagesRequest |m| page(&m.page_token);
    "hive.v1.MessageService/ListRecipients": v1::ListRecipientsRequest |m| {
        convert::id(m.message_id, MessageId::new, "message_id")?;
        page(&m.page_token)
    };
    "hive.v1.MessageService/SearchMessages": v1::SearchMessagesRequest |m| page(&m.page_token);
    "hive.v1.InboxService/ReceiveMessages": v1::ReceiveMessagesRequest |m| {
        request_id(&m.request_id)?;
        bounded(m.wait, Duration::ZERO, RECEIVE_WAIT_MAX, "wait")?;
        bounded(m.lease_duration, LEASE_DEFAULT, LEASE_MAX, "lease_duration")?;
        settlements(m.settlements)
    };
    "hive.v1.InboxService/StreamDeliveries": v1::StreamDeliveriesRequest |m| match m.step {
        Some(v1::stream_deliveries_request::Step::Open(open)) => {
            token(open.stream_id, "stream_id")?;
            bounded(open.orphan_grace, ORPHAN_GRACE_DEFAULT, ORPHAN_GRACE_MAX, "orphan_grace")
        }
        Some(v1::stream_deliveries_request::Step::Settle(settle)) => settlements(settle.settlements),
        Some(_) | None => Ok(()),
    };
    "hive.v1.InboxService/SettleDeliveries": v1::SettleDeliveriesRequest |m| settlements(m.settlements);
    "hive.v1.InboxService/AckDelivery": v1::AckDeliveryRequest |m| {
        match convert::required(m.target, "target")? {
            v1::ack_delivery_request::Target::LeaseToken(lease) => token(lease, "lease_token"),
            v1::ack_delivery_request::Target::Key(wire) => key(Some(wire)),
        }
    };
    "hive.v1.InboxService/NackDelivery": v1::NackDeliveryRequest |m| token(m.lease_token, "lease_token");
    "hive.v1.InboxService/ExtendLease": v1::ExtendLeaseRequest |m| {
        bounded(m.lease_duration, LEASE_DEFAULT, LEASE_MAX, "lease_duration")?;
        token(m.lease_token, "lease_token")
    };
    "hive.v1.InboxService/GetInboxStatus": v1::GetInboxStatusRequest |m| optional_name(&m.agent, "agent");
    "hive.v1.InboxService/ListDeliveries": v1::ListDeliveriesRequest |m| {
        delivery::states(&m.states, "states")?;
        page(&m.page_token)
    };
    "hive.v1.QuestionService/AskQuestion": v1::AskQuestionRequest |m| {
        request_id(&m.request_id)?;
        span(m.ttl, "ttl")?;
        recipient(m.to)?;
        let wording = hive_core::question::Wording { text: m.text, options: m.options, multi: m.multi };
        wording.check().map_err(|fault| Invalid::new(fault.field(), fault.to_string()))
    };
    "hive.v1.QuestionService/AnswerQuestion": v1::AnswerQuestionRequest |m| {
        request_id(&m.request_id)?;
        convert::id(m.question_id, QuestionId::new, "question_id").map(drop)
    };
    "hive.v1.QuestionService/CancelQuestion": v1::CancelQuestionRequest |m| {
        request_id(&m.request_id)?;
        convert::id(m.question_id, QuestionId::new, "question_id").map(drop)
    };
    "hive.v1.QuestionService/GetQuestion": v1::GetQuestionRequest |m| convert::id(m.question_id, QuestionId::new, "question_id").map(drop);
    "hive.v1.QuestionService/ListQuestions": v1::ListQuestionsRequest |m| {
        question::states(&m.states, "states")?;
        page(&m.page_token)
    };
    "hive.v1.QuestionService/WatchQuestions": v1::WatchQuestionsRequest |_| Ok(());
    "hive.v1.ReminderService/CreateReminder": v1::CreateReminderRequest |m| {
        request_id(&m.request_id)?;
        match convert::required(m.due, "due")? {
            v1::create_reminder_request::Due::Delay(delay) => span(Some(delay), "delay"),
            v1::create_reminder_request::Due::DueTime(due) => instant(Some(due), "due_time"),
        }
    };
    "hive.v1.ReminderService/CancelReminder": v1::CancelReminderRequest |m| {
        request_id(&m.request_id)?;
        convert::id(m.reminder_id, ReminderId::new, "reminder_id").map(drop)
    };
    "hive.v1.ReminderService/ListReminders": v1::ListRemindersRequest |m| {
        reminder::states(&m.states, "states")?;
        page(&m.page_token)
    };
    "hive.v1.ScheduleService/FireSchedule": v1::FireScheduleRequest |m| schedule(&m.request_id, m.schedule_id);
    "hive.v1.ScheduleService/CancelSchedule": v1::CancelScheduleRequest |m| schedule(&m.request_id, m.schedule_id);
    "hive.v1.ScheduleService/ListSchedules": v1::ListSchedulesRequest |m| {
        schedules::states(&m.states, "states")?;
        page(&m.page_token)
    };
    "hive.v1.AdminService/PauseSchedule": v1::PauseScheduleRequest |m| schedule(&m.request_id, m.schedule_id);
    "hive.v1.AdminService/ResumeSchedule": v1::ResumeScheduleRequest |m| schedule(&m.request_id, m.schedule_id);
    "hive.v1.LooseEndService/ListLooseEnds": v1::ListLooseEndsRequest |m| page(&m.page_token);
    "hive.v1.LooseEndService/CancelLooseEnd": v1::CancelLooseEndRequest |m| {
        request_id(&m.request_id)?;
        convert::value::<loose_end::Kind>(m.kind, "kind").map(drop)
    };
    "hive.v1.LooseEndService/ReplaceLooseEnds": v1::ReplaceLooseEndsRequest |m| {
        request_id(&m.request_id)?;
        message::label(&m.label, "label").map(drop)
    };
    "hive.v1.TurnService/Attach": v1::AttachRequest |_| Ok(());
    "hive.v1.TurnService/AckCommand": v1::AckCommandRequest |m| {
        convert::id(m.command_id, CommandId::new, "command_id").map(drop)
    };
    "hive.v1.TurnService/BeginTurn": v1::BeginTurnRequest |m| {
        request_id(&m.request_id)?;
        convert::value::<Kind>(m.kind, "kind")?;
        fields::process_token(m.process_token, "process_token").map(drop)
    };
    "hive.v1.TurnService/RequestNextTurn": v1::RequestNextTurnRequest |_| Ok(());
    "hive.v1.TurnService/Heartbeat": v1::HeartbeatRequest |_| Ok(());
    "hive.v1.TurnService/ReportTurnEvents": v1::ReportTurnEventsRequest |m| {
        convert::id(m.turn_id, TurnId::new, "turn_id")?;
        m.events.into_iter().try_for_each(|event| instant(event.time, "events.time"))
    };
    "hive.v1.TurnService/EndTurn": v1::EndTurnRequest |m| {
        request_id(&m.request_id)?;
        convert::id(m.turn_id, TurnId::new, "turn_id")?;
        convert::value::<Outcome>(m.outcome, "outcome")?;
        instant(m.retry_time, "retry_time")?;
        let usage = m.usage.unwrap_or_default();
        assert_eq!(turn::usage(usage).into_wire(), usage);
        Ok(())
    };
    "hive.v1.TurnService/ReportProblem": v1::ReportProblemRequest |m| request_id(&m.request_id);
    "hive.v1.TurnService/ReportHarnessStatus": v1::ReportHarnessStatusRequest |m| {
        convert::value::<HarnessState>(m.state, "state")?;
        instant(m.until_time, "until_time")
    };
    "hive.v1.TurnService/Leave": v1::LeaveRequest |_| Ok(());
    "hive.v1.TurnService/ServeLogin": v1::ServeLoginRequest |_| Ok(());
    "hive.v1.TurnHistoryService/ListTurns": v1::ListTurnsRequest |m| page(&m.page_token);
    "hive.v1.TurnHistoryService/GetTurn": v1::GetTurnRequest |m| convert::id(m.turn_id, TurnId::new, "turn_id").map(drop);
    "hive.v1.TurnHistoryService/WatchTurn": v1::WatchTurnRequest |m| convert::id(m.turn_id, TurnId::new, "turn_id").map(drop);
    "hive.v1.TurnHistoryService/GetTurnStats": v1::GetTurnStatsRequest |m| span(m.window, "window");
    "hive.v1.WakeService/Wake": v1::WakeRequest |m| {
        request_id(&m.request_id)?;
        assert_eq!(message::label(&m.label, "label")?.as_str(), m.label);
        let key = fields::coalescing_key(m.coalescing_key.clone(), "coalescing_key")?;
        assert_eq!(key.unwrap_or_default(), m.coalescing_key);
        Ok(())
    };
    "hive.v1.TopologyService/GetSelf": v1::GetSelfRequest |_| Ok(());
    "hive.v1.TopologyService/GetAgent": v1::GetAgentRequest |m| name(&m.name, "name");
    "hive.v1.TopologyService/ListAgents": v1::ListAgentsRequest |m| page(&m.page_token);
    "hive.v1.TopologyService/ListChildren": v1::ListChildrenRequest |m| {
        optional_name(&m.name, "name")?;
        page(&m.page_token)
    };
    "hive.v1.TopologyService/FindAgents": v1::FindAgentsRequest |m| page(&m.page_token);
    "hive.v1.TopologyService/WatchAgents": v1::WatchAgentsRequest |_| Ok(());
    "hive.v1.StatusService/SetStatusText": v1::SetStatusTextRequest |m| request_id(&m.request_id);
    "hive.v1.EventService/ListEvents": v1::ListEventsRequest |m| page(&m.page_token);
    "hive.v1.EventService/WatchEvents": v1::WatchEventsRequest |_| Ok(());
    "hive.v1.LifecycleService/StartChild": v1::StartChildRequest |m| { request_id(&m.request_id)?; name(&m.name, "name") };
    "hive.v1.LifecycleService/StopChild": v1::StopChildRequest |m| { request_id(&m.request_id)?; name(&m.name, "name") };
    "hive.v1.LifecycleService/RestartChild": v1::RestartChildRequest |m| { request_id(&m.request_id)?; name(&m.name, "name") };
    "hive.v1.ActionService/GetActions": v1::GetActionsRequest |_| Ok(());
    "hive.v1.DiagnosticsService/GetLogs": v1::GetLogsRequest |m| name(&m.agent, "agent");
    "hive.v1.DiagnosticsService/GetHostJournal": v1::GetHostJournalRequest |m| {
        time::optional_wall_time(m.since, "since").map(drop)
    };
    "hive.v1.LauncherService/AnswerLogs": v1::AnswerLogsRequest |_| Ok(());
    "hive.v1.LauncherService/Launch": v1::LaunchRequest |_| Ok(());
    "hive.v1.LauncherService/ReportHarness": v1::ReportHarnessRequest |m| {
        name(&m.name, "name")?;
        convert::value::<HarnessReport>(m.report, "report").map(drop)
    };
    "hive.v1.AdminService/CreateAgent": v1::CreateAgentRequest |m| {
        request_id(&m.request_id)?;
        name(&m.name, "name")?;
        optional_name(&m.parent, "parent")?;
        // An etag in it is ignored.
        let policy = v1::Policy { etag: String::new(), ..m.policy.unwrap_or_default() };
        assert_eq!(agent::policy(policy.clone()).into_wire(), policy);
        Ok(())
    };
    "hive.v1.AdminService/RetireAgent": v1::RetireAgentRequest |m| {
        request_id(&m.request_id)?;
        name(&m.name, "name")?;
        etag(m.etag, "etag")
    };
    "hive.v1.AdminService/StopAgent": v1::StopAgentRequest |m| {
        request_id(&m.request_id)?;
        name(&m.name, "name")?;
        etag(m.etag, "etag")
    };
    "hive.v1.AdminService/StartAgent": v1::StartAgentRequest |m| {
        request_id(&m.request_id)?;
        name(&m.name, "name")?;
        etag(m.etag, "etag")
    };
    "hive.v1.AdminService/ListPurges": v1::ListPurgesRequest |m| page(&m.page_token);
    "hive.v1.AdminService/FinishPurge": v1::FinishPurgeRequest |m| request_id(&m.request_id);
    "hive.v1.AdminService/SetParent": v1::SetParentRequest |m| {
        request_id(&m.request_id)?;
        name(&m.name, "name")?;
        etag(m.etag, "etag")?;
        optional_name(&m.parent, "parent")
    };
    "hive.v1.AdminService/SetPolicy": v1::SetPolicyRequest |m| {
        request_id(&m.request_id)?;
        name(&m.name, "name")?;
        etag(convert::required(m.policy, "policy")?.etag, "policy.etag")
    };
    "hive.v1.AdminService/ListDeadLetters": v1::ListDeadLettersRequest |m| page(&m.page_token);
    "hive.v1.AdminService/RedriveDelivery": v1::RedriveDeliveryRequest |m| { request_id(&m.request_id)?; key(m.key) };
    "hive.v1.AdminService/DropDelivery": v1::DropDeliveryRequest |m| { request_id(&m.request_id)?; key(m.key) };
    "hive.v1.AdminService/ReleaseDelivery": v1::ReleaseDeliveryRequest |m| { request_id(&m.request_id)?; key(m.key) };
    "hive.v1.AdminService/SendCommand": v1::SendCommandRequest |m| {
        request_id(&m.request_id)?;
        name(&m.agent, "agent")?;
        let wire = convert::required(m.command.and_then(|command| command.command), "command")?;
        let order = Order::from_wire(wire).map_err(|fault| fault.within("command"))?;
        assert_eq!(Order::from_wire(order.clone().into_wire()), Ok(order));
        Ok(())
    };
    "hive.v1.AdminService/Login": v1::LoginRequest |_| Ok(());
    "hive.v1.AdminService/GetBrokerStatus": v1::GetBrokerStatusRequest |_| Ok(());
    "hive.v1.AdminService/Backup": v1::BackupRequest |_| Ok(());
    "hive.v1.AdminService/CheckIntegrity": v1::CheckIntegrityRequest |_| Ok(());
    "hive.v1.AdminService/Drain": v1::DrainRequest |_| Ok(());
    "hive.v1.ServerInfoService/GetServerInfo": v1::GetServerInfoRequest |m| {
        fields::client_text(m.client_name, "client_name")?;
        fields::client_text(m.client_version, "client_version").map(drop)
    };
    "hive.harness.v1.TaskService/RunTask": harness_v1::RunTaskRequest |m| { span(m.timeout, "timeout")?; span(m.wait, "wait") };
    "hive.harness.v1.TaskService/GetTask": harness_v1::GetTaskRequest |m| span(m.wait, "wait");
}
