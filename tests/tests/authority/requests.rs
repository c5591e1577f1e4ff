//! The request of each RPC about one agent's objects.

use hive_proto::v1::ack_delivery_request::Target;
use hive_proto::v1::command::Command as Order;
use hive_proto::v1::*;
use hive_tests::rig::{fresh_id, request};
use prost::Message as _;

use crate::authority_table::{Proof, Row};
use crate::scene::{JOURNAL_UNIT, Things, below};

/// Returns whether a call of this RPC carries the token of a claude process.
pub(crate) fn shows_process(row: &Row) -> bool {
    matches!(row.proof, Proof::Process | Proof::ProcessWhileAttached)
}

/// Returns the encoded request.
pub(crate) fn of(row: &Row, things: &Things) -> Vec<u8> {
    let request_id = fresh_id();
    let Things { agent, message, held, dead, process, turn, lease, command, .. } = things.clone();
    let key = |message_id| Some(DeliveryKey { agent: agent.clone(), message_id });
    match (row.service, row.method) {
        ("MessageService", "SendMessage") => request::send("dan", "hello").encode_to_vec(),
        ("MessageService", "StreamMessages") => {
            StreamMessagesRequest { send: Some(request::send("dan", "hello")) }.encode_to_vec()
        }
        ("MessageService", "GetMessage") => {
            GetMessageRequest { message_id: message }.encode_to_vec()
        }
        ("MessageService", "ListRecipients") => {
            ListRecipientsRequest { message_id: message, ..Default::default() }.encode_to_vec()
        }
        ("MessageService", "ListMessages") => {
            ListMessagesRequest { agent, ..ListMessagesRequest::default() }.encode_to_vec()
        }
        ("MessageService", "SearchMessages") => SearchMessagesRequest {
            query: "owner".to_owned(),
            agent,
            ..SearchMessagesRequest::default()
        }
        .encode_to_vec(),
        ("QuestionService" | "ReminderService" | "LooseEndService", method) => {
            open_things(method, things)
        }
        ("InboxService", "ReceiveMessages") => request::receive().encode_to_vec(),
        ("InboxService", "SettleDeliveries") => ack(&lease).encode_to_vec(),
        ("InboxService", "StreamDeliveries") => {
            let step = stream_deliveries_request::Step::Settle(ack(&lease));
            StreamDeliveriesRequest { step: Some(step) }.encode_to_vec()
        }
        ("InboxService", "AckDelivery") => {
            AckDeliveryRequest { target: Some(Target::LeaseToken(lease)) }.encode_to_vec()
        }
        ("InboxService", "NackDelivery") => {
            NackDeliveryRequest { lease_token: lease, error: "no".to_owned(), permanent: false }
                .encode_to_vec()
        }
        ("InboxService", "ExtendLease") => {
            ExtendLeaseRequest { lease_token: lease, lease_duration: None }.encode_to_vec()
        }
        ("InboxService", "GetInboxStatus") => GetInboxStatusRequest { agent }.encode_to_vec(),
        ("InboxService", "ListDeliveries") => {
            ListDeliveriesRequest { agent, ..ListDeliveriesRequest::default() }.encode_to_vec()
        }
        ("TurnService", "Attach") => {
            AttachRequest { take_over: true, revision: "test".to_owned() }.encode_to_vec()
        }
        ("TurnService", "AckCommand") => {
            AckCommandRequest { command_id: command, error: String::new() }.encode_to_vec()
        }
        ("TurnService", "BeginTurn") => {
            BeginTurnRequest { process_token: process, ..request::begin() }.encode_to_vec()
        }
        ("TurnService", "RequestNextTurn") => RequestNextTurnRequest {}.encode_to_vec(),
        ("TurnService", "Heartbeat") => HeartbeatRequest {}.encode_to_vec(),
        ("TurnService", "ReportTurnEvents") => {
            let event = TurnEvent { sequence: 1, stream: 1, line: "a line".to_owned(), time: None };
            ReportTurnEventsRequest { turn_id: turn, events: vec![event] }.encode_to_vec()
        }
        ("TurnService", "EndTurn") => request::end_turn(turn, TurnOutcome::Ok).encode_to_vec(),
        ("TurnService", "ReportProblem") => {
            let (subject, text) = ("plugins".to_owned(), "one is not there".to_owned());
            ReportProblemRequest { request_id, subject, text }.encode_to_vec()
        }
        ("TurnService", "ServeLogin") => {
            let start = ServeLoginStart { login_id: 1 };
            ServeLoginRequest { step: Some(serve_login_request::Step::Start(start)) }
                .encode_to_vec()
        }
        ("TurnService", "Leave") => LeaveRequest {}.encode_to_vec(),
        ("TurnHistoryService", "GetTurnStats") => {
            GetTurnStatsRequest { agent, window: None }.encode_to_vec()
        }
        ("TurnHistoryService", "ListTurns") => {
            ListTurnsRequest { agent, ..ListTurnsRequest::default() }.encode_to_vec()
        }
        ("TurnHistoryService", "GetTurn") => GetTurnRequest { turn_id: turn }.encode_to_vec(),
        ("TurnHistoryService", "WatchTurn") => {
            WatchTurnRequest { turn_id: turn, after_sequence: 0, follow: false }.encode_to_vec()
        }
        ("WakeService", "Wake") => request::wake("ci", "built").encode_to_vec(),
        ("TopologyService", "GetSelf") => GetSelfRequest {}.encode_to_vec(),
        ("TopologyService", "GetAgent") => GetAgentRequest { name: agent }.encode_to_vec(),
        ("TopologyService", "ListAgents") => ListAgentsRequest::default().encode_to_vec(),
        ("TopologyService", "ListChildren") => {
            ListChildrenRequest { name: agent, ..Default::default() }.encode_to_vec()
        }
        ("TopologyService", "FindAgents") => FindAgentsRequest::default().encode_to_vec(),
        ("TopologyService", "WatchAgents") => WatchAgentsRequest { agent }.encode_to_vec(),
        ("StatusService", "SetStatusText") => {
            SetStatusTextRequest { request_id, text: "busy".to_owned() }.encode_to_vec()
        }
        ("TurnService", "ReportHarnessStatus") => {
            let state = HarnessState::Compacting.into();
            ReportHarnessStatusRequest { state, until_time: None }.encode_to_vec()
        }
        ("EventService", "ListEvents") => {
            ListEventsRequest { agent, ..ListEventsRequest::default() }.encode_to_vec()
        }
        ("EventService", "WatchEvents") => {
            WatchEventsRequest { after_sequence: Some(0), agent, log_id: String::new() }
                .encode_to_vec()
        }
        ("ScheduleService", method) => of_schedule(method, things),
        ("LifecycleService", method) => lifecycle(method, &agent),
        ("ActionService", "GetActions") => GetActionsRequest {}.encode_to_vec(),
        ("DiagnosticsService", "GetLogs") => {
            let [agent, _] = below(&agent);
            GetLogsRequest { agent, lines: 5 }.encode_to_vec()
        }
        ("DiagnosticsService", "GetHostJournal") => {
            let unit = JOURNAL_UNIT.to_owned();
            GetHostJournalRequest { unit, since: None, lines: 5 }.encode_to_vec()
        }
        ("LauncherService", "AnswerLogs") => AnswerLogsRequest::default().encode_to_vec(),
        ("LauncherService", "Launch") => LaunchRequest {}.encode_to_vec(),
        // A crash is noted of any agent; the other reports say nothing new of one that runs.
        ("LauncherService", "ReportHarness") => {
            let report = HarnessReport::Crashed.into();
            let text = "it ended with exit code 1".to_owned();
            ReportHarnessRequest { name: agent, report, restart_count: 0, text }.encode_to_vec()
        }
        ("AdminService", "PauseSchedule" | "ResumeSchedule") => of_schedule(row.method, things),
        ("AdminService", method) => admin(method, agent.clone(), held, dead, key),
        ("ServerInfoService", "GetServerInfo") => GetServerInfoRequest::default().encode_to_vec(),
        (service, method) => panic!("{service}.{method} is new: say here how it is called"),
    }
}

