//! Etags in requests: a stale one is ETAG_MISMATCH with the present one, and nothing changes.

use hive_core::reason::Reason;
use hive_proto::v1::*;
use hive_tests::rig::{Rig, fresh_id, request};
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::ask::{Carried, bad_field, did, done, refused};

fn stop(etag: &str) -> StopAgentRequest {
    StopAgentRequest { request_id: fresh_id(), name: "ada".to_owned(), etag: etag.to_owned() }
}

fn start(etag: &str) -> StartAgentRequest {
    StartAgentRequest {
        request_id: fresh_id(),
        name: "ada".to_owned(),
        etag: etag.to_owned(),
        ..Default::default()
    }
}

fn set_parent(etag: &str) -> SetParentRequest {
    let (request_id, etag) = (fresh_id(), etag.to_owned());
    SetParentRequest { request_id, name: "ada".to_owned(), parent: "bob".to_owned(), etag }
}

fn retire(etag: &str, purge: bool) -> RetireAgentRequest {
    RetireAgentRequest { purge, etag: etag.to_owned(), ..request::retire_agent("ada") }
}

fn set_policy(policy: Policy) -> SetPolicyRequest {
    SetPolicyRequest {
        request_id: fresh_id(),
        name: "ada".to_owned(),
        policy: Some(policy),
        update_mask: None,
    }
}

/// Asserts that a request is refused because of its etag, and returns the present one.
async fn stale(channel: &Channel, request: &impl Carried) -> String {
    let refusal: Status = refused(channel, request, Reason::EtagMismatch, &["`ada`"]).await;
    assert_eq!(refusal.code(), Code::Aborted);
    let info = refusal.get_details_error_info().expect("a reason");
    assert_eq!(info.metadata["agent"], "ada");
    assert!(refusal.get_details_retry_info().is_none(), "it is never worth a retry");
    info.metadata["etag"].clone()
}

#[tokio::test]
async fn a_change_with_a_stale_etag_is_refused_and_one_with_the_present_etag_is_not() {
    let mut rig = Rig::new("[agents.ada]\n[agents.bob]\n");
    rig.start_broker().await;
    let operator = rig.operator().await;
    let channel = operator.channel();
    let before = rig.on_disk();
    let ada = operator.get_agent("ada").await;
    let policy = ada.policy.clone().expect("a policy");
    let old = "0123456789abcdef01234567";
    for present in [
        stale(&channel, &stop(old)).await,
        stale(&channel, &start(old)).await,
        stale(&channel, &set_parent(old)).await,
        stale(&channel, &retire(old, false)).await,
        stale(&channel, &retire(old, true)).await,
    ] {
        assert_eq!(present, ada.etag);
    }
    let other = Policy { etag: ada.etag.clone(), ..policy.clone() };
    assert_eq!(stale(&channel, &set_policy(other)).await, policy.etag, "it is the agent's");
    rig.unchanged(&before, "a stale etag");

    // Each answer has the next one. What was read is sent back, with its etag.
    let set = set_policy(Policy { questions_open_max: Some(7), ..policy.clone() });
    let changed: SetPolicyResponse = done(&channel, &set).await;
    let changed = changed.agent.expect("ada");
    let new = changed.policy.expect("a policy");
    assert!(new.etag != policy.etag && changed.etag != ada.etag);
    assert_eq!(stale(&channel, &set_policy(policy)).await, new.etag);
    let stopped: StopAgentResponse = done(&channel, &stop(&changed.etag)).await;
    let stopped = stopped.agent.expect("ada").etag;
    let moved: SetParentResponse = done(&channel, &set_parent(&stopped)).await;
    let moved = moved.agent.expect("ada").etag;
    let started: StartAgentResponse = done(&channel, &start(&moved)).await;
    let started = started.agent.expect("ada").etag;
    assert_eq!(rig.agent("ada").await.get_agent("ada").await.etag, started, "agents see it");

    // A repeat of the first change gets its first answer, with the agent as it is now.
    let again: SetPolicyResponse = done(&channel, &set).await;
    assert_eq!(again.agent.map(|agent| agent.etag), Some(started.clone()));
    did(&channel, &retire(&started, true)).await;
    did(&channel, &request::create_agent("ada")).await;
    let later = stale(&channel, &stop(&started)).await;
    assert_eq!(later, operator.get_agent("ada").await.etag, "a later agent of the name");
}

#[tokio::test]
async fn an_etag_has_a_bound_and_an_empty_one_is_none() {
    let mut rig = Rig::new("[agents.ada]\n[agents.bob]\n");
    rig.start_broker().await;
    let channel = rig.operator().await.channel();
    let before = rig.on_disk();
    for etag in ["x".repeat(129), "with\nline".to_owned()] {
        bad_field(&channel, &stop(&etag), "etag").await;
        bad_field(&channel, &start(&etag), "etag").await;
        bad_field(&channel, &set_parent(&etag), "etag").await;
        bad_field(&channel, &retire(&etag, true), "etag").await;
        let policy = Policy { etag, ..Policy::default() };
        bad_field(&channel, &set_policy(policy), "policy.etag").await;
    }
    rig.unchanged(&before, "an etag that is none");
    did(&channel, &stop("")).await;
    // A policy may be taken from another agent.
    let of_bob = rig.operator().await.get_agent("bob").await.policy;
    did(&channel, &CreateAgentRequest { policy: of_bob, ..request::create_agent("eve") }).await;
}
