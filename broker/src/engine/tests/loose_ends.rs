//! Loose ends: one list of everything an agent has open; who may read whose; closing one's own.

use hive_core::agent::QUERY_AGENT_STATE;
use hive_core::loose_end::{Kind, LooseEnd};
use hive_core::question::State as QuestionState;

use super::questions::plain;
use super::*;

impl Hive {
    async fn loose_ends(&self, who: &str, of: &str) -> Result<Vec<LooseEnd>, Refusal> {
        self.engine()
            .list_loose_ends(caller(who), of.to_owned(), 0, 500)
            .await
            .map(|(found, _)| found)
    }

    async fn publish(
        &self,
        agent: &str,
        label: &str,
        entries: &[(&str, &str)],
    ) -> Result<(), Refusal> {
        let entries =
            entries.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect();
        let label = Label::parse(label).expect("a label");
        self.engine()
            .replace_loose_ends(actor(agent), self.request("ReplaceLooseEnds"), label, entries)
            .await
    }

    async fn cancel(&self, who: &str, kind: Kind, id: u64) -> Result<(), Refusal> {
        self.engine().cancel_loose_end(actor(who), self.request("CancelLooseEnd"), kind, id).await
    }
}

fn kinds(found: &[LooseEnd]) -> Vec<(Kind, &str, &str)> {
    found.iter().map(|one| (one.kind, one.peer.as_str(), one.text.as_str())).collect()
}

#[tokio::test]
async fn every_kind_stands_in_one_list() {
    let hive = Hive::new(&["alice", "bob"]).await;
    hive.asked("alice", plain("bob", "asked?")).await;
    hive.asked("bob", plain("alice", "owed?")).await;
    let due = Due::In(Duration::from_secs(60));
    hive.engine()
        .set_reminder(actor("alice"), hive.request("CreateReminder"), "plants".to_owned(), due)
        .await
        .expect("set");
    let dead = hive.send("alice", "bob", "never read").await;
    let taken = hive.receive("bob", 32).await;
    let lost = taken.iter().find(|leased| leased.delivery.message.id == dead).expect("bob got it");
    hive.nack("bob", lost, true).await.expect("given up");
    hive.publish("alice", "matrix", &[("room-1", "three unread")]).await.expect("published");
    let found = hive.loose_ends("alice", "").await.expect("listed");
    assert_eq!(
        kinds(&found),
        [
            (Kind::QuestionAsked, "bob", "asked?"),
            (Kind::QuestionOwed, "bob", "owed?"),
            (Kind::Reminder, "", "plants"),
            (Kind::DeadLetter, "bob", "never read"),
            (Kind::External, "matrix", "three unread"),
        ]
    );
    assert!(found.iter().all(|one| one.agent == "alice"));
    assert!(found.windows(2).all(|pair| pair[0].id < pair[1].id), "by id");
    // bob's own side of it, and all loose ends for the operator.
    assert_eq!(hive.loose_ends("bob", "").await.expect("listed").len(), 2);
    assert_eq!(hive.loose_ends("operator", "").await.expect("listed").len(), 7);
    assert_eq!(hive.loose_ends("operator", "operator").await.expect("listed").len(), 0);
}

#[tokio::test]
async fn pages_part_no_id_and_lose_none() {
    let hive = Hive::new(&["alice", "bob"]).await;
    for _ in 0..5 {
        hive.asked("alice", plain("bob", "well?")).await;
    }
    let (mut after, mut seen) = (0, Vec::new());
    loop {
        let page = hive
            .engine()
            .list_loose_ends(caller("operator"), String::new(), after, 3)
            .await
            .expect("listed");
        let (found, more) = page;
        assert!(found.len() <= 4);
        after = found.last().expect("a page has entries").id;
        seen.extend(found.into_iter().map(|one| (one.id, one.kind)));
        if !more {
            break;
        }
    }
    assert_eq!(seen.len(), 10);
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 10, "each once");
}

#[tokio::test]
async fn children_are_open_to_their_parent_and_others_by_capability() {
    let hive = Hive::new(&["boss", "stranger"]).await;
    hive.create("child", Some("boss"), Policy::default()).await;
    hive.create("grandchild", Some("child"), Policy::default()).await;
    let asks = Policy { capabilities: vec![QUERY_AGENT_STATE.to_owned()], ..Policy::default() };
    hive.create("auditor", None, asks).await;
    hive.asked("child", plain("boss", "well?")).await;
    assert_eq!(hive.loose_ends("boss", "child").await.expect("a child").len(), 1);
    for (who, of) in
        [("boss", "grandchild"), ("stranger", "child"), ("child", "boss"), ("grandchild", "child")]
    {
        assert_eq!(reason(hive.loose_ends(who, of).await), Reason::NotYourChild, "{who} {of}");
    }
    assert_eq!(hive.loose_ends("auditor", "child").await.expect("by capability").len(), 1);
    assert_eq!(reason(hive.loose_ends("auditor", "nobody").await), Reason::AgentNotFound);
    assert_eq!(reason(hive.loose_ends("auditor", "operator").await), Reason::AgentNotFound);
}

