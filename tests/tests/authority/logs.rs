//! Which logs an agent may read: of its children, and with a capability of all agents below it; of
//! the host's journal only units that the operator named. Only the operator's socket answers.

use hive_core::agent::{DIAGNOSTICS, MANAGE_SUBTREE, READ_HOST_JOURNAL};
use hive_core::reason::Reason;
use hive_proto::v1::launcher_service_client::LauncherServiceClient;
use hive_proto::v1::logs_wanted::Source;
use hive_proto::v1::*;
use hive_tests::rig::soon;
use tonic::Streaming;
use tonic::transport::Channel;

use crate::calls::{call, done, names, refused};
use crate::policy::Stage;

fn logs(agent: &str) -> GetLogsRequest {
    GetLogsRequest { agent: agent.to_owned(), lines: 5 }
}

fn journal(unit: &str) -> GetHostJournalRequest {
    GetHostJournalRequest { unit: unit.to_owned(), since: None, lines: 5 }
}

/// A launcher that is attached.
struct Launcher {
    channel: Channel,
    steps: Streaming<LaunchResponse>,
}

impl Launcher {
    async fn attach(stage: &Stage) -> Self {
        let channel = stage.operator.clone();
        let launch = LauncherServiceClient::new(channel.clone()).launch(LaunchRequest {}).await;
        Self { channel, steps: launch.expect("there is no other one").into_inner() }
    }

    /// Answers the next request with its own source.
    async fn answers(&mut self) {
        loop {
            let step = soon("a step", self.steps.message()).await.expect("a stream");
            if let [LogsWanted { id, source, .. }] = &step.expect("a step").logs_wanted[..] {
                let text = match source.clone().expect("a source") {
                    Source::Agent(name) => format!("log of {name}\n"),
                    Source::Journal(JournalOfUnit { unit, .. }) => format!("journal of {unit}\n"),
                };
                let answer = AnswerLogsRequest { id: *id, text, ..AnswerLogsRequest::default() };
                let _: AnswerLogsResponse = done(&self.channel, &answer).await;
                return;
            }
        }
    }

    /// Asserts that a caller reads the log of an agent.
    async fn reads(&mut self, channel: &Channel, name: &str) {
        let request = logs(name);
        let (read, ()) = tokio::join!(done::<GetLogsResponse>(channel, &request), self.answers());
        assert_eq!(read.lines, [format!("log of {name}")]);
    }
}

const GROUPS: &str = "tool_groups = [\"meta\", \"diagnostics\"]\n";

#[tokio::test]
async fn an_agent_reads_its_children_and_with_the_capability_all_below_it() {
    let config = format!(
        "[agents.ada]\n{GROUPS}[agents.bob]\nparent = \"ada\"\n{GROUPS}\
         [agents.cyd]\nparent = \"bob\"\n{GROUPS}[agents.eve]\n"
    );
    let mut stage = Stage::set(&config).await;
    let mut launcher = Launcher::attach(&stage).await;
    let (ada, bob) = (stage.agent("ada").await, stage.agent("bob").await);
    launcher.reads(&ada, "bob").await;
    launcher.reads(&bob, "cyd").await;
    for (who, whose) in [
        ("ada", "cyd"),
        ("ada", "ada"),
        ("ada", "eve"),
        ("bob", "ada"),
        ("bob", "bob"),
        ("cyd", "bob"),
    ] {
        let words = format!("`{whose}` is not your direct child");
        stage.refused(who, &logs(whose), Reason::NotYourChild, &words).await;
    }
    let subtree = Policy { capabilities: names(&[MANAGE_SUBTREE]), ..Policy::default() };
    stage.policy("ada", &["capabilities"], subtree).await;
    launcher.reads(&ada, "cyd").await;
    for whose in ["ada", "eve"] {
        stage.refused("ada", &logs(whose), Reason::NotYourChild, whose).await;
    }
    stage.policy("ada", &["tool_groups"], Policy::default()).await;
    let words = format!("tool group `{DIAGNOSTICS}`");
    for whose in ["bob", "eve", "nemo"] {
        stage.refused("ada", &logs(whose), Reason::CapabilityMissing, &words).await;
    }
    refused(&bob, &logs("nemo"), Reason::AgentNotFound).await;
    refused(&bob, &logs("operator"), Reason::FieldInvalid).await;
}

#[tokio::test]
async fn the_journal_needs_the_capability_and_a_unit_that_the_operator_named() {
    let units = "[operator]\njournal_units = [\"nginx.service\", \"b@1.timer\"]\n";
    let mut stage = Stage::set(&format!("{units}[agents.ada]\n{GROUPS}")).await;
    let mut launcher = Launcher::attach(&stage).await;
    let ada = stage.agent("ada").await;
    let words = format!("the capability `{READ_HOST_JOURNAL}`");
    for unit in ["nginx.service", "sshd.service"] {
        stage.refused("ada", &journal(unit), Reason::CapabilityMissing, &words).await;
    }
    let journals = Policy { capabilities: names(&[READ_HOST_JOURNAL]), ..Policy::default() };
    stage.policy("ada", &["capabilities"], journals).await;
    let named = journal("b@1.timer");
    let (read, ()) = tokio::join!(done::<GetHostJournalResponse>(&ada, &named), launcher.answers());
    assert_eq!(read.lines, ["journal of b@1.timer"]);
    for unit in
        ["", "nginx", "sshd.service", "-u", "b@*.timer", "nginx.service ", "../nginx.service"]
    {
        let refusal = refused(&ada, &journal(unit), Reason::FieldInvalid).await;
        assert!(refusal.message().contains("`nginx.service`, `b@1.timer`"), "{refusal:?}");
    }
}

#[tokio::test]
async fn an_agent_cannot_answer_in_place_of_the_launcher() {
    let stage = Stage::set(&format!("[agents.ada]\n{GROUPS}")).await;
    let ada = stage.agent("ada").await;
    let answer = AnswerLogsRequest { id: 1, ..AnswerLogsRequest::default() };
    let refusal = call(&ada, &answer).await.map(drop).expect_err("agents have no such service");
    assert_eq!(refusal.code(), tonic::Code::Unimplemented, "{refusal:?}");
}
