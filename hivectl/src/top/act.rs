//! Carrying out a change: one call of the broker, repeated only under the same request id.

use hive_core::message::OPERATOR;
use hive_proto::v1::ack_delivery_request::Target;
use hive_proto::v1::command::Command as Order;
use hive_proto::v1::{
    AckDeliveryRequest, AnswerQuestionRequest, CancelQuestionRequest, CancelTurn, CompactSession,
    DeliveryKey,
};

use super::change::{Asked, Change, Outcome};
use super::update::Event;
use crate::connect::{Broker, Inbox, Questions};
use crate::error::Failure;

/// Makes a change, and returns its outcome.
pub(super) async fn carry_out(broker: Broker, asked: Asked) -> Event {
    let outcome = match call(&broker, &asked).await {
        Ok(()) => Outcome::Done,
        Err(Failure::Refused(status)) if hive_proto::status::is_of_connection(&status) => {
            Outcome::Unknown("the connection to the broker was lost".to_owned())
        }
        Err(failure @ Failure::TimedOut { .. }) => Outcome::Unknown(failure.to_string()),
        Err(failure) => Outcome::Refused(failure.to_string()),
    };
    Event::Changed(asked, outcome)
}

/// The call, under the request id that was asked for.
async fn call(broker: &Broker, asked: &Asked) -> Result<(), Failure> {
    let request_id = asked.request_id.clone();
    match asked.change.clone() {
        Change::Answer { question: question_id, choices, text, diff_digest } => {
            let request =
                AnswerQuestionRequest { request_id, question_id, choices, text, diff_digest };
            let call = Questions::answer_question;
            broker.change(broker.questions(), request, call).await.map(drop)
        }
        Change::CancelQuestion { question: question_id } => {
            let request = CancelQuestionRequest { request_id, question_id };
            let call = Questions::cancel_question;
            broker.change(broker.questions(), request, call).await.map(drop)
        }
        Change::CancelTurn { agent, turn: turn_id } => {
            let order = Order::CancelTurn(CancelTurn { turn_id });
            broker.command(request_id, agent, order).await.map(drop)
        }
        Change::Compact { agent } => {
            let order = Order::CompactSession(CompactSession {});
            broker.command(request_id, agent, order).await.map(drop)
        }
        Change::Settle { how, agent, message: message_id } => {
            broker.settle(how, request_id, DeliveryKey { agent, message_id }).await
        }
        Change::Ack { message: message_id } => {
            let key = DeliveryKey { agent: OPERATOR.to_owned(), message_id };
            let target = Some(Target::Key(key));
            let request = AckDeliveryRequest { target };
            let call = Inbox::ack_delivery;
            broker.change(broker.inbox(), request, call).await.map(drop)
        }
    }
}
