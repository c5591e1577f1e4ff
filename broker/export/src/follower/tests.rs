//! Events and rows in, spans out.

use hive_core::delivery::RedeliveryCause;
use hive_core::event::{DeliveryAcked, DeliveryLeased, DeliveryReturned, Settler, TurnEnded};
use hive_core::message::Origin;
use hive_core::name::AgentName;
use hive_core::trace::Traced;
use hive_core::turn::{Kind, Outcome, Turn, Usage};

use super::*;
use crate::wire::read::{self, Span, Value};

const STATED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn context(text: &str) -> TraceContext {
    TraceContext::parse(text).expect("a trace context")
}

fn random() -> SpanId {
    SpanId::new([7; 8]).expect("not zero")
}

fn id(number: u64) -> MessageId {
    MessageId::new(number).expect("an id")
}

fn turn_id(number: u64) -> TurnId {
    TurnId::new(number).expect("an id")
}

fn message(number: u64, trace: Option<&str>) -> SentMessage {
    SentMessage {
        id: id(number),
        traced: trace.map(|trace| Traced { context: context(trace), parent: None }),
        origin: Origin::System,
        to: Some("bob".to_owned()),
        recipient_count: 1,
        body_bytes: 5,
        accept_time: WallTime(1),
        system_kind: None,
        in_reply_to: None,
    }
}

/// An event about message 1 and bob, at its own number as its time.
fn event(sequence: u64, facts: impl Into<Facts>, turn: Option<u64>) -> Event {
    Event {
        sequence,
        facts: facts.into(),
        time: WallTime(i64::try_from(sequence).expect("small")),
        agent: "bob".to_owned(),
        message_id: Some(id(1)),
        turn_id: turn.map(turn_id),
        detail: String::new(),
        question_id: None,
        reminder_id: None,
    }
}

fn part(events: Vec<Event>, message: SentMessage) -> Part {
    let messages = [(message.id, message)].into();
    Part { events, messages, turns: BTreeMap::new() }
}

/// The spans of parts of the log, in order.
fn spans(waiting: Vec<WaitingDelivery>, parts: Vec<Part>) -> Vec<Span> {
    let queue = Queue::new(Default::default());
    let mut follower = Follower::new(0, waiting, random);
    parts.into_iter().for_each(|part| follower.take(part, &queue));
    taken(&queue)
}

/// The spans that wait, as a collector reads them.
fn taken(queue: &Queue) -> Vec<Span> {
    queue.take().iter().map(read::span).collect()
}

fn leased() -> Facts {
    DeliveryLeased { attempt: 1, cause: None }.into()
}

fn acked() -> Facts {
    DeliveryAcked { attempt: 1, settler: Settler::Holder }.into()
}

fn times(span: &Span) -> (u64, u64) {
    (span.start_time_unix_nano / 1_000_000, span.end_time_unix_nano / 1_000_000)
}

fn text(span: &Span, key: &str) -> Option<String> {
    let attribute = span.attributes.iter().find(|attribute| attribute.key == key)?;
    match attribute.value.as_ref()?.value.as_ref()? {
        Value::Text(text) => Some(text.clone()),
        Value::Flag(_) | Value::Number(_) | Value::Fraction(_) => None,
    }
}

#[test]
fn a_wait_ends_with_its_lease_and_begins_again_when_the_delivery_returns() {
    let returned = DeliveryReturned { attempt: 1, cause: RedeliveryCause::Nacked };
    let events = vec![
        event(1, Facts::MessageAccepted, None),
        event(2, leased(), None),
        event(3, returned, None),
        event(5, leased(), Some(9)),
        event(8, acked(), Some(9)),
    ];
    let all = spans(Vec::new(), vec![part(events, message(1, Some(STATED)))]);
    let [send, first, second] = &all[..] else { panic!("{all:?}") };
    assert_eq!((send.name.as_str(), times(send)), ("send bob", (1, 1)));
    assert_eq!((first.name.as_str(), times(first), times(second)), ("deliver bob", (1, 2), (3, 5)));
    let outcomes = [first, second].map(|span| text(span, "hive.delivery.outcome"));
    assert_eq!(outcomes, [Some("returned".to_owned()), Some("acked".to_owned())]);
    assert_eq!(text(first, "hive.delivery.cause").as_deref(), Some("nacked"));
    // The one of a turn is the parent of the turn; nothing is below the other.
    let of_turn = delivery_span(context(STATED), turn_id(9));
    assert_eq!(first.span_id, random().bytes());
    assert_eq!(second.span_id, of_turn.bytes());
    assert!(all[1..].iter().all(|span| span.parent_span_id == send.span_id));
}

