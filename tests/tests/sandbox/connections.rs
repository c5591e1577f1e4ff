//! Connections under `hivectl up`: who can take an agent over, what its shell tasks may call, and
//! what a restart of either side does.
//!
//! What it is not: the rule for each call, which `tests/tests/namespaces` has. Here each program is
//! where a user or an agent would start it.

use hive_proto::v1::{EventKind, HarnessState, Isolation, TurnOutcome};
use hive_tests::rig::{Client, Watch, gone, soon, strays};
use hive_tests::scripted::script::{self, Rule, Step};
use rustix::process::{Signal, kill_process};
use serde_json::json;
use tokio::net::UnixStream;

use crate::stage::{self, Stage};

/// Ada, whose claude runs a command as a shell task, and bob, whose claude starts one itself and
/// waits until it has written `state/done`.
struct Pair {
    stage: Stage,
    operator: Client,
    watch: Watch,
}

impl Pair {
    async fn start(by_ada: &str, by_bob: &str) -> Self {
        let agent = |name: &str| {
            format!(
                "[agents.{name}]\nisolation = \"sandbox\"\nreadable = [\"grant\", \"bin\"]\nenv = {{ SCRIPTED_CLAUDE_FILE = \"R/grant/{name}.json\" }}\n"
            )
        };
        let mut stage = Stage::set("", &["ada", "bob"].map(agent).concat());
        let root = stage.rig.dir().display().to_string();
        stage.rig.user_dir("grant");
        let run = Step::Tool {
            tool: "run".to_owned(),
            input: json!({ "cmd": by_ada.replace("R/", &format!("{root}/")), "wait_seconds": 30 }),
        };
        let done = stage.rig.path("agents/bob/state/done");
        let command = format!(
            "{{ {}; }} >said 2>&1; mv said done",
            by_bob.replace("R/", &format!("{root}/"))
        );
        let spawn =
            Step::Spawn { spawn: vec!["sh".to_owned(), "-c".to_owned(), command], setsid: false };
        for (agent, steps) in
            [("ada", vec![run]), ("bob", vec![spawn, Step::WaitFile { wait_file: done }])]
        {
            let file = stage.rig.path(format!("grant/{agent}.json"));
            let rules = [
                Rule { when: "look around".to_owned(), steps },
                Rule { when: String::new(), steps: Vec::new() },
            ];
            script::write(&file, &rules).expect("the script is written");
            stage.rig.give_away(&file);
        }
        let command = stage.command();
        stage.start(command).await;
        let (operator, watch) = (stage.rig.operator().await, stage.rig.watch().await);
        let mut pair = Self { stage, operator, watch };
        pair.attached().await;
        pair
    }

    /// Waits until both have a harness.
    async fn attached(&mut self) {
        self.operator = self.stage.rig.operator().await;
        for agent in ["ada", "bob"] {
            self.operator.does(agent, HarnessState::Idle).await;
        }
        self.watch = self.stage.rig.watch_from_now().await;
    }

    /// Sends an agent a message, and waits for a successful turn.
    async fn turn(&mut self, agent: &str, body: &str) {
        self.operator.send(agent, body).await;
        let ended = self.watch.kind(agent, EventKind::TurnEnded).await;
        let turn = self.operator.turn(ended.turn_id).await;
        assert_eq!(turn.outcome(), TurnOutcome::Ok, "{turn:?}\n{}", self.stage.said);
    }
}

/// Shell words that start a second harness of ada's.
const THIEF: &str = "mkdir -p thief && R/bin/hive serve --take-over --state-dir thief --home-dir thief --run-dir thief --claude R/bin/scripted-claude";

