//! Settlements and their results.

use std::time::Duration;

use hive_core::limits::{LEASE_DEFAULT, LEASE_MAX, SETTLEMENTS_MAX};
use hive_core::settlement::{Action, Entry, Settled, Target};

use super::{IntoWire, Invalid, delivery, request, time};
use crate::v1;
use crate::v1::settlement::{Action as WireAction, Target as WireTarget};
use crate::v1::settlement_result::Result as WireResult;

/// Parses settlements, in order.
pub fn entries(wire: Vec<v1::Settlement>, path: &str) -> Result<Vec<Entry>, Invalid> {
    if wire.len() > SETTLEMENTS_MAX {
        let problem =
            format!("it has {} entries; at most {SETTLEMENTS_MAX} are allowed", wire.len());
        return Err(Invalid::new(path, problem));
    }
    let entries = wire.into_iter().enumerate();
    let parsed = entries
        .map(|(at, wire)| entry(wire).map_err(|fault| fault.within(&format!("{path}[{at}]"))));
    parsed.collect()
}

fn entry(wire: v1::Settlement) -> Result<Entry, Invalid> {
    let target = match wire.target {
        Some(WireTarget::LeaseToken(token)) => Target::Lease(request::token(token, "lease_token")?),
        Some(WireTarget::Key(key)) => {
            let (agent, message) = delivery::key(Some(key), "key")?;
            Target::Key(agent, message)
        }
        None => {
            let problem = "name the delivery by its lease token or its key";
            return Err(Invalid::new("target", problem));
        }
    };
    let action = match wire.action {
        Some(WireAction::Ack(v1::Ack {})) => Action::Ack,
        Some(WireAction::Nack(v1::Nack { error, permanent })) => Action::Nack { error, permanent },
        Some(WireAction::Extend(v1::Extend { lease_duration })) => {
            Action::Extend(lease_length(lease_duration, "lease_duration")?)
        }
        Some(WireAction::Release(v1::Release {})) => Action::Release,
        None => return Err(Invalid::new("action", "say what happens to the delivery")),
    };
    Ok(Entry { target, action })
}

/// Parses the length of a lease.
pub fn lease_length(wire: Option<prost_types::Duration>, path: &str) -> Result<Duration, Invalid> {
    request::bounded_span(wire, LEASE_DEFAULT, LEASE_MAX, path)
}

impl IntoWire for Settled {
    type Wire = v1::SettlementResult;
    fn into_wire(self) -> v1::SettlementResult {
        let result = match self {
            Settled::State(state) => WireResult::State(state.into_wire().into()),
            Settled::Extended(length) => WireResult::LeaseRemaining(time::duration(length)),
        };
        v1::SettlementResult { result: Some(result) }
    }
}
