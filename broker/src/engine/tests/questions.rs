//! Questions: asked durably, answered by who may, and ended exactly once.

use hive_core::delivery::State as DeliveryState;
use hive_core::delivery::State::{Acked, Dropped, Ready, Superseded};
use hive_core::id::QuestionId;
use hive_core::message::SystemKind::{
    QuestionAnswered, QuestionAsked, QuestionCancelled, QuestionExpired,
};
use hive_core::question::{Answer, Question, State, Wording};

use super::*;
use crate::engine::mail::question::Which;

/// A question without options.
pub(super) fn plain(to: &str, text: &str) -> Ask {
    Ask {
        to: recipient(to),
        wording: Wording { text: text.to_owned(), options: Vec::new(), multi: false },
        ttl: None,
        effect: None,
        short: None,
    }
}

/// A question with options.
fn with_options(to: &str, options: &[&str], multi: bool) -> Ask {
    let options = options.iter().map(|option| (*option).to_owned()).collect();
    Ask { wording: Wording { text: "which?".to_owned(), options, multi }, ..plain(to, "") }
}

/// A free text.
pub(super) fn text(words: &str) -> Answer {
    Answer { choices: Vec::new(), text: words.to_owned() }
}

impl Hive {
    pub(super) async fn ask(&self, from: Actor, ask: Ask) -> Result<(Question, bool), Refusal> {
        self.engine().ask(from, self.request("AskQuestion"), ask).await
    }

    /// Asks, and insists.
    pub(super) async fn asked(&self, from: &str, ask: Ask) -> QuestionId {
        self.ask(actor(from), ask).await.expect("it is asked").0.id
    }

    pub(super) async fn answer(
        &self,
        from: &str,
        id: QuestionId,
        answer: Answer,
    ) -> Result<Question, Refusal> {
        self.engine().answer(actor(from), self.request("AnswerQuestion"), id, answer).await
    }

    pub(super) async fn withdraw(&self, from: &str, id: QuestionId) -> Result<Question, Refusal> {
        self.engine().cancel_question(actor(from), self.request("CancelQuestion"), id).await
    }

    pub(super) async fn question(&self, id: QuestionId) -> Question {
        self.engine().get_question(caller("operator"), id).await.expect("the question is there")
    }

    /// Returns the notices about a question in an inbox: their kinds, and their delivery states,
    /// which show whether they were superseded before delivery.
    pub(super) async fn told(&self, who: &str, id: QuestionId) -> Vec<(SystemKind, DeliveryState)> {
        let mut inbox = self.inbox(who).await;
        inbox.retain(|delivery| delivery.message.question_id == Some(id));
        inbox
            .iter()
            .map(|delivery| (delivery.message.system_kind.expect("of the broker"), delivery.state))
            .collect()
    }

    async fn ask_in(&self, run: &Run, ask: Ask) -> (Question, bool) {
        self.ask(run.actor(), ask).await.expect("it is asked")
    }
}

#[tokio::test]
async fn a_question_reaches_its_target_and_its_answer_the_asker() {
    let mut hive = Hive::new(&["alice", "bob"]).await;
    let id = hive.asked("alice", plain("bob", "is the door shut?")).await;
    hive.crash().await;
    assert_eq!(hive.told("bob", id).await, [(QuestionAsked, Ready)]);
    let taken = hive.receive("bob", 1).await;
    let body = &taken[0].delivery.message.body;
    assert!(
        body.contains("is the door shut?") && body.contains(&format!("question {id}")),
        "{body}"
    );
    let answered = hive.answer("bob", id, text("it is")).await.expect("answered");
    assert_eq!(
        (answered.state, answered.closed_by.as_str(), answered.operator_override),
        (State::Answered, "bob", false)
    );
    hive.crash().await;
    assert_eq!(hive.told("alice", id).await, [(QuestionAnswered, Ready)]);
    let told = hive.receive("alice", 1).await;
    let body = &told[0].delivery.message.body;
    assert!(body.contains("it is") && body.contains("is the door shut?"), "{body}");
    assert_eq!(hive.question(id).await.answer, Some(text("it is")));
    assert_eq!(hive.told("bob", id).await.len(), 1, "who answered is told nothing more");
    assert_eq!(hive.count_events(EventKind::QuestionAsked).await, 1);
    assert_eq!(hive.count_events(EventKind::QuestionAnswered).await, 1);
}

