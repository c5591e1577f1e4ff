//! Traces: which span causes which, and that a trace changes nothing else.

use hive_core::question::{Answer, Wording};
use hive_core::trace::{TraceContext, Traced};
use hive_export::{delivery_span, tool_span};

use super::*;
use crate::engine::trace::Cause;
use crate::store::traced;

const STATED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn context(text: &str) -> TraceContext {
    TraceContext::parse(text).expect("a trace context")
}

/// The actor in this span.
fn within(actor: Actor, trace: TraceContext) -> Actor {
    Actor { cause: Cause { trace: Some(trace), tool_use_id: None }, ..actor }
}

impl Hive {
    /// Sends a message in a span; the span in which it was sent.
    async fn traced(&self, from: Actor, to: &str, body: &str) -> (MessageId, Option<Traced>) {
        let id = self.send_as(from, mail(to, body)).await.expect("accepted").message;
        (id, self.span_of(id).await)
    }

    async fn span_of(&self, id: MessageId) -> Option<Traced> {
        let read = move |conn: &rusqlite::Connection, _| {
            let mut found = None;
            traced::each_sent(conn, id..=id, |message| found = message.traced)?;
            Ok::<_, Refusal>(found)
        };
        self.engine().store().read(read).await.expect("read")
    }

    /// The span of the only message to an agent of this kind.
    async fn span_of_notice(&self, who: &str, kind: SystemKind) -> Option<Traced> {
        let mut inbox = self.inbox(who).await;
        inbox.retain(|delivery| delivery.message.system_kind == Some(kind));
        let [notice] = &inbox[..] else { panic!("{inbox:?}") };
        let span = self.span_of(notice.message.id).await;
        assert_eq!(notice.message.traceparent, span.map(|span| span.context));
        span
    }

    async fn span_of_turn(&self, run: &Run) -> Option<Traced> {
        let id = run.id;
        let read = self.engine().store().read(move |conn, _| {
            let found = traced::of_turn(conn, id)?;
            Ok::<_, Refusal>(found)
        });
        read.await.expect("read")
    }
}

/// Checks that a span is below another, in its trace.
fn below(span: Option<Traced>, parent: TraceContext) {
    let span = span.expect("a span");
    assert_eq!(span.parent, Some(parent.span_id));
    assert_eq!(span.context, parent.with_span(span.context.span_id));
    assert_ne!(span.context.span_id, parent.span_id);
}

#[tokio::test]
async fn without_a_trace_nothing_begins_one_until_traces_are_exported() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let (_, none) = hive.traced(actor("alice"), "bob", "untraced").await;
    assert_eq!(none, None);
    let harness = hive.attach("bob").await;
    let run = hive.begin(&harness).await;
    assert_eq!((run.begun().turn.traceparent, hive.span_of_turn(&run).await), (None, None));
    hive.engine().store().begin_traces();
    let (_, first) = hive.traced(actor("alice"), "bob", "one").await;
    let (_, second) = hive.traced(actor("alice"), "bob", "two").await;
    let (first, second) = (first.expect("a span"), second.expect("a span"));
    assert_eq!((first.parent, first.context.is_sampled()), (None, true));
    assert_ne!(first.context.trace_id, second.context.trace_id);
}

