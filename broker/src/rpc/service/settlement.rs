//! The results of settlements on the wire.

use hive_core::settlement::Settled;
use hive_proto::convert::IntoWire as _;
use hive_proto::status::in_part;
use hive_proto::v1;
use hive_proto::v1::settlement_result::Result as WireResult;

use crate::engine::Refusal;
use crate::engine::mail::settlements::Results;

/// Returns the results of settlements, in order.
pub(super) fn results(results: Results) -> Vec<v1::SettlementResult> {
    let result = |settled: Result<Settled, Refusal>| match settled {
        Ok(settled) => settled.into_wire(),
        Err(refusal) => {
            let refusal = in_part(&tonic::Status::from(refusal));
            v1::SettlementResult { result: Some(WireResult::Refusal(refusal)) }
        }
    };
    results.into_iter().map(result).collect()
}