#[test]
fn a_broadcast_is_sent_once_and_delivered_to_each() {
    let accepted = |sequence, agent: &str| Event {
        agent: agent.to_owned(),
        ..event(sequence, Facts::MessageAccepted, None)
    };
    let to_all = SentMessage { to: None, recipient_count: 2, ..message(1, Some(STATED)) };
    let acked =
        |sequence, agent: &str| Event { agent: agent.to_owned(), ..event(sequence, acked(), None) };
    let events = vec![accepted(1, "ada"), accepted(2, "bob"), acked(3, "bob"), acked(4, "ada")];
    let names: Vec<String> =
        spans(Vec::new(), vec![part(events, to_all)]).into_iter().map(|span| span.name).collect();
    assert_eq!(names, ["send *", "deliver bob", "deliver ada"]);
}

#[test]
fn nothing_is_made_of_what_is_in_no_trace_or_not_sampled() {
    let not_sampled = STATED.replace("-01", "-00");
    for trace in [None, Some(not_sampled.as_str())] {
        let events = vec![
            event(1, Facts::MessageAccepted, None),
            event(2, leased(), None),
            event(3, acked(), None),
        ];
        assert_eq!(spans(Vec::new(), vec![part(events, message(1, trace))]), []);
    }
}

#[test]
fn a_wait_that_began_before_the_follower_is_ended() {
    let waiting = |is_leased, lease_turn: Option<u64>| WaitingDelivery {
        message: id(1),
        agent: "bob".to_owned(),
        context: context(STATED),
        state_time: WallTime(4),
        accept_time: WallTime(1),
        is_leased,
        lease_turn: lease_turn.map(turn_id),
    };
    // The message itself may have been deleted since.
    let settled = |events| Part { events, ..Part::default() };
    let [of_lease] =
        &spans(vec![waiting(true, Some(9))], vec![settled(vec![event(6, acked(), Some(9))])])[..]
    else {
        panic!("one span")
    };
    assert_eq!(times(of_lease), (1, 4));
    assert_eq!(of_lease.span_id, delivery_span(context(STATED), turn_id(9)).bytes());
    let events = vec![event(6, leased(), None), event(7, acked(), None)];
    let [of_wait] = &spans(vec![waiting(false, None)], vec![settled(events)])[..] else {
        panic!("one span")
    };
    assert_eq!(times(of_wait), (4, 6));
}

fn turn() -> TracedTurn {
    let turn = Turn {
        id: turn_id(9),
        agent: AgentName::parse("bob").expect("a name"),
        kind: Kind::Mail,
        conversation: "main".to_owned(),
        session_epoch: 1,
        message_id: Some(id(1)),
        attempt: 1,
        outcome: Some(Outcome::Failed),
        start_time: WallTime(5),
        end_time: Some(WallTime(90)),
        error: "secret".to_owned(),
        output_tail: "secret".to_owned(),
        usage: Usage::default(),
        model: String::new(),
        context_tokens: 0,
        context_window_tokens: 0,
        compacted: false,
        received: Vec::new(),
        sent: Vec::new(),
        traceparent: None,
    };
    let traced = Traced { context: context(STATED), parent: SpanId::new([1; 8]) };
    TracedTurn { turn, traced, received: vec![(id(2), context(STATED))] }
}

#[tokio::test(start_paused = true)]
async fn tool_calls_are_spans_once_the_last_line_is_there_or_the_patience_ends() {
    let ended = TurnEnded { outcome: Outcome::Failed, session_epoch: 1 };
    let events = vec![event(9, ended, Some(9))];
    let part =
        || Part { events: events.clone(), turns: [(turn_id(9), turn())].into(), ..Part::default() };
    let call = r#"{"message":{"content":[{"type":"tool_use","id":"t1","name":"Read"}]}}"#;
    for is_whole in [true, false] {
        let queue = Queue::new(Default::default());
        let mut follower = Follower::new(0, Vec::new(), random);
        follower.take(part(), &queue);
        let [turn] = &taken(&queue)[..] else { panic!("one span") };
        assert_eq!((turn.name.as_str(), turn.links.len()), ("turn bob", 1));
        assert!(turn.status.is_some() && !format!("{turn:?}").contains("secret"), "{turn:?}");
        assert_eq!(follower.unread(), [(turn_id(9), 0)]);
        follower.read(turn_id(9), 1, STDOUT, call, WallTime(6));
        assert_eq!(follower.unread(), [(turn_id(9), 1)]);
        let until = follower.finish(&queue, false).expect("a time");
        assert_eq!(taken(&queue), []);
        if is_whole {
            // A remark of the harness, and not the same words of claude.
            follower.read(turn_id(9), 2, STDOUT, "ended: Ok", WallTime(7));
            assert!(follower.finish(&queue, false).is_some());
            follower.read(turn_id(9), 3, NOTE, "ended: Ok", WallTime(8));
        } else {
            tokio::time::sleep_until(until).await;
        }
        assert_eq!(follower.finish(&queue, false), None);
        let [tool] = &taken(&queue)[..] else { panic!("one span") };
        assert_eq!((tool.name.as_str(), times(tool)), ("execute_tool Read", (6, 90)));
        assert_eq!(tool.span_id, tool_span(context(STATED), "t1").bytes());
        assert_eq!(tool.parent_span_id, context(STATED).span_id.bytes());
        assert_eq!(follower.unread(), []);
    }
}
