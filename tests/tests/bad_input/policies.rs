//! Policies that no agent can have: what is wrong is named, and the agent stays as it was.

use hive_core::reason::Reason;
use hive_proto::v1::*;
use hive_tests::rig::{Rig, fresh_id, request};

use crate::ask::{bad_field, did, done, refused};

fn set(policy: Policy) -> SetPolicyRequest {
    SetPolicyRequest {
        request_id: fresh_id(),
        name: "ada".to_owned(),
        policy: Some(policy),
        update_mask: None,
    }
}

fn masked(paths: &[&str]) -> SetPolicyRequest {
    let paths = paths.iter().map(|path| (*path).to_owned()).collect();
    SetPolicyRequest {
        update_mask: Some(prost_types::FieldMask { paths }),
        ..set(Policy::default())
    }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[tokio::test]
async fn a_policy_names_existing_agents_and_values() {
    let mut rig = Rig::new("[agents.ada]\n[agents.bob]\n");
    rig.start_broker().await;
    let operator = rig.operator().await.channel();
    let before = rig.on_disk();
    for request_id in [String::new(), "x".repeat(129), "with\nline".to_owned()] {
        bad_field(
            &operator,
            &SetPolicyRequest { request_id, ..set(Policy::default()) },
            "request_id",
        )
        .await;
    }
    for name in ["", "Ada", "operator", "a\0da"] {
        bad_field(
            &operator,
            &SetPolicyRequest { name: name.to_owned(), ..set(Policy::default()) },
            "name",
        )
        .await;
    }
    let other = SetPolicyRequest { name: "adda".to_owned(), ..set(Policy::default()) };
    refused(&operator, &other, Reason::AgentNotFound, &["did you mean `ada`"]).await;
    bad_field(&operator, &SetPolicyRequest { policy: None, ..set(Policy::default()) }, "policy")
        .await;
    for path in [
        "",
        "tool_group",
        "Tool_groups",
        "policy.tool_groups",
        "etag",
        "*",
        "toolGroups",
        "tool_groups ",
        "name",
    ] {
        bad_field(&operator, &masked(&["capabilities", path]), "update_mask").await;
    }
    refused(
        &operator,
        &masked(&["rate"]),
        Reason::FieldInvalid,
        &["`rate`", "sends_per_minute_max"],
    )
    .await;
    for (group, words) in
        [("mesaging", "did you mean `messaging`"), ("everything", "there are"), ("", "there are")]
    {
        let policy = Policy { tool_groups: names(&["meta", group]), ..Policy::default() };
        bad_field(&operator, &set(policy.clone()), "policy.tool_groups").await;
        refused(&operator, &set(policy), Reason::FieldInvalid, &[words]).await;
    }
    for capability in ["query_agent_sate", "root", ""] {
        let policy = Policy { capabilities: names(&[capability]), ..Policy::default() };
        bad_field(&operator, &set(policy), "policy.capabilities").await;
    }
    for recipient in ["Bob", "", "*", "<parent>", "bob\n"] {
        let policy = Policy { allowed_recipients: names(&["bob", recipient]), ..Policy::default() };
        bad_field(&operator, &set(policy), "policy.allowed_recipients").await;
    }
    for (policy, field) in [
        (
            Policy { sends_per_minute_max: Some(0), ..Policy::default() },
            "policy.sends_per_minute_max",
        ),
        (
            Policy { sender_stored_bytes_max: Some(0), ..Policy::default() },
            "policy.sender_stored_bytes_max",
        ),
        (Policy { questions_open_max: Some(0), ..Policy::default() }, "policy.questions_open_max"),
        (
            Policy { reminders_pending_max: Some(0), ..Policy::default() },
            "policy.reminders_pending_max",
        ),
        (Policy { children_max: Some(0), ..Policy::default() }, "policy.children_max"),
        (Policy { schedules_max: Some(0), ..Policy::default() }, "policy.schedules_max"),
    ] {
        bad_field(&operator, &set(policy.clone()), field).await;
        // An agent that is created with the policy is refused in the same way.
        let create = CreateAgentRequest { policy: Some(policy), ..request::create_agent("eve") };
        bad_field(&operator, &create, field).await;
    }
    rig.unchanged(&before, "a policy that no agent can have");

    let largest = Policy {
        sends_per_minute_max: Some(u32::MAX),
        sender_stored_bytes_max: Some(u64::MAX),
        questions_open_max: Some(u32::MAX),
        reminders_pending_max: Some(u32::MAX),
        children_max: Some(u32::MAX),
        schedules_max: Some(u32::MAX),
        ..Policy::default()
    };
    let said: SetPolicyResponse = done(&operator, &set(largest.clone())).await;
    let kept = said.agent.and_then(|agent| agent.policy).expect("a policy");
    let (tool_groups, etag) = (kept.tool_groups.clone(), kept.etag.clone());
    assert_eq!(kept, Policy { tool_groups, etag, ..largest });
    rig.agent("ada").await.send("bob", "under the largest of all bounds").await;

    let gone = request::retire_agent("bob");
    did(&operator, &gone).await;
    let retired = SetPolicyRequest { name: "bob".to_owned(), ..set(Policy::default()) };
    refused(&operator, &retired, Reason::AgentRetired, &["`bob` was retired"]).await;
}
