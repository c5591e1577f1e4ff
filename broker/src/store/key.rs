//! Keys: the numbers of agents' rows.

/// The key of an agent's row. Never leaves the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AgentKey(pub i64);

impl AgentKey {
    /// The row of the operator.
    pub const OPERATOR: Self = Self(1);
}
