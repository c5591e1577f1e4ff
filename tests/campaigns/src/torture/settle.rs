//! Settlements in bulk: entries of lists, and what their results say.

use hive_history::{Answer, Op, Reply};
use hive_proto::v1::inbox_service_client::InboxServiceClient;
use hive_proto::v1::settlement::{Action, Target};
use hive_proto::v1::settlement_result::Result as Wire;
use hive_proto::{status, v1};
use tonic::Status;
use tonic::transport::Channel;

use super::perform::refusal;
use super::seen;
use super::voice::Voice;

/// Returns the entry of a settlement; `None` for another op.
pub(super) fn entry(op: &Op) -> Option<v1::Settlement> {
    let (token, action) = match op.clone() {
        Op::Ack { token } => (token, Action::Ack(v1::Ack {})),
        Op::Nack { token, permanent } => {
            (token, Action::Nack(v1::Nack { error: "torture".to_owned(), permanent }))
        }
        Op::Release { token } => (token, Action::Release(v1::Release {})),
        Op::Extend { token, lease_ms } => {
            let lease_duration = Some(super::perform::span(lease_ms));
            (token, Action::Extend(v1::Extend { lease_duration }))
        }
        Op::Send { .. }
        | Op::Wake { .. }
        | Op::Receive { .. }
        | Op::Attach { .. }
        | Op::BeginTurn { .. }
        | Op::EndTurn { .. }
        | Op::Ask { .. }
        | Op::Schedule { .. }
        | Op::Answer { .. }
        | Op::CancelQuestion { .. }
        | Op::ReadQuestion { .. }
        | Op::Remind { .. }
        | Op::CancelReminder { .. }
        | Op::Decide { .. }
        | Op::CancelTurn { .. }
        | Op::ReportProblem { .. }
        | Op::Other { .. } => return None,
    };
    Some(v1::Settlement { target: Some(Target::LeaseToken(token)), action: Some(action) })
}

/// Returns what the results say about their ops.
pub(super) fn answers(ops: &[Op], results: Vec<v1::SettlementResult>) -> Vec<Answer> {
    ops.iter().zip(results).map(|(op, result)| answer(op, result)).collect()
}

/// Settles all of these in one commit, and repeats that until the results are known.
pub(super) async fn all(voice: &Voice, ops: &[Op]) {
    loop {
        let seen = voice.seen();
        let calls: Vec<u64> = ops.iter().map(|op| voice.note("", op)).collect();
        let settlements = ops.iter().filter_map(entry).collect();
        let request = v1::SettleDeliveriesRequest { settlements };
        let settled = InboxServiceClient::new(voice.channel()).settle_deliveries(request).await;
        let end = match settled {
            Ok(settled) => Ok(answers(ops, settled.into_inner().results)),
            Err(status) => Err(refusal(&status)),
        };
        for (place, call) in calls.into_iter().enumerate() {
            let answer = match &end {
                Ok(answers) => answers.get(place).cloned(),
                Err(answer) => Some(answer.clone()),
            };
            voice.answered(call, answer.unwrap_or_else(|| Answer::Unknown(String::new())));
        }
        if !matches!(end, Err(Answer::Unknown(_))) {
            return;
        }
        voice.another_broker(seen).await;
    }
}

/// Returns what a result says about its op.
fn answer(op: &Op, result: v1::SettlementResult) -> Answer {
    match (result.result, op) {
        (Some(Wire::State(_)), Op::Ack { .. }) => Answer::Ok(Reply::Acked),
        (Some(Wire::State(_)), Op::Release { .. }) => Answer::Ok(Reply::Released),
        (Some(Wire::State(state)), Op::Nack { .. }) => {
            let state = v1::DeliveryState::try_from(state).unwrap_or_default();
            Answer::Ok(Reply::Nacked(seen::state(state)))
        }
        (Some(Wire::LeaseRemaining(_)), Op::Extend { .. }) => Answer::Ok(Reply::Extended),
        (Some(Wire::Refusal(refusal)), _) => {
            let reason = status::reason(&status::of_part(&refusal));
            Answer::Refused(reason.map(|reason| reason.to_string()).unwrap_or_default())
        }
        (other, op) => Answer::Unknown(format!("{op:?} has the result {other:?}")),
    }
}

/// Settles one delivery with a list.
pub(super) async fn one(channel: &Channel, op: &Op) -> Result<Reply, Status> {
    let settlements = entry(op).into_iter().collect();
    let request = v1::SettleDeliveriesRequest { settlements };
    let settled = InboxServiceClient::new(channel.clone()).settle_deliveries(request).await?;
    let result = settled.into_inner().results.pop().unwrap_or_default();
    if let Some(Wire::Refusal(refusal)) = &result.result {
        return Err(status::of_part(refusal));
    }
    match answer(op, result) {
        Answer::Ok(reply) => Ok(reply),
        other @ (Answer::Refused(_) | Answer::Unknown(_)) => {
            Err(Status::unknown(format!("{other:?}")))
        }
    }
}
