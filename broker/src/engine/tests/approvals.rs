//! Approvals: an effect is applied with the answer or not at all, changes what was shown, and never
//! reaches beyond the asker and its children.

use std::collections::BTreeMap;

use hive_core::agent::{APPROVALS, CREATE_AGENT, PolicyPart};
use hive_core::effect::{APPROVE, Approval, DENY, Effect};
use hive_core::id::QuestionId;
use hive_core::loose_end::Kind;
use hive_core::message::SystemKind::QuestionAnswered;
use hive_core::question::{Answer, Question, State};

use super::questions::plain;
use super::*;
use crate::engine::declared::Declared;
use crate::engine::mail::question::Reply;

pub(super) fn asking() -> Policy {
    let mut policy = Policy::default();
    policy.tool_groups.push(APPROVALS.to_owned());
    policy
}

fn granted(children_max: u32) -> Policy {
    let grants = vec![CREATE_AGENT.to_owned()];
    Policy { grants, children_max: Some(children_max), ..asking() }
}

pub(super) fn create(agent: &str, policy: Policy) -> Effect {
    Effect::CreateAgent { name: name(agent), role: String::new(), model: String::new(), policy }
}

pub(super) fn groups_of(agent: &str, groups: &[&str]) -> Effect {
    let tool_groups = groups.iter().map(|group| (*group).to_owned()).collect();
    let policy = Policy { tool_groups, ..Policy::default() };
    Effect::SetPolicy { name: name(agent), policy, parts: vec![PolicyPart::ToolGroups] }
}

fn retire(agent: &str) -> Effect {
    Effect::RetireAgent { name: name(agent) }
}

pub(super) fn chosen(choice: &str, digest: &str) -> Reply {
    let answer = Answer { choices: vec![choice.to_owned()], text: String::new() };
    Reply { diff_digest: digest.to_owned(), ..answer.into() }
}

impl Hive {
    pub(super) async fn request_effect(
        &self,
        from: &str,
        effect: Effect,
    ) -> Result<Question, Refusal> {
        let ask = Ask { effect: Some(effect), ..plain("operator", "I need it") };
        self.ask(actor(from), ask).await.map(|(question, _)| question)
    }

    pub(super) async fn requested(&self, from: &str, effect: Effect) -> QuestionId {
        let question = self.request_effect(from, effect).await.expect("it is asked");
        assert_eq!(question.state, State::Open, "nobody approved it yet");
        question.id
    }

    pub(super) async fn approval(&self, id: QuestionId) -> Approval {
        *self.question(id).await.approval.expect("it asks for an approval")
    }

    pub(super) async fn decide_on(
        &self,
        id: QuestionId,
        reply: Reply,
    ) -> Result<Question, Refusal> {
        self.engine().answer(actor("operator"), self.request("AnswerQuestion"), id, reply).await
    }

    pub(super) async fn approve(&self, id: QuestionId) -> Result<Question, Refusal> {
        let digest = self.approval(id).await.diff_digest;
        self.decide_on(id, chosen(APPROVE, &digest)).await
    }

    async fn is_active(&self, agent: &str) -> bool {
        self.engine().is_active(name(agent)).await.expect("read")
    }
}

async fn family() -> Hive {
    let hive = Hive::new(&["stranger"]).await;
    hive.create("alice", None, asking()).await;
    hive.create("bob", Some("alice"), Policy::default()).await;
    hive
}

#[tokio::test]
async fn an_approved_child_is_there_with_the_answer_and_its_asker_is_notified() {
    let mut hive = family().await;
    let id = hive.requested("alice", create("kim", Policy::default())).await;
    assert!(!hive.is_active("kim").await, "asking changes nothing");
    let body = &hive.inbox("operator").await[0].message.body.clone();
    let diff = body.find("+ agent: kim\n").expect("the diff");
    assert!(diff < body.find("> I need it").expect("the words, quoted"), "{body}");
    let question = hive.approve(id).await.expect("approved");
    hive.crash().await;
    assert_eq!(question.state, State::Answered);
    let kim = hive.agent("kim").await;
    assert_eq!(kim.parent, Some(name("alice")));
    let told = hive.told("alice", id).await;
    assert_eq!(told.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(), [QuestionAnswered]);
    let kept = hive.approval(id).await;
    assert!(kept.changes.iter().any(|change| change.field == "agent" && change.after == "kim"));
    assert!(kept.diff_digest.is_empty() && kept.problem.is_empty());
    assert_eq!(reason(hive.decide_on(id, chosen(DENY, "")).await), Reason::QuestionClosed);
}

