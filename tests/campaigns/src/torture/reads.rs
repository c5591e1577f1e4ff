//! The reads: every one in its turn, each checked against the permanent facts.
//!
//! Invariant: a read that fails proves nothing; the broker may just be down.

use std::time::Duration;

use hive_proto::v1::admin_service_client::AdminServiceClient;
use hive_proto::v1::event_service_client::EventServiceClient;
use hive_proto::v1::inbox_service_client::InboxServiceClient;
use hive_proto::v1::loose_end_service_client::LooseEndServiceClient;
use hive_proto::v1::message_service_client::MessageServiceClient;
use hive_proto::v1::question_service_client::QuestionServiceClient;
use hive_proto::v1::reminder_service_client::ReminderServiceClient;
use hive_proto::v1::server_info_service_client::ServerInfoServiceClient;
use hive_proto::v1::topology_service_client::TopologyServiceClient;
use hive_proto::v1::turn_history_service_client::TurnHistoryServiceClient;
use hive_proto::v1::{
    self, search_hit, watch_events_response, watch_questions_response, watch_turn_response,
};
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use super::cast::{AGENTS, GUEST};
use super::facts::Facts;
use super::players::Table;
use super::voice::Voice;

/// Reads that agents and the operator have.
const EVERYBODYS: [&str; 22] = [
    "GetMessage",
    "ListRecipients",
    "ListMessages",
    "SearchMessages",
    "ListDeliveries",
    "GetInboxStatus",
    "GetAgent",
    "ListAgents",
    "ListChildren",
    "FindAgents",
    "WatchAgents",
    "ListTurns",
    "GetTurn",
    "WatchTurn",
    "ListEvents",
    "WatchEvents",
    "ListQuestions",
    "WatchQuestions",
    "ListReminders",
    "ListLooseEnds",
    "GetServerInfo",
    "Health.Check",
];
/// Reads of the operator alone.
const OPERATORS: [&str; 7] = [
    "ListDeadLetters",
    "ListPurges",
    "GetBrokerStatus",
    "CheckIntegrity",
    "Backup",
    "GetTurnStats",
    "Launch",
];
/// Maximum number of steps read from a watch.
pub(super) const WATCH_STEPS: usize = 20;
/// Maximum wait for the next step of a watch.
pub(super) const WATCH_WAIT: Duration = Duration::from_millis(20);
/// Maximum duration of a read.
const READ_MAX: Duration = Duration::from_secs(20);
/// Maximum number of tries if the broker goes away.
const TRIES: usize = 3;
/// The page size, in rows.
const ROWS: u32 = 20;

/// Returns the RPCs that a caller may read with.
fn all_of(voice: &Voice) -> Vec<&'static str> {
    let own: &[&str] = if voice.name == "operator" { &OPERATORS } else { &["GetSelf"] };
    EVERYBODYS.iter().chain(own).copied().collect()
}

/// Makes the read with this number, out of all that this caller may make.
pub(crate) async fn next(voice: &Voice, table: &Table, number: u64) {
    let all = all_of(voice);
    let rpc = all[usize::try_from(number % all.len() as u64).expect("below a length")];
    for _ in 0..TRIES {
        let seen = voice.seen();
        if once(voice, table, rpc, number).await {
            return;
        }
        voice.another_broker(seen).await;
    }
}

/// Makes every read that this caller may make, when all is at rest: facts from any broker's life
/// still hold.
pub(crate) async fn everything(voice: &Voice, table: &Table) {
    for (number, rpc) in (0..).zip(all_of(voice)) {
        once(voice, table, rpc, number).await;
    }
}

/// Makes one read; returns whether it was answered, or never will be.
async fn once(voice: &Voice, table: &Table, rpc: &str, number: u64) -> bool {
    let Ok(read) = tokio::time::timeout(READ_MAX, read(voice, table, rpc, number)).await else {
        table.facts.wrong(format!("{rpc} of {} has no end", voice.name));
        return true;
    };
    match &read {
        Ok(()) => table.facts.answered(rpc),
        // A message with a receipt exists, and the operator may read it.
        Err(status)
            if voice.name == "operator"
                && rpc == "GetMessage"
                && status.code() == Code::NotFound =>
        {
            table
                .facts
                .wrong(format!("a message with a receipt is not there: {}", status.message()));
        }
        Err(_) => {}
    }
    read.is_ok()
}

