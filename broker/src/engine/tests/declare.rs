//! Declaring: the agents of the file are updated to its present content, and changes by the
//! operator stay.

use crate::engine::error::AgentError;
use std::collections::BTreeMap;

use hive_core::agent::{Agent, Source};

use super::*;
use crate::engine::declared::Declared;

/// A file with these agents and their parents.
fn file(agents: &[(&str, Option<&str>)]) -> BTreeMap<hive_core::name::AgentName, Declared> {
    let declared = |parent: &Option<&str>| Declared {
        parent: parent.map(name),
        role: String::new(),
        model: String::new(),
        policy: Policy::default(),
        available_models: Vec::new(),
        kick_on_start: hive_core::agent::KickOnStart::default(),
        on_demand: false,
    };
    agents.iter().map(|(agent, parent)| (name(agent), declared(parent))).collect()
}

async fn apply(hive: &Hive, agents: &[(&str, Option<&str>)]) {
    hive.engine().declare(file(agents)).await.expect("the file is applied");
}

async fn parent(hive: &Hive, who: &str) -> Option<String> {
    hive.agent(who).await.parent.map(Into::into)
}

async fn move_to(hive: &Hive, who: &str, below: Option<&str>) -> Result<Agent, Refusal> {
    hive.engine()
        .set_parent(caller("operator"), hive.request("SetParent"), name(who), below.map(name))
        .await
}

#[tokio::test]
async fn agents_of_the_file_are_there_children_before_parents_or_not() {
    let hive = Hive::new(&[]).await;
    apply(&hive, &[("kid", Some("root")), ("root", None), ("grandkid", Some("kid"))]).await;
    assert_eq!(parent(&hive, "kid").await.as_deref(), Some("root"));
    assert_eq!(parent(&hive, "grandkid").await.as_deref(), Some("kid"));
    assert_eq!(parent(&hive, "root").await, None);
    assert_eq!(hive.agent("kid").await.source, Source::File);
    assert_eq!(hive.count_events(EventKind::AgentCreated).await, 3);
}

#[tokio::test]
async fn a_tree_of_the_file_may_be_as_deep_as_it_has_agents() {
    let hive = Hive::new(&[]).await;
    let names: Vec<String> = (0..400).map(|number| format!("a{number:03}")).collect();
    let parents = std::iter::once(None).chain(names.iter().map(|name| Some(name.as_str())));
    let agents: Vec<_> = names.iter().map(String::as_str).zip(parents).collect();
    apply(&hive, &agents).await;
    assert_eq!(parent(&hive, "a399").await.as_deref(), Some("a398"));
}

#[tokio::test]
async fn the_same_file_again_changes_nothing() {
    let mut hive = Hive::new(&[]).await;
    let agents = [("root", None), ("kid", Some("root"))];
    apply(&hive, &agents).await;
    let events = hive.events().await;
    apply(&hive, &agents).await;
    hive.crash().await;
    apply(&hive, &agents).await;
    assert_eq!(hive.events().await, events);
}

#[tokio::test]
async fn only_changes_of_the_file_are_applied() {
    let hive = Hive::new(&[]).await;
    let mut wanted = file(&[("root", None), ("other", None), ("kid", Some("root"))]);
    hive.engine().declare(wanted.clone()).await.expect("applied");
    // The operator moves the agent and sets its model at run time.
    move_to(&hive, "kid", Some("other")).await.expect("moved");
    let model = NewCommand::Order(Order::SetModel("large".to_owned()));
    hive.engine()
        .create_command(caller("operator"), hive.request("SetModel"), name("kid"), model)
        .await
        .expect("told");
    // The file changes the role only.
    wanted.get_mut(&name("kid")).expect("kid").role = "reviewer".to_owned();
    hive.engine().declare(wanted.clone()).await.expect("applied");
    let kid = hive.agent("kid").await;
    let parent = kid.parent.map(String::from);
    assert_eq!(
        (kid.role.as_str(), kid.model.as_str(), parent.as_deref()),
        ("reviewer", "large", Some("other"))
    );
    // Then the file says something new about the model: now it is the newer word.
    wanted.get_mut(&name("kid")).expect("kid").model = "small".to_owned();
    hive.engine().declare(wanted).await.expect("applied");
    let kid = hive.agent("kid").await;
    assert_eq!(
        (kid.model.as_str(), kid.parent.map(String::from).as_deref()),
        ("small", Some("other"))
    );
}

