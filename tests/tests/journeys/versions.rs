//! Programs of neighbouring versions: those of the baseline (`tests/build-baseline.sh`) and the
//! present ones, in each mixture.
//!
//! Invariant: a mixture does what programs of one version do. What the contract gained after the
//! baseline is not used here.

use std::path::{Path, PathBuf};

use hive_proto::v1::{EventKind, TurnOutcome};
use hive_tests::binary;
use hive_tests::rig::{DUO, QUICK_LIMITS, Rig, host};
use hive_tests::scripted::script::{Rule, Step};
use serde_json::{Value, json};

use crate::steps::{acked, answer, ended, rule, text, tool, touch, unread, wait_for};

/// The directory with the programs of the baseline.
const BASELINE_DIR_ENV: &str = "HIVE_TEST_BASELINE_DIR";

/// The programs of a hive, with their packages.
const PROGRAMS: [(&str, &str); 4] = [
    ("hive-broker", "hived"),
    ("hive-harness", "hive"),
    ("hive-mcp-bridge", "hive-mcp"),
    ("hivectl", "hivectl"),
];

/// Views of `hivectl` that need no argument, and exit with 0 in any hive that is well.
const VIEWS: [&[&str]; 9] = [
    &["agents"],
    &["topology"],
    &["inbox"],
    &["events"],
    &["questions"],
    &["reminders"],
    &["loose-ends"],
    &["dead-letters"],
    &["turn", "list", "bob"],
];

/// A hive whose programs are of two versions.
struct Mixture {
    baseline: PathBuf,
    rig: Rig,
}

impl Mixture {
    /// Returns a hive in which `older` are programs of the baseline; `None` if this host has none.
    fn new(older: &[&str]) -> Option<Self> {
        let baseline = std::env::var_os(BASELINE_DIR_ENV);
        let what = "programs of the baseline (tests/build-baseline.sh, HIVE_TEST_BASELINE_DIR)";
        if !host::allows(what, baseline.is_some()) {
            return None;
        }
        let baseline = PathBuf::from(baseline?);
        // The history of this clone does not reach the baseline: the script said so.
        if !baseline.exists() {
            return None;
        }
        let rig = Rig::new(&format!("{DUO}{QUICK_LIMITS}"));
        let programs = rig.path("programs");
        std::fs::create_dir(&programs).expect("a directory");
        let mixture = Self { baseline, rig: rig.with_programs(&programs) };
        for (package, program) in PROGRAMS {
            if older.contains(&program) {
                mixture.place(program, &mixture.baseline.join(program));
            } else {
                mixture.place(program, &binary::find(package, program));
            }
        }
        Some(mixture)
    }

    /// Replaces a program by the present one, as an upgrade does. A process that runs is not
    /// touched.
    fn upgrade(&self, program: &str) {
        let (package, _) =
            PROGRAMS.into_iter().find(|(_, name)| *name == program).expect("a program");
        self.place(program, &binary::find(package, program));
    }

    fn place(&self, program: &str, file: &Path) {
        let (path, next) = (self.rig.path("programs").join(program), self.rig.path("next"));
        std::os::unix::fs::symlink(file, &next).expect("a link");
        std::fs::rename(next, path).expect("the program is replaced");
    }

    /// Runs `hivectl` with `--json`, and returns its data.
    async fn json(&self, args: &[&str]) -> Value {
        self.json_and(0, args).await
    }

    /// Checks that each view can be read. The status has a finding: both agents have one uid.
    async fn views(&self) {
        let status = self.json_and(8, &["status"]).await;
        assert_eq!(status["storage_ok"], true, "{status}");
        for view in VIEWS {
            self.json(view).await;
        }
    }

    async fn json_and(&self, code: i32, args: &[&str]) -> Value {
        let said = self.rig.hivectl(&[args, &["--json"]].concat()).await;
        assert_eq!(said.code, code, "hivectl {args:?}: {said:?}");
        serde_json::from_str(&said.stdout)
            .unwrap_or_else(|error| panic!("hivectl {args:?}: {error}: {}", said.stdout))
    }
}

/// Bob asks the operator, and reports the answer; he waits if he is asked to.
fn bobs_rules(rig: &Rig) -> Vec<Rule> {
    let asks = json!({"question": "May I?", "options": ["yes", "no"]});
    let waits: Vec<Step> = vec![
        touch(rig, "bob-waits"),
        wait_for(rig, "go-on"),
        answer("operator", "I waited."),
        text("Done."),
    ];
    vec![
        rule("Please ask", vec![tool("ask", asks), text("Asked.")]),
        rule("May I?", vec![answer("operator", "I may."), text("Done.")]),
        rule("Please wait", waits),
        rule("", vec![Step::Duo { duo: true }]),
    ]
}

