//! Actions: what an agent may ask to run, and that an approved one runs, ends and is notified of,
//! whatever becomes of the broker.

use std::collections::BTreeMap;

use hive_core::action::GRANT_PREFIX;
use hive_core::effect::{APPROVE, DENY, Effect, RunState};
use hive_core::event::Kind as EventKind;
use hive_core::id::QuestionId;
use hive_core::question::State;

use super::approvals::{asking, chosen};
use super::*;
use crate::engine::action::{Ended, Run};

fn apply(commit: &str) -> Effect {
    let args = BTreeMap::from([("commit".to_owned(), commit.to_owned())]);
    Effect::RunAction { action: "apply".to_owned(), args, preview: None }
}

fn named(action: &str) -> Effect {
    Effect::RunAction { action: action.to_owned(), args: BTreeMap::new(), preview: None }
}

async fn hive() -> Hive {
    let hive = Hive::new(&[]).await;
    hive.create("alice", None, asking()).await;
    hive.create("bob", None, asking()).await;
    hive
}

async fn next(hive: &Hive) -> Option<Run> {
    hive.engine().next_action().await.expect("it is read")
}

async fn approved(hive: &Hive, commit: &str) -> QuestionId {
    let id = hive.requested("alice", apply(commit)).await;
    assert_eq!(next(hive).await.map(|run| run.question), None, "nothing runs unapproved");
    hive.approve(id).await.expect("approved");
    id
}

async fn ends(hive: &Hive, question: QuestionId, is_well: bool, output: &str) {
    let (how, output) = ("exit status: 0".to_owned(), output.to_owned());
    hive.engine().end_action(question, Ended { is_well, how, output }).await.expect("stored");
}

/// Returns the bodies of the notices of ends that alice has.
async fn told_ends(hive: &Hive) -> Vec<String> {
    let notices = hive.notices("alice").await.into_iter();
    let ends = notices.filter(|one| one.message.system_kind == Some(SystemKind::ActionEnded));
    ends.map(|one| one.message.body).collect()
}

#[tokio::test]
async fn an_approved_action_runs_once_with_its_arguments_and_the_asker_is_notified() {
    let mut hive = hive().await;
    let id = hive.requested("alice", apply("01ab")).await;
    let shown = hive.approval(id).await.changes;
    let values: Vec<_> = shown.iter().map(|one| (&*one.field, &*one.after)).collect();
    assert_eq!(values, [("action", "apply"), ("command", "apply -- 01ab"), ("timeout", "60 s")]);
    let approved = hive.approve(id).await.expect("approved").approval.expect("an approval");
    assert_eq!(approved.run.map(|run| run.state), Some(RunState::Queued));
    hive.crash().await;
    let run = next(&hive).await.expect("it waits");
    let shown = hive.approval(id).await.run.map(|run| (run.state, run.runs));
    assert_eq!(shown, Some((RunState::Running, 1)));
    assert_eq!((run.question, run.argv.join(" ")), (id, "apply -- 01ab".to_owned()));
    assert_eq!((run.action.as_str(), run.agent.as_str()), ("apply", "alice"));
    ends(&hive, id, true, "built\u{1b}[2J\n").await;
    // An end that is stored again has no effect.
    ends(&hive, id, false, "").await;
    assert_eq!(next(&hive).await, None);
    let shown = hive.approval(id).await.run.expect("it ran");
    assert_eq!((shown.state, shown.detail.as_str()), (RunState::Done, "exit status: 0"));
    let body = format!(
        "The action apply that you asked for (question {id}) has ended: exit status: 0. \
         The end of its output:\n\n> built\\u{{1b}}[2J"
    );
    assert_eq!(told_ends(&hive).await, [body]);
    for kind in [EventKind::ActionBegun, EventKind::ActionEnded] {
        assert_eq!(hive.count_events(kind).await, 1);
    }
}

#[tokio::test]
async fn actions_run_one_after_the_other_in_the_order_of_their_questions() {
    let hive = hive().await;
    let [first, second] =
        [approved(&hive, "0001").await, hive.requested("alice", apply("0002")).await];
    hive.approve(second).await.expect("approved");
    assert_eq!(next(&hive).await.expect("one").question, first);
    ends(&hive, first, true, "").await;
    assert_eq!(next(&hive).await.expect("one").question, second);
    ends(&hive, second, true, "").await;
    assert_eq!((next(&hive).await, told_ends(&hive).await.len()), (None, 2), "each has its notice");
}