async fn read(voice: &Voice, table: &Table, rpc: &str, number: u64) -> Result<(), Status> {
    match rpc {
        "GetTurn" | "ListTurns" | "WatchTurn" | "GetTurnStats" => {
            turns(voice, &table.facts, rpc).await
        }
        "ListEvents" | "WatchEvents" => events(voice, &table.facts, rpc).await,
        "ListQuestions" | "WatchQuestions" => questions(voice, rpc).await,
        "GetMessage" | "ListMessages" | "ListRecipients" | "SearchMessages" => {
            messages(voice, &table.facts, rpc, number).await
        }
        "GetAgent" | "ListAgents" | "ListChildren" | "FindAgents" | "GetSelf" | "WatchAgents" => {
            agents(voice, &table.facts, rpc).await
        }
        _ => rest(voice, &table.facts, rpc).await,
    }
}

async fn messages(voice: &Voice, facts: &Facts, rpc: &str, number: u64) -> Result<(), Status> {
    let mut client = MessageServiceClient::new(voice.channel());
    match rpc {
        "GetMessage" => {
            let Some(message_id) = facts.a_message(number % 50) else {
                return Err(Status::unknown("none is known"));
            };
            let read = client.get_message(v1::GetMessageRequest { message_id }).await?.into_inner();
            let message = read.message.unwrap_or_default();
            facts.hold(message.id == message_id, || {
                format!("message {message_id} was asked for, and read as {}", message.id)
            });
            facts.message(&message);
        }
        "ListRecipients" => {
            let Some(message_id) = facts.a_message(number % 50) else {
                return Err(Status::unknown("none is known"));
            };
            let request = v1::ListRecipientsRequest {
                message_id,
                page_size: 1,
                ..v1::ListRecipientsRequest::default()
            };
            let listed = client.list_recipients(request).await?.into_inner().recipients;
            facts.hold(listed.len() <= 1, || {
                format!("one recipient of message {message_id} was asked for: {listed:?}")
            });
        }
        "ListMessages" => {
            let request =
                v1::ListMessagesRequest { page_size: ROWS, ..v1::ListMessagesRequest::default() };
            client
                .list_messages(request)
                .await?
                .into_inner()
                .messages
                .iter()
                .for_each(|message| facts.message(message));
        }
        _ => {
            let query = if number.is_multiple_of(2) { "mail" } else { "question" }.to_owned();
            let request = v1::SearchMessagesRequest {
                query,
                page_size: ROWS,
                ..v1::SearchMessagesRequest::default()
            };
            for hit in client.search_messages(request).await?.into_inner().hits {
                match hit.hit {
                    Some(search_hit::Hit::Message(message)) => facts.message(&message),
                    Some(search_hit::Hit::Question(question)) => voice.saw(&question),
                    None => facts.wrong("a hit of a search is nothing".to_owned()),
                }
            }
        }
    }
    Ok(())
}

async fn questions(voice: &Voice, rpc: &str) -> Result<(), Status> {
    let mut client = QuestionServiceClient::new(voice.channel());
    if rpc == "ListQuestions" {
        let request =
            v1::ListQuestionsRequest { page_size: ROWS, ..v1::ListQuestionsRequest::default() };
        client
            .list_questions(request)
            .await?
            .into_inner()
            .questions
            .iter()
            .for_each(|question| voice.saw(question));
        return Ok(());
    }
    let mut stream =
        client.watch_questions(v1::WatchQuestionsRequest::default()).await?.into_inner();
    for _ in 0..WATCH_STEPS {
        let Ok(step) = tokio::time::timeout(WATCH_WAIT, stream.message()).await else { break };
        let Some(step) = step? else { break };
        let questions = match step.step {
            Some(watch_questions_response::Step::Snapshot(part)) => part.questions,
            Some(watch_questions_response::Step::Batch(batch)) => batch.questions,
            Some(watch_questions_response::Step::Progress(_)) | None => Vec::new(),
        };
        questions.iter().for_each(|question| voice.saw(question));
    }
    Ok(())
}

