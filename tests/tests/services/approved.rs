//! The whole life of an agent that another one asked for: asked, approved, started by the launcher
//! as a service, admitted to its socket as that service, stopped, and retired by a second approval.
//!
//! The test plays ada, the asker: root may use her socket, and her own unit is masked.

use std::os::unix::fs::MetadataExt as _;

use hive_proto::v1::effect::Effect as Asked;
use hive_proto::v1::question_service_client::QuestionServiceClient;
use hive_proto::v1::{
    AskQuestionRequest, CreateAgentEffect, Effect, EventKind, HarnessState, Isolation,
    RetireAgentEffect,
};
use hive_tests::rig::{Watch, fresh_id, soon, to};

use crate::bed::Bed;

const CONFIG: &str = "[broker]\nsocket_group = \"hive-operators\"\nagent_unit = \"hive@{name}.service\"\n\
    [claude]\ncommand = \"/usr/bin/scripted-claude\"\n\
    [agents.ada]\nuids = [0]\ntool_groups = [\"messaging\", \"inbox\", \"approvals\"]\n";

/// Asks for a change as ada, and approves it as the operator does.
async fn approved(bed: &Bed, effect: Asked) {
    let request = AskQuestionRequest {
        request_id: fresh_id(),
        to: to("operator"),
        text: "I need a tester.".to_owned(),
        effect: Some(Effect { effect: Some(effect) }),
        ..AskQuestionRequest::default()
    };
    let channel = bed.client(Some("ada")).await.channel();
    let asked = QuestionServiceClient::new(channel).ask_question(request).await.expect("asked");
    let question = asked.into_inner().question.expect("a question");
    let digest = question.approval.expect("an approval").diff_digest;
    let id = question.id.to_string();
    bed.run(&["hivectl", "answer", &id, "--choice", "approve", "--diff", &digest]).await;
}

/// Waits until the unit of kim is in this state.
async fn kim_is(bed: &Bed, state: &str) {
    soon(&format!("hive@kim is {state}"), async {
        while bed.property("hive@kim", "ActiveState").await != state {}
    })
    .await;
}

#[tokio::test]
async fn an_agent_that_was_asked_for_lives_as_a_service_until_it_is_retired() {
    let Some(bed) = Bed::boot(CONFIG).await else { return };
    bed.run(&["systemctl", "mask", "--runtime", "hive@ada"]).await;
    bed.run(&["systemctl", "start", "hived", "hive-launcher"]).await;
    let operator = bed.client(None).await;
    let mut watch = Watch::new(bed.socket(None));

    let (name, role) = ("kim".to_owned(), "tester".to_owned());
    let create = CreateAgentEffect { name, role, ..CreateAgentEffect::default() };
    approved(&bed, Asked::CreateAgent(create)).await;
    let kim = operator.does("kim", HarnessState::Idle).await;
    assert_eq!((kim.parent.as_str(), kim.role.as_str()), ("ada", "tester"));
    // Its unit, with a user that systemd made, is what opens its socket to it, and to nothing else.
    assert_eq!(kim.isolation(), Isolation::Unit);
    let pid = bed.main_pid("hive@kim").await;
    let process = std::fs::metadata(bed.path(&format!("/proc/{pid}"))).expect("it runs");
    let owner = std::fs::metadata(bed.path("/var/lib/private/hive-agents/kim"));
    assert_eq!(owner.expect("its directory").uid(), process.uid());
    assert_ne!(process.uid(), 0);
    let socket = "/run/hive/agents/kim/hive.sock";
    let wake = ["hive", "wake", "--socket", socket, "--from", "x", "--body", "x"];
    let (came_through, said) =
        bed.tries(&[&["runuser", "-u", "nobody", "--"], &wake[..]].concat()).await;
    assert!(!came_through && said.contains("requires hive@kim.service"), "{said}");
    let sent = operator.send("kim", "Good morning.").await;
    watch.kind("kim", EventKind::TurnEnded).await;
    assert!(operator.delivery("kim", sent).await.message.is_some());

    bed.run(&["hivectl", "agent", "stop", "kim"]).await;
    kim_is(&bed, "inactive").await;
    bed.run(&["hivectl", "agent", "start", "kim"]).await;
    operator.does("kim", HarnessState::Idle).await;

    let retire = RetireAgentEffect { name: "kim".to_owned() };
    approved(&bed, Asked::RetireAgent(retire)).await;
    watch.kind("kim", EventKind::AgentRetired).await;
    kim_is(&bed, "inactive").await;
    soon("its socket is closed", async {
        while bed.path(socket).exists() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    bed.end().await;
}
