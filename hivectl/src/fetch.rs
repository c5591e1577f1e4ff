//! Reads from the broker: one object by its id, or a list page by page.
//!
//! Each is read as it is on the wire, or as a view. Invariant: a list has at most as many rows as
//! are asked for, however many there are.

use std::future::Future;

use hive_core::message::OPERATOR;
use hive_proto::v1::{
    Agent, Delivery, DeliveryState, Event, GetAgentRequest, GetMessageRequest, GetQuestionRequest,
    GetTurnRequest, ListAgentsRequest, ListDeadLettersRequest, ListDeliveriesRequest,
    ListEventsRequest, ListLooseEndsRequest, ListMessagesRequest, ListPurgesRequest,
    ListQuestionsRequest, ListRecipientsRequest, ListRemindersRequest, ListSchedulesRequest,
    ListTurnsRequest, LooseEnd, Message, MessageRecipient, Purge, Question, QuestionState,
    Reminder, ReminderState, Schedule, ScheduleState, Turn,
};

use crate::connect::{Broker, require};
use crate::error::Failure;

pub(crate) const ALL: usize = usize::MAX;

/// The asker and the target of questions; an empty name is any.
#[derive(Clone, Debug, Default)]
pub(crate) struct Whose {
    pub(crate) asker: String,
    pub(crate) target: String,
}

impl Whose {
    /// Returns the questions to an agent or the operator.
    pub(crate) fn target(target: &str) -> Self {
        Self { asker: String::new(), target: target.to_owned() }
    }
}

pub(crate) async fn agent<V: From<Agent>>(broker: &Broker, name: String) -> Result<V, Failure> {
    let agent = broker.read(broker.topology().get_agent(GetAgentRequest { name })).await?.agent;
    require(agent, "agent")
}

pub(crate) async fn message<V: From<Message>>(
    broker: &Broker,
    message_id: u64,
) -> Result<V, Failure> {
    let request = GetMessageRequest { message_id };
    let message = broker.read(broker.messages().get_message(request)).await?.message;
    require(message, "message")
}

pub(crate) async fn question<V: From<Question>>(
    broker: &Broker,
    question_id: u64,
) -> Result<V, Failure> {
    let request = GetQuestionRequest { question_id };
    let question = broker.read(broker.questions().get_question(request)).await?.question;
    require(question, "question")
}

pub(crate) async fn turn<V: From<Turn>>(broker: &Broker, turn_id: u64) -> Result<V, Failure> {
    let turn = broker.read(broker.turns().get_turn(GetTurnRequest { turn_id })).await?.turn;
    require(turn, "turn")
}

