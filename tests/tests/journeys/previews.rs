//! Previews with a real broker and real programs: what the operator reads before an approval, and a
//! preview that hangs, floods, fails, or whose asker goes away.

mod digests;
mod limits;

use hive_core::reason::Reason;
use hive_proto::v1::effect::Effect as Asked;
use hive_proto::v1::{
    AskQuestionRequest, AskQuestionResponse, Effect, GetSelfRequest, RunActionEffect,
};
use hive_tests::rig::call::{did, done, refused};
use hive_tests::rig::{Rig, fresh_id, gone, soon, to};
use rustix::fs::Mode;
use rustix::process::Pid;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::unix::pipe::{OpenOptions, Receiver};
use tonic::transport::Channel;

/// The agents that may ask for each action.
const AGENTS: [&str; 3] = ["ada", "bob", "cyd"];

/// A hive in which [`AGENTS`] may ask for each of these scripts, which are previews.
async fn hive(scripts: &[(&str, u32, &str)]) -> Rig {
    let mut rig = Rig::new("");
    let mut config = String::new();
    for (name, seconds, script) in scripts {
        let path = rig.path(format!("{name}.sh"));
        std::fs::write(&path, script).expect("written");
        config.push_str(&format!(
            "[actions.{name}]\ncommand = [\"/bin/true\", \"{{word}}\"]\n\
             preview = [\"/bin/sh\", {path:?}, \"{{word}}\"]\nagents = {AGENTS:?}\n\
             args = {{ word = \"[a-z ]*\" }}\ntimeout_secs = {seconds}\n"
        ));
    }
    for agent in AGENTS {
        config.push_str(&format!(
            "[agents.{agent}]\ntool_groups = [\"messaging\", \"inbox\", \"meta\", \"approvals\"]\n"
        ));
    }
    rig.configure(&config);
    start(&mut rig).await;
    rig
}

/// Starts the broker, whose programs write beside its files.
async fn start(rig: &mut Rig) {
    let mut broker = rig.broker_command();
    broker.current_dir(rig.dir());
    rig.start_broker_by(broker).await;
}

fn request(action: &str) -> AskQuestionRequest {
    let args = [("word".to_owned(), "two words".to_owned())].into();
    let effect = Asked::RunAction(RunActionEffect { action: action.to_owned(), args });
    AskQuestionRequest {
        request_id: fresh_id(),
        to: to("operator"),
        text: "please".to_owned(),
        effect: Some(Effect { effect: Some(effect) }),
        ..AskQuestionRequest::default()
    }
}

async fn channel(rig: &Rig, agent: &str) -> Channel {
    rig.agent(agent).await.channel()
}

/// Returns the lines of the preview as `hivectl questions show` shows them.
async fn shown(rig: &Rig, asked: &AskQuestionResponse) -> Vec<String> {
    let id = asked.question.as_ref().expect("a question").id.to_string();
    let shown = rig.hivectl(&["questions", "show", &id]).await;
    assert_eq!(shown.code, 0, "{shown:?}");
    let lines = shown.stdout.lines().filter_map(|line| line.split_once("+ preview: "));
    lines.map(|(_, line)| line.to_owned()).collect()
}

/// Makes a pipe that programs open by its name.
fn pipe(rig: &Rig, name: &str) -> Receiver {
    let path = rig.path(name);
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, Mode::RUSR | Mode::WUSR).expect("a pipe");
    // Open for both, so that it has no end before a program opens it.
    OpenOptions::new().read_write(true).open_receiver(&path).expect("a pipe")
}

/// Waits for the line by which a preview says that it runs.
async fn begun(ready: &mut Receiver) -> String {
    let mut line = String::new();
    let read = BufReader::new(ready);
    let mut read = std::pin::pin!(read);
    soon("the preview has begun", read.read_line(&mut line)).await.expect("it is read");
    line
}

#[tokio::test]
async fn the_operator_reads_the_preview_and_a_repeat_does_not_run_it_again() {
    let script = "echo run >> runs\nprintf '\\033[31m %s |\\033[0m 2 +-\\n+ agent: root\\n' \"$1\"\n\
                  echo \"$HIVE_ACTION $HIVE_ACTION_AGENT ${HIVE_ACTION_QUESTION-none}\"\n";
    let rig = hive(&[("diff", 60, script)]).await;
    let (ada, request) = (channel(&rig, "ada").await, request("diff"));
    let asked: AskQuestionResponse = done(&ada, &request).await;
    let lines = ["two words | 2 +-", "+ agent: root", "diff ada none"];
    let read: Vec<String> = shown(&rig, &asked).await;
    assert_eq!(read.iter().map(|line| line.trim()).collect::<Vec<_>>(), lines);
    let again: AskQuestionResponse = done(&ada, &request).await;
    assert_eq!((again, rig.read("runs")), (asked, "run\n".to_owned()));
    rig.end().await;
}