#[tokio::test]
async fn a_turn_and_what_it_sends_are_in_the_trace_of_its_message() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let stated = context(STATED);
    let (id, sent) = hive.traced(within(actor("alice"), stated), "bob", "hello").await;
    below(sent, stated);
    let sent = sent.expect("a span").context;
    let harness = hive.attach("bob").await;
    let run = hive.begin(&harness).await;
    assert_eq!(run.begun().delivery().message.traceparent, Some(sent));
    let turn = hive.span_of_turn(&run).await;
    below(turn, sent.with_span(delivery_span(sent, run.id)));
    let turn = turn.expect("a span").context;
    assert_eq!(run.begun().turn.traceparent, Some(turn));

    below(hive.traced(run.actor(), "alice", "from the turn").await.1, turn);
    let cause = Cause { trace: None, tool_use_id: Some("toolu_1".into()) };
    let tool = Actor { cause, ..run.actor() };
    let of_tool = turn.with_span(tool_span(turn, "toolu_1"));
    below(hive.traced(tool.clone(), "alice", "from a tool").await.1, of_tool);
    // What the caller states is more than what the broker knows.
    let other = context(&STATED.replace("0af7", "1af7"));
    below(hive.traced(within(tool, other), "alice", "from elsewhere").await.1, other);

    hive.end(&run, Outcome::Ok).await;
    let listed = hive.engine().list_turns(caller("bob"), String::new(), None, 1).await;
    assert_eq!(listed.expect("listed").0[0].traceparent, Some(turn));
    let read = hive.engine().get_message(caller("bob"), id).await.expect("read");
    assert_eq!(read.traceparent, Some(sent));
}

#[tokio::test]
async fn a_trace_that_is_not_sampled_stays_so() {
    let hive = Hive::new(&["alice", "bob"]).await;
    hive.engine().store().begin_traces();
    let stated = context(&STATED.replace("-01", "-00"));
    hive.traced(within(actor("alice"), stated), "bob", "hello").await;
    let harness = hive.attach("bob").await;
    let run = hive.begin(&harness).await;
    let (_, reply) = hive.traced(run.actor(), "alice", "reply").await;
    let reply = reply.expect("a span").context;
    assert_eq!((reply.is_sampled(), reply.trace_id), (false, stated.trace_id));
}

#[tokio::test]
async fn a_repeated_request_keeps_its_first_trace() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let key = request("SendMessage", "once", 1);
    let mut first = None;
    for trace in [STATED.to_owned(), STATED.replace("0af7", "1af7")] {
        let from = within(actor("alice"), context(&trace));
        let sent = hive.engine().send(from, key.clone(), mail("bob", "x")).await;
        let id = sent.expect("the same receipt").message;
        assert_eq!(*first.get_or_insert(id), id);
    }
    below(hive.span_of(first.expect("sent")).await, context(STATED));
}

#[tokio::test]
async fn the_outcome_of_a_question_is_in_the_trace_of_the_question() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let ask = || questions::plain("operator", "well?");
    let text = |text: &str| Answer { choices: Vec::new(), text: text.to_owned() };
    let answer = |from: Actor, id| {
        hive.engine().answer(from, hive.request("AnswerQuestion"), id, text("yes"))
    };
    let stated = context(STATED);
    let (first, _) = hive.ask(within(actor("alice"), stated), ask()).await.expect("asked");
    let asked = hive.span_of_notice("operator", SystemKind::QuestionAsked).await;
    below(asked, stated);
    // The operator answers in a trace of their own, which is another.
    let other = context(&STATED.replace("0af7", "1af7"));
    answer(within(actor("operator"), other), first.id).await.expect("answered");
    let told = hive.span_of_notice("alice", SystemKind::QuestionAnswered).await;
    below(told, asked.expect("a span").context);

    // In the trace of the question, the span of the answer is the parent.
    let ask = Ask {
        to: recipient("operator"),
        wording: Wording { text: "again?".to_owned(), options: Vec::new(), multi: false },
        ttl: None,
        effect: None,
        short: None,
    };
    let (second, _) = hive.ask(within(actor("bob"), stated), ask).await.expect("asked");
    let inside = context(&STATED.replace("b7ad", "c7ad"));
    answer(within(actor("operator"), inside), second.id).await.expect("answered");
    below(hive.span_of_notice("bob", SystemKind::QuestionAnswered).await, inside);
}

