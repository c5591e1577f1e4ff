//! The tree of agents, as one agent sees it.

use hive_core::tree::{Child, Found, Kin};

use super::message::{agent_name, optional_agent_name};
use super::{Invalid, value};
use crate::v1;

impl From<Kin> for v1::Kin {
    fn from(kin: Kin) -> Self {
        let Kin { parent_role, children, children_count } = kin;
        let child = |Child { name, role }| v1::Child { name: name.into(), role };
        Self { parent_role, children: children.into_iter().map(child).collect(), children_count }
    }
}

impl TryFrom<v1::Kin> for Kin {
    type Error = Invalid;
    fn try_from(wire: v1::Kin) -> Result<Self, Invalid> {
        let v1::Kin { parent_role, children, children_count } = wire;
        let child = |v1::Child { name, role }| {
            Ok(Child { name: agent_name(&name, "children.name")?, role })
        };
        Ok(Self {
            parent_role,
            children: children.into_iter().map(child).collect::<Result<_, Invalid>>()?,
            children_count,
        })
    }
}

impl From<Found> for v1::FoundAgent {
    fn from(found: Found) -> Self {
        let Found { name, parent, role, state, status_text, may_write } = found;
        Self {
            name: name.into(),
            parent: parent.map(Into::into).unwrap_or_default(),
            role,
            state: v1::HarnessState::from(state).into(),
            status_text,
            may_write,
        }
    }
}

impl TryFrom<v1::FoundAgent> for Found {
    type Error = Invalid;
    fn try_from(wire: v1::FoundAgent) -> Result<Self, Invalid> {
        let v1::FoundAgent { name, parent, role, state, status_text, may_write } = wire;
        Ok(Self {
            name: agent_name(&name, "name")?,
            parent: optional_agent_name(&parent, "parent")?,
            role,
            state: value::<v1::HarnessState, _>(state, "state")?,
            status_text,
            may_write,
        })
    }
}
