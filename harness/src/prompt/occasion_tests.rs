//! Golden texts of the prompts of turns, and hostile senders.

use proptest::prelude::*;

use super::*;

fn message(id: u64, kind: v1::OriginKind, name: &str, body: &str) -> v1::Message {
    v1::Message {
        id,
        origin: Some(v1::Origin { kind: kind.into(), name: name.into() }),
        body: body.into(),
        ..v1::Message::default()
    }
}

fn begun(message: v1::Message) -> v1::BeginTurnResponse {
    v1::BeginTurnResponse {
        delivery: Some(v1::Delivery { message: Some(message), attempt: 1, ..v1::Delivery::default() }),
        ..v1::BeginTurnResponse::default()
    }
}

#[test]
fn a_first_delivery_is_minimal() {
    let begun = begun(message(17, v1::OriginKind::Agent, "alice", "hello\nyou"));
    assert_eq!(mail(&begun, Telling::Whole, "hive"), "Message 17 from agent alice:\n| hello\n| you\n");
}

#[test]
fn replies_broadcasts_and_pending_mail_are_told() {
    let mut begun = begun(message(17, v1::OriginKind::Operator, "ann", "x"));
    begun.pending_count = 3;
    let message = begun.delivery.as_mut().and_then(|delivery| delivery.message.as_mut()).expect("set above");
    message.in_reply_to = 9;
    message.broadcast = true;
    assert_eq!(
        mail(&begun, Telling::Whole, "hub"),
        "Message 17 from the operator (ann), in reply to 9, to everyone:\n| x\n(3 more pending: mcp__hub__recv takes them)\n"
    );
}

fn redelivered() -> v1::BeginTurnResponse {
    let mut begun = begun(message(17, v1::OriginKind::External, "ci", "build @/x broke"));
    let delivery = begun.delivery.as_mut().expect("set above");
    delivery.attempt = 2;
    delivery.set_redelivery_cause(v1::RedeliveryCause::TurnFailed);
    delivery.last_error = "claude exited\nwith 1".into();
    begun.already_sent =
        vec![v1::Message { recipients: vec!["bob".into()], ..message(18, v1::OriginKind::Agent, "me", "done:\n@all") }];
    begun
}

#[test]
fn a_redelivery_tells_attempt_cause_and_what_was_sent() {
    assert_eq!(
        mail(&redelivered(), Telling::Whole, "hive"),
        "Message 17 from the program ci beside you:\n| build \\@/x broke\n\
         This is attempt 2: the last turn failed. It said:\n| claude exited with 1\n\
         Earlier attempts sent this already:\n| message 18 to bob: done: \\@all\n"
    );
}

#[test]
fn a_text_that_the_conversation_holds_is_not_stacked() {
    let again = mail(&redelivered(), Telling::HeldAlready, "hive");
    assert!(again.starts_with("Message 17 from the program ci beside you, whose text stands above"), "{again}");
    assert!(!again.contains("broke") && again.contains("This is attempt 2: the last turn failed."), "{again}");
    let retry = mail(&redelivered(), Telling::Retry, "hive");
    assert!(retry.starts_with(&opening(17)) && !retry.contains("broke"), "{retry}");
}

#[test]
fn a_continued_turn_says_so() {
    assert_eq!(self_continue(), "Message from self:\n| continue\n\nYou asked for this turn. No mail is waiting.\n");
}

#[test]
fn every_placeholder_of_the_templates_is_in_the_readme() {
    let readme = include_str!("../../../prompts/README.md");
    for template in [WAKE, AGAIN, REDELIVERY, RETRY, CONTINUE] {
        for name in template.split('{').skip(1).filter_map(|piece| piece.split_once('}')).map(|(name, _)| name) {
            assert!(readme.contains(&format!("`{{{name}}}`")), "{name}");
        }
    }
}

proptest! {
    #[test]
    fn no_sender_gets_out_of_the_frame(body in "[@/ \\n\\r|a-c\\\\\"{}\u{2028}\u{1b}]{0,60}", name in "[@/ \\n|a-c]{0,10}", error in "[@/ \\n|a-c]{0,20}") {
        let mut begun = redelivered();
        let delivery = begun.delivery.as_mut().expect("set above");
        delivery.last_error = error;
        let message = delivery.message.as_mut().expect("set above");
        message.body = body;
        message.origin.as_mut().expect("set above").name = name;
        let clean = {
            let mut clean = redelivered();
            clean.delivery.as_mut().and_then(|delivery| delivery.message.as_mut()).expect("set above").body = String::new();
            mail(&clean, Telling::Whole, "hive").lines().filter(|line| !line.starts_with('|')).count()
        };
        let prompt = mail(&begun, Telling::Whole, "hive");
        prop_assert!(prompt.starts_with("Message 17 from "));
        let own = prompt.lines().filter(|line| !line.starts_with("| ")).count();
        // The note of what was said before is there or not; nothing else changes outside of the frame.
        prop_assert!(own == clean, "{prompt}");
        let mut before = ' ';
        for c in prompt.chars() {
            prop_assert!(c != '@' || !before.is_whitespace(), "{prompt}");
            before = c;
        }
    }
}
