//! Agents: their records, and the effect of a removed agent on its relatives.

use hive_core::agent::Isolation;

use super::*;

#[tokio::test]
async fn an_agent_is_shown_with_the_state_of_its_harness() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let show = async || hive.agent("bob").await;
    let bob = show().await;
    assert_eq!(
        (bob.running, bob.state, bob.isolation, bob.open_turns),
        (false, HarnessState::Offline, None, Vec::new())
    );
    let harness = hive.attach("bob").await;
    assert_eq!((show().await.running, show().await.state), (true, HarnessState::Starting));
    hive.send("alice", "bob", "one").await;
    hive.send("alice", "bob", "two").await;
    let run = hive.begin(&harness).await;
    let bob = show().await;
    assert_eq!(
        (bob.state, bob.open_turns, bob.ready_count),
        (HarnessState::Thinking, vec![run.id], 1)
    );
    hive.end(&run, Outcome::Unavailable).await;
    assert_eq!(show().await.state, HarnessState::Unavailable);
    drop(harness);
    let bob = show().await;
    assert_eq!((bob.running, bob.state), (false, HarnessState::Offline));
}

#[tokio::test]
async fn agents_that_are_not_kept_apart_are_named() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let attach = |isolation| Attach {
        session_token: String::new(),
        take_over: false,
        revision: String::new(),
        isolation,
    };
    let alone = hive
        .engine()
        .attach(caller("alice"), attach(Some(Isolation::Uid)))
        .await
        .expect("attached");
    let shared =
        hive.engine().attach(caller("bob"), attach(Some(Isolation::None))).await.expect("attached");
    let totals = hive.engine().totals().await.expect("totals");
    assert_eq!((totals.attached, totals.not_isolated), (2, vec!["bob".to_owned()]));
    drop((alone, shared));
    assert_eq!(hive.engine().totals().await.expect("totals").attached, 0);
}

#[tokio::test]
async fn children_are_the_operators_roots_or_the_callers_own() {
    let hive = Hive::new(&["root", "other"]).await;
    hive.create("kid", Some("root"), Policy::default()).await;
    let children = async |who: &str, of: Option<&str>| {
        let listed = hive.engine().list_children(caller(who), of.map(name), String::new(), 10);
        let (found, _) = listed.await.expect("listed");
        found.into_iter().map(|agent| String::from(agent.name)).collect::<Vec<_>>()
    };
    assert_eq!(children("operator", None).await, ["other", "root"]);
    assert_eq!(children("root", None).await, ["kid"]);
    assert_eq!(children("kid", Some("root")).await, ["kid"]);
    assert_eq!(reason(hive.engine().get_self(caller("operator")).await), Reason::NotAnAgent);
    assert_eq!(
        hive.engine().get_self(caller("kid")).await.expect("kid").parent,
        Some(name("root"))
    );
}

#[tokio::test]
async fn the_children_of_a_retired_agent_move_up() {
    let hive = Hive::new(&["root"]).await;
    hive.create("kid", Some("root"), Policy::default()).await;
    hive.create("grandkid", Some("kid"), Policy::default()).await;
    hive.retire("kid").await;
    assert_eq!(
        hive.engine().get_self(caller("grandkid")).await.expect("grandkid").parent,
        Some(name("root"))
    );
    hive.retire("root").await;
    assert_eq!(hive.engine().get_self(caller("grandkid")).await.expect("grandkid").parent, None);
    hive.send("grandkid", "<parent>", "hello").await;
    assert_eq!(hive.inbox("operator").await.len(), 1);
}

#[tokio::test]
async fn the_harness_of_a_retired_agent_is_cut_off_and_cannot_attach_again() {
    let hive = Hive::new(&["alice", "bob"]).await;
    hive.send("alice", "bob", "hello").await;
    let harness = hive.attach("bob").await;
    hive.begin(&harness).await;
    hive.retire("bob").await;
    assert!(harness.attachment().ended().is_cancelled());
    for token in ["", harness.token.as_str()] {
        assert_eq!(reason(hive.try_attach("bob", token, true).await), Reason::AgentRetired);
    }
    drop(harness);
    assert_eq!(hive.sweep().await, None);
}

#[tokio::test]
async fn lists_of_agents_are_paged_by_name() {
    let hive = Hive::new(&["c", "a", "d", "b"]).await;
    hive.retire("d").await;
    let list = async |after: &str, retired| {
        let (found, more) =
            hive.engine().list_agents(after.to_owned(), retired, 2).await.expect("listed");
        (found.into_iter().map(|agent| String::from(agent.name)).collect::<Vec<_>>(), more)
    };
    assert_eq!(list("", false).await, (vec!["a".to_owned(), "b".to_owned()], true));
    assert_eq!(list("b", false).await, (vec!["c".to_owned()], false));
    assert_eq!(list("b", true).await, (vec!["c".to_owned(), "d".to_owned()], false));
}

#[tokio::test]
async fn a_page_of_agents_fits_into_a_reply_and_loses_none() {
    let hive = Hive::new(&[]).await;
    // Names that a policy allows are the one thing of an agent without a bound of its own.
    let allowed: Vec<String> =
        (0..20_000).map(|number| format!("a-rather-long-name-of-an-agent-{number:08}")).collect();
    let policy = Policy { allowed_recipients: allowed, ..Policy::default() };
    for number in 0..5 {
        hive.create(&format!("a{number}"), None, policy.clone()).await;
    }
    let (mut after, mut seen, mut pages) = (String::new(), Vec::new(), 0);
    loop {
        let (page, more) = hive.engine().list_agents(after, false, 1000).await.expect("listed");
        pages += 1;
        after = page.last().expect("a page has agents").name.to_string();
        seen.extend(page.into_iter().map(|agent| agent.name.to_string()));
        if !more {
            break;
        }
    }
    assert_eq!(seen, ["a0", "a1", "a2", "a3", "a4"]);
    assert!(pages > 1, "all at once would be more than a reply takes");
}
