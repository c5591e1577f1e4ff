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
use crate::connect::{Broker, transport_was_lost};
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

/// The call. The request id of each try is the one that was asked for, in place of a fresh one.
async fn call(broker: &Broker, asked: &Asked) -> Result<(), Failure> {
    let request_id = asked.request_id.clone();
    match asked.change.clone() {
        Change::Answer { question: question_id, choices, text } => {
            let request = AnswerQuestionRequest { request_id, question_id, choices, text };
            let call = |_| {
                let (mut questions, request) = (broker.questions(), request.clone());
                async move { questions.answer_question(request).await }
            };
            broker.change(call).await.map(drop)
        }
        Change::CancelQuestion { question: question_id } => {
            let request = CancelQuestionRequest { request_id, question_id };
            let call = |_| {
                let (mut questions, request) = (broker.questions(), request.clone());
                async move { questions.cancel_question(request).await }
            };
            broker.change(call).await.map(drop)
        }
        Change::CancelTurn { agent, turn: turn_id } => {
            tell(broker, request_id, agent, Order::CancelTurn(CancelTurn { turn_id })).await
        }
        Change::Compact { agent } => {
            tell(broker, request_id, agent, Order::CompactSession(CompactSession {})).await
        }
        Change::Redrive { agent, message: message_id } => {
            let request =
                RedriveDeliveryRequest { request_id, key: Some(DeliveryKey { agent, message_id }) };
            let call = |_| {
                let (mut admin, request) = (broker.admin(), request.clone());
                async move { admin.redrive_delivery(request).await }
            };
            broker.change(call).await.map(drop)
        }
        Change::Drop { agent, message: message_id } => {
            let request =
                DropDeliveryRequest { request_id, key: Some(DeliveryKey { agent, message_id }) };
            let call = |_| {
                let (mut admin, request) = (broker.admin(), request.clone());
                async move { admin.drop_delivery(request).await }
            };
            broker.change(call).await.map(drop)
        }
        Change::Release { agent, message: message_id } => {
            let request =
                ReleaseDeliveryRequest { request_id, key: Some(DeliveryKey { agent, message_id }) };
            let call = |_| {
                let (mut admin, request) = (broker.admin(), request.clone());
                async move { admin.release_delivery(request).await }
            };
            broker.change(call).await.map(drop)
        }
        Change::Ack { message: message_id } => {
            let key = DeliveryKey { agent: OPERATOR.to_owned(), message_id };
            let request = AckDeliveryRequest { request_id, target: Some(Target::Key(key)) };
            let call = |_| {
                let (mut inbox, request) = (broker.inbox(), request.clone());
                async move { inbox.ack_delivery(request).await }
            };
            broker.change(call).await.map(drop)
        }
    }
}

/// Gives a harness a command.
async fn tell(
    broker: &Broker,
    request_id: String,
    agent: String,
    order: Order,
) -> Result<(), Failure> {
    let command = Command { id: 0, create_time: None, command: Some(order) };
    let request = SendCommandRequest { request_id, agent, command: Some(command) };
    let call = |_| {
        let (mut admin, request) = (broker.admin(), request.clone());
        async move { admin.send_command(request).await }
    };
    broker.change(call).await.map(drop)
}
