//! Effects and approvals.

use hive_core::agent::PolicyPart;
use hive_core::effect::{ActionRun, Approval, Change, Effect, RunState};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::subsequence;

use super::schedule::{edit, schedule_id, terms};
use super::{agent_name, policy, text};

fn effect() -> impl Strategy<Value = Effect> {
    prop_oneof![
        (agent_name(), text(), text(), policy()).prop_map(|(name, role, model, mut policy)| {
            // Without groups it gets the default ones.
            policy.tool_groups.push("meta".to_owned());
            Effect::CreateAgent { name, role, model, policy }
        }),
        agent_name().prop_map(|name| Effect::RetireAgent { name }),
        ("[a-z]{1,9}", proptest::collection::btree_map("[a-z]{1,9}", ".{0,9}", 0..3))
            .prop_map(|(action, args)| Effect::RunAction { action, args, preview: None }),
        terms().prop_map(|terms| Effect::CreateSchedule { terms }),
        (schedule_id(), edit()).prop_map(|(id, edit)| Effect::ChangeSchedule { id, edit }),
        (agent_name(), option::of(text()), option::of(text()))
            .prop_map(|(name, role, model)| Effect::SetAgent { name, role, model }),
        (agent_name(), policy(), subsequence(PolicyPart::ALL.to_vec(), 0..=9)).prop_map(
            |(name, mut policy, parts)| {
                policy.tool_groups.push("meta".to_owned());
                Effect::SetPolicy { name, policy, parts }
            }
        ),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    (text(), text(), text(), text()).prop_map(|(field, before, after, exceeds)| Change {
        field,
        before,
        after,
        exceeds,
    })
}

pub(super) fn approval() -> impl Strategy<Value = Approval> {
    (effect(), vec(change(), 0..4), text(), text(), option::of(run())).prop_map(
        |(effect, changes, diff_digest, problem, run)| Approval {
            effect,
            changes,
            diff_digest,
            problem,
            run,
        },
    )
}

fn run() -> impl Strategy<Value = ActionRun> {
    let states = [RunState::Queued, RunState::Running, RunState::Done, RunState::Failed];
    let run = (proptest::sample::select(states.to_vec()), any::<u32>(), text());
    run.prop_map(|(state, runs, detail)| ActionRun { state, runs, detail })
}
