//! The final read of a whole hive through its broker.
//!
//! Invariant: pages are read to their end.

use std::collections::BTreeSet;
use std::time::Duration;

use hive_history::{Final, State};
use hive_proto::v1::inbox_service_client::InboxServiceClient;
use hive_proto::v1::message_service_client::MessageServiceClient;
use hive_proto::v1::question_service_client::QuestionServiceClient;
use hive_proto::v1::reminder_service_client::ReminderServiceClient;
use hive_proto::v1::turn_history_service_client::TurnHistoryServiceClient;
use hive_proto::v1::{self, DeliveryState, EventKind, watch_events_response, watch_turn_response};
use tonic::{Status, Streaming};

use super::cast::HARNESSED;
use super::seen;
use super::tape::wall_ms;
use super::voice::Voice;

const ROWS: u32 = 500;
/// The text that a claude gets if its bridge died in a call.
const CUT_CALL: &str = "Connection closed";
/// Wait for a settlement before the next check.
const SETTLE_WAIT: Duration = Duration::from_millis(300);

fn all_states() -> Vec<i32> {
    (1..=7).collect()
}

/// Reads everything; `agents` are all that have an inbox, without the operator.
pub(crate) async fn read(operator: &Voice, agents: &[String]) -> Result<Final, Status> {
    let mut last = Final { messages: messages(operator).await?, ..Final::default() };
    last.messages.sort_by_key(|message| message.id);
    for agent in agents.iter().map(String::as_str).chain(["operator"]) {
        let found = deliveries(operator, agent, all_states()).await?;
        last.deliveries.extend(found.iter().map(seen::delivery));
    }
    last.questions = questions(operator).await?.iter().map(seen::question).collect();
    for agent in agents {
        last.reminders.extend(reminders(operator, agent).await?.iter().map(seen::reminder));
        last.turns.extend(turns(operator, agent).await?.iter().map(seen::ended_turn));
    }
    last.turns.sort_by_key(|turn| turn.id);
    last.wall = wall_ms();
    Ok(last)
}

/// Reads everything, or returns `None` if something changed in the meantime. One read is many
/// calls: if a reminder fires between two of them, it is read as fired, and its message is missing.
/// Two equal reads in a row show one moment, because nothing in a hive returns to an earlier state.
pub(crate) async fn read_still(
    operator: &Voice,
    agents: &[String],
) -> Result<Option<Final>, Status> {
    let first = read(operator, agents).await?;
    let second = read(operator, agents).await?;
    let same = Final { wall: second.wall, ..first } == second;
    Ok(same.then_some(second))
}

async fn messages(voice: &Voice) -> Result<Vec<hive_history::Message>, Status> {
    let (mut all, mut page_token) = (Vec::new(), String::new());
    loop {
        let request = v1::ListMessagesRequest {
            page_size: ROWS,
            page_token,
            ..v1::ListMessagesRequest::default()
        };
        let page =
            MessageServiceClient::new(voice.channel()).list_messages(request).await?.into_inner();
        for message in &page.messages {
            let mut read = seen::message(message);
            if message.broadcast {
                read.recipients = recipients(voice, message.id).await?;
            }
            all.push(read);
        }
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return Ok(all);
        }
    }
}

async fn recipients(voice: &Voice, message_id: u64) -> Result<Vec<String>, Status> {
    let mut client = MessageServiceClient::new(voice.channel());
    // A small page, so that there are several.
    let mut request =
        v1::ListRecipientsRequest { message_id, page_size: 2, page_token: String::new() };
    let mut all = Vec::new();
    loop {
        let page = client.list_recipients(request.clone()).await?.into_inner();
        all.extend(page.recipients.into_iter().map(|recipient| recipient.name));
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            return Ok(all);
        }
    }
}

async fn deliveries(
    voice: &Voice,
    agent: &str,
    states: Vec<i32>,
) -> Result<Vec<v1::Delivery>, Status> {
    let (mut all, mut page_token) = (Vec::new(), String::new());
    loop {
        let request = v1::ListDeliveriesRequest {
            page_size: ROWS,
            page_token,
            agent: agent.to_owned(),
            states: states.clone(),
        };
        let page =
            InboxServiceClient::new(voice.channel()).list_deliveries(request).await?.into_inner();
        all.extend(page.deliveries);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return Ok(all);
        }
    }
}

async fn questions(voice: &Voice) -> Result<Vec<v1::Question>, Status> {
    let (mut all, mut page_token) = (Vec::new(), String::new());
    loop {
        let request = v1::ListQuestionsRequest {
            page_size: ROWS,
            page_token,
            ..v1::ListQuestionsRequest::default()
        };
        let page =
            QuestionServiceClient::new(voice.channel()).list_questions(request).await?.into_inner();
        all.extend(page.questions);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return Ok(all);
        }
    }
}

