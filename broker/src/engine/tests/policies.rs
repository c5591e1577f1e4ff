//! Policies: what the broker lets an agent do, whatever client it uses, and how that is changed at
//! run time.

use super::questions::{plain, text};
use super::*;
use hive_core::agent::PolicyPart;

fn groups(groups: &[&str]) -> Policy {
    Policy {
        tool_groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        ..Policy::default()
    }
}

impl Hive {
    pub(super) async fn set_policy(
        &self,
        agent: &str,
        policy: Policy,
        parts: &[PolicyPart],
    ) -> Result<Policy, Refusal> {
        let request = self.request("SetPolicy");
        let set = self
            .engine()
            .set_policy(caller("operator"), request, name(agent), policy, parts.to_vec())
            .await;
        set.map(|agent| agent.policy)
    }
}

#[tokio::test]
async fn every_call_of_a_group_is_refused_without_it() {
    let hive = Hive::new(&["bob"]).await;
    hive.create("mute", None, groups(&["meta", "inbox"])).await;
    hive.create("blind", None, groups(&["messaging"])).await;
    let owed = hive.asked("bob", plain("mute", "well?")).await;
    let missing = Reason::CapabilityMissing;
    assert_eq!(reason(hive.try_send("mute", "bob", "x").await), missing);
    assert_eq!(reason(hive.try_receive("mute", up_to(1)).await), missing);
    assert_eq!(reason(hive.ask(actor("mute"), plain("bob", "x")).await), missing);
    assert_eq!(reason(hive.answer("mute", owed, text("x")).await), missing);
    assert_eq!(hive.count_events(EventKind::Refused).await, 4, "each is an event");

    let asked = hive.asked("blind", plain("bob", "well?")).await;
    let due = Due::In(Duration::from_secs(60));
    let set = hive
        .engine()
        .set_reminder(actor("blind"), hive.request("CreateReminder"), "x".to_owned(), due)
        .await;
    assert_eq!(reason(set), missing);
    assert_eq!(reason(hive.withdraw("blind", asked).await), missing);
    assert_eq!(
        reason(hive.engine().list_loose_ends(caller("blind"), String::new(), 0, 50).await),
        missing
    );
    let request = hive.request("SetStatusText");
    assert_eq!(
        reason(hive.engine().set_status_text(actor("blind"), request, "x".to_owned()).await),
        missing
    );
    assert_eq!(reason(hive.engine().request_next_turn(actor("blind")).await), missing);
    assert_eq!(reason(hive.engine().check_lookup(caller("blind")).await), missing);
    assert_eq!(hive.count_events(EventKind::Refused).await, 10);
    hive.engine().get_self(caller("blind")).await.expect("oneself can always be read");
    let refused: Vec<String> = hive
        .events()
        .await
        .into_iter()
        .filter(|event| event.kind() == EventKind::Refused)
        .map(|event| event.detail)
        .collect();
    assert!(
        refused[0].starts_with("send: your policy does not have the tool group `messaging`"),
        "{}",
        refused[0]
    );
}

#[tokio::test]
async fn a_change_sets_only_the_named_fields_and_holds_from_the_next_call_on() {
    let mut hive = Hive::new(&["alice", "bob", "carol"]).await;
    let wanted = Policy { allowed_recipients: vec!["bob".to_owned()], ..groups(&["meta"]) };
    let policy = hive
        .set_policy("alice", wanted.clone(), &[PolicyPart::AllowedRecipients])
        .await
        .expect("set");
    assert_eq!(policy, Policy { allowed_recipients: vec!["bob".to_owned()], ..Policy::default() });
    hive.send("alice", "bob", "x").await;
    assert_eq!(reason(hive.try_send("alice", "carol", "x").await), Reason::RecipientNotAllowed);
    hive.restart().await;
    assert_eq!(
        reason(hive.try_send("alice", "carol", "x").await),
        Reason::RecipientNotAllowed,
        "it is a row"
    );
    let all = hive.set_policy("alice", wanted, &PolicyPart::ALL).await.expect("set");
    assert_eq!(all.tool_groups, ["meta"]);
    assert_eq!(reason(hive.try_send("alice", "bob", "x").await), Reason::CapabilityMissing);
    assert_eq!(hive.count_events(EventKind::AgentChanged).await, 2);
}

