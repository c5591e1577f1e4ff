//! The first rows of a new database: the operator, the identity of the log, and the agents of the
//! configuration file.
//!
//! They are written while the database is created, so that a first boot needs no commit of its own
//! for them. Invariant: nothing depends on that. An engine that starts writes the same rows, and
//! finds nothing left to do.

use std::collections::BTreeMap;

use hive_core::limits::Limits;
use hive_core::name::AgentName;

use super::declared::Declared;
use super::operator::declare::declare;
use super::{Refusal, restored};
use crate::store::{Tx, agent};

/// Writes the first rows.
pub fn rows(
    tx: &Tx<'_>,
    limits: &Limits,
    agents: Option<&BTreeMap<AgentName, Declared>>,
) -> Result<(), Refusal> {
    agent::ensure_operator(tx)?;
    restored::log_id(tx, limits)?;
    if let Some(agents) = agents {
        declare(tx, limits, agents)?;
    }
    Ok(())
}