/// Returns the message that opens a stream of deliveries, which takes none.
pub(crate) fn stream() -> Vec<u8> {
    let open = OpenDeliveries {
        stream_id: fresh_id(),
        window: Some(DeliveryWindow::default()),
        orphan_grace: None,
    };
    let step = Some(stream_deliveries_request::Step::Open(open));
    StreamDeliveriesRequest { step }.encode_to_vec()
}

fn ack(lease: &str) -> SettleDeliveriesRequest {
    let settlement = Settlement {
        target: Some(settlement::Target::LeaseToken(lease.to_owned())),
        action: Some(settlement::Action::Ack(Ack {})),
    };
    SettleDeliveriesRequest { settlements: vec![settlement] }
}

fn open_things(method: &str, things: &Things) -> Vec<u8> {
    let request_id = fresh_id();
    let Things { agent, owed, asked, loose_end, reminder, .. } = things.clone();
    let text = "which way?".to_owned();
    match method {
        "AskQuestion" => request::ask("dan", &text).encode_to_vec(),
        "AnswerQuestion" => request::answer(owed, &text).encode_to_vec(),
        "CancelQuestion" => request::withdraw(asked).encode_to_vec(),
        "GetQuestion" => GetQuestionRequest { question_id: owed }.encode_to_vec(),
        "ListQuestions" => {
            ListQuestionsRequest { target: agent, ..ListQuestionsRequest::default() }
                .encode_to_vec()
        }
        "WatchQuestions" => {
            WatchQuestionsRequest { question_id: owed, ..WatchQuestionsRequest::default() }
                .encode_to_vec()
        }
        "CreateReminder" => {
            let due = Some(create_reminder_request::Due::Delay(prost_types::Duration {
                seconds: 3600,
                nanos: 0,
            }));
            CreateReminderRequest { request_id, body: text, due }.encode_to_vec()
        }
        "CancelReminder" => {
            CancelReminderRequest { request_id, reminder_id: reminder }.encode_to_vec()
        }
        "ListReminders" => {
            ListRemindersRequest { agent, ..ListRemindersRequest::default() }.encode_to_vec()
        }
        "ListLooseEnds" => {
            ListLooseEndsRequest { agent, ..ListLooseEndsRequest::default() }.encode_to_vec()
        }
        "CancelLooseEnd" => {
            let kind = LooseEndKind::QuestionAsked.into();
            CancelLooseEndRequest { request_id, kind, id: loose_end }.encode_to_vec()
        }
        "ReplaceLooseEnds" => {
            let entry =
                PublishedLooseEnd { key: "build".to_owned(), text: "the build runs".to_owned() };
            ReplaceLooseEndsRequest { request_id, label: "ci".to_owned(), loose_ends: vec![entry] }
                .encode_to_vec()
        }
        method => panic!("{method} is new: say here how it is called"),
    }
}