#[tokio::test]
async fn the_operator_is_asked_like_an_agent_and_the_answer_marks_the_mail_as_read() {
    let hive = Hive::new(&["alice"]).await;
    let id = hive.asked("alice", with_options("operator", &["yes", "no"], false)).await;
    assert_eq!(hive.told("operator", id).await, [(QuestionAsked, Ready)]);
    let answer = Answer { choices: vec!["yes".to_owned()], text: "but hurry".to_owned() };
    let question = hive.answer("operator", id, answer.clone()).await.expect("answered");
    assert_eq!((question.answer, question.operator_override), (Some(answer), false));
    assert_eq!(question.closed_by, "uid 1000 (ada)");
    assert_eq!(hive.told("operator", id).await, [(QuestionAsked, Acked)]);
    assert_eq!(hive.told("alice", id).await, [(QuestionAnswered, Ready)]);
}

#[tokio::test]
async fn the_operator_asks_an_agent_and_hears_of_it_in_the_inbox() {
    let hive = Hive::new(&["alice"]).await;
    let id = hive.asked("operator", plain("alice", "how far are you?")).await;
    hive.answer("alice", id, text("half way")).await.expect("answered");
    assert_eq!(hive.told("operator", id).await, [(QuestionAnswered, Ready)]);
    for to in ["operator", "<parent>", "*"] {
        assert_eq!(
            reason(hive.ask(actor("operator"), plain(to, "x")).await),
            Reason::FieldInvalid,
            "{to}"
        );
    }
}

#[tokio::test]
async fn a_third_neither_answers_nor_sees_nor_withdraws() {
    let hive = Hive::new(&["alice", "bob", "carol"]).await;
    let id = hive.asked("alice", plain("bob", "well?")).await;
    assert_eq!(reason(hive.answer("carol", id, text("me!")).await), Reason::QuestionNotFound);
    assert_eq!(reason(hive.answer("alice", id, text("myself")).await), Reason::NotTheTarget);
    assert_eq!(reason(hive.withdraw("carol", id).await), Reason::QuestionNotFound);
    assert_eq!(reason(hive.withdraw("bob", id).await), Reason::NotYours);
    assert_eq!(
        reason(hive.engine().get_question(caller("carol"), id).await),
        Reason::QuestionNotFound
    );
    let seen =
        |who: &'static str| hive.engine().list_questions(caller(who), Which::default(), None, 50);
    assert_eq!(
        [seen("alice").await, seen("bob").await, seen("carol").await]
            .map(|list| list.expect("listed").0.len()),
        [1, 1, 0]
    );
    assert_eq!(hive.question(id).await.state, State::Open);
    assert_eq!(hive.count_events(EventKind::Refused).await, 2);
}

#[tokio::test]
async fn the_operator_answers_in_place_of_any_agent_and_both_sides_get_a_notice() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let undelivered = hive.asked("alice", plain("bob", "one?")).await;
    hive.answer("operator", undelivered, text("I say yes")).await.expect("answered");
    let question = hive.question(undelivered).await;
    assert!(question.operator_override && question.closed_by == "uid 1000 (ada)");
    let told = hive.told("bob", undelivered).await;
    assert_eq!(told, [(QuestionAsked, Superseded), (QuestionAnswered, Ready)]);
    assert_eq!(hive.told("alice", undelivered).await.len(), 1);
    assert_eq!(reason(hive.answer("bob", undelivered, text("no")).await), Reason::QuestionClosed);
}

#[tokio::test]
async fn a_deadline_passes_for_both_also_while_the_broker_is_down() {
    let mut hive = Hive::new(&["alice", "bob"]).await;
    let ask = Ask { ttl: Some(Duration::from_secs(60)), ..plain("bob", "soon?") };
    let id = hive.asked("alice", ask).await;
    hive.receive("bob", 1).await;
    hive.pass(59);
    assert_eq!(
        hive.engine().sweep_questions().await.expect("swept"),
        hive.question(id).await.deadline_time
    );
    assert_eq!(hive.question(id).await.state, State::Open);
    hive.pass(1);
    hive.crash().await;
    assert_eq!(hive.engine().sweep_questions().await.expect("swept"), None);
    assert_eq!(hive.question(id).await.state, State::Expired);
    assert_eq!(hive.told("alice", id).await, [(QuestionExpired, Ready)]);
    assert_eq!(hive.told("bob", id).await.last(), Some(&(QuestionExpired, Ready)));
    hive.engine().sweep_questions().await.expect("swept again");
    assert_eq!(hive.told("alice", id).await.len(), 1, "once");
    let late = hive.answer("bob", id, text("late")).await.expect_err("too late");
    assert_eq!(late.to_string(), format!("question {id} has its outcome already: expired"));
}

