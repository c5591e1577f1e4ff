//! A hive of sandboxed agents that run the real CLI, and the stand-in for the Messages API that it
//! talks to.
//!
//! Invariant: at its end each agent was isolated without a finding, and no process is left.

use std::path::{Path, PathBuf};

use hive_proto::v1::{EventKind, Isolation, Turn, TurnOutcome};
use hive_tests::api::{Api, Recorded, Reply, Script};
use hive_tests::rig::{Client, Rig, Watch, soon};
use serde_json::json;
use tokio::process::Command;

use super::installed::Installed;
use crate::stage::Stage;

/// Programs of the system.
pub(crate) const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

pub(crate) struct Hive {
    pub(crate) stage: Stage,
    pub(crate) api: Api,
    pub(crate) operator: Client,
    pub(crate) watch: Watch,
    agents: Vec<&'static str>,
}

/// An answer to a call of a tool, and whether it is an error.
pub(crate) type Answer = (String, bool);

impl Hive {
    /// Starts one with ada; `ada` are lines of her table, in which `R/` is the hive's directory.
    pub(crate) async fn start(
        installed: Installed,
        ada: &str,
        prepare: impl AsyncFnOnce(&Rig),
    ) -> Self {
        Self::start_with(installed, ada, prepare, |_, _, _| {}).await
    }

    /// Starts a hive with further options for `hivectl up`, which is called with the directory of
    /// PATH that has claude.
    pub(crate) async fn start_with(
        installed: Installed,
        ada: &str,
        prepare: impl AsyncFnOnce(&Rig),
        command: impl FnOnce(&Rig, &Path, &mut Command),
    ) -> Self {
        let api = Api::start(Script::new());
        let claude = format!(
            "env = {{ ANTHROPIC_BASE_URL = \"{}\", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC = \"1\" }}",
            api.url()
        );
        let mut stage =
            Stage::set_with(&claude, "isolation = \"sandbox\"", &format!("[agents.ada]\n{ada}\n"));
        prepare(&stage.rig).await;
        let bin = installed.put(&stage.rig);
        let mut up = stage.command();
        up.env("PATH", path(&[&bin])).env("HIVE_CLAUDE_MAX_RETRIES", "0");
        command(&stage.rig, &bin, &mut up);
        stage.start(up).await;
        assert!(stage.said.contains("isolation: sandbox, by /"), "{}", stage.said);
        let (operator, watch) = (stage.rig.operator().await, stage.rig.watch().await);
        Self { stage, api, operator, watch, agents: vec!["ada"] }
    }

    /// The hive's directory.
    pub(crate) fn rig(&self) -> &Rig {
        &self.stage.rig
    }

    /// A path below the hive's directory as text.
    pub(crate) fn text(&self, name: &str) -> String {
        self.rig().path(name).display().to_string()
    }

    /// An agent that is looked at in the end, too.
    pub(crate) fn and(&mut self, agent: &'static str) {
        self.agents.push(agent);
    }

    /// Has the model of ada call these tools, one after the other; the answers of the tools.
    pub(crate) async fn calls(
        &mut self,
        what: &str,
        calls: impl IntoIterator<Item = Reply>,
    ) -> Vec<Answer> {
        self.calls_of("ada", what, calls).await
    }

    /// Runs calls of another agent.
    pub(crate) async fn calls_of(
        &mut self,
        agent: &str,
        what: &str,
        calls: impl IntoIterator<Item = Reply>,
    ) -> Vec<Answer> {
        let steps = calls.into_iter().chain([Reply::text("Done.")]);
        self.api.set_script(Script::new().when(what, steps));
        let message = self.operator.send(agent, what).await;
        // The end of a task may have been mail before, and an earlier message may be repeated.
        let of_message = async {
            loop {
                let turn = self.turn_of(agent).await;
                if turn.message_id == message {
                    return turn;
                }
            }
        };
        let turn = soon(&format!("the turn about {what:?} of {agent} ends"), of_message).await;
        assert_eq!(turn.outcome(), TurnOutcome::Ok, "{turn:?}\n{}", self.stage.said);
        self.answers(message)
    }

    /// Returns the answers of tools in the turn about a message.
    pub(crate) fn answers(&self, message: u64) -> Vec<Answer> {
        let request = self.requests_of(message).pop().expect("the model was asked");
        // The answers of earlier turns are also in the conversation.
        let results = request.tool_results();
        let earlier = results.len() - request.step;
        results.into_iter().skip(earlier).map(|(_, words, failed)| (words, failed)).collect()
    }

    /// The requests of the turn about a message.
    pub(crate) fn requests_of(&self, message: u64) -> Vec<Recorded> {
        let opening = format!("Message {message} from ");
        self.api
            .recorded()
            .into_iter()
            .filter(|request| request.prompt.starts_with(&opening))
            .collect()
    }

    /// The next turn of an agent that ends.
    pub(crate) async fn turn_of(&mut self, agent: &str) -> Turn {
        let ended = self.watch.kind(agent, EventKind::TurnEnded).await;
        self.operator.turn(ended.turn_id).await
    }

    /// Has ada run a command in a shell task; its output, which has to come with exit code 0.
    pub(crate) async fn run(&mut self, command: &str) -> String {
        let mut call = shell(command);
        loop {
            let [(words, failed)] = &self.calls(&format!("run {command}"), [call]).await[..] else {
                panic!("one answer")
            };
            let id = words
                .strip_prefix("Task ")
                .and_then(|rest| rest.split_once(" runs"))
                .and_then(|(id, _)| id.parse::<u64>().ok());
            let Some(id) = id else {
                assert!(!failed && words.contains("exit code 0"), "{command}: {words}");
                return words.clone();
            };
            call = Reply::tool("mcp__bash__status", json!({ "id": id, "wait_seconds": 30 }));
        }
    }

    /// Sees that the agents are isolated and says so, and ends everything.
    pub(crate) async fn end(self) {
        let Self { stage, operator, agents, .. } = self;
        for agent in agents {
            let found = operator.get_agent(agent).await;
            assert_eq!(
                (found.isolation(), &found.isolation_notes),
                (Isolation::Sandbox, &Vec::new()),
                "{agent}"
            );
            let said = stage.rig.hivectl(&["agent", "show", agent]).await;
            assert!(said.code == 0 && said.stdout.contains("isolated"), "{said:?}");
        }
        stage.end().await;
    }
}

/// A call that runs a command in a shell task and waits for it.
pub(crate) fn shell(command: &str) -> Reply {
    Reply::tool("mcp__bash__run", json!({ "cmd": command, "wait_seconds": 30 }))
}

/// These directories before those of the system.
pub(crate) fn path(dirs: &[&Path]) -> String {
    let dirs: Vec<PathBuf> = dirs
        .iter()
        .map(|dir| dir.to_path_buf())
        .chain(std::env::split_paths(SYSTEM_PATH))
        .collect();
    std::env::join_paths(dirs).expect("no colons").into_string().expect("text")
}
