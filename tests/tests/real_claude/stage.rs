//! A hive whose agents run the real CLI, and the stand-in API that it talks to.

use std::collections::BTreeMap;
use std::path::PathBuf;

use hive_proto::v1::{DeliveryState, EventKind, HarnessState, Turn, TurnKind, TurnOutcome};
use hive_tests::api::{Api, Kind, Recorded, Script};
use hive_tests::claude;
use hive_tests::rig::{Client, HarnessOptions, Mode, QUICK_LIMITS, Rig, Watch, soon};
use serde_json::Value;

/// The content of ada's CLAUDE.md.
const MEMORY: &str = "The word of the day is marzipan.";

pub(crate) struct Stage {
    pub(crate) rig: Rig,
    pub(crate) api: Api,
    pub(crate) operator: Client,
    pub(crate) watch: Watch,
    pub(crate) options: HarnessOptions,
    /// The messages of [`Self::send`]; [`Self::end`] checks how each reached the model.
    sent: Vec<(u64, String)>,
}

/// The CLI.
pub(crate) fn installed() -> PathBuf {
    claude::find().unwrap_or_else(|missing| panic!("{missing}"))
}

impl Stage {
    /// Ada and her child bob, a running broker, and no harness yet.
    pub(crate) async fn set(script: Script) -> Self {
        Self::of("[agents.ada]\n[agents.bob]\nparent = \"ada\"\n", script).await
    }

