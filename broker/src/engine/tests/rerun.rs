//! Re-run turns: identical mail is not doubled, and nothing that is not identical is swallowed.

use proptest::prelude::*;

use super::*;
use crate::engine::mail::send::Receipt;

const LONG: u64 = 3600;

/// alice asked bob something.
async fn asked() -> (Hive, Harness) {
    let hive = Hive::new(&["alice", "bob", "carol"]).await;
    hive.send("alice", "bob", "do it").await;
    let harness = hive.attach("bob").await;
    (hive, harness)
}

/// The turn ends badly and is run again.
async fn again(hive: &Hive, harness: &Harness, run: &Run, outcome: Outcome) -> Run {
    hive.end(run, outcome).await;
    hive.pass(LONG);
    let next = hive.begin(harness).await;
    assert_eq!(next.message(), run.message());
    next
}

async fn say(hive: &Hive, run: &Run, to: &str, body: &str) -> Receipt {
    hive.send_in(run, to, body).await.expect("accepted")
}

async fn reply(
    hive: &Hive,
    run: &Run,
    to: &str,
    body: &str,
    to_message: Option<MessageId>,
) -> Receipt {
    let send = Send { in_reply_to: to_message, ..mail(to, body) };
    hive.send_as(run.actor(), send).await.expect("accepted")
}

#[tokio::test]
async fn an_equal_message_of_a_re_run_is_the_first_one() {
    for outcome in [Outcome::Failed, Outcome::RateLimited, Outcome::Unavailable, Outcome::Drained] {
        let (hive, harness) = asked().await;
        let run = hive.begin(&harness).await;
        let first = say(&hive, &run, "alice", "done").await;
        assert!(!first.already_sent);
        let run = again(&hive, &harness, &run, outcome).await;
        let told: Vec<&str> =
            run.begun().already_sent.iter().map(|message| message.body.as_str()).collect();
        assert_eq!(told, ["done"], "the prompt lists it");
        hive.pass(5);
        let second = say(&hive, &run, "alice", "done").await;
        assert_eq!((second.message, second.already_sent), (first.message, true), "{outcome:?}");
        assert_eq!(second.accept_time, first.accept_time);
        hive.end(&run, Outcome::Ok).await;
        assert_eq!(hive.inbox("alice").await.len(), 1);
    }
}

#[tokio::test]
async fn a_re_run_after_a_vanished_harness_knows_the_sent_mail_too() {
    let (mut hive, harness) = asked().await;
    let run = hive.begin(&harness).await;
    let first = say(&hive, &run, "alice", "done").await;
    drop(harness);
    hive.crash().await;
    let harness = hive.attach("bob").await;
    hive.pass(LONG);
    let run = hive.begin(&harness).await;
    let second = say(&hive, &run, "alice", "done").await;
    assert_eq!((second.message, second.already_sent), (first.message, true));
}

#[tokio::test]
async fn another_recipient_text_or_reply_link_is_another_message() {
    let (hive, harness) = asked().await;
    let run = hive.begin(&harness).await;
    say(&hive, &run, "alice", "done").await;
    let run = again(&hive, &harness, &run, Outcome::Failed).await;
    assert!(!say(&hive, &run, "carol", "done").await.already_sent);
    assert!(!say(&hive, &run, "*", "done").await.already_sent);
    assert!(!say(&hive, &run, "alice", "Done").await.already_sent);
    assert!(!reply(&hive, &run, "alice", "done", Some(run.message())).await.already_sent);
    assert!(say(&hive, &run, "alice", "done").await.already_sent);
}

#[tokio::test]
async fn broadcasts_and_replies_are_recognised_too() {
    let (hive, harness) = asked().await;
    let run = hive.begin(&harness).await;
    let (all, answer) = (
        say(&hive, &run, "*", "all").await,
        reply(&hive, &run, "alice", "yes", Some(run.message())).await,
    );
    let run = again(&hive, &harness, &run, Outcome::Failed).await;
    assert_eq!(say(&hive, &run, "*", "all").await.message, all.message);
    assert_eq!(
        reply(&hive, &run, "alice", "yes", Some(run.message())).await.message,
        answer.message
    );
    assert_eq!((hive.inbox("alice").await.len(), hive.inbox("carol").await.len()), (2, 1));
}

#[tokio::test]
async fn two_equal_messages_of_one_turn_are_two_messages_and_stay_two() {
    let (hive, harness) = asked().await;
    let run = hive.begin(&harness).await;
    let first = [
        say(&hive, &run, "alice", "ping").await.message,
        say(&hive, &run, "alice", "ping").await.message,
    ];
    assert_ne!(first[0], first[1]);
    let run = again(&hive, &harness, &run, Outcome::Failed).await;
    let second = [
        say(&hive, &run, "alice", "ping").await.message,
        say(&hive, &run, "alice", "ping").await.message,
    ];
    assert_eq!(first, second, "each earlier one stands in for one");
    let third = say(&hive, &run, "alice", "ping").await;
    assert!(!third.already_sent);
    hive.end(&run, Outcome::Ok).await;
    assert_eq!(hive.inbox("alice").await.len(), 3);
}