#[tokio::test]
async fn an_unknown_capability_cannot_be_granted() {
    let hive = Hive::new(&["alice"]).await;
    let bad = [
        (groups(&["mesaging"]), "`mesaging`; did you mean `messaging`?"),
        (
            Policy { capabilities: vec!["query_agents_state".to_owned()], ..Policy::default() },
            "did you mean `query_agent_state`?",
        ),
        (
            Policy { allowed_recipients: vec!["Not A Name".to_owned()], ..Policy::default() },
            "is no agent's name",
        ),
        (Policy { questions_open_max: Some(0), ..Policy::default() }, "at least 1"),
        (Policy { sends_per_minute_max: Some(0), ..Policy::default() }, "at least 1"),
        (Policy { schedules_max: Some(0), ..Policy::default() }, "at least 1"),
        (
            Policy { grants: vec!["own_schedule".to_owned()], ..Policy::default() },
            "did you mean `own_schedules`?",
        ),
    ];
    for (policy, words) in bad {
        let refusal =
            hive.set_policy("alice", policy, &PolicyPart::ALL).await.expect_err("not such a thing");
        assert_eq!(refusal.reason(), Reason::FieldInvalid);
        assert!(refusal.to_string().contains(words), "{refusal}");
    }
    assert_eq!(
        reason(hive.set_policy("nobody", Policy::default(), &PolicyPart::ALL).await),
        Reason::AgentNotFound
    );
}

#[tokio::test]
async fn quotas_are_an_agents_own() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let tight = Policy {
        sends_per_minute_max: Some(3),
        questions_open_max: Some(1),
        reminders_pending_max: Some(1),
        sender_stored_bytes_max: Some(10),
        ..Policy::default()
    };
    hive.set_policy("alice", tight.clone(), &PolicyPart::ALL).await.expect("set");
    assert_eq!(reason(hive.try_send("alice", "bob", "eleven chars").await), Reason::StorageFull);
    hive.asked("alice", plain("bob", "one?")).await;
    assert_eq!(reason(hive.ask(actor("alice"), plain("bob", "two?")).await), Reason::QuestionLimit);
    let due = Due::In(Duration::from_secs(60));
    let remind = || {
        hive.engine().set_reminder(
            actor("alice"),
            hive.request("CreateReminder"),
            "x".to_owned(),
            due,
        )
    };
    remind().await.expect("set");
    assert_eq!(reason(remind().await), Reason::ReminderLimit);
    hive.send("alice", "bob", "x").await;
    let refusal = hive.try_send("alice", "bob", "x").await.expect_err("three a minute");
    assert_eq!(refusal.reason(), Reason::RateLimited);
    assert!(refusal.retry_after().is_some_and(|after| after <= Duration::from_secs(20)));
    assert_eq!(
        hive.count_events(EventKind::Refused).await,
        1,
        "refusals by quota are logged once a minute"
    );
    hive.asked("bob", plain("alice", "unbound?")).await;
    hive.pass(60);
    hive.send("alice", "bob", "x").await;
}

#[tokio::test]
async fn an_agent_that_is_refused_all_the_time_does_not_fill_the_log() {
    let hive = Hive::new(&["bob"]).await;
    hive.create("mute", None, groups(&["meta"])).await;
    for _ in 0..100 {
        assert_eq!(reason(hive.try_send("mute", "bob", "x").await), Reason::CapabilityMissing);
    }
    assert_eq!(hive.count_events(EventKind::Refused).await, 60);
}