#[tokio::test]
async fn agents_missing_from_the_file_are_retired_with_their_mail_and_run_time_agents_stay() {
    let hive = Hive::new(&["runtime"]).await;
    apply(&hive, &[("root", None), ("kid", Some("root"))]).await;
    let sent = hive.send("runtime", "kid", "hello").await;
    let harness = hive.attach("kid").await;
    let run = hive.begin(&harness).await;
    apply(&hive, &[("root", None)]).await;
    assert!(hive.agent("kid").await.retired);
    assert!(!hive.agent("runtime").await.retired);
    assert_eq!(hive.state("kid", sent).await, (State::Ready, 1), "its turn ended without blame");
    assert!(harness.attachment().ended().is_cancelled());
    assert_eq!(reason(hive.send_in(&run, "root", "still here").await), Reason::AgentRetired);
    // The file takes it back, with its mail.
    apply(&hive, &[("root", None), ("kid", Some("root"))]).await;
    assert!(!hive.agent("kid").await.retired);
    assert_eq!(ids(&hive.receive("kid", 1).await), [sent]);
}

#[tokio::test]
async fn the_file_takes_over_an_agent_that_was_made_at_run_time() {
    let hive = Hive::new(&["bob"]).await;
    apply(&hive, &[("root", None), ("bob", Some("root"))]).await;
    let bob = hive.agent("bob").await;
    assert_eq!((bob.source, bob.parent), (Source::File, Some(name("root"))));
    apply(&hive, &[("root", None)]).await;
    assert!(hive.agent("bob").await.retired);
}

#[tokio::test]
async fn parent_and_child_may_change_places() {
    let hive = Hive::new(&[]).await;
    apply(&hive, &[("one", None), ("two", Some("one"))]).await;
    apply(&hive, &[("one", Some("two")), ("two", None)]).await;
    assert_eq!(parent(&hive, "one").await.as_deref(), Some("two"));
    assert_eq!(parent(&hive, "two").await, None);
}

#[tokio::test]
async fn the_models_of_the_file_are_those_that_an_agent_may_be_switched_to() {
    let hive = Hive::new(&[]).await;
    let declare = async |models: &[&str], model: &str| {
        let mut file = file(&[("bob", None)]);
        let bob = file.get_mut(&name("bob")).expect("bob");
        bob.available_models = models.iter().map(|model| (*model).to_owned()).collect();
        bob.model = model.to_owned();
        hive.engine().declare(file).await.expect("the file is applied");
    };
    let shown = async || {
        let bob = hive.agent("bob").await;
        (bob.model, bob.available_models.join(" "))
    };
    let switch = async |model: &str| {
        let order = NewCommand::Order(Order::SetModel(model.to_owned()));
        hive.engine()
            .create_command(caller("operator"), hive.request("Tell"), name("bob"), order)
            .await
    };
    declare(&["small", "large"], "small").await;
    assert_eq!(shown().await, ("small".to_owned(), "small large".to_owned()));
    switch("large").await.expect("one of them");
    let refusal = switch("huge").await.expect_err("none of them");
    assert!(refusal.to_string().contains("may be switched to small, large;"), "{refusal}");
    assert_eq!(refusal.reason(), Reason::FieldInvalid);
    assert_eq!(shown().await.0, "large");
    // Applying the same file again changes nothing. A file that no longer allows the model resets
    // it and reports the change.
    declare(&["small", "large"], "small").await;
    assert_eq!(shown().await.0, "large");
    let changes = hive.count_events(EventKind::AgentChanged).await;
    declare(&["small", "tiny"], "small").await;
    assert_eq!(shown().await, ("small".to_owned(), "small tiny".to_owned()));
    assert_eq!(hive.count_events(EventKind::AgentChanged).await, changes + 1);
    declare(&[], "small").await;
    switch("huge").await.expect("any");
    assert_eq!(shown().await, ("huge".to_owned(), String::new()));
}

#[tokio::test]
async fn a_declaration_of_an_older_version_is_understood() {
    let mut hive = Hive::new(&[]).await;
    apply(&hive, &[("bob", None)]).await;
    let order = NewCommand::Order(Order::SetModel("large".to_owned()));
    hive.engine()
        .create_command(caller("operator"), hive.request("Tell"), name("bob"), order)
        .await
        .expect("told");
    hive.restart_after(|dir| {
        let conn = rusqlite::Connection::open(dir.join("hive.db")).expect("opened");
        let changed =
            conn.execute("UPDATE agent SET declared = json_remove(declared, '$.available_models') WHERE name = 'bob'", []);
        assert_eq!(changed.expect("written"), 1);
    })
    .await;
    apply(&hive, &[("bob", None)]).await;
    assert_eq!(hive.agent("bob").await.model, "large", "the operator's choice stays");
}

