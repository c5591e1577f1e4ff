//! `recv`: receives mail from the agent's inbox in this turn.
//!
//! It is not a read: its result is leased to the turn and acked by the turn's end. So claude runs
//! several of them one after another.

use std::time::Duration;

use hive_core::limits::{RECEIVE_DELIVERIES_MAX, RECEIVE_WAIT_MAX};
use hive_core::reason::Reason;
use hive_proto::v1::inbox_service_client::InboxServiceClient;
use hive_proto::v1::{Delivery, ReceiveMessagesRequest, ReceiveMessagesResponse};
use rmcp::model::ToolAnnotations;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Tool, adds, schema};
use crate::call::Call;
use crate::entry;
use crate::error::Refusal;
use crate::group::Group;
use crate::peer::{Failure, Peer};
use crate::render::count;

/// Maximum bytes of bodies in one result; claude does not show the model a result of more than
/// 50,000 characters.
const BODY_BYTES_MAX: u32 = 40_000;

pub(super) struct Recv;

/// The arguments of `recv`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Wait so long for the first message; default 0.
    #[serde(default, deserialize_with = "schema::number")]
    #[schemars(with = "u64", range(min = 0, max = 180))]
    wait_seconds: Option<u64>,
    /// At most so many; default 1.
    #[serde(default, deserialize_with = "schema::number")]
    #[schemars(with = "u64", range(min = 1, max = 32))]
    max: Option<u64>,
}

impl Tool for Recv {
    const NAME: &'static str = "recv";
    const GROUP: Group = Group::Messaging;
    const DESCRIPTION: &'static str = "Take the next messages from your inbox, when more wait or when you need an answer within this turn. \
        Without wait_seconds it returns at once.";
    type Input = Input;

    fn annotations() -> ToolAnnotations {
        adds(false)
    }

    async fn run(broker: &Peer, call: &Call, input: Input) -> Result<String, Refusal> {
        let wait = Duration::from_secs(input.wait_seconds.unwrap_or(0));
        if wait > RECEIVE_WAIT_MAX {
            return Err(Refusal::arguments(format_args!(
                "wait_seconds is at most {}",
                RECEIVE_WAIT_MAX.as_secs()
            )));
        }
        let max = input.max.unwrap_or(1);
        if max == 0 || max > u64::from(RECEIVE_DELIVERIES_MAX) {
            return Err(Refusal::arguments(format_args!("max is 1 to {RECEIVE_DELIVERIES_MAX}")));
        }
        if !broker.has_process_token() {
            // The broker would treat the caller as a consumer, and no program would settle its
            // leases.
            return Err(Refusal::new(Reason::TurnEnded, "this bridge was started without a turn"));
        }
        let request = ReceiveMessagesRequest {
            request_id: call.request_id.clone(),
            max_deliveries: u32::try_from(max).unwrap_or(RECEIVE_DELIVERIES_MAX),
            max_bytes: BODY_BYTES_MAX,
            wait: prost_types::Duration::try_from(wait).ok().filter(|_| !wait.is_zero()),
            lease_duration: None,
            tool_use_id: call.tool_use_id.clone(),
            settlements: Vec::new(),
        };
        call.wait_for("waiting for mail");
        let received = broker
            .call_waiting(call, wait, request, |channel, request| async move {
                InboxServiceClient::new(channel).receive_messages(request).await
            })
            .await;
        match received {
            Ok(received) => Ok(render(wait, &received)),
            Err(Failure::WaitOver) => Ok(render(wait, &ReceiveMessagesResponse::default())),
            Err(failure) => Err(failure.into()),
        }
    }
}

fn render(wait: Duration, received: &ReceiveMessagesResponse) -> String {
    let ReceiveMessagesResponse { deliveries, pending_count, served_alone, settlement_results: _ } =
        received;
    let deliveries: Vec<&Delivery> =
        deliveries.iter().filter_map(|leased| leased.delivery.as_ref()).collect();
    let pending = *pending_count;
    let mut text = entry::entries(deliveries.iter().copied());
    if deliveries.is_empty() {
        text.push_str(&match wait.as_secs() {
            0 => "No mail.".to_owned(),
            seconds => format!("No mail within {seconds} s."),
        });
    }
    if *served_alone {
        let more = if pending == 0 { String::new() } else { format!(" ({pending} waiting)") };
        push_line(
            &mut text,
            &format!(
                "This turn carries a message that failed before and is served alone: other mail{more} comes in later turns."
            ),
        );
    } else if pending > 0 {
        push_line(&mut text, &format!("{} more: call recv again.", count(pending, "message")));
    }
    text
}

/// Adds a remark below the entries, separated from them.
fn push_line(text: &mut String, line: &str) {
    text.push(if text.ends_with('\n') { '\n' } else { ' ' });
    text.push_str(line);
}

#[cfg(test)]
mod tests {
    use hive_proto::v1::{LeasedDelivery, Message, Origin, OriginKind};

    use super::*;

    fn leased(id: u64, name: &str, body: &str) -> LeasedDelivery {
        let origin = Some(Origin { kind: OriginKind::Agent.into(), name: name.to_owned() });
        let message = Message { id, origin, body: body.to_owned(), ..Message::default() };
        let delivery = Delivery { message: Some(message), attempt: 1, ..Delivery::default() };
        LeasedDelivery { delivery: Some(delivery), ..LeasedDelivery::default() }
    }

    fn received(
        deliveries: Vec<LeasedDelivery>,
        pending_count: u32,
        served_alone: bool,
    ) -> ReceiveMessagesResponse {
        ReceiveMessagesResponse {
            deliveries,
            pending_count,
            served_alone,
            ..ReceiveMessagesResponse::default()
        }
    }

    #[test]
    fn mail_is_compact_and_says_how_much_more_waits() {
        let two = received(vec![leased(3, "bob", "hi"), leased(4, "carol", "ho\nho")], 1, false);
        let text =
            "#3 from bob\n| hi\n\n#4 from carol\n| ho\n| ho\n\n1 message more: call recv again.";
        assert_eq!(render(Duration::ZERO, &two), text);
    }

    #[test]
    fn no_mail_says_how_long_it_waited() {
        assert_eq!(render(Duration::ZERO, &received(vec![], 0, false)), "No mail.");
        assert_eq!(
            render(Duration::from_secs(30), &received(vec![], 0, false)),
            "No mail within 30 s."
        );
    }

    #[test]
    fn a_delivery_that_is_served_alone_says_so() {
        let text = render(Duration::ZERO, &received(vec![], 2, true));
        assert!(
            text.starts_with(
                "No mail. This turn carries a message that failed before and is served alone"
            ),
            "{text}"
        );
        assert!(text.contains("(2 waiting)"), "{text}");
    }
}
