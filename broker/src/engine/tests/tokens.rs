//! Process tokens: while a harness has a session, its agent acts only through a process of an open
//! turn. A leaked bridge cannot send.

use super::*;

/// Everything that a bridge may do, and how it is answered.
async fn attempts(hive: &Hive, actor: &Actor) -> Vec<Option<Reason>> {
    let engine = hive.engine();
    let send = engine
        .send(actor.clone(), hive.request("SendMessage"), mail("alice", "hi"))
        .await
        .map(|_| ());
    let receive =
        receive(engine, actor.clone(), hive.request("ReceiveMessages"), up_to(1)).await.map(|_| ());
    let status = engine
        .set_status_text(actor.clone(), hive.request("SetStatusText"), "busy".to_owned())
        .await;
    let next = engine.request_next_turn(actor.clone()).await;
    [send, receive, status, next]
        .into_iter()
        .map(|answer| answer.err().map(|refusal| refusal.reason()))
        .collect()
}

#[tokio::test]
async fn the_process_of_the_open_turn_may_act() {
    let (hive, _harness, run) = in_mid_turn().await;
    assert_eq!(attempts(&hive, &run.actor()).await, [None; 4]);
    let sent = hive.inbox("alice").await;
    assert_eq!(sent[0].message.turn_id, Some(run.id));
}

#[tokio::test]
async fn without_a_token_nothing_is_sent_or_taken_while_a_session_lives() {
    let (hive, harness, run) = in_mid_turn().await;
    hive.end(&run, Outcome::Drained).await;
    let events = hive.events().await;
    let answers = attempts(&hive, &actor("bob")).await;
    assert_eq!(answers, [Some(Reason::HarnessAttached); 4]);
    assert_eq!(hive.events().await, events);
    // The harness has gone, but may come back: its session lives through the grace time.
    let run = hive.begin(&harness).await;
    drop(harness);
    hive.pass_and_sweep(59).await;
    let without = hive.send_as(actor("bob"), mail("alice", "hi")).await;
    assert_eq!(reason(without), Reason::HarnessAttached);
    hive.pass_and_sweep(1).await;
    hive.send("bob", "alice", "bob is a plain client again").await;
    assert_eq!(reason(hive.send_in(&run, "alice", "hi").await), Reason::TurnEnded);
}

#[tokio::test]
async fn a_wrong_token_is_worth_as_much_as_none() {
    let (hive, _harness, run) = in_mid_turn().await;
    let ended = Some(Reason::TurnEnded);
    for token in ["", "guess-guess-guess-guess", &run.session_token] {
        let forged = Actor {
            caller: caller("bob"),
            process_token: Some(token.to_owned()),
            cause: Default::default(),
        };
        assert_eq!(attempts(&hive, &forged).await, [ended; 4], "{token:?}");
    }
}

#[tokio::test]
async fn a_token_works_on_its_own_agents_socket_only() {
    let (hive, _harness, run) = in_mid_turn().await;
    let stolen = Actor {
        caller: caller("alice"),
        process_token: Some(run.process_token.clone()),
        cause: Default::default(),
    };
    assert_eq!(attempts(&hive, &stolen).await, [Some(Reason::TurnEnded); 4]);
}

#[tokio::test]
async fn a_token_dies_with_its_turn() {
    let (hive, harness, run) = in_mid_turn().await;
    hive.end(&run, Outcome::Ok).await;
    let ended = Some(Reason::TurnEnded);
    assert_eq!(attempts(&hive, &run.actor()).await, [ended; 4]);
    hive.send("alice", "bob", "more").await;
    let next = hive.begin(&harness).await;
    assert_eq!(attempts(&hive, &run.actor()).await, [ended; 4], "the next turn is another process");
    assert_eq!(attempts(&hive, &next.actor()).await, [None; 4]);
}

#[tokio::test]
async fn a_send_repeated_after_its_turn_is_still_answered_as_the_first_time() {
    let (hive, _harness, run) = in_mid_turn().await;
    let key = request("SendMessage", "turn-3:tool-1", 1);
    let first =
        hive.engine().send(run.actor(), key.clone(), mail("alice", "hi")).await.expect("accepted");
    hive.end(&run, Outcome::Ok).await;
    let again =
        hive.engine().send(run.actor(), key, mail("alice", "hi")).await.expect("answered again");
    assert_eq!(first, again);
    assert_eq!(hive.inbox("alice").await.len(), 1);
}

#[tokio::test]
async fn a_recv_repeated_in_its_turn_gives_the_same_mail_and_after_it_none() {
    let (hive, harness, run) = in_mid_turn().await;
    hive.send("alice", "bob", "one").await;
    hive.send("alice", "bob", "two").await;
    let key = request("ReceiveMessages", "turn-3:tool-1", 1);
    let ask = Receive { tool_use: Some("tool-1".to_owned()), ..up_to(1) };
    let first = receive(hive.engine(), run.actor(), key.clone(), ask.clone()).await.expect("taken");
    let again = receive(hive.engine(), run.actor(), key.clone(), ask.clone())
        .await
        .expect("answered again");
    assert_eq!(ids(&first.deliveries), ids(&again.deliveries));
    hive.end(&run, Outcome::Drained).await;
    assert_eq!(reason(receive(hive.engine(), run.actor(), key, ask).await), Reason::TurnEnded);
    hive.begin(&harness).await;
}

#[tokio::test]
async fn the_operator_leases_no_mail() {
    let hive = Hive::new(&["alice"]).await;
    hive.send("alice", "operator", "hello").await;
    assert_eq!(reason(hive.try_receive("operator", up_to(1)).await), Reason::NotAnAgent);
}
