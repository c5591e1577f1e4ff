//! Keys: the numbers of agents' rows.

/// The row of an agent. Never leaves the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AgentKey(pub i64);

impl AgentKey {
    /// The operator.
    pub const OPERATOR: Self = Self(1);
}
