//! Logins: a dialogue between the operator and a harness, in memory: who may open and serve it, and
//! how it ends.

use super::*;
use crate::engine::operator::login::{End, Login, Said, Serving, Terminal, Typed};

/// Longer than anything here takes.
const GUARD: Duration = Duration::from_secs(30);

fn terminal() -> Terminal {
    Terminal { rows: 24, columns: 80, kind: "xterm".to_owned() }
}

async fn begin(hive: &Hive, agent: &str) -> Result<Login, Refusal> {
    hive.engine().begin_login(caller("operator"), name(agent), terminal()).await
}

async fn serve(hive: &Hive, harness: &Harness, id: u64) -> Result<Serving, Refusal> {
    hive.engine().serve_login(caller(&harness.agent), harness.token.clone(), id).await
}

/// Returns the id of the login that the harness is asked to serve.
fn wanted(hive: &Hive, harness: &Harness) -> Option<u64> {
    hive.engine().login_wanted(harness.attachment().agent()).map(|(id, _)| id)
}

async fn dialogue(hive: &Hive, harness: &Harness) -> (Login, Serving) {
    let mut login = begin(hive, &harness.agent).await.expect("it opens");
    let id = wanted(hive, harness).expect("it is asked for");
    let serving = serve(hive, harness, id).await.expect("it is served");
    hive.engine().login_answered(&mut login, GUARD).await.expect("it is answered");
    (login, serving)
}

#[tokio::test]
async fn each_side_reads_the_lines_of_the_other_in_order() {
    let hive = Hive::new(&["bob"]).await;
    let bob = hive.attach("bob").await;
    let (mut login, mut serving) = dialogue(&hive, &bob).await;
    assert_eq!(login.agent(), "bob");
    let larger = Terminal { rows: 50, ..terminal() };
    for step in [
        Typed::Input(b"code".to_vec()),
        Typed::Terminal(larger.clone()),
        Typed::Input(b"\r".to_vec()),
    ] {
        login.typed.send(step.clone()).await.expect("heard");
        assert_eq!(serving.typed.recv().await, Some(step));
    }
    let end = Said::End(End { logged_in: true, ..End::default() });
    for step in [Said::Output(b"Paste code: ".to_vec()), end.clone()] {
        serving.said.send(step).await.expect("heard");
    }
    drop(serving);
    assert_eq!(login.said.recv().await, Some(Said::Output(b"Paste code: ".to_vec())));
    assert_eq!(login.said.recv().await, Some(end));
    assert_eq!(login.said.recv().await, None);
}

#[tokio::test]
async fn the_words_are_in_no_log() {
    let typed =
        format!("{:?} {:?}", Typed::Input(b"secret".to_vec()), Said::Output(b"secret".to_vec()));
    assert_eq!(typed, "6 bytes typed 6 bytes said");
    let hive = Hive::new(&["bob"]).await;
    let bob = hive.attach("bob").await;
    let (login, _serving) = dialogue(&hive, &bob).await;
    login.typed.send(Typed::Input(b"secret".to_vec())).await.expect("heard");
    hive.engine().end_login(login, true, "logged in").await;
    let events = hive.events().await;
    let told: Vec<_> = events
        .iter()
        .rev()
        .take(2)
        .map(|event| (event.kind(), event.agent.as_str(), event.detail.as_str()))
        .collect();
    let who = "login, by uid 1000 (ada)";
    assert_eq!(
        told,
        [
            (EventKind::CommandClosed, "bob", "login: logged in"),
            (EventKind::CommandGiven, "bob", who)
        ]
    );
    assert!(!format!("{events:?}").contains("secret"));
}

#[tokio::test]
async fn a_side_that_speaks_faster_than_the_other_listens_waits() {
    let hive = Hive::new(&["bob"]).await;
    let bob = hive.attach("bob").await;
    let (mut login, serving) = dialogue(&hive, &bob).await;
    let mut sent = 0;
    while serving.said.try_send(Said::Output(vec![0; 1000])).is_ok() {
        sent += 1;
        assert!(sent < 100, "there is a bound");
    }
    let said = serving.said.clone();
    let waiting = tokio::spawn(async move { said.send(Said::Output(Vec::new())).await });
    hive.still_waits(&waiting).await;
    // The other direction does not wait for this one.
    login.typed.try_send(Typed::Input(b"x".to_vec())).expect("there is room");
    login.said.recv().await.expect("a step");
    done(waiting).await.expect("there is room again");
}

#[tokio::test]
async fn a_login_is_refused_without_a_harness() {
    let hive = Hive::new(&["bob", "old"]).await;
    hive.retire("old").await;
    assert_eq!(reason(begin(&hive, "nobody").await), Reason::AgentNotFound);
    assert_eq!(reason(begin(&hive, "old").await), Reason::AgentRetired);
    assert_eq!(reason(begin(&hive, "bob").await), Reason::HarnessOffline);
    let mut bob = hive.attach("bob").await;
    bob.vanish();
    assert_eq!(reason(begin(&hive, "bob").await), Reason::HarnessOffline);
    let by_agent = hive.engine().begin_login(caller("bob"), name("bob"), terminal());
    assert_eq!(reason(by_agent.await), Reason::NotYours);
    assert_eq!(hive.count_events(EventKind::CommandGiven).await, 0);
}