#[tokio::test]
async fn a_third_run_knows_the_mail_of_both_earlier_runs() {
    let (hive, harness) = asked().await;
    let run = hive.begin(&harness).await;
    let one = say(&hive, &run, "alice", "one").await.message;
    let run = again(&hive, &harness, &run, Outcome::Failed).await;
    assert_eq!(say(&hive, &run, "alice", "one").await.message, one);
    let two = say(&hive, &run, "alice", "two").await.message;
    let run = again(&hive, &harness, &run, Outcome::Failed).await;
    let told: Vec<MessageId> = run.begun().already_sent.iter().map(|message| message.id).collect();
    assert_eq!(told, [one, two]);
    assert_eq!(say(&hive, &run, "alice", "two").await.message, two);
    assert_eq!(say(&hive, &run, "alice", "one").await.message, one);
    assert!(!say(&hive, &run, "alice", "one").await.already_sent);
}

#[tokio::test]
async fn after_a_good_end_equal_words_are_new_words() {
    let (hive, harness) = asked().await;
    let run = hive.begin(&harness).await;
    say(&hive, &run, "alice", "done").await;
    hive.end(&run, Outcome::Ok).await;
    hive.send("alice", "bob", "do it again").await;
    let run = hive.begin(&harness).await;
    assert!(run.begun().already_sent.is_empty());
    assert!(!say(&hive, &run, "alice", "done").await.already_sent);
    assert_eq!(hive.inbox("alice").await.len(), 2);
}

#[tokio::test]
async fn mail_requeued_by_a_turn_that_ended_well_is_no_re_run() {
    let (hive, harness) = asked().await;
    hive.send("alice", "bob", "and that").await;
    let run = hive.begin(&harness).await;
    hive.recv(&run, "tool-whose-result-is-lost", 1).await;
    let first = say(&hive, &run, "alice", "done").await.message;
    assert_eq!(hive.end(&run, Outcome::Ok).await.settled.returned, 1);
    let run = hive.begin(&harness).await;
    assert_eq!(run.body(), "and that");
    assert!(run.begun().already_sent.is_empty());
    let second = say(&hive, &run, "alice", "done").await;
    assert!(!second.already_sent && second.message != first);
}

#[tokio::test]
async fn other_deliveries_turns_are_not_searched() {
    let (hive, harness) = asked().await;
    let run = hive.begin(&harness).await;
    say(&hive, &run, "alice", "done").await;
    hive.end(&run, Outcome::Failed).await;
    hive.send("alice", "bob", "something else").await;
    let other = hive.begin(&harness).await;
    assert_eq!(other.body(), "something else");
    assert!(!say(&hive, &other, "alice", "done").await.already_sent);
    hive.end(&other, Outcome::Ok).await;
    let own = hive.open(&harness, Kind::Continue).await.expect("it opens");
    assert!(!say(&hive, &own, "alice", "done").await.already_sent);
}

#[tokio::test]
async fn a_delivery_received_in_a_turn_keeps_the_number_of_that_turn() {
    let (hive, harness) = asked().await;
    let second = hive.send("alice", "bob", "and that").await;
    let run = hive.begin(&harness).await;
    hive.recv(&run, "tool-1", 1).await;
    let sent = say(&hive, &run, "alice", "both done").await.message;
    hive.end(&run, Outcome::Failed).await;
    hive.decide("bob", run.message(), Decision::Drop).await.expect("dropped");
    hive.pass(LONG);
    let run = hive.begin(&harness).await;
    assert_eq!(run.message(), second);
    assert_eq!(say(&hive, &run, "alice", "both done").await.message, sent);
}

#[tokio::test]
async fn an_earlier_message_that_stood_in_for_a_finished_turn_is_used_up() {
    // Two tasks with the same answer. Their first turn broke after one answer; each task expects
    // one.
    let (hive, harness) = asked().await;
    hive.send("alice", "bob", "and that").await;
    let run = hive.begin(&harness).await;
    hive.recv(&run, "tool-1", 1).await;
    let first = say(&hive, &run, "alice", "done").await.message;
    hive.end(&run, Outcome::Failed).await;
    hive.pass(LONG);
    let one = hive.begin(&harness).await;
    assert_eq!(say(&hive, &one, "alice", "done").await.message, first);
    hive.end(&one, Outcome::Ok).await;
    let two = hive.begin(&harness).await;
    assert_eq!(two.body(), "and that");
    assert!(!say(&hive, &two, "alice", "done").await.already_sent);
    hive.end(&two, Outcome::Ok).await;
    assert_eq!(hive.inbox("alice").await.len(), 2);
}

