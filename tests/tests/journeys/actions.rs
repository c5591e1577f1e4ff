//! Actions with a real broker and real programs: one that works, one that hangs and forks, one that
//! floods, and one that kills the broker.

use hive_proto::v1::effect::Effect as Asked;
use hive_proto::v1::question_service_client::QuestionServiceClient;
use hive_proto::v1::{
    AskQuestionRequest, Effect, Event, EventKind, Message, RunActionEffect, SystemKind,
};
use hive_tests::rig::{Client, Rig, Watch, fresh_id, gone, to};
use rustix::process::Pid;

/// A hive in which ada may ask for each of these scripts, with an argument.
fn hive(scripts: &[(&str, &str)]) -> Rig {
    let rig = Rig::new("");
    let mut config = String::new();
    for (name, script) in scripts {
        let path = rig.path(format!("{name}.sh"));
        std::fs::write(&path, script).expect("written");
        config.push_str(&format!(
            "[actions.{name}]\ncommand = [\"/bin/sh\", {path:?}, \"{{word}}\"]\nagents = [\"ada\"]\n\
             args = {{ word = \"[a-z ]*\" }}\ntimeout_secs = 1\n"
        ));
    }
    config.push_str("[agents.ada]\ntool_groups = [\"messaging\", \"inbox\", \"approvals\"]\n");
    rig.configure(&config);
    rig
}

/// Asks for an action as ada, and approves it as the operator does.
async fn approved(rig: &Rig, action: &str) -> u64 {
    let args = [("word".to_owned(), "two words".to_owned())].into();
    let effect = Asked::RunAction(RunActionEffect { action: action.to_owned(), args });
    let request = AskQuestionRequest {
        request_id: fresh_id(),
        to: to("operator"),
        text: "please".to_owned(),
        effect: Some(Effect { effect: Some(effect) }),
        ..AskQuestionRequest::default()
    };
    let channel = rig.agent("ada").await.channel();
    let asked = QuestionServiceClient::new(channel).ask_question(request).await.expect("asked");
    let question = asked.into_inner().question.expect("a question");
    let digest = question.approval.expect("an approval").diff_digest;
    let id = question.id.to_string();
    let said = rig.hivectl(&["answer", &id, "--choice", "approve", "--diff", &digest]).await;
    assert_eq!(said.code, 0, "{said:?}");
    question.id
}

/// Waits for the end of an action; returns its event, and the notice of it.
async fn ended(operator: &Client, watch: &mut Watch, question: u64) -> (Event, Message) {
    let is_end =
        |event: &Event| event.kind() == EventKind::ActionEnded && event.question_id == question;
    let event = watch.until("the action ends", is_end).await;
    let id = format!("(question {question})");
    let notices = operator.notices("ada", SystemKind::ActionEnded).await;
    let notice = notices.into_iter().find(|notice| notice.body.contains(&id));
    (event, notice.expect("ada has a notice"))
}

#[tokio::test]
async fn an_approved_action_runs_with_its_argument_and_few_variables() {
    let script = "#!/bin/sh\nprintf '%s|' \"$@\"; env | cut -d= -f1 | sort | tr '\\n' ' '\n";
    let mut rig = hive(&[("say", script)]);
    let mut broker = rig.broker_command();
    broker.env("SECRET", "x");
    rig.start_broker_by(broker).await;
    let (operator, mut watch) = (rig.operator().await, rig.watch_from_now().await);
    let question = approved(&rig, "say").await;
    let (event, notice) = ended(&operator, &mut watch, question).await;
    assert_eq!(event.detail, "say: exit status: 0");
    let output = notice.body.rsplit("> ").next().expect("its output");
    assert!(output.starts_with("two words|"), "{output}");
    let variables: Vec<&str> = output["two words|".len()..].split_whitespace().collect();
    let allowed = ["HIVE_ACTION", "HIVE_ACTION_AGENT", "HIVE_ACTION_QUESTION"];
    assert!(allowed.iter().all(|name| variables.contains(name)), "{variables:?}");
    // The shell sets these itself.
    let own = ["HOME", "LANG", "PATH", "PWD", "OLDPWD", "SHLVL", "_", "XDG_RUNTIME_DIR"];
    let strange = variables.iter().filter(|name| !allowed.contains(name) && !own.contains(name));
    assert_eq!(strange.collect::<Vec<_>>(), [&""; 0]);
    rig.end().await;
}

#[tokio::test]
async fn an_action_that_hangs_and_forks_is_ended_with_all_its_processes() {
    let script = "sleep 1000 & echo $! > forked\necho begun\nsleep 1000\n";
    let mut rig = hive(&[("hang", script), ("after", "echo after\n")]);
    rig.start_broker_by(in_its_directory(&rig)).await;
    let (operator, mut watch) = (rig.operator().await, rig.watch_from_now().await);
    let question = approved(&rig, "hang").await;
    let next = approved(&rig, "after").await;
    let (event, notice) = ended(&operator, &mut watch, question).await;
    assert_eq!(event.detail, "hang: it did not end within 1 s and was killed");
    assert!(notice.body.ends_with("\n> begun"), "{}", notice.body);
    let forked: i32 = rig.read("forked").trim().parse().expect("a pid");
    gone(Pid::from_raw(forked).expect("a pid")).await;
    let (event, _) = ended(&operator, &mut watch, next).await;
    assert_eq!(event.detail, "after: exit status: 0");
    rig.end().await;
}

#[tokio::test]
async fn of_an_action_that_floods_the_end_is_kept() {
    let script = "yes | head -c 3000000; printf '\\033[2Jlast\\n'; exit 3\n";
    let mut rig = hive(&[("flood", script)]);
    rig.start_broker().await;
    let (operator, mut watch) = (rig.operator().await, rig.watch_from_now().await);
    let question = approved(&rig, "flood").await;
    let (event, notice) = ended(&operator, &mut watch, question).await;
    assert_eq!(event.detail, "flood: exit status: 3");
    assert!(
        notice.body.ends_with("\n> \\u{1b}[2Jlast"),
        "{}",
        &notice.body[notice.body.len() - 50..]
    );
    assert!(notice.body.len() < 40_000, "{}", notice.body.len());
    rig.end().await;
}

#[tokio::test]
async fn an_action_that_kills_the_broker_runs_three_times_and_no_more() {
    let mut rig = hive(&[("kill", "echo run >> runs; kill -9 $PPID\n")]);
    rig.start_broker_by(in_its_directory(&rig)).await;
    let question = approved(&rig, "kill").await;
    for _ in 0..2 {
        rig.broker_ended().await;
        rig.start_broker_by(in_its_directory(&rig)).await;
    }
    rig.broker_ended().await;
    rig.start_broker_by(in_its_directory(&rig)).await;
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    let (event, _) = ended(&operator, &mut watch, question).await;
    assert_eq!(event.detail, "kill: the broker ended during each of 3 runs");
    assert_eq!(rig.read("runs"), "run\nrun\nrun\n");
    let shown = rig.hivectl(&["questions", "show", &question.to_string()]).await.stdout;
    let run = "  run: failed (run 3), the broker ended during each of 3 runs";
    assert!(shown.contains(run), "{shown}");
    rig.end().await;
}

/// Returns a broker whose programs write beside its files.
fn in_its_directory(rig: &Rig) -> tokio::process::Command {
    let mut broker = rig.broker_command();
    broker.current_dir(rig.dir());
    broker
}