#[tokio::test]
async fn a_reminder_fires_in_the_span_that_set_it() {
    let (hive, _harness, run) = {
        let hive = Hive::new(&["alice"]).await;
        hive.traced(within(actor("operator"), context(STATED)), "alice", "hello").await;
        let harness = hive.attach("alice").await;
        let run = hive.begin(&harness).await;
        (hive, harness, run)
    };
    let due = Due::In(Duration::from_secs(60));
    let set = hive.engine().set_reminder(
        run.actor(),
        hive.request("CreateReminder"),
        "later".to_owned(),
        due,
    );
    set.await.expect("it is set");
    hive.end(&run, Outcome::Ok).await;
    hive.pass(60);
    hive.engine().sweep_reminders().await.expect("swept");
    let turn = hive.span_of_turn(&run).await.expect("a span").context;
    below(hive.span_of_notice("alice", SystemKind::Reminder).await, turn);
}

#[tokio::test]
async fn a_turn_that_continues_another_is_below_it_and_upkeep_is_not() {
    let hive = Hive::new(&["bob"]).await;
    hive.traced(within(actor("operator"), context(STATED)), "bob", "hello").await;
    let harness = hive.attach("bob").await;
    let run = hive.turn(&harness, Outcome::Ok).await;
    let work = hive.span_of_turn(&run).await.expect("a span").context;
    let next = hive.open(&harness, Kind::Continue).await.expect("it may begin");
    below(hive.span_of_turn(&next).await, work);
    hive.end(&next, Outcome::Ok).await;
    let upkeep = hive.open(&harness, Kind::Compact).await.expect("it may begin");
    assert_eq!(hive.span_of_turn(&upkeep).await, None);
}

#[tokio::test]
async fn the_notice_of_a_failed_turn_is_in_its_trace() {
    let hive = Hive::new(&["bob"]).await;
    hive.traced(within(actor("operator"), context(STATED)), "bob", "hello").await;
    let harness = hive.attach("bob").await;
    let run = hive.turn(&harness, Outcome::Failed).await;
    let turn = hive.span_of_turn(&run).await.expect("a span").context;
    below(hive.span_of_notice("operator", SystemKind::TurnFailed).await, turn);
}

#[tokio::test]
async fn a_wake_and_a_broadcast_are_in_the_trace_of_their_caller() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let from = within(actor("alice"), context(STATED));
    let (_, all) = hive.traced(from.clone(), "*", "to all").await;
    below(all, context(STATED));
    let wake = Wake {
        label: Label::parse("ci").expect("a label"),
        body: "built".to_owned(),
        coalescing_key: None,
        session_token: None,
    };
    let woken = hive.engine().wake(from, hive.request("Wake"), wake).await.expect("accepted");
    below(hive.span_of(woken.message).await, context(STATED));
}

#[tokio::test]
async fn a_context_that_no_broker_has_stored_is_a_problem_of_the_check_and_stops_no_export() {
    let hive = Hive::new(&["bob"]).await;
    let (first, _) =
        hive.traced(within(actor("operator"), context(STATED)), "bob", "the first").await;
    let (second, _) =
        hive.traced(within(actor("operator"), context(STATED)), "bob", "the second").await;
    let spoil = |tx: &crate::store::Tx<'_>| {
        tx.connection().execute(
            "UPDATE message SET traceparent = x'01' WHERE id = (SELECT min(id) FROM message)",
            [],
        )?;
        Ok::<_, Refusal>(())
    };
    hive.engine().store().write(spoil).await.expect("spoilt");
    let read = hive.engine().get_message(caller("operator"), first).await;
    assert!(read.is_err(), "a corrupt row is an error: {read:?}");
    // A broker starts, and exports the rest.
    hive.engine().follower().await.expect("a follower");
    let part = hive.engine().next_part(0).await.expect("a part");
    let exported: Vec<MessageId> = part.messages.into_keys().collect();
    assert_eq!(exported, [second]);
    let checked = hive.engine().store().check(tokio_util::sync::CancellationToken::new()).await;
    let problems = checked.expect("checked").problems;
    assert!(
        problems.iter().any(|problem| problem.contains("trace context of 1 bytes")),
        "{problems:?}"
    );
    let mend = |tx: &crate::store::Tx<'_>| {
        tx.connection().execute("UPDATE message SET traceparent = NULL", [])?;
        Ok::<_, Refusal>(())
    };
    hive.engine().store().write(mend).await.expect("mended");
}