#[tokio::test]
async fn a_denied_or_withdrawn_effect_changes_nothing() {
    let hive = family().await;
    let denied = hive.requested("alice", create("kim", Policy::default())).await;
    hive.decide_on(denied, chosen(DENY, "")).await.expect("denied");
    let withdrawn = hive.requested("alice", retire("bob")).await;
    let request = hive.request("CancelLooseEnd");
    let wrong = hive.engine().cancel_loose_end(
        actor("alice"),
        hive.request("CancelLooseEnd"),
        Kind::QuestionAsked,
        withdrawn.get(),
    );
    assert!(wrong.await.is_err(), "it is of another kind");
    let cancel =
        hive.engine().cancel_loose_end(actor("alice"), request, Kind::Approval, withdrawn.get());
    cancel.await.expect("withdrawn");
    assert!(!hive.is_active("kim").await && hive.is_active("bob").await);
    assert_eq!(
        reason(hive.decide_on(withdrawn, chosen(APPROVE, "x")).await),
        Reason::QuestionClosed
    );
}

#[tokio::test]
async fn an_open_approval_is_a_loose_end_of_its_own_kind() {
    let hive = family().await;
    let id = hive.requested("alice", retire("bob")).await;
    let listed = hive.engine().list_loose_ends(caller("alice"), String::new(), 0, 50).await;
    let ends: Vec<(Kind, u64)> =
        listed.expect("listed").0.into_iter().map(|end| (end.kind, end.id)).collect();
    assert_eq!(ends, [(Kind::Approval, id.get())]);
}

#[tokio::test]
async fn an_answer_chooses_and_names_what_was_shown() {
    let hive = family().await;
    let id = hive.requested("alice", groups_of("bob", &["meta"])).await;
    let only_words = Answer { choices: Vec::new(), text: "approve".to_owned() };
    assert_eq!(reason(hive.decide_on(id, only_words.into()).await), Reason::FieldInvalid);
    assert_eq!(reason(hive.decide_on(id, chosen(APPROVE, "")).await), Reason::FieldInvalid);
    assert_eq!(reason(hive.decide_on(id, chosen(APPROVE, "0123")).await), Reason::DiffChanged);
    for agent in ["alice", "bob"] {
        let digest = hive.approval(id).await.diff_digest;
        let given = hive.engine().answer(
            actor(agent),
            hive.request("AnswerQuestion"),
            id,
            chosen(APPROVE, &digest),
        );
        let expected =
            if agent == "alice" { Reason::NotTheTarget } else { Reason::QuestionNotFound };
        assert_eq!(reason(given.await), expected, "{agent} approves nothing");
    }
    assert_eq!(hive.question(id).await.state, State::Open);
}

#[tokio::test]
async fn a_change_of_the_operator_is_not_overwritten_by_an_older_request() {
    let hive = family().await;
    let id = hive.requested("alice", groups_of("bob", &["meta"])).await;
    let shown = hive.approval(id).await;
    let wanted = Policy { tool_groups: vec!["messaging".to_owned()], ..Policy::default() };
    hive.set_policy("bob", wanted, &[PolicyPart::ToolGroups]).await.expect("set");
    let late = hive.decide_on(id, chosen(APPROVE, &shown.diff_digest)).await;
    assert_eq!(reason(late), Reason::DiffChanged);
    assert_eq!(hive.agent("bob").await.policy.tool_groups, ["messaging"]);
    let now = hive.approval(id).await;
    assert_eq!(
        (now.changes[0].before.as_str(), now.changes[0].after.as_str()),
        ("messaging", "meta")
    );
    hive.approve(id).await.expect("approved as it is shown now");
    assert_eq!(hive.agent("bob").await.policy.tool_groups, ["meta"]);
}

#[tokio::test]
async fn an_effect_that_became_impossible_leaves_the_question_open() {
    let hive = family().await;
    let id = hive.requested("alice", create("kim", Policy::default())).await;
    let digest = hive.approval(id).await.diff_digest;
    hive.create("kim", None, Policy::default()).await;
    let approval = hive.approval(id).await;
    assert!(approval.problem.contains("there is an agent `kim` already"), "{approval:?}");
    assert_eq!(reason(hive.decide_on(id, chosen(APPROVE, &digest)).await), Reason::AgentExists);
    assert_eq!(hive.question(id).await.state, State::Open);
    assert_eq!(hive.agent("kim").await.parent, None);
    hive.decide_on(id, chosen(DENY, "")).await.expect("denying is always possible");
}

