//! Which agents an agent may start, stop and restart: its children, and with a capability all
//! agents below it; never itself, and none above it or beside it.

use hive_core::agent::{LIFECYCLE, MANAGE_SUBTREE, QUERY_AGENT_STATE};
use hive_core::reason::Reason;
use hive_proto::v1::*;
use hive_tests::rig::fresh_id;
use tonic::transport::Channel;

use crate::calls::{done, names, refused};
use crate::policy::Stage;

fn start(name: &str, on_demand: Option<bool>) -> StartChildRequest {
    StartChildRequest { request_id: fresh_id(), name: name.to_owned(), on_demand }
}

fn stop(name: &str) -> StopChildRequest {
    StopChildRequest { request_id: fresh_id(), name: name.to_owned() }
}

fn restart(name: &str) -> RestartChildRequest {
    RestartChildRequest { request_id: fresh_id(), name: name.to_owned() }
}

/// Stops, starts and restarts an agent, and asserts that each call did that.
async fn manages(channel: &Channel, name: &str) {
    let stopped: StopChildResponse = done(channel, &stop(name)).await;
    let stopped = stopped.agent.expect("an agent");
    let started: StartChildResponse = done(channel, &start(name, None)).await;
    let started = started.agent.expect("an agent");
    let restarted: RestartChildResponse = done(channel, &restart(name)).await;
    let restarted = restarted.agent.expect("an agent");
    assert_eq!((stopped.name.as_str(), stopped.stopped), (name, true));
    assert_eq!((started.name.as_str(), started.stopped), (name, false));
    assert_eq!((restarted.name.as_str(), restarted.stopped), (name, false));
    assert_eq!(restarted.restart_count, started.restart_count + 1);
}

#[tokio::test]
async fn an_agent_decides_about_its_children_and_with_the_capability_about_all_below_it() {
    let groups = "tool_groups = [\"meta\", \"lifecycle\"]\n";
    let config = format!(
        "[agents.ada]\n{groups}[agents.bob]\nparent = \"ada\"\n{groups}\
         [agents.cyd]\nparent = \"bob\"\n{groups}[agents.dan]\nparent = \"cyd\"\n[agents.eve]\n"
    );
    let mut stage = Stage::set(&config).await;
    let (ada, bob) = (stage.agent("ada").await, stage.agent("bob").await);
    manages(&ada, "bob").await;
    manages(&bob, "cyd").await;
    let others = [
        ("ada", "cyd"),
        ("ada", "ada"),
        ("ada", "eve"),
        ("bob", "ada"),
        ("bob", "bob"),
        ("bob", "dan"),
        ("cyd", "bob"),
    ];
    for (who, whose) in others {
        let words = format!(
            "`{whose}` is not your direct child; for agents further below you need the capability \
             `manage_subtree`, and none decides about itself"
        );
        let denied = Reason::NotYourChild;
        stage.refused(who, &start(whose, Some(true)), denied, &words).await;
        stage.refused(who, &stop(whose), denied, &words).await;
        stage.refused(who, &restart(whose), denied, &words).await;
    }
    // Another capability is none for this.
    let capability = |name| Policy { capabilities: names(&[name]), ..Policy::default() };
    stage.policy("ada", &["capabilities"], capability(QUERY_AGENT_STATE)).await;
    stage.refused("ada", &stop("dan"), Reason::NotYourChild, "`dan`").await;
    stage.policy("ada", &["capabilities"], capability(MANAGE_SUBTREE)).await;
    for name in ["bob", "cyd", "dan"] {
        manages(&ada, name).await;
    }
    for whose in ["ada", "eve"] {
        stage.refused("ada", &stop(whose), Reason::NotYourChild, whose).await;
    }
    stage.policy("ada", &["capabilities"], Policy::default()).await;
    stage.refused("ada", &stop("dan"), Reason::NotYourChild, "`dan`").await;
    // The group is asked for first, so without it no agent learns which names exist.
    stage.policy("ada", &["tool_groups"], Policy::default()).await;
    for whose in ["bob", "eve", "nemo"] {
        let words = format!("tool group `{LIFECYCLE}`");
        stage.refused("ada", &stop(whose), Reason::CapabilityMissing, &words).await;
    }
    // With it an unknown name is reported as such, and the operator is no agent.
    refused(&bob, &stop("nemo"), Reason::AgentNotFound).await;
    refused(&bob, &stop("operator"), Reason::FieldInvalid).await;
}

#[tokio::test]
async fn a_parent_that_changes_takes_the_right_with_it() {
    let groups = "tool_groups = [\"lifecycle\"]\n";
    let config = format!("[agents.ada]\n{groups}[agents.bob]\n{groups}[agents.cyd]\n");
    let mut stage = Stage::set(&config).await;
    let (ada, bob) = (stage.agent("ada").await, stage.agent("bob").await);
    let set_parent = |parent: &str| SetParentRequest {
        request_id: fresh_id(),
        name: "cyd".to_owned(),
        parent: parent.to_owned(),
        etag: String::new(),
    };
    stage.refused("ada", &stop("cyd"), Reason::NotYourChild, "`cyd`").await;
    let _: SetParentResponse = done(&stage.operator, &set_parent("ada")).await;
    manages(&ada, "cyd").await;
    let _: SetParentResponse = done(&stage.operator, &set_parent("bob")).await;
    stage.refused("ada", &start("cyd", Some(true)), Reason::NotYourChild, "`cyd`").await;
    manages(&bob, "cyd").await;
    let agent = stage.rig.operator().await.get_agent("cyd").await;
    assert_eq!((agent.on_demand, agent.restart_count), (false, 2));
}
