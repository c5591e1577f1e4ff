//! No secret and, unless it is wanted, nothing that anyone wrote is in a bundle.
//!
//! Each value of the hive has a marker of its own. Invariant: the test fails if a marker that
//! `--bodies` adds was never planted.

use hive_proto::v1::admin_service_client::AdminServiceClient;
use hive_proto::v1::create_reminder_request::Due;
use hive_proto::v1::inbox_service_client::InboxServiceClient;
use hive_proto::v1::question_service_client::QuestionServiceClient;
use hive_proto::v1::reminder_service_client::ReminderServiceClient;
use hive_proto::v1::status_service_client::StatusServiceClient;
use hive_proto::v1::wake_service_client::WakeServiceClient;
use hive_proto::v1::{AskQuestionRequest, CreateAgentRequest, EventKind, SetStatusTextRequest};
use hive_tests::rig::{QUICK_LIMITS, Rig, fresh_id, request};
use hive_tests::scripted::script::{Rule, Step};
use serde_json::json;

use crate::unpack::{Unpacked, bundle};

/// Never in a bundle.
const SECRETS: [&str; 27] = [
    "s3-claude-env",
    "s3-claude-file",
    "s3-agent-env",
    "s3-agent-file",
    "s3-server-env",
    "s3-server-args",
    "s3-server-command",
    "s3-webhook",
    "s3-collector",
    "s3-header",
    "s3-header-file",
    "s3-credential",
    "s3-credential-name",
    "s3-role",
    "s3-created-role",
    "s3-prompt",
    "s3-prompt-path",
    "s3-readable-path",
    "s3-plugin",
    "s3-market",
    "s3-domain",
    "s3-unknown-file",
    "s3-log-line",
    "s3-environment",
    "s3-hive-variable",
    "s3-tool-input",
    "s3-live-output",
];
/// Only with `--bodies`.
const BODIES: [&str; 12] = [
    "b0-message",
    "b0-mail-of-an-agent",
    "b0-question",
    "b0-option",
    "b0-answer",
    "b0-reminder",
    "b0-status",
    "b0-published",
    "b0-label",
    "b0-wake",
    "b0-tail",
    "b0-poison",
];

const CONFIG: &str = r#"
[hive]
name = "test"
domain = "s3-domain.example.org"
[broker.metrics]
socket = "metrics.sock"
[broker.traces]
otlp = "http://127.0.0.1:1/v1/traces?key=s3-collector"
headers = { x-key = "s3-header", authorization = { file = "header" } }
[operator]
notify.webhook = "http://127.0.0.1:1/s3-webhook"
[claude]
env = { PLAIN = "s3-claude-env", KEPT = { file = "key" }, OF_SYSTEMD = { credential = "s3-credential-name" } }
system_prompt = "s3-prompt-path.md"
[agents.ada]
role = "s3-role"
model = "opus"
readable = ["/srv/s3-readable-path"]
plugins = ["s3-plugin@market"]
marketplaces = ["https://user:s3-market@example.org/x.git"]
env = { PLAIN = "s3-agent-env", KEPT = { file = "agent-key" } }
[agents.ada.extra_mcp_servers.notes]
command = "s3-server-command"
args = ["--token", "s3-server-args"]
env = { NOTES_KEY = "s3-server-env" }
[agents.bob]
parent = "ada"
max_retries = 7
"#;

const HIVECTL_ENV: [(&str, &str); 3] = [
    ("ANTHROPIC_API_KEY", "s3-environment"),
    ("HIVE_CLAUDE_ENV", "{\"KEY\":\"s3-hive-variable\"}"),
    ("CREDENTIALS_DIRECTORY", "credentials"),
];

/// A hive with a marker in every value, and the tokens that its clients got and made.
async fn planted() -> (Rig, Vec<String>) {
    let mut rig = Rig::new(&format!("{CONFIG}{QUICK_LIMITS}"));
    for (name, text) in [
        ("key", "s3-claude-file"),
        ("header", "s3-header-file"),
        ("agent-key", "s3-agent-file"),
        ("s3-prompt-path.md", "s3-prompt"),
    ] {
        std::fs::write(rig.path(name), text).expect("a file");
    }
    std::fs::create_dir(rig.path("credentials")).expect("a directory");
    std::fs::write(rig.path("credentials/s3-credential-name"), "s3-credential").expect("a file");
    rig.start_broker().await;
    std::fs::write(rig.path("state/s3-unknown-file"), "").expect("a file");
    let tokens = say_everything(&rig).await;
    run_a_poisoned_turn(&mut rig).await;
    std::fs::create_dir(rig.path("log")).expect("a directory");
    std::fs::write(rig.path("log/hived.log"), "s3-log-line\n").expect("a file");
    (rig, tokens)
}