fn of_schedule(method: &str, things: &Things) -> Vec<u8> {
    let (request_id, schedule_id) = (fresh_id(), things.schedule);
    match method {
        "FireSchedule" => FireScheduleRequest { request_id, schedule_id }.encode_to_vec(),
        "CancelSchedule" => CancelScheduleRequest { request_id, schedule_id }.encode_to_vec(),
        "ListSchedules" => {
            let agent = things.agent.clone();
            ListSchedulesRequest { agent, ..ListSchedulesRequest::default() }.encode_to_vec()
        }
        "PauseSchedule" => PauseScheduleRequest { request_id, schedule_id }.encode_to_vec(),
        "ResumeSchedule" => ResumeScheduleRequest { request_id, schedule_id }.encode_to_vec(),
        method => panic!("{method} is new: say here how it is called"),
    }
}

/// Returns a request about an agent below this one.
fn lifecycle(method: &str, agent: &str) -> Vec<u8> {
    let (request_id, [name, stopped]) = (fresh_id(), below(agent));
    match method {
        "StartChild" => StartChildRequest { request_id, name, on_demand: None }.encode_to_vec(),
        "StopChild" => StopChildRequest { request_id, name: stopped }.encode_to_vec(),
        "RestartChild" => RestartChildRequest { request_id, name }.encode_to_vec(),
        method => panic!("LifecycleService.{method} is new: say here how it is called"),
    }
}

fn admin(
    method: &str,
    agent: String,
    held: u64,
    dead: u64,
    key: impl Fn(u64) -> Option<DeliveryKey>,
) -> Vec<u8> {
    let request_id = fresh_id();
    match method {
        "CreateAgent" => request::create_agent("eve").encode_to_vec(),
        "RetireAgent" => request::retire_agent(&agent).encode_to_vec(),
        "StopAgent" => {
            StopAgentRequest { request_id, name: agent, etag: String::new() }.encode_to_vec()
        }
        "StartAgent" => {
            StartAgentRequest { request_id, name: agent, ..Default::default() }.encode_to_vec()
        }
        "ListPurges" => ListPurgesRequest::default().encode_to_vec(),
        "FinishPurge" => FinishPurgeRequest { request_id, purge_id: 1 }.encode_to_vec(),
        "SetParent" => {
            let (parent, etag) = ("ada".to_owned(), String::new());
            SetParentRequest { request_id, name: agent, parent, etag }.encode_to_vec()
        }
        "SetPolicy" => {
            let policy = Policy { questions_open_max: Some(7), ..Policy::default() };
            let update_mask =
                Some(prost_types::FieldMask { paths: vec!["questions_open_max".to_owned()] });
            SetPolicyRequest { request_id, name: agent, policy: Some(policy), update_mask }
                .encode_to_vec()
        }
        "ListDeadLetters" => ListDeadLettersRequest::default().encode_to_vec(),
        "RedriveDelivery" => RedriveDeliveryRequest { request_id, key: key(dead) }.encode_to_vec(),
        "DropDelivery" => DropDeliveryRequest { request_id, key: key(held) }.encode_to_vec(),
        "ReleaseDelivery" => ReleaseDeliveryRequest { request_id, key: key(held) }.encode_to_vec(),
        "SendCommand" => {
            request::order(&agent, Order::RestartHarness(RestartHarness {})).encode_to_vec()
        }
        "Login" => {
            let start = LoginStart { agent, terminal: None };
            LoginRequest { step: Some(login_request::Step::Start(start)) }.encode_to_vec()
        }
        "GetBrokerStatus" => GetBrokerStatusRequest {}.encode_to_vec(),
        "Backup" => BackupRequest {}.encode_to_vec(),
        "CheckIntegrity" => CheckIntegrityRequest {}.encode_to_vec(),
        "Drain" => DrainRequest {}.encode_to_vec(),
        method => panic!("AdminService.{method} is new: say here how it is called"),
    }
}