#[tokio::test]
async fn a_run_that_the_broker_did_not_outlive_begins_again_at_most_three_times() {
    let mut hive = hive().await;
    let id = approved(&hive, "0001").await;
    for _ in 0..3 {
        assert_eq!(next(&hive).await.expect("it runs again").question, id);
        hive.crash().await;
    }
    assert_eq!(next(&hive).await, None);
    let told = told_ends(&hive).await;
    assert!(told[0].contains("the broker ended during each of 3 runs"), "{told:?}");
    assert_eq!((told.len(), hive.count_events(EventKind::ActionBegun).await), (1, 3));
}

#[tokio::test]
async fn what_an_agent_may_not_have_run_is_refused() {
    let hive = hive().await;
    let tail = "01ab; reboot";
    for commit in ["", "01a", "01AB", "01ab\n", "-1ab", tail, "01ab 01ab", "--force"] {
        let refusal = hive.request_effect("alice", apply(commit)).await.expect_err(commit);
        assert_eq!(refusal.reason(), Reason::FieldInvalid, "{commit:?}");
        assert!(!refusal.to_string().contains('\n'), "{refusal}");
    }
    for (who, effect) in [
        ("alice", named("other")),
        ("alice", named("nothing")),
        ("alice", named("apply")),
        ("bob", apply("01ab")),
        ("bob", named("../apply")),
    ] {
        let refusal = hive.request_effect(who, effect).await.expect_err("refused");
        assert_eq!(refusal.reason(), Reason::FieldInvalid, "{refusal}");
    }
    hive.requested("bob", named("other")).await;
    let denied = hive.requested("alice", apply("01ab")).await;
    hive.decide_on(denied, chosen(DENY, "")).await.expect("denied");
    let unread = hive.requested("alice", apply("01ab")).await;
    let blind = hive.decide_on(unread, chosen(APPROVE, "0123")).await;
    assert_eq!(reason(blind), Reason::DiffChanged);
    assert_eq!(next(&hive).await, None);
}

#[tokio::test]
async fn a_grant_runs_one_action_without_asking_and_no_other() {
    let hive = hive().await;
    let grants = vec![format!("{GRANT_PREFIX}apply")];
    hive.create("carol", None, Policy { grants: grants.clone(), ..asking() }).await;
    let asked = hive.request_effect("carol", apply("01ab")).await;
    assert_eq!(reason(asked), Reason::FieldInvalid, "a grant alone makes no action hers");
    let policy = Policy { grants, ..asking() };
    hive.set_policy("alice", policy, &[hive_core::agent::PolicyPart::Grants]).await.expect("set");
    let question = hive.request_effect("alice", apply("01ab")).await.expect("it is asked");
    assert_eq!(question.state, State::Answered);
    assert_eq!(next(&hive).await.expect("it runs").question, question.id);
    let wrong = Policy { grants: vec!["action:No".to_owned()], ..asking() };
    let refused = hive.set_policy("alice", wrong, &[hive_core::agent::PolicyPart::Grants]).await;
    let refusal = refused.expect_err("no name");
    assert_eq!(refusal.reason(), Reason::FieldInvalid);
    assert!(refusal.to_string().contains("action:NAME"), "{refusal}");
}

#[tokio::test]
async fn an_asker_that_is_retired_gets_no_notice_and_its_approved_action_still_runs() {
    let hive = hive().await;
    let id = approved(&hive, "0001").await;
    let open = hive.requested("alice", apply("0002")).await;
    hive.retire("alice").await;
    assert_eq!(hive.question(open).await.state, State::Cancelled);
    assert_eq!(next(&hive).await.expect("the operator approved it").question, id);
    ends(&hive, id, true, "").await;
    assert_eq!((next(&hive).await, told_ends(&hive).await), (None, vec![]));
    assert_eq!(hive.count_events(EventKind::ActionEnded).await, 1);
}
