//! Carrying out a change: one call of the broker, repeated only under the same request id.

use hive_core::message::OPERATOR;
use hive_proto::v1::ack_delivery_request::Target;
use hive_proto::v1::command::Command as Order;
use hive_proto::v1::{
    AckDeliveryRequest, AnswerQuestionRequest, CancelQuestionRequest, CancelTurn, Command,
    CompactSession, DeliveryKey, DropDeliveryRequest, RedriveDeliveryRequest,
    ReleaseDeliveryRequest, SendCommandRequest,
};

use super::change::{Asked, Change, Outcome};
use super::update::Event;
use crate::connect::{Admin, Broker, Inbox, Questions, transport_was_lost};
use crate::error::Failure;

/// Carries a change out, and tells how it went.
pub(super) async fn carry_out(broker: Broker, asked: Asked) -> Event {
    let outcome = match call(&broker, &asked).await {
        Ok(()) => Outcome::Done,
        Err(Failure::Refused(status)) if transport_was_lost(&status) => {
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
    let key = |agent, message_id| Some(DeliveryKey { agent, message_id });
    match asked.change.clone() {
        Change::Answer { question: question_id, choices, text } => {
            let request = AnswerQuestionRequest { request_id, question_id, choices, text };
            let call = Questions::answer_question;
            broker.change(broker.questions(), request, call).await.map(drop)
        }
        Change::CancelQuestion { question: question_id } => {
            let request = CancelQuestionRequest { request_id, question_id };
            let call = Questions::cancel_question;
            broker.change(broker.questions(), request, call).await.map(drop)
        }
        Change::CancelTurn { agent, turn: turn_id } => {
            command(broker, request_id, agent, Order::CancelTurn(CancelTurn { turn_id })).await
        }
        Change::Compact { agent } => {
            command(broker, request_id, agent, Order::CompactSession(CompactSession {})).await
        }
        Change::Redrive { agent, message } => {
            let request = RedriveDeliveryRequest { request_id, key: key(agent, message) };
            let call = Admin::redrive_delivery;
            broker.change(broker.admin(), request, call).await.map(drop)
        }
        Change::Drop { agent, message } => {
            let request = DropDeliveryRequest { request_id, key: key(agent, message) };
            let call = Admin::drop_delivery;
            broker.change(broker.admin(), request, call).await.map(drop)
        }
        Change::Release { agent, message } => {
            let request = ReleaseDeliveryRequest { request_id, key: key(agent, message) };
            let call = Admin::release_delivery;
            broker.change(broker.admin(), request, call).await.map(drop)
        }
        Change::Ack { message } => {
            let target = key(OPERATOR.to_owned(), message).map(Target::Key);
            let request = AckDeliveryRequest { request_id, target };
            let call = Inbox::ack_delivery;
            broker.change(broker.inbox(), request, call).await.map(drop)
        }
    }
}

/// Gives a harness a command.
async fn command(
    broker: &Broker,
    request_id: String,
    agent: String,
    order: Order,
) -> Result<(), Failure> {
    let command = Command { id: 0, create_time: None, command: Some(order) };
    let request = SendCommandRequest { request_id, agent, command: Some(command) };
    broker.change(broker.admin(), request, Admin::send_command).await.map(drop)
}
