//! Previews of actions: which callers have one run, and that its lines are part of what is
//! approved.

use std::collections::BTreeMap;

use hive_core::action::GRANT_PREFIX;
use hive_core::agent::PolicyPart;
use hive_core::effect::{APPROVE, Effect};
use hive_core::question::State;

use super::approvals::{asking, chosen};
use super::questions::plain;
use super::*;
use crate::engine::mail::question::Preview;

fn ask(commit: &str, preview: Option<&[&str]>) -> Ask {
    let args = BTreeMap::from([("commit".to_owned(), commit.to_owned())]);
    let preview = preview.map(|lines| lines.iter().map(|&line| line.to_owned()).collect());
    let effect = Effect::RunAction { action: "shown".to_owned(), args, preview };
    Ask { effect: Some(effect), ..plain("operator", "I need it") }
}

impl Hive {
    async fn preview_of(&self, from: &str, ask: &Ask) -> Result<Option<Preview>, Refusal> {
        let request = self.request("AskQuestion");
        self.engine().preview_of(&actor(from), &request, ask).await
    }
}

async fn hive() -> Hive {
    let limits = Limits { questions_open_max: 1, sends_per_minute_max: 2, ..Limits::default() };
    let hive = Hive::with_limits(&[], limits).await;
    hive.create("alice", None, asking()).await;
    hive.create("carol", None, asking()).await;
    hive
}

#[tokio::test]
async fn who_may_ask_has_the_preview_run_with_its_arguments_and_nothing_is_taken() {
    let hive = hive().await;
    for _ in 0..3 {
        let preview = hive.preview_of("alice", &ask("01ab", None)).await.expect("she may");
        let preview = preview.expect("it has one");
        assert_eq!(preview.argv, ["git", "diff", "01ab"]);
        assert_eq!((&*preview.action, &*preview.agent), ("shown", "alice"));
        assert_eq!(preview.timeout, Duration::from_secs(60));
    }
    let (question, _) =
        hive.ask(actor("alice"), ask("01ab", Some(&[]))).await.expect("the rate was not taken");
    assert_eq!(question.state, State::Open);
}

#[tokio::test]
async fn who_may_not_ask_has_nothing_run() {
    let hive = hive().await;
    for commit in ["", "01AB", "-1ab", "01ab; reboot"] {
        let refused = hive.preview_of("alice", &ask(commit, None)).await;
        assert_eq!(reason(refused), Reason::FieldInvalid, "{commit}");
    }
    assert_eq!(reason(hive.preview_of("carol", &ask("01ab", None)).await), Reason::FieldInvalid);
    let elsewhere = Ask { to: recipient("carol"), ..ask("01ab", None) };
    assert_eq!(reason(hive.preview_of("alice", &elsewhere).await), Reason::FieldInvalid);
    let silent = Ask { ttl: Some(Duration::ZERO), ..ask("01ab", None) };
    assert_eq!(reason(hive.preview_of("alice", &silent).await), Reason::FieldInvalid);
    hive.ask(actor("alice"), ask("01ab", Some(&["one"]))).await.expect("asked");
    let one_more = hive.preview_of("alice", &ask("01ac", None)).await;
    assert_eq!(reason(one_more), Reason::QuestionLimit);
    hive.set_policy("alice", Policy::default(), &[PolicyPart::ToolGroups]).await.expect("set");
    let refused = hive.preview_of("alice", &ask("01ab", None)).await;
    assert_eq!(reason(refused), Reason::CapabilityMissing);
    let operator = hive.preview_of("operator", &ask("01ab", None)).await;
    assert_eq!(reason(operator), Reason::FieldInvalid);
}