/// Defines functions that read at most `most` rows of a list: the row, the client and its call, the
/// fields of the request that are its own, and the field of the response.
macro_rules! lists {
    ($(
        $(#[$doc:meta])*
        $name:ident($($argument:ident: $type:ty),*) -> $row:ident {
            $client:ident.$call:ident($request:ident { $($field:ident: $value:expr),* }).$rows:ident
        }
    )+) => {
        $($(#[$doc])*
        pub(crate) async fn $name<V: From<$row>>(
            broker: &Broker,
            $($argument: $type,)*
            most: usize,
        ) -> Result<Vec<V>, Failure> {
            pages(most, |page_token| async {
                let request = $request { page_size: page_size(most), page_token, $($field: $value),* };
                let page = broker.read(broker.$client().$call(request)).await?;
                Ok((page.$rows, page.next_page_token))
            })
            .await
        })+
    };
}

lists! {
    /// Reads agents, by name.
    agents(include_retired: bool) -> Agent {
        topology.list_agents(ListAgentsRequest { include_retired: include_retired }).agents
    }
    /// Reads the deliveries of an inbox, the oldest first; without states all that are unsettled.
    deliveries(inbox: &str, states: &[DeliveryState]) -> Delivery {
        inbox.list_deliveries(ListDeliveriesRequest {
            agent: wire_inbox(inbox),
            states: numbers(states)
        }).deliveries
    }
    /// Reads the dead letters of one inbox, or for an empty name of all.
    dead_letters(agent: &str) -> Delivery {
        admin.list_dead_letters(ListDeadLettersRequest { agent: agent.to_owned() }).deliveries
    }
    /// Reads questions, the newest first.
    questions(whose: &Whose, states: &[QuestionState]) -> Question {
        questions.list_questions(ListQuestionsRequest {
            asker: whose.asker.clone(),
            target: whose.target.clone(),
            states: numbers(states)
        }).questions
    }
    /// Reads the reminders of an agent, or for an empty name of all.
    reminders(agent: &str, states: &[ReminderState]) -> Reminder {
        reminders.list_reminders(ListRemindersRequest {
            agent: agent.to_owned(),
            states: numbers(states)
        }).reminders
    }
    /// Reads the schedules of an agent, or for an empty name of all, by id; without states all that
    /// have not ended.
    schedules(agent: &str, states: &[ScheduleState]) -> Schedule {
        schedules.list_schedules(ListSchedulesRequest {
            agent: agent.to_owned(),
            states: numbers(states)
        }).schedules
    }
    /// Reads the loose ends of an agent, or for an empty name of all, by id.
    loose_ends(agent: &str) -> LooseEnd {
        loose_ends.list_loose_ends(ListLooseEndsRequest { agent: agent.to_owned() }).loose_ends
    }
    /// Reads messages: the replies to one, or for the id 0 all, the newest first.
    messages(thread_of: u64) -> Message {
        messages.list_messages(ListMessagesRequest {
            agent: String::new(),
            thread_of: thread_of
        }).messages
    }
    /// Reads the recipients of a message, by name.
    recipients(message_id: u64) -> MessageRecipient {
        messages.list_recipients(ListRecipientsRequest { message_id: message_id }).recipients
    }
    /// Reads the turns of an agent, or for an empty name of all, the newest first.
    turns(agent: &str) -> Turn {
        turns.list_turns(ListTurnsRequest { agent: agent.to_owned() }).turns
    }
    /// Reads the events after a number of a log, of an agent, or for an empty name of all, the
    /// oldest first.
    events(after_sequence: u64, log_id: &str, agent: &str) -> Event {
        events.list_events(ListEventsRequest {
            after_sequence: after_sequence,
            log_id: log_id.to_owned(),
            agent: agent.to_owned()
        }).events
    }
    /// Reads the purges whose directories are not deleted yet, the oldest first.
    purges() -> Purge {
        admin.list_purges(ListPurgesRequest {}).purges
    }
}

/// Reads the schedule with this id, in whatever state it is. There is no call for one schedule:
/// their list is by id, and is read up to there.
pub(crate) async fn schedule<V: From<Schedule>>(broker: &Broker, id: u64) -> Result<V, Failure> {
    let states = numbers(&[ScheduleState::Active, ScheduleState::Paused, ScheduleState::Ended]);
    let found = find_by_id(
        id,
        |schedule: &Schedule| schedule.id,
        |page_token| async {
            let (page_size, states) = (page_size(ALL), states.clone());
            let request =
                ListSchedulesRequest { page_size, page_token, agent: String::new(), states };
            let page = broker.read(broker.schedules().list_schedules(request)).await?;
            Ok((page.schedules, page.next_page_token))
        },
    );
    Ok(found.await?.ok_or(Failure::NoSchedule { id })?.into())
}

/// Returns the name of an inbox on the wire, where the operator's own has none.
fn wire_inbox(inbox: &str) -> String {
    if inbox == OPERATOR { String::new() } else { inbox.to_owned() }
}

fn numbers<S: Copy + Into<i32>>(states: &[S]) -> Vec<i32> {
    states.iter().copied().map(Into::into).collect()
}

/// Returns the size to ask for; the broker lowers it to its maximum.
fn page_size(most: usize) -> u32 {
    u32::try_from(most).unwrap_or(u32::MAX)
}

/// Reads pages of a list, until there are this many rows.
async fn pages<T, V, C, F>(most: usize, mut page: C) -> Result<Vec<V>, Failure>
where
    V: From<T>,
    C: FnMut(String) -> F,
    F: Future<Output = Result<(Vec<T>, String), Failure>>,
{
    let mut rows = Vec::new();
    let mut token = String::new();
    loop {
        let (more, next) = page(token).await?;
        rows.extend(more.into_iter().map(V::from));
        if next.is_empty() || rows.len() >= most {
            rows.truncate(most);
            return Ok(rows);
        }
        token = next;
    }
}

/// Reads pages of a list that is by id, until one has the row with this id or begins after it.
async fn find_by_id<T, C, F>(
    id: u64,
    id_of: impl Fn(&T) -> u64,
    mut page: C,
) -> Result<Option<T>, Failure>
where
    C: FnMut(String) -> F,
    F: Future<Output = Result<(Vec<T>, String), Failure>>,
{
    let mut token = String::new();
    loop {
        let (rows, next) = page(token).await?;
        if let Some(row) = rows.into_iter().find(|row| id_of(row) >= id) {
            return Ok((id_of(&row) == id).then_some(row));
        }
        if next.is_empty() {
            return Ok(None);
        }
        token = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads from endless pages of two rows; returns the rows and the number of pages read.
    async fn read_up_to(most: usize) -> (Vec<usize>, usize) {
        let mut asked = 0;
        let rows: Result<Vec<usize>, Failure> = pages(most, |token| {
            asked += 1;
            let first: usize =
                if token.is_empty() { 0 } else { token.parse().expect("our own token") };
            std::future::ready(Ok((vec![first, first + 1], (first + 2).to_string())))
        })
        .await;
        (rows.expect("they are read"), asked)
    }

    #[tokio::test]
    async fn a_read_stops_at_its_limit() {
        assert_eq!(read_up_to(1).await, (vec![0], 1));
        assert_eq!(read_up_to(5).await, (vec![0, 1, 2, 3, 4], 3));
        assert_eq!(read_up_to(6).await.1, 3);
    }

    /// Finds a row in four pages of the ids 10, 20, 30 ...; returns the number of pages read too.
    async fn find(id: u64) -> (Option<u64>, u64) {
        let mut read = 0;
        let found = find_by_id(
            id,
            |row: &u64| *row,
            |token| {
                assert_eq!(token, if read == 0 { String::new() } else { read.to_string() });
                let rows = vec![read * 20 + 10, read * 20 + 20];
                read += 1;
                let next = if read < 4 { read.to_string() } else { String::new() };
                std::future::ready(Ok((rows, next)))
            },
        )
        .await;
        (found.expect("they are read"), read)
    }

    #[tokio::test]
    async fn a_row_is_searched_up_to_its_id() {
        assert_eq!(find(10).await, (Some(10), 1));
        assert_eq!(find(60).await, (Some(60), 3));
        assert_eq!(find(25).await, (None, 2));
        assert_eq!(find(90).await, (None, 4));
    }

    #[tokio::test]
    async fn a_list_ends_where_it_ends() {
        let rows: Result<Vec<i32>, Failure> =
            pages(100, |_| std::future::ready(Ok((vec![1, 2, 3], String::new())))).await;
        assert_eq!(rows.expect("they are read"), [1, 2, 3]);
    }
}