/// Has agents and the operator say everything there is to say; returns tokens and request ids.
async fn say_everything(rig: &Rig) -> Vec<String> {
    let (operator, ada) = (rig.operator().await, rig.agent("ada").await);
    operator.send("ada", "b0-message").await;
    ada.send("operator", "b0-mail-of-an-agent").await;
    let ask = AskQuestionRequest {
        options: request::texts(&["b0-option", "no"]),
        ..request::ask("operator", "b0-question?")
    };
    let mut tokens = vec![ask.request_id.clone()];
    let mut questions = QuestionServiceClient::new(ada.channel());
    let asked = questions.ask_question(ask).await.expect("it is asked").into_inner();
    let id = asked.question.expect("a question").id;
    let mut questions = QuestionServiceClient::new(operator.channel());
    questions.answer_question(request::answer(id, "b0-answer")).await.expect("it is answered");
    let hour = prost_types::Duration { seconds: 3600, nanos: 0 };
    let reminder = request::remind("b0-reminder", Due::Delay(hour));
    tokens.push(reminder.request_id.clone());
    let mut reminders = ReminderServiceClient::new(ada.channel());
    reminders.create_reminder(reminder).await.expect("it is set");
    let status = SetStatusTextRequest { request_id: fresh_id(), text: "b0-status".to_owned() };
    tokens.push(status.request_id.clone());
    StatusServiceClient::new(ada.channel()).set_status_text(status).await.expect("it is set");
    ada.publish("b0-label", &[("key", "b0-published")]).await;
    let mut inbox = InboxServiceClient::new(ada.channel());
    let mut wakes = WakeServiceClient::new(ada.channel());
    wakes.wake(request::wake("b0-label", "b0-wake")).await.expect("it is woken");
    let received = inbox.receive_messages(request::receive()).await.expect("mail").into_inner();
    let leases = received.deliveries.iter().map(|leased| leased.lease_token.clone());
    tokens.extend(leases.inspect(|token| assert!(!token.is_empty(), "a lease has a token")));
    let created =
        CreateAgentRequest { role: "s3-created-role".to_owned(), ..request::create_agent("eve") };
    let mut admin = AdminServiceClient::new(operator.channel());
    admin.create_agent(created).await.expect("she is created");
    tokens.push(operator.get_agent("ada").await.etag);
    tokens
}

/// Has bob fail at a message until it is a dead letter.
async fn run_a_poisoned_turn(rig: &mut Rig) {
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    operator.send("bob", "b0-poison").await;
    let search = json!({ "query": "s3-tool-input" });
    let steps = vec![
        Step::Text { text: "s3-live-output".to_owned() },
        Step::Tool { tool: "search".to_owned(), input: search },
        Step::Stderr { stderr: "b0-tail".to_owned() },
        Step::Exit { exit: 3 },
    ];
    rig.start_harness("bob", &[Rule { when: String::new(), steps }]);
    watch.kind("bob", EventKind::DeliveryDead).await;
    rig.stop_harness("bob").await;
    let turns = operator.turns("bob").await;
    let lines = operator.lines(turns[0].id).await.concat();
    for marker in ["s3-tool-input", "s3-live-output"] {
        assert!(lines.contains(marker), "the live output has {marker}: {lines}");
    }
}

#[tokio::test]
async fn no_secret_is_in_a_bundle_and_what_was_said_only_if_it_is_wanted() {
    let (rig, tokens) = planted().await;
    assert!(tokens.len() > 4 && tokens.iter().all(|token| token.len() > 7), "{tokens:?}");
    let args = ["--config", "hive.toml", "--output"];
    let said = bundle(&rig, &HIVECTL_ENV, &[&args[..], &["plain.tar.gz"]].concat()).await;
    assert_eq!(said.code, 0, "{said:?}");
    let plain = Unpacked::read(&rig.path("plain.tar.gz"));
    for marker in SECRETS.into_iter().chain(BODIES) {
        assert_eq!(plain.having(marker), [] as [&str; 0], "{marker}");
        assert!(!said.stdout.contains(marker) && !said.stderr.contains(marker), "{marker}");
    }
    let with_bodies = [&args[..], &["bodies.tar.gz", "--bodies"]].concat();
    let said = bundle(&rig, &HIVECTL_ENV, &with_bodies).await;
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.stderr.contains("with --bodies the bundle has mail"), "{said:?}");
    let bodies = Unpacked::read(&rig.path("bodies.tar.gz"));
    for marker in BODIES {
        let files = bodies.having(marker);
        assert!(!files.is_empty(), "{marker} is in no file");
        assert!(files.iter().all(|name| name.starts_with("bodies/")), "{marker}: {files:?}");
    }
    // The end of a turn's output is what the agent said; it may quote the input of a tool.
    let of_output = ["s3-tool-input", "s3-live-output"];
    for marker in SECRETS.into_iter().filter(|marker| !of_output.contains(marker)) {
        assert_eq!(bodies.having(marker), [] as [&str; 0], "{marker}");
    }
    for unpacked in [&plain, &bodies] {
        for token in &tokens {
            assert_eq!(unpacked.having(token), [] as [&str; 0], "{token}");
        }
        let keys = &unpacked.json("config.json")["keys"];
        assert_eq!(keys["agents.bob.max_retries"], 7, "{keys}");
        assert_eq!(keys["agents.ada.model"], "opus", "{keys}");
        assert_eq!(keys["claude.env.KEPT"], json!({ "withheld": "file" }), "{keys}");
        assert!(unpacked.text("metrics.txt").contains("hive_build_info"));
    }
    rig.end().await;
}

/// A value under a wrong key, and the sentence of the parser about it.
#[tokio::test]
async fn an_invalid_configuration_is_not_quoted() {
    let rig = Rig::new(
        "[agents.ada]\nmax_retries = \"s3-one\"\ns3-two = 1\n[hive]\nisolation = \"s3-three\"\n",
    );
    for (name, text) in [("hive.toml", None), ("broken.toml", Some("key = = \"s3-four\"\n"))] {
        if let Some(text) = text {
            std::fs::write(rig.path(name), text).expect("a file");
        }
        let output = format!("{name}.tar.gz");
        let said = bundle(&rig, &[], &["--config", name, "--output", &output]).await;
        assert_eq!(said.code, 0, "{said:?}");
        let unpacked = Unpacked::read(&rig.path(&output));
        assert_eq!(unpacked.having("s3-"), [] as [&str; 0], "{name}");
        let invalid = unpacked.text("doctor.json").contains("config");
        assert!(invalid, "the doctor says that it is not valid: {name}");
    }
    rig.end().await;
}
