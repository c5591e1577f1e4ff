//! Reading what is shown: a few calls, in bounded pages.
//!
//! Invariant: how much is read depends on the bounds in [`super::hive`] and never on how much there
//! is.

use std::collections::BTreeSet;
use std::future::Future;

use hive_core::limits::PAGE_ROWS_MAX;
use hive_core::message::OPERATOR;
use hive_proto::v1::{
    Agent, Delivery, DeliveryState, GetBrokerStatusRequest, ListAgentsRequest,
    ListDeadLettersRequest, ListDeliveriesRequest, ListLooseEndsRequest, ListQuestionsRequest,
    LooseEnd, Question, QuestionState,
};
use tonic::Code;

use super::hive::{AGENTS_MAX, DELIVERIES_MAX, LOOSE_ENDS_MAX, Part, QUESTIONS_MAX, Reading};
use super::reads::Wanted;
use super::update::Event;
use crate::connect::Broker;
use crate::error::Failure;

/// Agents of one page; the most that the broker gives.
const AGENTS_PAGE: u32 = 1000;

/// Reads what is wanted, and tells how it went.
pub(super) async fn read(broker: Broker, wanted: Wanted) -> Event {
    match (Reader { broker }).read(wanted).await {
        Ok(reading) => Event::Read(Box::new(reading)),
        Err(failure) => Event::NotRead(failure.to_string()),
    }
}

struct Reader {
    broker: Broker,
}

impl Reader {
    async fn read(&self, wanted: Wanted) -> Result<Reading, Failure> {
        let Wanted { parts, holders, search_holders } = wanted;
        let broker = &self.broker;
        let mut reading = Reading {
            status: broker
                .read(broker.admin().get_broker_status(GetBrokerStatusRequest {}))
                .await?,
            ..Reading::default()
        };
        for part in parts {
            match part {
                Part::Agents => reading.agents = Some(self.agents().await?),
                Part::Mail => {
                    reading.mail =
                        Some(self.deliveries("", DeliveryState::Ready, DELIVERIES_MAX).await?);
                }
                Part::DeadLetters => reading.dead_letters = Some(self.dead_letters().await?),
                Part::Held => {
                    let count = usize::try_from(reading.status.held_count).unwrap_or(usize::MAX);
                    reading.held = Some(self.held(count, &holders, search_holders).await?);
                }
                Part::Questions => reading.questions = Some(known(self.questions().await)?),
                Part::LooseEnds => reading.loose_ends = Some(known(self.loose_ends().await)?),
            }
        }
        Ok(reading)
    }

    async fn agents(&self) -> Result<Vec<Agent>, Failure> {
        let broker = &self.broker;
        some_pages(AGENTS_MAX, |page_token| async {
            let request =
                ListAgentsRequest { page_size: AGENTS_PAGE, page_token, include_retired: false };
            let page = broker.read(broker.topology().list_agents(request)).await?;
            Ok((page.agents, page.next_page_token))
        })
        .await
    }

    /// Deliveries of an inbox, the oldest first; the operator's own has no name on the wire.
    async fn deliveries(
        &self,
        agent: &str,
        state: DeliveryState,
        most: usize,
    ) -> Result<Vec<Delivery>, Failure> {
        let broker = &self.broker;
        some_pages(most, |page_token| async {
            let page_size = u32::try_from(most).unwrap_or(u32::MAX).min(PAGE_ROWS_MAX);
            let request = ListDeliveriesRequest {
                page_size,
                page_token,
                agent: agent.to_owned(),
                states: vec![state.into()],
            };
            let page = broker.read(broker.inbox().list_deliveries(request)).await?;
            Ok((page.deliveries, page.next_page_token))
        })
        .await
    }

    async fn dead_letters(&self) -> Result<Vec<Delivery>, Failure> {
        let broker = &self.broker;
        some_pages(DELIVERIES_MAX, |page_token| async {
            let page_size = u32::try_from(DELIVERIES_MAX).unwrap_or(u32::MAX).min(PAGE_ROWS_MAX);
            let request = ListDeadLettersRequest { page_size, page_token, agent: String::new() };
            let page = broker.read(broker.admin().list_dead_letters(request)).await?;
            Ok((page.deliveries, page.next_page_token))
        })
        .await
    }

