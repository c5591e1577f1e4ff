//! Previews at the limit of all agents together, and previews that the end of the broker cuts off.

use hive_core::reason::Reason;
use hive_proto::status;
use hive_proto::v1::{AskQuestionRequest, AskQuestionResponse};
use hive_tests::rig::call::{call, done};
use hive_tests::rig::raw::Answer;
use hive_tests::rig::{Rig, gone, soon};
use rustix::process::{Pid, Signal};
use serde_json::json;
use tokio::task::{AbortHandle, JoinSet};
use tonic::Status;

use super::{AGENTS, begun, channel, hive, pipe, request, shown, start};
use crate::steps::{acked, rule, text, tool};

/// A question that waits for its preview: its asker, what it asked, and the answer.
type Asked = (&'static str, AskQuestionRequest, Result<Answer, Status>);

async fn ask(
    asking: &mut JoinSet<Asked>,
    rig: &Rig,
    agent: &'static str,
    action: &str,
) -> AbortHandle {
    let (channel, request) = (channel(rig, agent).await, request(action));
    asking.spawn(async move {
        let answer = call(&channel, &request).await;
        (agent, request, answer)
    })
}

/// Has an agent ask twice at once. One of the two is refused because the other is there, and so the
/// other waits for its turn now.
async fn queue(rig: &Rig, agent: &'static str, action: &str) -> JoinSet<Asked> {
    let mut both = JoinSet::new();
    for _ in 0..2 {
        ask(&mut both, rig, agent, action).await;
    }
    let refusal = next(&mut both).await.2.map(drop).expect_err("an agent has one preview");
    let why = format!("another preview of {agent} runs");
    assert!(refusal.message().contains(&why), "{refusal:?}");
    both
}

async fn next(asking: &mut JoinSet<Asked>) -> Asked {
    let joined = soon("a question is answered", asking.join_next()).await;
    joined.expect("one is asked").expect("it is not aborted")
}

/// Returns the lines of the preview of the question that is asked next.
async fn next_shown(rig: &Rig, asking: &mut JoinSet<Asked>) -> Vec<String> {
    let (agent, _, answer) = next(asking).await;
    let answer = answer.unwrap_or_else(|refusal| panic!("{agent}: {refusal:?}"));
    shown(rig, &answer.decode()).await
}

/// Returns the open questions, as `hivectl` lists them.
async fn questions(rig: &Rig) -> Vec<serde_json::Value> {
    let listed = rig.hivectl(&["questions", "--json"]).await;
    assert_eq!(listed.code, 0, "{listed:?}");
    serde_json::from_str(&listed.stdout).expect("a list")
}

#[tokio::test]
async fn a_third_preview_waits_until_one_of_two_has_ended() {
    let script = "echo \"begin $HIVE_ACTION_AGENT\" >> order\necho > \"ready-$HIVE_ACTION_AGENT\"\n\
                  read -r word < \"held-$HIVE_ACTION_AGENT\"\necho \"$word\"\n";
    let rig = hive(&[("wait", 600, script)]).await;
    let [mut ada, mut bob, mut cyd] = AGENTS.map(|agent| pipe(&rig, &format!("ready-{agent}")));
    let held = AGENTS.map(|agent| pipe(&rig, &format!("held-{agent}")));
    let release = |agent: &str| {
        std::fs::write(rig.path(format!("held-{agent}")), "released\n").expect("it reads");
    };
    let mut asking = JoinSet::new();
    ask(&mut asking, &rig, "ada", "wait").await;
    begun(&mut ada).await;
    let by_bob = ask(&mut asking, &rig, "bob", "wait").await;
    begun(&mut bob).await;
    let mut waiting = queue(&rig, "cyd", "wait").await;
    assert_eq!(questions(&rig).await, [json!(null); 0]);
    assert_eq!(rig.read("order"), "begin ada\nbegin bob\n", "the third waits");

    // The place of an asker that goes away is free.
    by_bob.abort();
    begun(&mut cyd).await;
    assert_eq!(rig.read("order"), "begin ada\nbegin bob\nbegin cyd\n");
    assert!(soon("bob is gone", asking.join_next()).await.is_some_and(|bob| bob.is_err()));
    release("cyd");
    assert_eq!(next_shown(&rig, &mut waiting).await, ["released"]);

    // And so are the place of an agent, and that of a preview that ended.
    ask(&mut asking, &rig, "bob", "wait").await;
    begun(&mut bob).await;
    release("ada");
    release("bob");
    for _ in 0..2 {
        assert_eq!(next_shown(&rig, &mut asking).await, ["released"]);
    }
    assert_eq!(questions(&rig).await.len(), 3);
    drop(held);
    rig.end().await;
}

/// The broker ends during two previews, and before a third one that waits.
async fn a_broker_ends_its_previews(by_the_operator: bool) {
    let script = "sleep 1000 & echo \"$$ $!\" > \"ready-$HIVE_ACTION_AGENT\"\nwait\n";
    let mut rig = hive(&[("wait", 600, script)]).await;
    let (mut asking, mut programs) = (JoinSet::new(), Vec::new());
    for agent in ["ada", "bob"] {
        let mut ready = pipe(&rig, &format!("ready-{agent}"));
        ask(&mut asking, &rig, agent, "wait").await;
        let pids = begun(&mut ready).await;
        let pids = pids.split_whitespace().map(|pid| pid.parse().ok().and_then(Pid::from_raw));
        programs.extend(pids.map(|pid| pid.expect("a pid")));
    }
    assert_eq!(programs.len(), 4);
    let mut waiting = queue(&rig, "cyd", "wait").await;
    let before = rig.on_disk();

    if by_the_operator {
        let drained = rig.hivectl(&["drain"]).await;
        assert_eq!(drained.code, 0, "{drained:?}");
    } else {
        rig.broker().signal(Signal::TERM);
    }
    let mut refused = vec![next(&mut asking).await, next(&mut asking).await];
    refused.push(next(&mut waiting).await);
    let status = rig.broker_ends().await;
    assert!(status.success(), "{status}");
    for program in programs {
        gone(program).await;
    }
    rig.unchanged(&before, "a question that was not asked");

    // Each asks with the same request id, as harness and bridge do.
    std::fs::write(rig.path("wait.sh"), "echo after\n").expect("written");
    start(&mut rig).await;
    for (agent, request, answer) in refused {
        let refusal = answer.map(drop).expect_err("the broker ended");
        assert_eq!(status::reason(&refusal), Some(Reason::Draining), "{agent}: {refusal:?}");
        let asked: AskQuestionResponse = done(&channel(&rig, agent).await, &request).await;
        assert!(!asked.already_asked, "{asked:?}");
        assert_eq!(shown(&rig, &asked).await, ["after"]);
    }
    assert_eq!(questions(&rig).await.len(), 3);
    rig.end().await;
}

cases! {
    previews_of_a_broker_that_the_operator_drains => a_broker_ends_its_previews(true),
    previews_of_a_broker_that_is_stopped => a_broker_ends_its_previews(false),
}

#[tokio::test]
async fn a_claude_whose_preview_the_broker_ended_asks_once() {
    let script = "echo run >> runs\necho > ready\nread -r word < held\necho \"$word\"\n";
    let mut rig = hive(&[("wait", 600, script)]).await;
    let (mut ready, held) = (pipe(&rig, "ready"), pipe(&rig, "held"));
    let ask = tool("request_wait", json!({"word": "two words", "why": "please"}));
    rig.start_harness("ada", &[rule("", vec![ask, text("Done.")])]);
    let sent = rig.operator().await.send("ada", "Ask for it.").await;
    begun(&mut ready).await;
    let drained = rig.hivectl(&["drain"]).await;
    assert_eq!(drained.code, 0, "{drained:?}");
    assert!(rig.broker_ends().await.success());
    start(&mut rig).await;
    begun(&mut ready).await;
    std::fs::write(rig.path("held"), "released\n").expect("it reads");
    acked(&rig, "ada", sent).await;
    let said = &rig.tool_results("ada")[0];
    assert!(said.starts_with("Asked the operator to approve it: "), "{said}");
    assert!(said.contains("\npreview: released"), "{said}");
    assert_eq!((questions(&rig).await.len(), rig.read("runs")), (1, "run\nrun\n".to_owned()));
    drop(held);
    rig.end().await;
}