#[tokio::test]
async fn only_its_own_harness_takes_an_agent_over() {
    if !stage::is_possible().await {
        return;
    }
    // Bob's sandbox shows no socket but his own. Here the operator has given him a name of ada's.
    let by_bob = format!("{THIEF} --socket R/grant/ada.sock");
    let by_ada = format!(
        "{THIEF}; echo \"took over: $?\"; R/bin/hive wake --from ci --body woken; \
         printf 'pr-7\\treview\\n' | R/bin/hive publish --from ci; echo \"published: $?\""
    );
    let mut pair = Pair::start(&by_ada, &by_bob).await;
    let rig = &pair.stage.rig;
    std::fs::hard_link(rig.agent_socket("ada"), rig.path("grant/ada.sock"))
        .expect("a name of the socket");

    // The operator's own user, on the host.
    let root = rig.dir().display().to_string();
    let line =
        format!("{THIEF} --socket R/run/agents/ada/hive.sock").replace("R/", &format!("{root}/"));
    let mut thief = rig.user_command("sh".as_ref());
    let output =
        soon("the host's harness ends", thief.args(["-c", &line]).output()).await.expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("PEER_NOT_TRUSTED"), "{said}");

    pair.turn("bob", "look around").await;
    let said = pair.stage.rig.read("agents/bob/state/done");
    assert!(said.contains("PEER_NOT_TRUSTED"), "{said}");

    pair.turn("ada", "look around").await;
    let said = pair.stage.rig.tool_results("ada").concat();
    assert!(
        said.contains("PEER_NOT_TRUSTED")
            && said.contains("took over: 1")
            && said.contains("published: 0"),
        "{said}"
    );
    // The program has woken its own agent, and is shown under its own name.
    pair.turn("ada", "and now?").await;
    let prompts = pair.stage.rig.prompts("ada").concat();
    assert!(prompts.contains("woken"), "{prompts}");
    // Each agent still has its first session.
    for agent in ["ada", "bob"] {
        let turns = pair.operator.turns(agent).await;
        assert!(turns.iter().all(|turn| turn.session_epoch == 1), "{turns:?}");
        assert_eq!(pair.operator.get_agent(agent).await.isolation(), Isolation::Sandbox);
    }
    pair.stage.end().await;
}

#[tokio::test]
async fn sandboxes_outlive_their_broker_and_are_known_to_the_next() {
    if !stage::is_possible().await {
        return;
    }
    let mut pair = Pair::start("true", "true").await;
    let harnesses = ["ada", "bob"].map(|agent| pair.stage.rig.the_one(agent, "hive"));
    kill_process(pair.stage.broker(), Signal::KILL).expect("it runs");
    pair.stage.says("hived ended (signal: 9 (SIGKILL)); again in").await;
    let socket = pair.stage.rig.operator_socket();
    let answers = async {
        while UnixStream::connect(&socket).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    soon("the next hived listens", answers).await;
    pair.attached().await;
    for agent in ["ada", "bob"] {
        pair.turn(agent, "hello").await;
        let shown = pair.operator.get_agent(agent).await;
        assert_eq!(shown.isolation(), Isolation::Sandbox, "{shown:?}");
    }
    assert_eq!(["ada", "bob"].map(|agent| pair.stage.rig.the_one(agent, "hive")), harnesses);
    pair.stage.end().await;
}

#[tokio::test]
async fn nothing_of_an_earlier_start_is_left_to_the_next() {
    if !stage::is_possible().await {
        return;
    }
    let lingers = "(setsid sleep 1000003 >/dev/null 2>&1 &)";
    let mut pair = Pair::start(lingers, lingers).await;
    for agent in ["ada", "bob"] {
        pair.turn(agent, "look around").await;
    }
    let earlier: Vec<_> =
        strays(pair.stage.rig.dir()).into_iter().filter(|pid| *pid != pair.stage.pid()).collect();
    kill_process(pair.stage.pid(), Signal::KILL).expect("it runs");
    for pid in earlier {
        gone(pid).await;
    }
    let command = pair.stage.command();
    pair.stage.start(command).await;
    pair.attached().await;
    pair.turn("ada", "hello").await;
    pair.stage.end().await;
}