    pub(crate) async fn of(agents: &str, script: Script) -> Self {
        let claude = installed();
        let mut rig = Rig::new(&format!("{agents}{QUICK_LIMITS}"));
        rig.start_broker().await;
        let api = Api::start(script);
        let not_ours = ["HOME", "PATH", "CLAUDE_CODE_TMPDIR"];
        let environment = claude::environment(&rig.path("unused"), &api.url()).into_iter();
        let claude_env: BTreeMap<String, String> = environment
            .map(|(name, value)| {
                (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
            })
            // The harness gives each agent a home of its own.
            .filter(|(name, _)| !not_ours.contains(&name.as_str()))
            .collect();
        // Its own retries are tried out elsewhere; here they would only take time.
        let env = BTreeMap::from([("HIVE_CLAUDE_MAX_RETRIES".to_owned(), "0".to_owned())]);
        let options = HarnessOptions { claude, claude_env, env, ..HarnessOptions::default() };
        let (operator, watch) = (rig.operator().await, rig.watch().await);
        Self { rig, api, operator, watch, options, sent: Vec::new() }
    }

    /// Ada with a CLAUDE.md and her child bob, claude run in this way, and no harness yet.
    pub(crate) async fn in_mode(mode: Mode, script: Script) -> Self {
        Self::of_mode(mode, "[agents.ada]\n[agents.bob]\nparent = \"ada\"\n", script).await
    }

    pub(crate) async fn of_mode(mode: Mode, agents: &str, script: Script) -> Self {
        let mut stage = Self::of(agents, script).await;
        stage.set_env("HIVE_PROCESS", mode.word());
        std::fs::create_dir_all(stage.state()).expect("a directory");
        std::fs::write(stage.state().join("CLAUDE.md"), format!("{MEMORY}\n")).expect("a file");
        stage
    }

    /// Ada's working directory.
    pub(crate) fn state(&self) -> PathBuf {
        self.rig.path("agents/ada/state")
    }

    /// Sets a variable of the harnesses that are started from now on.
    pub(crate) fn set_env(&mut self, name: &str, value: &str) {
        self.options.env.insert(name.to_owned(), value.to_owned());
    }

    /// Starts ada's harness.
    pub(crate) fn start(&mut self) {
        self.start_agent("ada");
    }

    /// Starts an agent's harness.
    pub(crate) fn start_agent(&mut self, name: &str) {
        let key = self.rig.start_harness_with(name, &self.options);
        assert_eq!(key, name);
    }

    /// Sends ada a message that must reach the model once.
    pub(crate) async fn send(&mut self, body: &str) -> u64 {
        let id = self.operator.send("ada", body).await;
        self.sent.push((id, body.to_owned()));
        id
    }

    /// Waits for the next turn of ada that ends, and checks that it succeeded.
    pub(crate) async fn ok(&mut self) -> Turn {
        let turn = self.turn().await;
        assert_eq!(turn.outcome(), TurnOutcome::Ok, "{turn:?}");
        turn
    }

    /// Types `hivectl turn ...` and waits for what becomes of it; what it said, where it went well.
    pub(crate) async fn order(&self, words: &[&str]) -> String {
        let said = self.rig.hivectl(&[&["turn"], words, &["--wait"]].concat()).await;
        assert_eq!(said.code, 0, "{words:?}: {said:?}");
        said.stdout
    }

    /// Waits until ada's harness says that it does this.
    pub(crate) async fn state_is(&self, state: HarnessState) {
        let looks = async {
            while self.operator.get_agent("ada").await.state() != state {
                tokio::task::yield_now().await;
            }
        };
        soon(&format!("ada is {state:?}"), looks).await;
    }

    /// The kinds and outcomes of ada's turns, oldest first.
    pub(crate) async fn turns(&self) -> Vec<(TurnKind, TurnOutcome)> {
        self.operator.turns("ada").await.iter().map(|turn| (turn.kind(), turn.outcome())).collect()
    }

    /// The last request whose turn began with a prompt about this message.
    pub(crate) fn last_request_of(&self, message: u64) -> Recorded {
        self.requests_of(message).pop().expect("the model was asked")
    }

    /// The next turn of ada that ends.
    pub(crate) async fn turn(&mut self) -> Turn {
        let ended = self.watch.kind("ada", EventKind::TurnEnded).await;
        self.operator.turn(ended.turn_id).await
    }

    /// The first turn of an agent that ends.
    pub(crate) async fn first_turn_of(&self, name: &str) -> Turn {
        let ended = self.rig.watch().await.kind(name, EventKind::TurnEnded).await;
        self.operator.turn(ended.turn_id).await
    }

    /// Returns the output of claude in a turn.
    pub(crate) async fn lines(&self, turn: &Turn) -> Vec<Value> {
        let lines = self.operator.lines(turn.id).await;
        lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// The requests whose turn began with a prompt about this message.
    pub(crate) fn requests_of(&self, message: u64) -> Vec<Recorded> {
        let opening = format!("Message {message} from ");
        self.api
            .recorded()
            .into_iter()
            .filter(|request| request.prompt.starts_with(&opening))
            .collect()
    }

    /// Ends the stage, and checks that no process is left, that every message is settled and
    /// reached the model once, and that CLAUDE.md was read.
    pub(crate) async fn end(mut self) {
        for (id, body) in std::mem::take(&mut self.sent) {
            let delivery = self.operator.delivery("ada", id).await;
            assert_eq!(delivery.state(), DeliveryState::Acked, "{delivery:?}");
            let requests = self.api.recorded();
            for request in requests.iter().filter(|request| request.kind == Kind::Turn) {
                let told = count(request, &format!("| {body}\n"));
                assert!(
                    told <= 1,
                    "`{body}` is {told} times in a conversation: {:#}",
                    request.body["messages"]
                );
                assert!(
                    request.mentions(MEMORY),
                    "CLAUDE.md is missing: {:#}",
                    request.body["messages"]
                );
            }
            let last = self.last_request_of(id);
            assert_eq!(count(&last, &format!("| {body}\n")), 1, "{:#}", last.body["messages"]);
        }
        self.rig.end().await;
    }
}

/// Counts a text in the request to the model.
pub(crate) fn count(request: &Recorded, text: &str) -> usize {
    fn in_value(value: &Value, text: &str) -> usize {
        match value {
            Value::String(found) => found.matches(text).count(),
            Value::Array(items) => items.iter().map(|item| in_value(item, text)).sum(),
            Value::Object(fields) => fields.values().map(|field| in_value(field, text)).sum(),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
    }
    in_value(&request.body["messages"], text)
}