#[tokio::test]
async fn a_withdrawal_notifies_all_but_its_caller() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let own = hive.asked("alice", plain("bob", "one?")).await;
    hive.withdraw("alice", own).await.expect("withdrawn");
    assert_eq!(hive.told("alice", own).await, []);
    let told = [(QuestionAsked, Superseded), (QuestionCancelled, Ready)];
    assert_eq!(hive.told("bob", own).await, told);
    let others = hive.asked("alice", plain("bob", "two?")).await;
    hive.withdraw("operator", others).await.expect("withdrawn");
    assert_eq!(hive.told("alice", others).await, [(QuestionCancelled, Ready)]);
    let lost = hive.withdraw("alice", others).await.expect_err("it is over");
    assert_eq!(lost.reason(), Reason::QuestionClosed);
    assert!(lost.to_string().ends_with("cancelled by the operator"), "{lost}");
}

#[tokio::test]
async fn an_answer_must_fit_the_question() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let one = hive.asked("alice", with_options("bob", &["red", "blue"], false)).await;
    let both = Answer { choices: vec!["blue".to_owned(), "red".to_owned()], text: String::new() };
    let none = Answer::default();
    let other = Answer { choices: vec!["green".to_owned()], text: String::new() };
    for bad in [&both, &none, &other] {
        assert_eq!(
            reason(hive.answer("bob", one, bad.clone()).await),
            Reason::FieldInvalid,
            "{bad:?}"
        );
    }
    assert_eq!(hive.question(one).await.state, State::Open);
    let several = hive.asked("alice", with_options("bob", &["red", "blue"], true)).await;
    let answered = hive.answer("bob", several, both).await.expect("answered");
    assert_eq!(
        answered.answer.expect("an answer").choices,
        ["red", "blue"],
        "in the order offered"
    );
    let long = "x".repeat(16 * 1024 + 1);
    assert_eq!(reason(hive.answer("bob", one, text(&long)).await), Reason::BodyTooLarge);
}

#[tokio::test]
async fn asking_is_bound_like_sending() {
    let limits = Limits { questions_open_max: 2, ..Limits::default() };
    let hive = Hive::with_limits(&["carol"], limits).await;
    let only_carol = Policy { allowed_recipients: vec!["carol".to_owned()], ..Policy::default() };
    hive.create("alice", None, only_carol).await;
    hive.create("bob", None, Policy::default()).await;
    assert_eq!(
        reason(hive.ask(actor("alice"), plain("bob", "x")).await),
        Reason::RecipientNotAllowed
    );
    hive.asked("alice", plain("operator", "the parent is always allowed")).await;
    hive.asked("alice", plain("carol", "x")).await;
    let third = hive.ask(actor("alice"), plain("carol", "y")).await;
    assert_eq!(reason(third), Reason::QuestionLimit);
    for (to, wanted) in [
        ("nobody", Reason::AgentNotFound),
        ("alice", Reason::RecipientNotAllowed),
        ("*", Reason::FieldInvalid),
    ] {
        assert_eq!(reason(hive.ask(actor("alice"), plain(to, "x")).await), wanted, "{to}");
    }
    assert_eq!(
        reason(hive.ask(actor("bob"), plain("bob", "x")).await),
        Reason::FieldInvalid,
        "oneself"
    );
    let short = Ask { ttl: Some(Duration::from_millis(1)), ..plain("carol", "x") };
    assert_eq!(reason(hive.ask(actor("bob"), short).await), Reason::FieldInvalid);
    assert_eq!(reason(hive.ask(actor("bob"), plain("carol", " ")).await), Reason::FieldInvalid);
    hive.retire("carol").await;
    assert_eq!(reason(hive.ask(actor("bob"), plain("carol", "x")).await), Reason::AgentRetired);
    // The one that waited for carol has ended, so there is room again.
    hive.asked("alice", plain("operator", "z")).await;
}

#[tokio::test]
async fn retiring_one_of_the_two_ends_the_question() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let to_bob = hive.asked("alice", plain("bob", "one?")).await;
    let of_bob = hive.asked("bob", plain("alice", "two?")).await;
    hive.retire("bob").await;
    let question = hive.question(to_bob).await;
    assert_eq!((question.state, question.closed_by.as_str()), (State::Cancelled, ""));
    assert_eq!(hive.told("alice", to_bob).await, [(QuestionCancelled, Ready)]);
    let told = [(QuestionAsked, Superseded), (QuestionCancelled, Ready)];
    assert_eq!(hive.told("alice", of_bob).await, told);
    assert_eq!(hive.told("bob", of_bob).await, []);
}

