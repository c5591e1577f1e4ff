//! Watched agents: every change of what others see is in the journal, once for each agent.

use super::*;
use crate::store::AgentKey;

/// A place in the journal.
struct Place<'h> {
    hive: &'h Hive,
    place: u64,
}

impl<'h> Place<'h> {
    fn now(hive: &'h Hive) -> Self {
        let place = *hive.engine().hints().changes.subscribe().borrow();
        Self { hive, place }
    }

    /// The names of the agents that changed since the last call.
    async fn changed(&mut self) -> Vec<String> {
        let changes = self.hive.engine().hints().changes.after(self.place, 100);
        let (keys, next) = changes.expect("nothing is missing");
        self.place = next;
        let changed = self.hive.engine().agents_changed(None, keys).await.expect("read");
        let mut names: Vec<String> =
            changed.shown.iter().map(|(_, agent)| agent.name.to_string()).collect();
        names.extend(changed.others.into_iter().map(|(_, name)| format!("-{name}")));
        names.sort();
        names
    }
}

#[tokio::test]
async fn every_change_that_others_see_is_in_the_journal() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let mut place = Place::now(&hive);
    hive.send("alice", "bob", "hello").await;
    assert_eq!(place.changed().await, [""; 0], "mail alone is no change");
    let mut harness = hive.attach("bob").await;
    assert_eq!(place.changed().await, ["bob"], "attached");
    let run = hive.begin(&harness).await;
    assert_eq!(place.changed().await, ["bob"], "a turn began");
    hive.end(&run, Outcome::RateLimited).await;
    assert_eq!(place.changed().await, ["bob"], "parked");
    hive.report(&harness, HarnessState::Idle).await.expect("reported");
    assert_eq!(place.changed().await, ["bob"], "another state");
    harness.vanish();
    assert_eq!(place.changed().await, ["bob"], "detached");
    hive.engine()
        .set_status_text(actor("alice"), hive.request("SetStatusText"), "busy".to_owned())
        .await
        .expect("set");
    assert_eq!(place.changed().await, ["alice"], "a status");
    hive.create("carol", Some("alice"), Policy::default()).await;
    assert!(place.changed().await.contains(&"carol".to_owned()), "created");
    hive.retire("carol").await;
    assert!(place.changed().await.contains(&"carol".to_owned()), "retired");
    assert_eq!(place.changed().await, [""; 0]);
}

#[tokio::test]
async fn a_watch_of_an_agent_shows_it_and_its_children() {
    let hive = Hive::new(&["alice", "bob"]).await;
    hive.create("carol", Some("alice"), Policy::default()).await;
    let engine = hive.engine();
    let scope = engine.agent_scope(caller("alice"), String::new()).await.expect("its own");
    assert_eq!(scope, Some(hive.row("alice").await.key));
    assert_eq!(
        reason(engine.agent_scope(caller("alice"), "bob".to_owned()).await),
        Reason::NotYours
    );
    let names = |agents: crate::engine::operator::watched::Keyed| {
        agents.into_iter().map(|(_, agent)| agent.name.to_string()).collect::<Vec<_>>()
    };
    let shown = engine.agents_now(scope, String::new(), 10).await.expect("read");
    assert_eq!(names(shown), ["alice", "carol"]);
    let all = engine.agent_scope(caller("operator"), String::new()).await.expect("all");
    assert_eq!(all, None);
    let shown = engine.agents_now(all, String::new(), 10).await.expect("read");
    assert_eq!(names(shown), ["alice", "bob", "carol"]);
    let keys: Vec<AgentKey> = vec![hive.row("bob").await.key, hive.row("carol").await.key];
    let changed = engine.agents_changed(scope, keys.clone()).await.expect("read");
    assert_eq!(names(changed.shown), ["carol"]);
    assert_eq!(changed.others, [(keys[0], "bob".to_owned())]);
}
