//! The tree as an agent sees it: what it finds, which agents it may write to, and the kin that its
//! prompt names.

use hive_core::tree::{Found, KIN_CHILDREN_MAX};

use super::*;

async fn find(hive: &Hive, who: &str, text: &str) -> Result<(Vec<Found>, bool), Refusal> {
    let (found, next) = hive.engine().find_agents(caller(who), text.to_owned(), None, 100).await?;
    Ok((found, next.is_some()))
}

async fn names(hive: &Hive, who: &str, text: &str) -> Vec<String> {
    let (found, more) = find(hive, who, text).await.expect("found");
    assert!(!more, "{found:?}");
    found.into_iter().map(|agent| String::from(agent.name)).collect()
}

async fn create(hive: &Hive, agent: &str, parent: Option<&str>, role: &str, policy: Policy) {
    let create = Create {
        name: name(agent),
        parent: parent.map(name),
        role: role.to_owned(),
        model: String::new(),
        policy,
        adopt: false,
    };
    hive.try_create(create).await.expect("created");
}

#[tokio::test]
async fn children_come_first_then_the_parent_then_the_others() {
    let hive = Hive::new(&["zoe", "amy"]).await;
    hive.create("mid", Some("zoe"), Policy::default()).await;
    hive.create("kid-b", Some("mid"), Policy::default()).await;
    hive.create("kid-a", Some("mid"), Policy::default()).await;
    hive.create("gone", Some("mid"), Policy::default()).await;
    hive.retire("gone").await;
    assert_eq!(names(&hive, "mid", "").await, ["kid-a", "kid-b", "zoe", "amy"]);
    assert_eq!(names(&hive, "kid-a", "").await, ["mid", "amy", "kid-b", "zoe"]);
    assert_eq!(names(&hive, "operator", "").await, ["amy", "zoe", "kid-a", "kid-b", "mid"]);
    let (found, _) = find(&hive, "mid", "").await.expect("found");
    assert_eq!(
        found.iter().map(|agent| agent.parent.clone()).collect::<Vec<_>>(),
        [Some(name("mid")), Some(name("mid")), None, None]
    );
}

#[tokio::test]
async fn a_text_is_looked_for_in_name_role_and_status_and_is_no_pattern() {
    let hive = Hive::new(&["me", "bees"]).await;
    create(&hive, "x", None, "keeps the BEES", Policy::default()).await;
    create(&hive, "y", None, "50 % honey_", Policy::default()).await;
    let harness = hive.attach("me").await;
    hive.send("operator", "me", "hello").await;
    let run = hive.begin(&harness).await;
    hive.engine()
        .set_status_text(
            run.actor(),
            hive.request("SetStatusText"),
            "counts 100 \\ bees".to_owned(),
        )
        .await
        .expect("set");
    assert_eq!(names(&hive, "y", "bees").await, ["bees", "me", "x"]);
    assert_eq!(names(&hive, "me", "0 %").await, ["y"]);
    assert_eq!(names(&hive, "me", "_").await, ["y"]);
    assert_eq!(names(&hive, "x", "\\").await, ["me"]);
    assert_eq!(names(&hive, "x", "wasps").await, Vec::<String>::new());
    let (found, _) = find(&hive, "x", "counts").await.expect("found");
    assert_eq!(
        (found[0].status_text.as_str(), found[0].state),
        ("counts 100 \\ bees", HarnessState::Thinking)
    );
    assert_eq!(reason(find(&hive, "x", &"x".repeat(257)).await), Reason::FieldInvalid);
}

#[tokio::test]
async fn whether_an_agent_may_write_agrees_with_the_refusal_of_a_send() {
    let hive = Hive::new(&["amy", "bob", "zoe"]).await;
    let policy = Policy { allowed_recipients: vec!["bob".to_owned()], ..Policy::default() };
    hive.create("mid", Some("zoe"), policy).await;
    let policy = Policy { tool_groups: vec!["meta".to_owned()], ..Policy::default() };
    hive.create("mute", None, policy).await;
    for who in ["mid", "mute", "amy", "operator"] {
        let (found, _) = find(&hive, who, "").await.expect("found");
        assert!(found.len() >= 4, "{who}: {found:?}");
        for agent in found {
            let sent = hive.try_send(who, agent.name.as_str(), "hello").await;
            assert_eq!(sent.is_ok(), agent.may_write, "{who} to {}: {sent:?}", agent.name);
        }
    }
    let policy = Policy { tool_groups: vec!["messaging".to_owned()], ..Policy::default() };
    hive.create("blind", None, policy).await;
    assert_eq!(reason(find(&hive, "blind", "").await), Reason::CapabilityMissing);
}

#[tokio::test]
async fn pages_go_on_in_the_same_group() {
    let hive = Hive::new(&["me", "zoe", "amy"]).await;
    hive.create("mid", Some("me"), Policy::default()).await;
    hive.create("kid-b", Some("mid"), Policy::default()).await;
    hive.create("kid-a", Some("mid"), Policy::default()).await;
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let found = hive.engine().find_agents(caller("mid"), String::new(), after, 1);
        let (found, next) = found.await.expect("found");
        seen.extend(found.into_iter().map(|agent| String::from(agent.name)));
        // It is before the place in its group, so this reading does not see it.
        hive.create(&format!("added-{}", seen.len()), Some("mid"), Policy::default()).await;
        after = next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen, ["kid-a", "kid-b", "me", "amy", "zoe"]);
    assert_eq!(names(&hive, "mid", "zoe").await, ["zoe"]);
}

#[tokio::test]
async fn kin_are_the_parent_and_the_first_children() {
    let hive = Hive::new(&["root"]).await;
    create(&hive, "mid", Some("root"), "sorts", Policy::default()).await;
    let key = async |who: &str| hive.row(who).await.key;
    let kin = async |who: &str| hive.engine().kin(hive.row(who).await.key).await.expect("kin");
    create(&hive, "kid", Some("mid"), &"r".repeat(300), Policy::default()).await;
    assert_eq!(
        (kin("root").await.parent_role, kin("root").await.children_count),
        (String::new(), 1)
    );
    let mid = kin("kid").await;
    assert_eq!(
        (mid.parent_role.as_str(), mid.children_count, mid.children),
        ("sorts", 0, Vec::new())
    );
    let children = kin("mid").await.children;
    assert_eq!((children[0].name.as_str(), children[0].role.len()), ("kid", 200));
    for number in 0..KIN_CHILDREN_MAX {
        hive.create(&format!("kid-{number:03}"), Some("mid"), Policy::default()).await;
    }
    let many = kin("mid").await;
    assert_eq!(
        (many.children.len(), many.children_count),
        (KIN_CHILDREN_MAX as usize, KIN_CHILDREN_MAX + 1)
    );

    // A harness is notified of a child that is added, removed or moved.
    for change in ["create", "move", "retire"] {
        let hints = hive.engine().hints().agent(key("root").await);
        let told = hints.changed.notified();
        tokio::pin!(told);
        told.as_mut().enable();
        match change {
            "create" => hive.create("late", Some("root"), Policy::default()).await,
            "move" => {
                let moved = hive
                    .engine()
                    .set_parent(caller("operator"), hive.request("SetParent"), name("late"), None)
                    .await;
                assert_eq!(moved.expect("moved").parent, None);
            }
            _ => drop(hive.retire("mid").await),
        }
        told.await;
    }
    assert_eq!(
        kin("root").await.children_count,
        KIN_CHILDREN_MAX + 1,
        "the children of a retired agent move up"
    );
}