#[tokio::test]
async fn the_lines_are_shown_and_stay_with_what_is_approved() {
    let hive = hive().await;
    let unseen = hive.ask(actor("alice"), ask("01ab", None)).await;
    assert_eq!(reason(unseen), Reason::FieldInvalid, "no question without its preview");
    let lines = [" a | 2 +-", "", " b | 1 +"];
    let (question, _) = hive.ask(actor("alice"), ask("01ab", Some(&lines))).await.expect("asked");
    let approval = hive.approval(question.id).await;
    let shown: Vec<_> = approval.changes.iter().map(|one| (&*one.field, &*one.after)).collect();
    let before = [("action", "shown"), ("command", "apply -- 01ab")];
    let previewed = lines.map(|line| ("preview", line));
    assert_eq!(shown, [&before[..], &previewed, &[("timeout", "60 s")]].concat());
    hive.decide_on(question.id, chosen(APPROVE, &approval.diff_digest)).await.expect("approved");
    assert_eq!(hive.approval(question.id).await.changes, approval.changes);
    let run = hive.engine().next_action().await.expect("read").expect("it runs");
    assert_eq!(run.argv, ["apply", "--", "01ab"]);
}

#[tokio::test]
async fn a_preview_without_output_is_said_to_have_none() {
    let hive = hive().await;
    let (question, _) = hive.ask(actor("alice"), ask("01ab", Some(&[]))).await.expect("asked");
    let changes = hive.approval(question.id).await.changes;
    assert_eq!((&*changes[2].field, &*changes[2].after), ("preview", "(no output)"));
}

#[tokio::test]
async fn a_repeat_and_a_rerun_have_no_second_preview() {
    let (hive, harness, run) = in_mid_turn().await;
    hive.set_policy("bob", asking(), &[PolicyPart::ToolGroups]).await.expect("set");
    let engine = hive.engine();
    let key = hive.request("AskQuestion");
    let wanted = engine.preview_of(&run.actor(), &key, &ask("01ab", None)).await.expect("he may");
    assert!(wanted.is_some());
    let asked = engine.ask(run.actor(), key.clone(), ask("01ab", Some(&["then"]))).await;
    let (first, _) = asked.expect("asked");
    let again = engine.preview_of(&run.actor(), &key, &ask("01ab", None)).await;
    assert_eq!(again.expect("a repeat"), None);
    let (same, _) = engine.ask(run.actor(), key, ask("01ab", None)).await.expect("a repeat");
    assert_eq!(same, first, "a repeat without the lines is the first question");
    hive.end(&run, Outcome::Failed).await;
    hive.pass_and_sweep(60).await;
    let rerun = hive.begin(&harness).await;
    let key = hive.request("AskQuestion");
    let wanted = engine.preview_of(&rerun.actor(), &key, &ask("01ab", None)).await;
    assert_eq!(wanted.expect("the question is there"), None);
    let (same, already) = engine.ask(rerun.actor(), key, ask("01ab", None)).await.expect("asked");
    assert_eq!((same.id, already), (first.id, true));
}

#[tokio::test]
async fn an_equal_question_with_other_lines_is_the_same_question() {
    let (hive, harness, run) = in_mid_turn().await;
    hive.set_policy("bob", asking(), &[PolicyPart::ToolGroups]).await.expect("set");
    let (first, _) = hive.ask(run.actor(), ask("01ab", Some(&["then"]))).await.expect("asked");
    hive.end(&run, Outcome::Failed).await;
    hive.pass_and_sweep(60).await;
    let rerun = hive.begin(&harness).await;
    let (other, already) =
        hive.ask(rerun.actor(), ask("01ac", Some(&["then"]))).await.expect("asked");
    assert!(!already && other.id != first.id, "other arguments are another question");
    let (same, already) =
        hive.ask(rerun.actor(), ask("01ab", Some(&["now"]))).await.expect("asked");
    assert_eq!((same.id, already), (first.id, true));
}

#[tokio::test]
async fn a_granted_action_has_no_preview_run() {
    let hive = hive().await;
    let policy = Policy { grants: vec![format!("{GRANT_PREFIX}shown")], ..asking() };
    hive.set_policy("alice", policy, &[PolicyPart::Grants]).await.expect("set");
    assert_eq!(hive.preview_of("alice", &ask("01ab", None)).await.expect("she may"), None);
    let (question, _) = hive.ask(actor("alice"), ask("01ab", None)).await.expect("asked");
    assert_eq!(question.state, State::Answered);
    assert!(question.approval.expect("one").changes.iter().all(|one| one.field != "preview"));
}
