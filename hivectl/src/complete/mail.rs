//! Ids of messages: the mail of an inbox, what is held there, dead letters, and whatever was said
//! last.

use clap_complete::engine::ArgValueCompleter;
use hive_core::message::OPERATOR;
use hive_proto::v1::{Delivery, DeliveryState};

use super::candidate::Candidate;
use super::line::Line;
use super::live::{ROWS_MAX, live};
use crate::fetch;
use crate::view::message::Message;

/// So many of the newest messages are offered where any would do.
const NEWEST: usize = 50;

/// Mail that is not settled: of the inbox that the line names, else of the operator.
pub(crate) fn mail() -> ArgValueCompleter {
    live(|broker, line| async move {
        let inbox = line.value::<String>("agent").unwrap_or_else(|| OPERATOR.to_owned());
        let mail = fetch::deliveries(&broker, &inbox, &[], ROWS_MAX).await?;
        Ok(untold(&line, mail, said))
    })
}

/// What is held for the agent that the line names.
pub(crate) fn held() -> ArgValueCompleter {
    live(|broker, line| async move {
        let Some(agent) = line.value::<String>("agent") else { return Ok(Vec::new()) };
        let held = [DeliveryState::Held];
        Ok(untold(&line, fetch::deliveries(&broker, &agent, &held, ROWS_MAX).await?, said))
    })
}

/// Dead letters, of the inbox that the line names, else of all.
pub(crate) fn dead_letters() -> ArgValueCompleter {
    live(|broker, line| async move {
        let agent = line.value::<String>("agent").unwrap_or_default();
        let letters = fetch::dead_letters(&broker, &agent, ROWS_MAX).await?;
        Ok(untold(&line, letters, |agent, message| format!("of {agent}, {}", said(agent, message))))
    })
}

/// The newest messages.
pub(crate) fn messages() -> ArgValueCompleter {
    live(|broker, _| async move {
        let messages: Vec<Message> = fetch::messages(&broker, 0, NEWEST).await?;
        let told = |message: Message| {
            let about =
                format!("{} to {}: {}", message.from, message.recipients.join(", "), message.body);
            Candidate::told(message.id, &about)
        };
        Ok(messages.into_iter().map(told).collect())
    })
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