    /// What is held. There is no list of it over all inboxes, so those are asked that are known to
    /// hold something; all are, where nobody knows.
    async fn held(
        &self,
        count: usize,
        holders: &BTreeSet<String>,
        search: bool,
    ) -> Result<Vec<Delivery>, Failure> {
        let most = count.min(DELIVERIES_MAX);
        let mut held = Vec::new();
        let others = if search && most > 0 { self.agents().await? } else { Vec::new() };
        let others =
            others.into_iter().map(|agent| agent.name).filter(|name| !holders.contains(name));
        for agent in holders.iter().cloned().chain(others) {
            if held.len() >= most {
                break;
            }
            match self.deliveries(&agent, DeliveryState::Held, most - held.len()).await {
                Ok(more) => held.extend(more),
                // An agent that is not there any more holds nothing.
                Err(Failure::Refused(status)) if status.code() == Code::NotFound => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(held)
    }

    async fn questions(&self) -> Result<Vec<Question>, Failure> {
        let broker = &self.broker;
        some_pages(QUESTIONS_MAX, |page_token| async {
            let request = ListQuestionsRequest {
                page_size: PAGE_ROWS_MAX,
                page_token,
                states: vec![QuestionState::Open.into()],
                asker: String::new(),
                target: OPERATOR.to_owned(),
            };
            let page = broker.read(broker.questions().list_questions(request)).await?;
            Ok((page.questions, page.next_page_token))
        })
        .await
    }

    async fn loose_ends(&self) -> Result<Vec<LooseEnd>, Failure> {
        let broker = &self.broker;
        some_pages(LOOSE_ENDS_MAX, |page_token| async {
            let request =
                ListLooseEndsRequest { page_size: PAGE_ROWS_MAX, page_token, agent: String::new() };
            let page = broker.read(broker.loose_ends().list_loose_ends(request)).await?;
            Ok((page.loose_ends, page.next_page_token))
        })
        .await
    }
}

/// Pages of a list, until there are so many rows.
async fn some_pages<T, C, F>(most: usize, mut page: C) -> Result<Vec<T>, Failure>
where
    C: FnMut(String) -> F,
    F: Future<Output = Result<(Vec<T>, String), Failure>>,
{
    let mut rows = Vec::new();
    let mut token = String::new();
    loop {
        let (more, next) = page(token).await?;
        rows.extend(more);
        if next.is_empty() || rows.len() >= most {
            rows.truncate(most);
            return Ok(rows);
        }
        token = next;
    }
}

/// Nothing, of a broker of an older version that does not know this.
fn known<T>(read: Result<Vec<T>, Failure>) -> Result<Vec<T>, Failure> {
    match read {
        Err(Failure::Refused(status)) if status.code() == Code::Unimplemented => Ok(Vec::new()),
        read => read,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages of two rows, for ever; and how many were asked for.
    async fn read_up_to(most: usize) -> (Vec<usize>, usize) {
        let mut asked = 0;
        let rows = some_pages(most, |token| {
            asked += 1;
            let first: usize =
                if token.is_empty() { 0 } else { token.parse().expect("our own token") };
            std::future::ready(Ok((vec![first, first + 1], (first + 2).to_string())))
        })
        .await;
        (rows.expect("they are read"), asked)
    }

    #[tokio::test]
    async fn no_more_is_read_than_the_bound_however_much_there_is() {
        assert_eq!(read_up_to(1).await, (vec![0], 1));
        assert_eq!(read_up_to(5).await, (vec![0, 1, 2, 3, 4], 3));
        assert_eq!(read_up_to(6).await.1, 3);
    }

    #[tokio::test]
    async fn a_list_ends_where_it_ends() {
        let rows =
            some_pages(100, |_| std::future::ready(Ok((vec![1, 2, 3], String::new())))).await;
        assert_eq!(rows.expect("they are read"), [1, 2, 3]);
    }

    #[test]
    fn a_part_that_an_older_broker_does_not_know_is_empty() {
        let answered = |code| known::<Question>(Err(tonic::Status::new(code, "").into()));
        assert!(answered(Code::Unimplemented).expect("it is empty").is_empty());
        assert!(answered(Code::Internal).is_err());
    }
}