async fn events(voice: &Voice, facts: &Facts, rpc: &str) -> Result<(), Status> {
    let mut client = EventServiceClient::new(voice.channel());
    let mut info = ServerInfoServiceClient::new(voice.channel());
    let info = info.get_server_info(v1::GetServerInfoRequest::default()).await?.into_inner();
    let log_id = info.log_id;
    let after = facts.last_event().saturating_sub(u64::from(ROWS));
    let mut last = after;
    let mut next = |event: &v1::Event| {
        facts.hold(event.sequence > last, || format!("event {} came after {last}", event.sequence));
        last = event.sequence;
        facts.event(event);
    };
    if rpc == "ListEvents" {
        let mut request = v1::ListEventsRequest {
            after_sequence: after,
            page_size: ROWS / 4,
            log_id,
            ..v1::ListEventsRequest::default()
        };
        for _ in 0..4 {
            let page = client.list_events(request.clone()).await?.into_inner();
            page.events.iter().for_each(&mut next);
            request.page_token = page.next_page_token;
            if request.page_token.is_empty() {
                break;
            }
        }
        return Ok(());
    }
    let request =
        v1::WatchEventsRequest { after_sequence: Some(after), log_id, ..Default::default() };
    let mut stream = client.watch_events(request).await?.into_inner();
    for _ in 0..WATCH_STEPS {
        let Ok(step) = tokio::time::timeout(WATCH_WAIT, stream.message()).await else { break };
        match step?.and_then(|step| step.step) {
            Some(watch_events_response::Step::Batch(batch)) => {
                batch.events.iter().for_each(&mut next);
            }
            Some(watch_events_response::Step::Progress(_)) => {}
            Some(watch_events_response::Step::Snapshot(snapshot)) => {
                facts
                    .hold(!snapshot.gap, || format!("events after {after} are gone: {snapshot:?}"));
            }
            None => break,
        }
    }
    Ok(())
}

async fn turns(voice: &Voice, facts: &Facts, rpc: &str) -> Result<(), Status> {
    let mut client = TurnHistoryServiceClient::new(voice.channel());
    if rpc == "GetTurnStats" {
        return client.get_turn_stats(v1::GetTurnStatsRequest::default()).await.map(drop);
    }
    let agent = if voice.name == "operator" { "t1".to_owned() } else { String::new() };
    let request = v1::ListTurnsRequest { page_size: ROWS, page_token: String::new(), agent };
    let listed = client.list_turns(request).await?.into_inner().turns;
    listed.iter().for_each(|turn| facts.turn(turn));
    if rpc == "ListTurns" {
        return Ok(());
    }
    let Some(turn_id) = listed.first().map(|turn| turn.id) else {
        return Err(Status::unknown("there is no turn"));
    };
    if rpc == "GetTurn" {
        let read = client.get_turn(v1::GetTurnRequest { turn_id }).await?.into_inner();
        facts.turn(&read.turn.unwrap_or_default());
        return Ok(());
    }
    let mut stream = client
        .watch_turn(v1::WatchTurnRequest { turn_id, after_sequence: 0, follow: true })
        .await?
        .into_inner();
    let mut last = 0;
    for _ in 0..WATCH_STEPS {
        let Ok(step) = tokio::time::timeout(WATCH_WAIT, stream.message()).await else { break };
        let Some(step) = step? else { break };
        let events = match step.step {
            Some(watch_turn_response::Step::Snapshot(part)) => part.events,
            Some(watch_turn_response::Step::Batch(batch)) => batch.events,
            None => Vec::new(),
        };
        for event in events {
            facts.hold(event.sequence > last, || {
                format!("line {} of turn {turn_id} came after {last}", event.sequence)
            });
            last = event.sequence;
        }
    }
    Ok(())
}

async fn agents(voice: &Voice, facts: &Facts, rpc: &str) -> Result<(), Status> {
    let mut client = TopologyServiceClient::new(voice.channel());
    match rpc {
        "GetSelf" => {
            let name = client
                .get_self(v1::GetSelfRequest {})
                .await?
                .into_inner()
                .agent
                .unwrap_or_default()
                .name;
            facts.hold(name == voice.name, || format!("{} is told that it is {name}", voice.name));
        }
        "GetAgent" => {
            let request = v1::GetAgentRequest { name: "h1".to_owned() };
            let name = client.get_agent(request).await?.into_inner().agent.unwrap_or_default().name;
            facts.hold(name == "h1", || format!("h1 was asked for, and {name} read"));
        }
        "ListChildren" => {
            let request = v1::ListChildrenRequest {
                name: "c1".to_owned(),
                ..v1::ListChildrenRequest::default()
            };
            let children = client.list_children(request).await?.into_inner().agents;
            facts.hold(children.iter().any(|child| child.name == "t1"), || {
                format!("t1 is no child of c1: {children:?}")
            });
        }
        "WatchAgents" => super::watches::agents(voice, facts, &mut client).await?,
        "FindAgents" => {
            let request =
                v1::FindAgentsRequest { text: "t1".to_owned(), ..v1::FindAgentsRequest::default() };
            let found = client.find_agents(request).await?.into_inner().agents;
            let hit = voice.name == "t1" || found.iter().any(|agent| agent.name == "t1");
            facts.hold(hit, || format!("t1 is not found: {found:?}"));
        }
        _ => {
            let mut request =
                v1::ListAgentsRequest { page_size: 3, ..v1::ListAgentsRequest::default() };
            let mut listed = Vec::new();
            loop {
                let page = client.list_agents(request.clone()).await?.into_inner();
                listed.extend(page.agents);
                request.page_token = page.next_page_token;
                if request.page_token.is_empty() {
                    break;
                }
            }
            for name in AGENTS {
                facts.hold(listed.iter().any(|agent| agent.name == name), || {
                    format!("{name} is not listed")
                });
            }
        }
    }
    Ok(())
}