#[tokio::test]
async fn an_agent_asks_for_itself_and_its_children_alone() {
    let hive = family().await;
    hive.create("grandchild", Some("bob"), asking()).await;
    for effect in [
        groups_of("stranger", &["meta"]),
        groups_of("grandchild", &["meta"]),
        retire("stranger"),
        retire("alice"),
        Effect::SetAgent { name: name("stranger"), role: Some("x".to_owned()), model: None },
    ] {
        assert_eq!(reason(hive.request_effect("alice", effect).await), Reason::NotYours);
    }
    let parent = groups_of("bob", &["meta"]);
    assert_eq!(reason(hive.request_effect("grandchild", parent).await), Reason::NotYours);
    assert_eq!(
        reason(hive.request_effect("bob", create("kim", Policy::default())).await),
        Reason::CapabilityMissing
    );
    assert_eq!(
        reason(hive.request_effect("operator", create("kim", Policy::default())).await),
        Reason::FieldInvalid
    );
    let to_bob = Ask { effect: Some(retire("bob")), ..plain("bob", "may I?") };
    assert_eq!(reason(hive.ask(actor("alice"), to_bob).await), Reason::FieldInvalid);
    for effect in [
        create("kim", Policy { grants: vec![CREATE_AGENT.to_owned()], ..Policy::default() }),
        create("kim", Policy { schedules_max: Some(1), ..Policy::default() }),
        create("kim", Policy { tool_groups: vec!["root".to_owned()], ..Policy::default() }),
        Effect::SetAgent { name: name("bob"), role: Some("a\n+ b".to_owned()), model: None },
        Effect::SetAgent { name: name("bob"), role: None, model: Some("-p".to_owned()) },
    ] {
        assert_eq!(reason(hive.request_effect("alice", effect).await), Reason::FieldInvalid);
    }
    assert_eq!(
        reason(hive.request_effect("alice", create("bob", asking())).await),
        Reason::AgentExists
    );
    hive.request_effect("alice", groups_of("alice", &["meta"])).await.expect("itself");
}

#[tokio::test]
async fn what_exceeds_the_asker_is_marked_and_may_be_approved() {
    let hive = family().await;
    hive.set_policy(
        "alice",
        Policy { allowed_recipients: vec!["bob".to_owned()], ..asking() },
        &[PolicyPart::AllowedRecipients],
    )
    .await
    .expect("set");
    let policy = Policy {
        tool_groups: vec!["meta".to_owned(), "web_tools".to_owned()],
        capabilities: vec!["manage_subtree".to_owned()],
        sends_per_minute_max: Some(1_000_000),
        ..Policy::default()
    };
    let id = hive.requested("alice", create("kim", policy)).await;
    let changes = hive.approval(id).await.changes;
    let exceeds = |field: &str| {
        let change = changes.iter().find(|change| change.field == field);
        change.map(|change| change.exceeds.clone()).unwrap_or_default()
    };
    assert_eq!(exceeds("policy.tool_groups"), "alice does not have web_tools");
    assert_eq!(exceeds("policy.allowed_recipients"), "alice may not send to everyone");
    assert_eq!(exceeds("policy.capabilities"), "alice does not have manage_subtree");
    assert_eq!(exceeds("policy.sends_per_minute_max"), "alice has 600");
    assert!(
        hive.inbox("operator").await[0].message.body.contains("[! alice does not have web_tools]")
    );
    hive.approve(id).await.expect("the operator may");
    assert!(hive.agent("kim").await.policy.has_capability("manage_subtree"));
}

#[tokio::test]
async fn a_grant_creates_at_once_what_the_asker_has_itself() {
    let hive = Hive::new(&[]).await;
    hive.create("alice", None, granted(2)).await;
    let question = hive.request_effect("alice", create("kim", Policy::default())).await;
    let question = question.expect("granted");
    assert_eq!((question.state, question.closed_by.as_str()), (State::Answered, ""));
    assert_eq!(hive.agent("kim").await.parent, Some(name("alice")));
    assert!(hive.inbox("operator").await.iter().all(|it| it.state == super::State::Acked));
    let told = hive.told("alice", question.id).await;
    assert_eq!(
        told,
        [(QuestionAnswered, super::State::Superseded)],
        "the response says it already"
    );
    let more = Policy { capabilities: vec!["query_agent_state".to_owned()], ..Policy::default() };
    hive.requested("alice", create("lee", more)).await;
    assert!(!hive.is_active("lee").await, "more than the asker has needs the operator");
    hive.requested("alice", retire("kim")).await;
    assert!(hive.is_active("kim").await, "the grant is for creating alone");
}

#[tokio::test]
async fn the_whole_subtree_counts_for_a_grant_also_from_two_connections() {
    let hive = Hive::new(&[]).await;
    hive.create("alice", None, granted(3)).await;
    hive.create("bob", Some("alice"), granted(9)).await;
    let both = tokio::join!(
        hive.request_effect("alice", create("one", Policy::default())),
        hive.request_effect("bob", create("two", Policy::default())),
    );
    for question in [both.0, both.1] {
        assert_eq!(question.expect("granted").state, State::Answered);
    }
    for (asker, child) in [("alice", "three"), ("bob", "four")] {
        let id = hive.requested(asker, create(child, Policy::default())).await;
        let approval = hive.approval(id).await;
        let why = "alice has 3 agents below it, as many as its children_max allows";
        assert_eq!(approval.changes[0].exceeds, why, "{asker}");
        assert!(!hive.is_active(child).await);
    }
}

