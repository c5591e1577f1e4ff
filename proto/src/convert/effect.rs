//! Effects, and what approving one changes.

use hive_core::agent::{Policy, PolicyPart};
use hive_core::effect::{ActionRun, Approval, Change, Effect, RunState};
use hive_core::schedule::Terms;

use super::agent::{masked_parts, policy, with_default_groups};
use super::message::agent_name;
use super::schedule::{change as change_schedule, changed as changed_schedule};
use super::{FromWire, IntoWire, Invalid, required, required_as, same_values, value};
use crate::v1;
use crate::v1::effect::Effect as Wire;

impl IntoWire for Effect {
    type Wire = v1::Effect;
    fn into_wire(self) -> v1::Effect {
        let effect = match self {
            Self::CreateAgent { name, role, model, policy } => {
                let policy = Some(policy.into_wire());
                Wire::CreateAgent(v1::CreateAgentEffect { name: name.into(), role, model, policy })
            }
            Self::RetireAgent { name } => {
                Wire::RetireAgent(v1::RetireAgentEffect { name: name.into() })
            }
            Self::SetAgent { name, role, model } => {
                Wire::SetAgent(v1::SetAgentEffect { name: name.into(), role, model })
            }
            Self::SetPolicy { name, policy, parts } => Wire::SetPolicy(v1::SetPolicyEffect {
                name: name.into(),
                policy: Some(policy.into_wire()),
                update_mask: Some(prost_types::FieldMask {
                    paths: parts.into_iter().map(|part| part.name().to_owned()).collect(),
                }),
            }),
            // The preview is among the changes. The wire has no field for it, so no agent sends it.
            Self::RunAction { action, args, preview: _ } => {
                let args = args.into_iter().collect();
                Wire::RunAction(v1::RunActionEffect { action, args })
            }
            Self::CreateSchedule { terms } => Wire::CreateSchedule(terms.into_wire()),
            Self::ChangeSchedule { id, edit } => Wire::ChangeSchedule(change_schedule(id, edit)),
        };
        v1::Effect { effect: Some(effect) }
    }
}

impl FromWire for Effect {
    type Wire = v1::Effect;
    fn from_wire(wire: v1::Effect) -> Result<Self, Invalid> {
        match required(wire.effect, "")? {
            Wire::CreateAgent(create) => {
                let v1::CreateAgentEffect { name, role, model, policy: wire } = create;
                let policy = wire.map(policy).unwrap_or_default();
                let policy = with_default_groups(policy, &PolicyPart::ALL);
                Ok(Self::CreateAgent {
                    name: agent_name(&name, "create_agent.name")?,
                    role,
                    model,
                    policy,
                })
            }
            Wire::RetireAgent(v1::RetireAgentEffect { name }) => {
                Ok(Self::RetireAgent { name: agent_name(&name, "retire_agent.name")? })
            }
            Wire::SetAgent(v1::SetAgentEffect { name, role, model }) => {
                Ok(Self::SetAgent { name: agent_name(&name, "set_agent.name")?, role, model })
            }
            Wire::SetPolicy(v1::SetPolicyEffect { name, policy: wire, update_mask }) => {
                let paths = update_mask.map(|mask| mask.paths).unwrap_or_default();
                let parts = masked_parts(&paths, "set_policy.update_mask")?;
                let wanted: Policy = policy(required(wire, "set_policy.policy")?);
                Ok(Self::SetPolicy {
                    name: agent_name(&name, "set_policy.name")?,
                    policy: with_default_groups(wanted, &parts),
                    parts,
                })
            }
            Wire::RunAction(v1::RunActionEffect { action, args }) => {
                let args = args.into_iter().collect();
                Ok(Self::RunAction { action, args, preview: None })
            }
            Wire::CreateSchedule(create) => {
                let terms = Terms::from_wire(create);
                Ok(Self::CreateSchedule {
                    terms: terms.map_err(|fault| fault.within("create_schedule"))?,
                })
            }
            Wire::ChangeSchedule(change) => {
                let (id, edit) =
                    changed_schedule(change).map_err(|fault| fault.within("change_schedule"))?;
                Ok(Self::ChangeSchedule { id, edit })
            }
        }
    }
}

impl IntoWire for Change {
    type Wire = v1::EffectChange;
    fn into_wire(self) -> v1::EffectChange {
        let Change { field, before, after, exceeds } = self;
        v1::EffectChange { field, before, after, exceeds }
    }
}

same_values!(v1::ActionRunState, RunState { Queued, Running, Done, Failed });

impl IntoWire for ActionRun {
    type Wire = v1::ActionRun;
    fn into_wire(self) -> v1::ActionRun {
        let ActionRun { state, runs, detail } = self;
        v1::ActionRun { state: state.into_wire().into(), runs, detail }
    }
}

impl FromWire for ActionRun {
    type Wire = v1::ActionRun;
    fn from_wire(wire: v1::ActionRun) -> Result<Self, Invalid> {
        let v1::ActionRun { state, runs, detail } = wire;
        Ok(Self { state: value(state, "state")?, runs, detail })
    }
}

impl IntoWire for Approval {
    type Wire = v1::Approval;
    fn into_wire(self) -> v1::Approval {
        let Approval { effect, changes, diff_digest, problem, run } = self;
        v1::Approval {
            effect: Some(effect.into_wire()),
            changes: changes.into_iter().map(IntoWire::into_wire).collect(),
            diff_digest,
            problem,
            run: run.map(IntoWire::into_wire),
        }
    }
}

fn change(wire: v1::EffectChange) -> Change {
    let v1::EffectChange { field, before, after, exceeds } = wire;
    Change { field, before, after, exceeds }
}

impl FromWire for Approval {
    type Wire = v1::Approval;
    fn from_wire(wire: v1::Approval) -> Result<Self, Invalid> {
        let v1::Approval { effect, changes, diff_digest, problem, run } = wire;
        Ok(Self {
            effect: required_as(effect, "effect")?,
            changes: changes.into_iter().map(change).collect(),
            diff_digest,
            problem,
            run: run.map(ActionRun::from_wire).transpose()?,
        })
    }
}
