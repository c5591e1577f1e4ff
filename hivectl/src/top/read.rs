//! Reads the shown state: a few calls, in bounded pages.
//!
//! Invariant: how much is read depends on the bounds in [`super::hive`] and never on how much there
//! is.

use std::collections::BTreeSet;

use hive_core::message::OPERATOR;
use hive_proto::v1::{Agent, Delivery, DeliveryState, GetBrokerStatusRequest, QuestionState};
use tonic::Code;

use super::hive::{AGENTS_MAX, DELIVERIES_MAX, LOOSE_ENDS_MAX, Part, QUESTIONS_MAX, Reading};
use super::reads::Wanted;
use super::update::Event;
use crate::connect::Broker;
use crate::error::Failure;
use crate::fetch::{self, Whose};

/// Reads these parts, and returns the result as an event.
pub(super) async fn read(broker: Broker, wanted: Wanted) -> Event {
    match read_parts(&broker, wanted).await {
        Ok(reading) => Event::Read(Box::new(reading)),
        Err(failure) => Event::NotRead(failure.to_string()),
    }
}

async fn read_parts(broker: &Broker, wanted: Wanted) -> Result<Reading, Failure> {
    let Wanted { parts, holders, search_holders } = wanted;
    let mut reading = Reading {
        status: broker.read(broker.admin().get_broker_status(GetBrokerStatusRequest {})).await?,
        ..Reading::default()
    };
    for part in parts {
        match part {
            Part::Agents => {
                reading.agents = Some(fetch::agents(broker, false, AGENTS_MAX).await?);
            }
            Part::Mail => {
                let ready = [DeliveryState::Ready];
                let mail = fetch::deliveries(broker, OPERATOR, &ready, DELIVERIES_MAX);
                reading.mail = Some(mail.await?);
            }
            Part::DeadLetters => {
                let letters = fetch::dead_letters(broker, "", DELIVERIES_MAX);
                reading.dead_letters = Some(letters.await?);
            }
            Part::Held => {
                let count = usize::try_from(reading.status.held_count).unwrap_or(usize::MAX);
                reading.held = Some(held(broker, count, &holders, search_holders).await?);
            }
            Part::Questions => {
                let (whose, open) = (Whose::target(OPERATOR), [QuestionState::Open]);
                let questions = fetch::questions(broker, &whose, &open, QUESTIONS_MAX);
                reading.questions = Some(known(questions.await)?);
            }
            Part::LooseEnds => {
                let loose_ends = fetch::loose_ends(broker, "", LOOSE_ENDS_MAX);
                reading.loose_ends = Some(known(loose_ends.await)?);
            }
        }
    }
    Ok(reading)
}

/// Returns the held mail. No call lists it over all inboxes, so the known holders are asked,
/// and after a gap all agents.
async fn held(
    broker: &Broker,
    count: usize,
    holders: &BTreeSet<String>,
    search: bool,
) -> Result<Vec<Delivery>, Failure> {
    let most = count.min(DELIVERIES_MAX);
    let mut held = Vec::new();
    let others: Vec<Agent> = if search && most > 0 {
        fetch::agents(broker, false, AGENTS_MAX).await?
    } else {
        Vec::new()
    };
    let others = others.into_iter().map(|agent| agent.name).filter(|name| !holders.contains(name));
    for agent in holders.iter().cloned().chain(others) {
        if held.len() >= most {
            break;
        }
        let states = [DeliveryState::Held];
        match fetch::deliveries(broker, &agent, &states, most - held.len()).await {
            Ok(more) => held.extend(more),
            // A deleted agent holds nothing.
            Err(Failure::Refused(status)) if status.code() == Code::NotFound => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(held)
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
    use hive_proto::v1::Question;

    use super::*;

    #[test]
    fn a_part_that_an_older_broker_does_not_know_is_empty() {
        let answered = |code| known::<Question>(Err(tonic::Status::new(code, "").into()));
        assert!(answered(Code::Unimplemented).expect("it is empty").is_empty());
        assert!(answered(Code::Internal).is_err());
    }
}