#[tokio::test]
async fn a_retired_child_is_closed_and_its_children_move_up() {
    let hive = family().await;
    hive.create("grandchild", Some("bob"), Policy::default()).await;
    let id = hive.requested("alice", retire("bob")).await;
    let changes = hive.approval(id).await.changes;
    assert_eq!(changes[1].before, "grandchild, below bob");
    hive.create("another", Some("bob"), Policy::default()).await;
    let late = changes.len();
    let shown = hive.approval(id).await;
    assert_eq!(
        (shown.changes.len(), shown.changes[1].before.as_str()),
        (late, "another, grandchild, below bob")
    );
    hive.approve(id).await.expect("approved");
    assert!(!hive.is_active("bob").await);
    assert_eq!(hive.agent("grandchild").await.parent, Some(name("alice")));
}

#[tokio::test]
async fn settings_of_a_child_are_changed_and_its_harness_gets_the_model() {
    let hive = family().await;
    let set = |role: &str, model: &str| Effect::SetAgent {
        name: name("bob"),
        role: Some(role.to_owned()),
        model: Some(model.to_owned()),
    };
    let id = hive.requested("alice", set("tester", "haiku")).await;
    hive.approve(id).await.expect("approved");
    let bob = hive.agent("bob").await;
    assert_eq!((bob.role.as_str(), bob.model.as_str()), ("tester", "haiku"));
    assert_eq!(hive.count_events(EventKind::CommandGiven).await, 1);
    let again = hive.request_effect("alice", set("tester", "haiku")).await;
    assert_eq!(reason(again), Reason::FieldInvalid, "nothing would change");
}

#[tokio::test]
async fn a_rerun_asks_for_the_same_effect_once() {
    let (hive, harness, run) = in_mid_turn().await;
    let agent = harness_agent(&run);
    hive.set_policy(&agent, asking(), &[PolicyPart::ToolGroups]).await.expect("set");
    let ask = |groups: &[&str]| Ask {
        effect: Some(groups_of(&agent, groups)),
        ..plain("operator", "I need it")
    };
    let (first, _) = hive.ask(run.actor(), ask(&["meta"])).await.expect("asked");
    hive.end(&run, Outcome::Failed).await;
    hive.pass_and_sweep(60).await;
    let rerun = hive.begin(&harness).await;
    let (other, already) = hive.ask(rerun.actor(), ask(&["meta", "inbox"])).await.expect("asked");
    assert!(!already && other.id != first.id, "another effect is another question");
    let (same, already) = hive.ask(rerun.actor(), ask(&["meta"])).await.expect("asked");
    assert_eq!((same.id, already), (first.id, true));
}

fn harness_agent(run: &Run) -> String {
    run.actor().caller.name().to_owned()
}

#[tokio::test]
async fn the_file_and_an_approved_change_of_one_field_end_as_the_later_of_them_says() {
    let hive = Hive::new(&[]).await;
    let file = async |role: &str| {
        let declared = Declared {
            parent: None,
            role: role.to_owned(),
            model: String::new(),
            policy: asking(),
            available_models: Vec::new(),
            kick_on_start: hive_core::agent::KickOnStart::default(),
            on_demand: false,
        };
        let agents = BTreeMap::from([(name("alice"), declared)]);
        hive.engine().declare(agents).await.expect("the file is applied");
    };
    let to = |role: &str| Effect::SetAgent {
        name: name("alice"),
        role: Some(role.to_owned()),
        model: None,
    };
    file("of the file").await;
    let id = hive.requested("alice", to("approved")).await;
    hive.approve(id).await.expect("approved");
    file("of the file").await;
    assert_eq!(hive.agent("alice").await.role, "approved", "the file has not changed");

    // An edit of the file is the later change, and an older request shows what it would undo.
    let id = hive.requested("alice", to("asked")).await;
    let before = hive.approval(id).await;
    file("edited").await;
    assert_eq!(hive.agent("alice").await.role, "edited");
    let blind = hive.decide_on(id, chosen(APPROVE, &before.diff_digest)).await;
    assert_eq!(reason(blind), Reason::DiffChanged);
    let now = hive.approval(id).await;
    let values: Vec<_> = now.changes.iter().map(|one| (&*one.before, &*one.after)).collect();
    assert_eq!(values, [("edited", "asked")]);
    hive.decide_on(id, chosen(APPROVE, &now.diff_digest)).await.expect("approved");
    file("edited").await;
    assert_eq!(hive.agent("alice").await.role, "asked");
}