/// One hive of these programs: mail between agents, a question, a broker that is killed in a turn,
/// and each view of the operator.
async fn works_together(older: &[&str]) {
    let Some(mut mixture) = Mixture::new(older) else { return };
    mixture.rig.start_broker().await;
    let rules = bobs_rules(&mixture.rig);
    mixture.rig.start_harness("ada", &[]);
    mixture.rig.start_harness("bob", &rules);
    let (operator, mut watch) = (mixture.rig.operator().await, mixture.rig.watch().await);

    // By the operator's program to ada, by her bridge to bob, and the answers on the same way.
    let sent = mixture.json(&["send", "ada", "ask bob: how are you?"]).await;
    let asked = sent["message_id"].as_u64().expect("an id");
    watch.kind("operator", EventKind::MessageAccepted).await;
    acked(&mixture.rig, "ada", asked).await;
    let answered = unread(&operator, "operator").await;
    assert_eq!(answered, [("bob answers: I have read \"how are you?\".".to_owned(), asked)]);
    let trace = mixture.json(&["trace", &asked.to_string()]).await;
    assert!(trace.to_string().contains("how are you?"), "{trace}");

    // A question, answered by its number.
    mixture.json(&["send", "bob", "Please ask."]).await;
    let question = watch.kind("bob", EventKind::QuestionAsked).await.question_id;
    let listed = mixture.json(&["questions"]).await;
    assert!(listed.to_string().contains("May I?"), "{listed}");
    mixture.json(&["answer", &question.to_string(), "--choice", "yes"]).await;
    watch.kind("operator", EventKind::MessageAccepted).await;

    // The broker is killed in a turn; harness and bridge go on when it is back.
    let sent = mixture.json(&["send", "bob", "Please wait."]).await;
    let waited = sent["message_id"].as_u64().expect("an id");
    mixture.rig.appeared("bob-waits").await;
    mixture.rig.crash_broker().await;
    mixture.rig.touch("go-on");
    acked(&mixture.rig, "bob", waited).await;
    let operator = mixture.rig.operator().await;
    let said: Vec<String> =
        unread(&operator, "operator").await.into_iter().map(|(body, _)| body).collect();
    for once in ["I may.", "I waited."] {
        assert_eq!(said.iter().filter(|body| *body == once).count(), 1, "{once}: {said:?}");
    }
    for turn in operator.turns("bob").await {
        assert_eq!((turn.outcome(), turn.attempt <= 1), (TurnOutcome::Ok, true), "{turn:?}");
    }
    mixture.views().await;
    mixture.rig.end().await;
}

macro_rules! mixtures {
    ($($name:ident: $($older:literal)+;)*) => {
        $(#[tokio::test]
        async fn $name() {
            works_together(&[$($older),+]).await;
        })*
    };
}

mixtures! {
    an_older_broker: "hived";
    an_older_harness: "hive";
    an_older_bridge: "hive-mcp";
    an_older_operator_program: "hivectl";
    an_older_broker_and_harness: "hived" "hive";
    an_older_broker_and_bridge: "hived" "hive-mcp";
    an_older_broker_and_operator_program: "hived" "hivectl";
    an_older_harness_and_bridge: "hive" "hive-mcp";
    an_older_harness_and_operator_program: "hive" "hivectl";
    an_older_bridge_and_operator_program: "hive-mcp" "hivectl";
    a_newer_broker: "hive" "hive-mcp" "hivectl";
    a_newer_harness: "hived" "hive-mcp" "hivectl";
    a_newer_bridge: "hived" "hive" "hivectl";
    a_newer_operator_program: "hived" "hive" "hive-mcp";
}

/// A hive of the baseline becomes one of present programs while it works: the broker first, which
/// migrates the mail, then each harness. Nothing is lost, and nothing is done twice.
#[tokio::test]
async fn programs_are_replaced_one_by_one() {
    let older = PROGRAMS.map(|(_, program)| program);
    let Some(mut mixture) = Mixture::new(&older) else { return };
    mixture.rig.start_broker().await;
    let rules = bobs_rules(&mixture.rig);
    mixture.rig.start_harness("bob", &rules);
    let operator = mixture.rig.operator().await;
    // Ada is away; her mail is of the older broker.
    let old_mail = operator.send("ada", "Hello ada.").await;
    let waited = operator.send("bob", "Please wait.").await;
    mixture.rig.appeared("bob-waits").await;

    mixture.upgrade("hived");
    mixture.rig.crash_broker().await;
    mixture.rig.touch("go-on");
    acked(&mixture.rig, "bob", waited).await;
    mixture.upgrade("hive");
    mixture.upgrade("hive-mcp");
    mixture.rig.start_harness("ada", &[]);
    acked(&mixture.rig, "ada", old_mail).await;
    mixture.rig.stop_harness("bob").await;
    mixture.rig.start_harness("bob", &rules);
    let mut watch = mixture.rig.watch_from_now().await;
    let operator = mixture.rig.operator().await;
    operator.send("bob", "Hello bob.").await;
    ended(&mixture.rig, &mut watch, "bob", TurnOutcome::Ok).await;
    mixture.upgrade("hivectl");
    mixture.views().await;
    for agent in ["ada", "bob"] {
        let lives: Vec<_> =
            operator.turns(agent).await.iter().map(|turn| (turn.outcome(), turn.attempt)).collect();
        assert!(lives.iter().all(|life| *life == (TurnOutcome::Ok, 1)), "{agent}: {lives:?}");
    }
    assert_eq!(unread(&operator, "operator").await.len(), 3);

    // There is no way back: the older broker refuses the migrated database and does not change it.
    mixture.rig.stop_broker().await;
    mixture.place("hived", &mixture.baseline.join("hived"));
    let refusal = mixture.rig.refused_broker().await;
    assert!(refusal.contains("a newer hived wrote it"), "{refusal}");
    mixture.upgrade("hived");
    mixture.rig.start_broker().await;
    mixture.rig.end().await;
}