#[tokio::test]
async fn a_repeated_request_gets_its_first_answer_and_asks_once() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let request = hive.request("AskQuestion");
    let ask = || hive.engine().ask(actor("alice"), request.clone(), plain("bob", "well?"));
    let (first, second) = (ask().await.expect("asked"), ask().await.expect("asked"));
    assert_eq!(first.0.id, second.0.id);
    assert_eq!(hive.told("bob", first.0.id).await.len(), 1);
    let request = hive.request("AnswerQuestion");
    let answer = || hive.engine().answer(actor("bob"), request.clone(), first.0.id, text("yes"));
    answer().await.expect("answered");
    assert_eq!(answer().await.expect("the first answer again").answer, Some(text("yes")));
    assert_eq!(hive.told("alice", first.0.id).await.len(), 1);
}

#[tokio::test]
async fn a_re_run_turn_asks_once() {
    let hive = Hive::new(&["alice", "bob", "carol"]).await;
    hive.send("alice", "bob", "find out").await;
    let harness = hive.attach("bob").await;
    let run = hive.begin(&harness).await;
    let (first, already) = hive.ask_in(&run, plain("carol", "well?")).await;
    assert!(!already && first.turn_id == Some(run.id));
    hive.end(&run, Outcome::Failed).await;
    hive.pass(3600);
    let run = hive.begin(&harness).await;
    let listed: Vec<QuestionId> =
        run.begun().already_asked.iter().map(|question| question.id).collect();
    assert_eq!(listed, [first.id]);
    assert!(!hive.ask_in(&run, plain("carol", "something else?")).await.1);
    let (second, already) = hive.ask_in(&run, plain("carol", "well?")).await;
    assert_eq!((second.id, already), (first.id, true));
    let (third, already) = hive.ask_in(&run, plain("carol", "well?")).await;
    assert!(!already && third.id != first.id, "each earlier one stands in once");
    hive.end(&run, Outcome::Ok).await;
}

#[tokio::test]
async fn a_process_without_an_open_turn_neither_asks_nor_answers() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let id = hive.asked("bob", plain("alice", "well?")).await;
    let harness = hive.attach("alice").await;
    let forged = Some("no-such-process-token".to_owned());
    for (stranger, why) in [
        (actor("alice"), Reason::HarnessAttached),
        (Actor { process_token: forged, ..actor("alice") }, Reason::TurnEnded),
    ] {
        assert_eq!(reason(hive.ask(stranger.clone(), plain("bob", "x")).await), why);
        let answer = hive
            .engine()
            .answer(stranger.clone(), hive.request("AnswerQuestion"), id, text("x"))
            .await;
        assert_eq!(reason(answer), why);
    }
    let run = hive.begin(&harness).await;
    hive.engine()
        .answer(run.actor(), hive.request("AnswerQuestion"), id, text("x"))
        .await
        .expect("answered");
    hive.end(&run, Outcome::Ok).await;
}

#[tokio::test]
async fn an_ask_in_a_full_inbox_is_not_lost() {
    let limits = Limits { inbox_depth_max: 1, ..Limits::default() };
    let hive = Hive::with_limits(&["alice", "bob"], limits).await;
    let [one, two] = [
        hive.asked("alice", plain("bob", "one?")).await,
        hive.asked("alice", plain("bob", "two?")).await,
    ];
    assert_eq!(hive.told("bob", one).await, [(QuestionAsked, Ready)]);
    assert_eq!(hive.told("bob", two).await, [(QuestionAsked, Ready)]);
}

#[tokio::test]
async fn a_reply_of_the_operator_marks_the_answered_mail_as_read() {
    let hive = Hive::new(&["alice"]).await;
    let sent = hive.send("alice", "operator", "look at this").await;
    let reply = Send { in_reply_to: Some(sent), ..mail("alice", "I did") };
    hive.send_as(actor("operator"), reply).await.expect("sent");
    let delivery = hive.delivery("operator", sent).await;
    assert_eq!((delivery.state, delivery.settled_by.as_str()), (Acked, "uid 1000 (ada)"));
    let dropped = hive.send("alice", "operator", "and this").await;
    hive.decide("operator", dropped, Decision::Drop).await.expect("dropped");
    let reply = Send { in_reply_to: Some(dropped), ..mail("alice", "too late") };
    hive.send_as(actor("operator"), reply).await.expect("sent");
    assert_eq!(hive.state("operator", dropped).await.0, Dropped);
}