async fn reminders(voice: &Voice, agent: &str) -> Result<Vec<v1::Reminder>, Status> {
    let (mut all, mut page_token) = (Vec::new(), String::new());
    loop {
        let request = v1::ListRemindersRequest {
            page_size: ROWS,
            page_token,
            agent: agent.to_owned(),
            states: vec![1, 2, 3],
        };
        let page =
            ReminderServiceClient::new(voice.channel()).list_reminders(request).await?.into_inner();
        all.extend(page.reminders);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return Ok(all);
        }
    }
}

async fn turns(voice: &Voice, agent: &str) -> Result<Vec<v1::Turn>, Status> {
    let (mut all, mut page_token) = (Vec::new(), String::new());
    loop {
        let request = v1::ListTurnsRequest { page_size: ROWS, page_token, agent: agent.to_owned() };
        let page =
            TurnHistoryServiceClient::new(voice.channel()).list_turns(request).await?.into_inner();
        all.extend(page.turns);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return Ok(all);
        }
    }
}

/// Returns deliveries that wait for the operator: held ones, dead letters, and the operator's own
/// mail.
pub(crate) async fn undecided(voice: &Voice) -> Vec<(String, u64, State)> {
    let mut waiting = Vec::new();
    // While the broker is down there is no answer, and nothing to decide.
    let own =
        deliveries(voice, "operator", vec![DeliveryState::Ready.into()]).await.unwrap_or_default();
    waiting.extend(own.iter().rev().take(2).map(seen::delivery));
    let dead =
        v1::ListDeadLettersRequest { page_size: ROWS, ..v1::ListDeadLettersRequest::default() };
    let mut admin = v1::admin_service_client::AdminServiceClient::new(voice.channel());
    if let Ok(page) = admin.list_dead_letters(dead).await {
        waiting.extend(page.into_inner().deliveries.iter().map(seen::delivery));
    }
    for agent in ["t1", "h1", "h2"] {
        let held =
            deliveries(voice, agent, vec![DeliveryState::Held.into()]).await.unwrap_or_default();
        waiting.extend(held.iter().map(seen::delivery));
    }
    let keys: BTreeSet<(String, u64, State)> = waiting
        .into_iter()
        .map(|delivery| (delivery.agent, delivery.message, delivery.state))
        .collect();
    keys.into_iter().collect()
}

/// Returns the number of agents' deliveries that are ready or leased.
pub(crate) async fn restless(voice: &Voice, agents: &[String]) -> Option<usize> {
    let mut count = 0;
    for agent in agents {
        let states = vec![DeliveryState::Ready.into(), DeliveryState::Leased.into()];
        count += deliveries(voice, agent, states).await.ok()?.len();
    }
    Some(count)
}

/// Returns the number of claudes' calls that failed because their bridge died, in turns that began
/// within one of these harness lives: agent, start, and end on the wall clock.
pub(crate) async fn cut_calls(voice: &Voice, lives: &[(String, i64, i64)]) -> Result<u64, Status> {
    let mut count = 0;
    for agent in HARNESSED {
        for turn in turns(voice, agent).await? {
            let began = seen::ms(turn.start_time.as_ref());
            if !lives
                .iter()
                .any(|(whose, from, to)| whose == agent && (*from..*to).contains(&began))
            {
                continue;
            }
            let request =
                v1::WatchTurnRequest { turn_id: turn.id, after_sequence: 0, follow: false };
            let mut lines = TurnHistoryServiceClient::new(voice.channel())
                .watch_turn(request)
                .await?
                .into_inner();
            while let Some(some) = lines.message().await? {
                let Some(watch_turn_response::Step::Snapshot(part)) = some.step else { continue };
                let cut = part.events.iter().filter(|event| event.line.contains(CUT_CALL)).count();
                count += u64::try_from(cut).unwrap_or(0);
            }
        }
    }
    Ok(count)
}

/// A wait until agents with a real harness settle a delivery.
#[derive(Debug)]
pub(crate) struct Settling(Option<Streaming<v1::WatchEventsResponse>>);

impl Settling {
    /// Starts to watch events from now on.
    pub(crate) async fn new(operator: &Voice) -> Self {
        let mut events = v1::event_service_client::EventServiceClient::new(operator.channel());
        Self(
            events
                .watch_events(v1::WatchEventsRequest::default())
                .await
                .ok()
                .map(tonic::Response::into_inner),
        )
    }

    /// Waits until they have, or for a while: it may have been just before.
    pub(crate) async fn wait(self) {
        let settles = |event: &v1::Event| {
            let kinds = [
                EventKind::TurnEnded,
                EventKind::DeliveryAcked,
                EventKind::DeliveryReturned,
                EventKind::DeliveryDead,
            ];
            HARNESSED.contains(&event.agent.as_str()) && kinds.contains(&event.kind())
        };
        let waited = async {
            let Some(mut stream) = self.0 else { return };
            while let Ok(Some(response)) = stream.message().await {
                if let Some(watch_events_response::Step::Batch(batch)) = response.step
                    && batch.events.iter().any(settles)
                {
                    return;
                }
            }
        };
        drop(tokio::time::timeout(SETTLE_WAIT, waited).await);
    }
}
