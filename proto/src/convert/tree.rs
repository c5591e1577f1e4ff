//! The tree of agents, as one agent sees it.

use hive_core::tree::{Child, Found, Kin};

use super::message::{agent_name, optional_agent_name};
use super::{FromWire, IntoWire, Invalid, value};
use crate::v1;

impl IntoWire for Kin {
    type Wire = v1::Kin;
    fn into_wire(self) -> v1::Kin {
        let Kin { parent_role, children, children_count } = self;
        let child = |Child { name, role }| v1::Child { name: name.into(), role };
        v1::Kin { parent_role, children: children.into_iter().map(child).collect(), children_count }
    }
}

impl FromWire for Kin {
    type Wire = v1::Kin;
    fn from_wire(wire: v1::Kin) -> Result<Self, Invalid> {
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

impl IntoWire for Found {
    type Wire = v1::FoundAgent;
    fn into_wire(self) -> v1::FoundAgent {
        let Found { name, parent, role, state, status_text, may_write } = self;
        v1::FoundAgent {
            name: name.into(),
            parent: parent.map(Into::into).unwrap_or_default(),
            role,
            state: state.into_wire().into(),
            status_text,
            may_write,
        }
    }
}

impl FromWire for Found {
    type Wire = v1::FoundAgent;
    fn from_wire(wire: v1::FoundAgent) -> Result<Self, Invalid> {
        let v1::FoundAgent { name, parent, role, state, status_text, may_write } = wire;
        Ok(Self {
            name: agent_name(&name, "name")?,
            parent: optional_agent_name(&parent, "parent")?,
            role,
            state: value(state, "state")?,
            status_text,
            may_write,
        })
    }
}