#[tokio::test]
async fn an_agent_closes_only_its_own_loose_ends() {
    let hive = Hive::new(&["alice", "bob", "carol"]).await;
    let question = hive.asked("alice", plain("bob", "well?")).await;
    let due = Due::In(Duration::from_secs(60));
    let set = hive
        .engine()
        .set_reminder(actor("alice"), hive.request("CreateReminder"), "x".to_owned(), due)
        .await;
    let reminder = set.expect("set").0.id;
    // Its target may read the question; a third may not.
    assert_eq!(
        reason(hive.cancel("bob", Kind::QuestionAsked, question.get()).await),
        Reason::NotYours
    );
    assert_eq!(
        reason(hive.cancel("carol", Kind::QuestionAsked, question.get()).await),
        Reason::QuestionNotFound
    );
    assert_eq!(
        reason(hive.cancel("operator", Kind::QuestionAsked, question.get()).await),
        Reason::NotYours
    );
    assert_eq!(
        reason(hive.cancel("bob", Kind::Reminder, reminder.get()).await),
        Reason::ReminderNotFound
    );
    assert_eq!(
        reason(hive.cancel("alice", Kind::Reminder, question.get()).await),
        Reason::ReminderNotFound
    );
    assert_eq!(
        reason(hive.cancel("alice", Kind::QuestionAsked, reminder.get()).await),
        Reason::QuestionNotFound
    );
    for kind in [Kind::QuestionOwed, Kind::DeadLetter, Kind::External] {
        assert_eq!(
            reason(hive.cancel("alice", kind, question.get()).await),
            Reason::FieldInvalid,
            "{kind}"
        );
    }
    hive.cancel("alice", Kind::QuestionAsked, question.get()).await.expect("withdrawn");
    hive.cancel("alice", Kind::Reminder, reminder.get()).await.expect("withdrawn");
    assert_eq!(hive.question(question).await.state, QuestionState::Cancelled);
    assert!(hive.loose_ends("alice", "").await.expect("listed").is_empty());
    assert_eq!(
        reason(hive.cancel("alice", Kind::QuestionAsked, question.get()).await),
        Reason::QuestionClosed
    );
}

#[tokio::test]
async fn a_published_set_is_replaced_as_a_whole_and_keeps_the_ids_of_equal_entries() {
    let mut hive = Hive::new(&["alice", "bob"]).await;
    hive.publish("alice", "matrix", &[("a", "one"), ("b", "two")]).await.expect("published");
    hive.publish("alice", "forge", &[("a", "other")]).await.expect("published");
    let before = hive.loose_ends("alice", "").await.expect("listed");
    hive.publish("alice", "matrix", &[("b", "two, changed"), ("c", "three")])
        .await
        .expect("published");
    hive.crash().await;
    let after = hive.loose_ends("alice", "").await.expect("listed");
    let id = |list: &[LooseEnd], label: &str, key: &str| {
        list.iter().find(|one| one.peer == label && one.key == key).map(|one| one.id)
    };
    assert_eq!(id(&after, "matrix", "a"), None);
    assert_eq!(id(&after, "matrix", "b"), id(&before, "matrix", "b"));
    assert_eq!(id(&after, "forge", "a"), id(&before, "forge", "a"));
    hive.publish("alice", "matrix", &[]).await.expect("cleared");
    hive.publish("alice", "forge", &[]).await.expect("cleared");
    hive.restart().await;
    let newest = hive.send("alice", "bob", "hello").await.get();
    assert!(newest > after.iter().map(|one| one.id).max().expect("some"), "ids are not used again");
}

#[tokio::test]
async fn a_set_has_bounds_and_no_false_name() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let many: Vec<String> = (0..=100).map(|number| number.to_string()).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|key| (key.as_str(), "x")).collect();
    for bad in
        [many.as_slice(), &[("", "x")], &[("a", "")], &[("a", "x\ny")], &[("a", "x"), ("a", "y")]]
    {
        assert_eq!(reason(hive.publish("alice", "matrix", bad).await), Reason::FieldInvalid);
    }
    assert_eq!(
        reason(hive.publish("alice", "bob", &[("a", "x")]).await),
        Reason::FieldInvalid,
        "an agent's name"
    );
    assert_eq!(reason(hive.publish("operator", "matrix", &[("a", "x")]).await), Reason::NotAnAgent);
    for number in 0..16 {
        hive.publish("alice", &format!("label-{number}"), &[("a", "x")]).await.expect("published");
    }
    assert_eq!(
        reason(hive.publish("alice", "one-more", &[("a", "x")]).await),
        Reason::FieldInvalid
    );
    hive.publish("alice", "label-3", &[("b", "y")]).await.expect("an old label may go on");
    assert_eq!(name("alice").as_str(), "alice");
}
