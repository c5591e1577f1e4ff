//! Limits of open files: too low a soft one is raised, and too low a hard one leaves the broker and
//! the agents that fit in working order.

use std::path::Path;

use hive_core::reason::Reason;
use hive_proto::v1::GetAgentRequest;
use hive_tests::rig::call::{call, refused};
use hive_tests::rig::{Process, Rig, request};
use tokio::process::Command;

/// A configuration with this number of agents, and more.
fn agents(count: usize, more: &str) -> String {
    (0..count).map(|number| format!("[agents.{}]\n", name(number))).collect::<String>() + more
}

/// Returns the name of an agent; the broker opens their sockets in this order.
fn name(number: usize) -> String {
    format!("a{number:03}")
}

/// Returns the command that starts the broker, with these limits of open files.
fn limited(rig: &Rig, soft: usize, hard: usize) -> Command {
    let broker = rig.broker_command();
    let broker = broker.as_std();
    let script = format!("ulimit -Sn {soft} && ulimit -Hn {hard} && exec \"$@\"");
    let mut limited = Process::command(Path::new("sh"));
    limited.args(["-c", &script, "sh"]).arg(broker.get_program()).args(broker.get_args());
    limited.envs(broker.get_envs().filter_map(|(name, value)| Some((name, value?))));
    limited
}

#[tokio::test]
async fn the_soft_limit_is_raised_and_a_program_that_is_started_gets_the_old_one() {
    let mut rig = Rig::new("");
    let told = rig.path("told");
    let script = "ulimit -Sn > \"$0.new\" && mv \"$0.new\" \"$0\"";
    let notify =
        format!("[operator]\nnotify.command = ['sh', '-c', '{script}', '{}']\n", told.display());
    rig.configure(&agents(100, &notify));
    let command = limited(&rig, 70, 600);
    rig.start_broker_by(command).await;
    let limits = format!("/proc/{}/limits", rig.broker().pid().as_raw_nonzero());
    let limits = std::fs::read_to_string(limits).expect("the broker runs");
    let files = limits.lines().find(|line| line.starts_with("Max open files")).expect("a line");
    assert_eq!(files.split_whitespace().filter(|word| *word == "600").count(), 2, "{files}");
    assert!(!rig.broker().log().contains("no socket"), "{}", rig.logs());
    rig.agent(&name(99)).await.send("operator", "tell them").await;
    rig.appeared("told").await;
    assert_eq!(rig.read("told").trim(), "70");
}

#[tokio::test]
async fn agents_without_files_are_named_and_the_others_and_the_operator_are_served() {
    // 64 of 128 files are for agents, and each needs two.
    let mut rig = Rig::new(&agents(40, ""));
    let command = limited(&rig, 128, 128);
    rig.start_broker_by(command).await;
    let log = rig.broker().log();
    assert_eq!(log.matches("agents have no socket").count(), 1, "{log}");
    for words in
        ["40 agents need at least 144", "limit of hived is 128", "LimitNOFILE", "a032, a033"]
    {
        assert!(log.contains(words), "{words}: {log}");
    }
    assert!(!log.contains("a031"), "{log}");
    assert!(rig.agent_socket("a031").exists() && !rig.agent_socket("a032").exists());

    // Each socket has a connection, and no agent takes that of another.
    let first = rig.agent("a000").await;
    first.send("operator", "I have one").await;
    let second = match hive_proto::connect::connect(&rig.agent_socket("a000")).await {
        Ok(second) => call(&second, &request::send("operator", "I have two")).await.is_ok(),
        Err(_) => false,
    };
    assert!(!second, "{}", rig.logs());
    let mut others = Vec::new();
    for number in 1..32 {
        let other = rig.agent(&name(number)).await;
        other.send("operator", "I have one, too").await;
        others.push(other);
    }

    // Nothing is created that would have no socket.
    let operator = rig.operator().await.channel();
    let status = refused(&operator, &request::create_agent("eve"), Reason::SocketLimit).await;
    assert!(status.message().contains("33 agents need at least 130"), "{}", status.message());
    let eve = GetAgentRequest { name: "eve".to_owned() };
    refused(&operator, &eve, Reason::AgentNotFound).await;
    first.send("operator", "I have it still").await;
    assert_eq!(rig.operator().await.messages().await.len(), 33);
}