async fn rest(voice: &Voice, facts: &Facts, rpc: &str) -> Result<(), Status> {
    let admin = || AdminServiceClient::new(voice.channel());
    let inbox = || InboxServiceClient::new(voice.channel());
    match rpc {
        "ListDeliveries" => {
            let request = v1::ListDeliveriesRequest {
                page_size: ROWS,
                ..v1::ListDeliveriesRequest::default()
            };
            for delivery in inbox().list_deliveries(request).await?.into_inner().deliveries {
                delivery.message.iter().for_each(|message| facts.message(message));
            }
        }
        "GetInboxStatus" => {
            drop(inbox().get_inbox_status(v1::GetInboxStatusRequest::default()).await?);
        }
        "ListReminders" => {
            let agent = if voice.name == "operator" { "c1".to_owned() } else { String::new() };
            let request = v1::ListRemindersRequest {
                page_size: ROWS,
                agent,
                ..v1::ListRemindersRequest::default()
            };
            drop(ReminderServiceClient::new(voice.channel()).list_reminders(request).await?);
        }
        "ListLooseEnds" => {
            let request =
                v1::ListLooseEndsRequest { page_size: ROWS, ..v1::ListLooseEndsRequest::default() };
            drop(LooseEndServiceClient::new(voice.channel()).list_loose_ends(request).await?);
        }
        "GetServerInfo" => {
            let info = ServerInfoServiceClient::new(voice.channel())
                .get_server_info(v1::GetServerInfoRequest::default())
                .await?;
            let name = info.into_inner().hive_name;
            facts.hold(name == "torture", || format!("the hive is called {name}"));
        }
        "Health.Check" => {
            drop(HealthClient::new(voice.channel()).check(HealthCheckRequest::default()).await?);
        }
        "ListPurges" => {
            let purges =
                admin().list_purges(v1::ListPurgesRequest::default()).await?.into_inner().purges;
            let fine = purges.len() <= 1 && purges.iter().all(|purge| purge.name == GUEST);
            facts.hold(fine, || {
                format!("only the last purge of the guest may be unfinished: {purges:?}")
            });
        }
        "ListDeadLetters" => {
            let request = v1::ListDeadLettersRequest {
                page_size: ROWS,
                ..v1::ListDeadLettersRequest::default()
            };
            for dead in admin().list_dead_letters(request).await?.into_inner().deliveries {
                facts.hold(dead.state() == v1::DeliveryState::Dead, || {
                    format!("a dead letter is {dead:?}")
                });
            }
        }
        "GetBrokerStatus" => {
            let before = facts.last_event();
            let status =
                admin().get_broker_status(v1::GetBrokerStatusRequest {}).await?.into_inner();
            facts.hold(status.storage_ok, || {
                format!("the storage is not well: {}", status.storage_error)
            });
            let last = status.last_event_sequence;
            facts.hold(last >= before, || {
                format!("event {before} was read, and {last} is the last")
            });
        }
        "CheckIntegrity" => {
            let problems =
                admin().check_integrity(v1::CheckIntegrityRequest {}).await?.into_inner().problems;
            facts.hold(problems.is_empty(), || format!("the database is not right: {problems:?}"));
        }
        "Launch" => super::watches::launch(voice, facts).await?,
        "Backup" => {
            let mut stream = admin().backup(v1::BackupRequest {}).await?.into_inner();
            let (mut bytes, mut total) = (0, 0);
            while let Some(piece) = stream.message().await? {
                bytes += piece.chunk.len() as u64;
                total = piece.total_bytes;
            }
            facts.hold(bytes == total, || format!("a backup of {total} bytes has {bytes}"));
        }
        other => panic!("nobody knows how to read {other}"),
    }
    Ok(())
}

/// Returns an agent, as the operator reads it now.
pub(crate) async fn agent(voice: &Voice, name: &str) -> Result<v1::Agent, Status> {
    let request = v1::GetAgentRequest { name: name.to_owned() };
    let read = TopologyServiceClient::new(voice.channel()).get_agent(request).await?.into_inner();
    read.agent.ok_or_else(|| Status::unknown("there is no agent in it"))
}