#[tokio::test]
async fn a_harness_that_does_not_answer_in_time_is_as_good_as_none() {
    let hive = Hive::new(&["bob"]).await;
    let bob = hive.attach("bob").await;
    let mut login = begin(&hive, "bob").await.expect("it opens");
    let id = wanted(&hive, &bob).expect("it is asked for");
    let answered = hive.engine().login_answered(&mut login, Duration::ZERO);
    assert_eq!(reason(answered.await), Reason::HarnessOffline);
    hive.engine().end_login(login, false, "no answer").await;
    assert_eq!(wanted(&hive, &bob), None);
    assert_eq!(reason(serve(&hive, &bob, id).await), Reason::LoginNotFound, "too late");
    // The next try finds the place free.
    dialogue(&hive, &bob).await;
}

#[tokio::test]
async fn there_is_one_dialogue_with_an_agent_at_a_time() {
    let hive = Hive::new(&["bob", "eve"]).await;
    let (bob, eve) = (hive.attach("bob").await, hive.attach("eve").await);
    let first = begin(&hive, "bob").await.expect("it opens");
    assert_eq!(reason(begin(&hive, "bob").await), Reason::LoginOpen);
    let id = wanted(&hive, &bob).expect("asked for");
    let serving = serve(&hive, &bob, id).await.expect("served");
    assert_eq!(reason(begin(&hive, "bob").await), Reason::LoginOpen);
    let (_login, _serving) = dialogue(&hive, &eve).await;
    drop(first);
    assert!(serving.said.is_closed(), "the harness hears that the operator has gone");
    begin(&hive, "bob").await.expect("the place is free, although the harness is not through yet");
}

#[tokio::test]
async fn only_the_agents_own_harness_serves_a_dialogue_and_once() {
    let hive = Hive::new(&["bob", "eve"]).await;
    let (bob, eve) = (hive.attach("bob").await, hive.attach("eve").await);
    let _login = begin(&hive, "bob").await.expect("it opens");
    let id = wanted(&hive, &bob).expect("asked for");
    assert_eq!(wanted(&hive, &eve), None);
    assert_eq!(reason(serve(&hive, &eve, id).await), Reason::LoginNotFound);
    assert_eq!(reason(serve(&hive, &bob, id ^ 1).await), Reason::LoginNotFound);
    let forged = hive.engine().serve_login(caller("eve"), bob.token.clone(), id);
    assert_eq!(reason(forged.await), Reason::SessionLost);
    let serving = serve(&hive, &bob, id).await.expect("served");
    assert_eq!(reason(serve(&hive, &bob, id).await), Reason::LoginNotFound);
    assert_eq!(wanted(&hive, &bob), None, "nobody asks twice");
    drop(serving);
    assert_eq!(reason(serve(&hive, &bob, id).await), Reason::LoginNotFound);
}

#[tokio::test]
async fn a_side_that_goes_away_ends_the_dialogue_for_the_other() {
    let hive = Hive::new(&["bob"]).await;
    let bob = hive.attach("bob").await;
    let (mut login, serving) = dialogue(&hive, &bob).await;
    drop(serving);
    assert_eq!(login.said.recv().await, None);
    assert!(login.typed.is_closed());
    drop(login);
    let (login, mut serving) = dialogue(&hive, &bob).await;
    drop(login);
    assert_eq!(serving.typed.recv().await, None);
    tokio::time::timeout(GUARD, serving.said.closed()).await.expect("it is told");
}

#[tokio::test]
async fn a_session_that_is_over_serves_nothing_more() {
    let hive = Hive::new(&["bob"]).await;
    let bob = hive.attach("bob").await;
    let (engine, token) = (Arc::clone(hive.engine()), bob.token.clone());
    let over = tokio::spawn(async move { engine.session_over(caller("bob"), token).await });
    hive.send("operator", "bob", "hello").await;
    hive.turn(&bob, Outcome::Ok).await;
    hive.still_waits(&over).await;
    hive.try_attach("bob", "", true).await.expect("another takes over");
    assert_eq!(done(over).await.reason(), Reason::SessionLost);
}

#[tokio::test]
async fn a_broker_that_ends_opens_no_login_and_waits_for_no_answer() {
    let hive = Hive::new(&["bob"]).await;
    let bob = hive.attach("bob").await;
    let mut login = begin(&hive, "bob").await.expect("it opens");
    let id = wanted(&hive, &bob).expect("asked for");
    hive.engine().drain();
    assert_eq!(reason(hive.engine().login_answered(&mut login, GUARD).await), Reason::Draining);
    assert_eq!(reason(serve(&hive, &bob, id).await), Reason::Draining);
    assert_eq!(reason(begin(&hive, "bob").await), Reason::Draining);
}

#[tokio::test]
async fn a_wish_for_a_login_is_hinted_to_the_attached_harness() {
    let hive = Hive::new(&["bob"]).await;
    let bob = hive.attach("bob").await;
    let hints = hive.engine().hints().agent(bob.attachment().agent());
    let told = hints.changed.notified();
    tokio::pin!(told);
    told.as_mut().enable();
    let _login = begin(&hive, "bob").await.expect("it opens");
    tokio::time::timeout(GUARD, told).await.expect("it is hinted");
}