#[tokio::test]
async fn a_released_turn_knows_the_mail_of_its_cancelled_run() {
    let (hive, harness) = asked().await;
    let run = hive.begin(&harness).await;
    let first = say(&hive, &run, "alice", "working on it").await.message;
    hive.end(&run, Outcome::Cancelled).await;
    hive.decide("bob", run.message(), Decision::Release).await.expect("released");
    let run = hive.begin(&harness).await;
    assert_eq!(say(&hive, &run, "alice", "working on it").await.message, first);
}

#[tokio::test]
async fn a_suppressed_message_costs_no_rate_and_no_room() {
    let limits = Limits { sends_per_minute_max: 1, inbox_depth_max: 1, ..Default::default() };
    let hive = Hive::with_limits(&["alice", "bob"], limits).await;
    hive.send("operator", "bob", "do it").await;
    let harness = hive.attach("bob").await;
    let run = hive.begin(&harness).await;
    say(&hive, &run, "alice", "done").await;
    hive.end(&run, Outcome::Drained).await;
    let run = hive.begin(&harness).await;
    assert!(say(&hive, &run, "alice", "done").await.already_sent);
}

#[tokio::test]
async fn the_receipt_of_a_suppressed_broadcast_names_the_missing_recipients() {
    let limits = Limits { inbox_depth_max: 1, ..Default::default() };
    let hive = Hive::with_limits(&["alice", "bob", "carol"], limits).await;
    hive.send("operator", "bob", "do it").await;
    let full = hive.send("operator", "carol", "carol's inbox is full").await;
    let harness = hive.attach("bob").await;
    let run = hive.begin(&harness).await;
    let first = say(&hive, &run, "*", "all").await;
    assert_eq!((first.recipients, first.skipped), (1, vec!["carol".to_owned()]));
    let run = again(&hive, &harness, &run, Outcome::Drained).await;
    hive.decide("carol", full, Decision::Drop).await.expect("dropped");
    let second = say(&hive, &run, "*", "all").await;
    assert_eq!((second.message, second.already_sent), (first.message, true));
    assert_eq!((second.recipients, second.skipped), (1, vec!["carol".to_owned()]));
}

/// The end of a run that has to be repeated.
#[derive(Clone, Copy, Debug)]
enum Break {
    End(Outcome),
    Vanish,
    TakeOver,
    Restart,
    Reboot,
}

fn story() -> impl Strategy<Value = Vec<(Vec<usize>, Break)>> {
    let breaks = prop_oneof![
        Just(Break::End(Outcome::Failed)),
        Just(Break::End(Outcome::RateLimited)),
        Just(Break::End(Outcome::Unavailable)),
        Just(Break::End(Outcome::Drained)),
        Just(Break::Vanish),
        Just(Break::TakeOver),
        Just(Break::Restart),
        Just(Break::Reboot),
    ];
    prop::collection::vec((prop::collection::vec(0..3usize, 0..6), breaks), 1..8)
}

/// Plays such a story. After each run, the count of each text equals the largest count that one run
/// sent.
async fn tell(story: Vec<(Vec<usize>, Break)>) {
    const WORDS: [&str; 3] = ["yes", "no", "done"];
    let limits = Limits { attempts_max: 1000, ..Default::default() };
    let mut hive = Hive::with_limits(&["alice", "bob"], limits).await;
    hive.send("operator", "bob", "do it").await;
    let mut harness = hive.attach("bob").await;
    let mut most = [0usize; 3];
    for (words, how) in story {
        let run = hive.begin(&harness).await;
        assert_eq!(run.begun().already_sent.len(), most.iter().sum::<usize>());
        let mut said = [0; 3];
        for word in words {
            let receipt = say(&hive, &run, "alice", WORDS[word]).await;
            assert_eq!(receipt.already_sent, said[word] < most[word]);
            said[word] += 1;
        }
        for (most, said) in most.iter_mut().zip(said) {
            *most = (*most).max(said);
        }
        let inbox = hive.inbox("alice").await;
        let count =
            |word: &str| inbox.iter().filter(|delivery| delivery.message.body == word).count();
        assert_eq!(WORDS.map(count), most);
        match how {
            Break::End(outcome) => drop(hive.end(&run, outcome).await),
            Break::Vanish => harness.vanish(),
            Break::TakeOver => {}
            Break::Restart => hive.restart().await,
            Break::Reboot => hive.reboot().await,
        }
        if !matches!(how, Break::End(_)) {
            harness = hive.try_attach("bob", "", true).await.expect("it attaches");
        }
        hive.pass(LONG);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 50, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn identical_mail_is_not_doubled_however_often_a_turn_is_run_again(story in story()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(tell(story));
    }
}