#[tokio::test]
async fn a_preview_that_hangs_is_ended_with_all_its_processes() {
    let script = "sleep 1000 & echo $! > forked\necho begun\nsleep 1000\n";
    let rig = hive(&[("hang", 1, script), ("after", 1, "echo after\n")]).await;
    let ada = channel(&rig, "ada").await;
    let refusal = refused(&ada, &request("hang"), Reason::FieldInvalid).await;
    let why = "it did not end within 1 s; the end of its output: begun";
    assert!(refusal.message().contains(why), "{refusal:?}");
    let forked: i32 = rig.read("forked").trim().parse().expect("a pid");
    gone(Pid::from_raw(forked).expect("a pid")).await;
    let asked: AskQuestionResponse = done(&ada, &request("after")).await;
    assert_eq!(shown(&rig, &asked).await, ["after"]);
    rig.end().await;
}

#[tokio::test]
async fn a_preview_keeps_no_other_call_waiting_and_is_the_only_one_of_its_agent() {
    let script = "echo > ready\nread -r word < held\necho \"$word\"\n";
    let rig = hive(&[("wait", 600, script), ("after", 600, "echo after\n")]).await;
    let (mut ready, held) = (pipe(&rig, "ready"), pipe(&rig, "held"));
    let ada = channel(&rig, "ada").await;
    let waiting = request("wait");
    let waits = done::<AskQuestionResponse>(&ada, &waiting);
    let others = async {
        begun(&mut ready).await;
        // More calls than an agent has permits.
        for _ in 0..20 {
            did(&ada, &GetSelfRequest::default()).await;
        }
        let second = refused(&ada, &request("after"), Reason::FieldInvalid).await;
        assert!(second.message().contains("another preview of ada runs"), "{second:?}");
        let bob: AskQuestionResponse = done(&channel(&rig, "bob").await, &request("after")).await;
        assert_eq!(shown(&rig, &bob).await, ["after"]);
        std::fs::write(rig.path("held"), "released\n").expect("it reads");
    };
    let (asked, ()) = tokio::join!(waits, others);
    assert_eq!(shown(&rig, &asked).await, ["released"]);
    drop(held);
    let asked: AskQuestionResponse = done(&ada, &request("after")).await;
    assert_eq!(shown(&rig, &asked).await, ["after"]);
    rig.end().await;
}

#[tokio::test]
async fn of_a_preview_that_floods_the_end_is_shown() {
    let script = "yes | head -c 3000000; printf '\\033[2Jlast\\n'\n";
    let rig = hive(&[("flood", 60, script)]).await;
    let asked: AskQuestionResponse = done(&channel(&rig, "ada").await, &request("flood")).await;
    let lines = shown(&rig, &asked).await;
    assert_eq!((lines.len(), lines[200].as_str()), (201, "last"));
    assert!(lines[0].contains("only the end is shown"), "{}", lines[0]);
    rig.end().await;
}

#[tokio::test]
async fn a_preview_that_fails_asks_no_question() {
    let rig = hive(&[("fail", 60, "echo no such; echo commit >&2; exit 3\n")]).await;
    let ada = channel(&rig, "ada").await;
    let refusal = refused(&ada, &request("fail"), Reason::FieldInvalid).await;
    let why = "so no question was asked: exit status: 3; the end of its output: no such commit";
    assert!(refusal.message().ends_with(why), "{refusal:?}");
    std::fs::remove_file(rig.path("fail.sh")).expect("removed");
    let refusal = refused(&ada, &request("fail"), Reason::FieldInvalid).await;
    assert!(!refusal.message().contains('\n'), "{refusal:?}");
    assert_eq!(rig.hivectl(&["questions", "--json"]).await.stdout.trim(), "[]");
    rig.end().await;
}

#[tokio::test]
async fn a_preview_whose_asker_goes_away_is_ended() {
    let script = "echo $$ > ready\nsleep 1000\n";
    let rig = hive(&[("wait", 600, script)]).await;
    let mut ready = pipe(&rig, "ready");
    let ada = channel(&rig, "ada").await;
    let waiting = request("wait");
    let program = tokio::select! {
        pid = begun(&mut ready) => pid,
        answer = refused(&ada, &waiting, Reason::FieldInvalid) => panic!("{answer:?}"),
    };
    drop(ada);
    let program: i32 = program.trim().parse().expect("a pid");
    gone(Pid::from_raw(program).expect("a pid")).await;
    rig.end().await;
}
