//! Ids of messages: the mail of an inbox, what is held there, dead letters, and whatever was said
//! last.

use clap_complete::engine::ArgValueCompleter;
use hive_core::message::OPERATOR;
use hive_proto::v1::{
    Delivery, DeliveryState, ListDeadLettersRequest, ListDeliveriesRequest, ListMessagesRequest,
};

use super::candidate::Candidate;
use super::line::Line;
use super::live::{live, rows};
use crate::connect::Broker;
use crate::error::Failure;
use crate::view::message::Message;

/// Rows of one page; the most that the broker gives.
const PAGE_ROWS: u32 = 500;
/// So many of the newest messages are offered where any would do.
const NEWEST: u32 = 50;

/// Mail that is not settled: of the inbox that the line names, else of the operator.
pub(crate) fn mail() -> ArgValueCompleter {
    live(|broker, line| async move {
        let agent =
            line.value::<String>("agent").filter(|agent| agent != OPERATOR).unwrap_or_default();
        Ok(untold(&line, deliveries(&broker, agent, &[]).await?, said))
    })
}

/// What is held for the agent that the line names.
pub(crate) fn held() -> ArgValueCompleter {
    live(|broker, line| async move {
        let Some(agent) = line.value::<String>("agent") else { return Ok(Vec::new()) };
        Ok(untold(&line, deliveries(&broker, agent, &[DeliveryState::Held]).await?, said))
    })
}

/// Dead letters, of the inbox that the line names, else of all.
pub(crate) fn dead_letters() -> ArgValueCompleter {
    live(|broker, line| async move {
        let agent = line.value::<String>("agent").unwrap_or_default();
        let letters = rows(|page_token| async {
            let request =
                ListDeadLettersRequest { page_size: PAGE_ROWS, page_token, agent: agent.clone() };
            let page = broker.read(broker.admin().list_dead_letters(request)).await?;
            Ok((page.deliveries, page.next_page_token))
        });
        Ok(untold(&line, letters.await?, |agent, message| {
            format!("of {agent}, {}", said(agent, message))
        }))
    })
}

/// The newest messages.
pub(crate) fn messages() -> ArgValueCompleter {
    live(|broker, _| async move {
        let request = ListMessagesRequest { page_size: NEWEST, ..ListMessagesRequest::default() };
        let page = broker.read(broker.messages().list_messages(request)).await?;
        let told = |message: Message| {
            let about =
                format!("{} to {}: {}", message.from, message.recipients.join(", "), message.body);
            Candidate::told(message.id, &about)
        };
        Ok(page.messages.into_iter().map(Message::from).map(told).collect())
    })
}

async fn deliveries(
    broker: &Broker,
    agent: String,
    states: &[DeliveryState],
) -> Result<Vec<Delivery>, Failure> {
    let states: Vec<i32> = states.iter().map(|state| i32::from(*state)).collect();
    rows(|page_token| async {
        let request = ListDeliveriesRequest {
            page_size: PAGE_ROWS,
            page_token,
            agent: agent.clone(),
            states: states.clone(),
        };
        let page = broker.read(broker.inbox().list_deliveries(request)).await?;
        Ok((page.deliveries, page.next_page_token))
    })
    .await
}

/// Those that do not stand in the line yet.
fn untold(
    line: &Line,
    deliveries: Vec<Delivery>,
    about: impl Fn(&str, &Message) -> String,
) -> Vec<Candidate> {
    let told = |delivery: Delivery| {
        let message = Message::from(delivery.message.unwrap_or_default());
        (!line.has(message.id))
            .then(|| Candidate::told(message.id, &about(&delivery.agent, &message)))
    };
    deliveries.into_iter().filter_map(told).collect()
}

fn said(_: &str, message: &Message) -> String {
    format!("from {}: {}", message.from, message.body)
}