#[tokio::test]
async fn a_circle_is_refused_and_nothing_changes() {
    let hive = Hive::new(&[]).await;
    apply(&hive, &[("one", None), ("two", Some("one"))]).await;
    let events = hive.events().await;
    let circle = hive
        .engine()
        .declare(file(&[("one", Some("two")), ("two", Some("one")), ("new", None)]))
        .await;
    assert_eq!(reason(circle), Reason::TopologyCycle);
    assert_eq!(hive.events().await, events);
    assert_eq!(parent(&hive, "one").await, None);
    assert!(hive.engine().get_agent(name("new")).await.is_err());
}

#[tokio::test]
async fn an_agent_below_a_circle_does_not_hang_the_broker() {
    let hive = Hive::new(&[]).await;
    let below = [("aa-below", Some("one")), ("one", Some("two")), ("two", Some("one"))];
    let circle =
        tokio::time::timeout(Duration::from_secs(30), hive.engine().declare(file(&below))).await;
    assert_eq!(reason(circle.expect("it answers")), Reason::TopologyCycle);
    hive.create("bob", None, Policy::default()).await;
}

#[tokio::test]
async fn children_of_a_retired_branch_move_up_to_an_active_ancestor() {
    let hive = Hive::new(&[]).await;
    // The agents of a file are retired one by one; here the parent before its child.
    apply(&hive, &[("top", None), ("branch", Some("top")), ("twig", Some("branch"))]).await;
    hive.create("runtime", Some("twig"), Policy::default()).await;
    apply(&hive, &[("top", None)]).await;
    assert_eq!(parent(&hive, "runtime").await.as_deref(), Some("top"));
    hive.send("runtime", "<parent>", "who is it now?").await;
    assert_eq!(hive.inbox("top").await.len(), 1);
}

#[tokio::test]
async fn a_parent_that_is_nowhere_is_refused() {
    let hive = Hive::new(&[]).await;
    let orphan = hive.engine().declare(file(&[("kid", Some("nobody"))])).await;
    assert_eq!(reason(orphan), Reason::AgentNotFound);
}

#[tokio::test]
async fn the_operator_moves_agents_but_closes_no_circle() {
    let hive = Hive::new(&["one"]).await;
    hive.create("two", Some("one"), Policy::default()).await;
    hive.create("three", Some("two"), Policy::default()).await;
    for (who, below) in [("one", "one"), ("one", "two"), ("one", "three"), ("two", "three")] {
        let refusal = move_to(&hive, who, Some(below)).await.map(|_| ()).expect_err("a circle");
        assert!(
            matches!(&refusal, Refusal::Agent(AgentError::Cycle { name, parent }) if name == who && parent == below),
            "{refusal:?}"
        );
    }
    move_to(&hive, "three", Some("one")).await.expect("moved");
    move_to(&hive, "two", None).await.expect("a root now");
    assert_eq!(parent(&hive, "two").await, None);
}

#[tokio::test]
async fn a_retired_name_is_reused_only_on_request() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let sent = hive.send("alice", "bob", "hello").await;
    hive.retire("bob").await;
    let create = |adopt| Create {
        name: name("bob"),
        parent: None,
        role: String::new(),
        model: String::new(),
        policy: Policy::default(),
        adopt,
    };
    let refusal = hive.try_create(create(false)).await;
    assert_eq!(reason(refusal), Reason::AgentRetired);
    hive.try_create(create(true)).await.expect("adopted");
    assert_eq!(ids(&hive.receive("bob", 1).await), [sent]);
    let refusal = hive.try_create(create(true)).await;
    assert_eq!(reason(refusal), Reason::AgentExists);
}

#[tokio::test]
async fn the_file_says_who_runs_on_demand_until_the_operator_does() {
    use crate::engine::launch::wanted::Wish;
    let hive = Hive::new(&[]).await;
    let bob = |on_demand| {
        let mut bob = file(&[("bob", None)]);
        bob.get_mut(&name("bob")).expect("it is there").on_demand = on_demand;
        bob
    };
    hive.engine().declare(bob(true)).await.expect("applied");
    assert!(hive.agent("bob").await.on_demand);
    let always = Wish::Start { on_demand: Some(false) };
    let request = hive.request("StartAgent");
    hive.engine().wish(caller("operator"), request, name("bob"), always).await.expect("done");
    hive.engine().declare(bob(true)).await.expect("applied");
    assert!(!hive.agent("bob").await.on_demand, "the file has not changed");
    hive.engine().declare(bob(false)).await.expect("applied");
    hive.engine().declare(bob(true)).await.expect("applied");
    assert!(hive.agent("bob").await.on_demand);
}
