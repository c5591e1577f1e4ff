//! The input of claude: prompts of turns, the system prompt, and results of `recv`, with anything a
//! sender could have written in them.
//!
//! What it is not: claude; its rules for attachments and commands were measured. Invariants:
//! the lines that are Hive's are the same whatever senders wrote, and all else is behind the
//! frame; nothing in it acts, hides or attaches a file; it is not much longer than what it shows.

use std::path::Path;

use hive_core::name::AgentName;
use hive_core::tree::{Child, Kin};
use hive_harness::prompt::inert::{self, FRAME};
use hive_harness::prompt::kin::KIN_BYTES_MAX;
use hive_harness::prompt::system::{self, Identity};
use hive_harness::prompt::trigger::{self, Presentation};
use hive_harness::prompt::{markers, placeholders};
use hive_harness::wire::read;
use hive_mcp_bridge::entry;
use hive_proto::v1;
use prost::Message as _;

use crate::seen;

/// Bytes of prompt for one byte of mail, at most: a line end and its frame, or a hidden character
/// and its number.
const GROWTH_MAX: usize = 5;
/// Bytes of a prompt beside that.
const WORDS_BYTES_MAX: usize = 4096;
/// Maximum length of one result that claude shows to the model, in characters.
const RESULT_CHARS_MAX: usize = 50_000;
/// Maximum size of the bodies that the bridge requests from the broker at once, in bytes.
const RESULT_BODIES_MAX: usize = 40_000;

/// Checks the bytes: the first chooses the kind of prompt and its form.
pub fn check(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else { return };
    let presentation = match first & 3 {
        0 | 1 => Presentation::Whole,
        2 => Presentation::HeldAlready,
        _ => Presentation::Retry,
    };
    if first & 4 == 0 {
        let text = String::from_utf8_lossy(rest);
        everywhere(&text, presentation, *first);
        templates(&text);
    } else if let Ok(begun) = v1::BeginTurnResponse::decode(rest) {
        anything(&begun, presentation);
    }
}

/// Builds a turn's beginning with this text in every field that another agent writes.
fn begun(text: &str, first: u8) -> v1::BeginTurnResponse {
    let origins = [
        v1::OriginKind::Agent,
        v1::OriginKind::Operator,
        v1::OriginKind::System,
        v1::OriginKind::External,
    ];
    let mut message = v1::Message {
        id: 17,
        origin: Some(v1::Origin {
            kind: origins[usize::from(first >> 3) % 4].into(),
            name: text.to_owned(),
        }),
        recipients: vec![text.to_owned(), text.to_owned()],
        body: text.to_owned(),
        in_reply_to: 9,
        broadcast: first & 32 != 0,
        coalescing_key: text.to_owned(),
        question_id: 16,
        reminder_id: 15,
        ..v1::Message::default()
    };
    if message.origin.as_ref().is_some_and(|origin| origin.kind() == v1::OriginKind::System) {
        message.system_kind = Some(i32::from(first >> 5) + 4);
    }
    let delivery = v1::Delivery {
        message: Some(message.clone()),
        agent: text.to_owned(),
        attempt: 3,
        redelivery_cause: Some(v1::RedeliveryCause::TurnFailed.into()),
        last_error: text.to_owned(),
        output_tail: text.to_owned(),
        settled_by: text.to_owned(),
        ..v1::Delivery::default()
    };
    let question = v1::Question {
        id: 5,
        asker: text.to_owned(),
        target: text.to_owned(),
        text: text.to_owned(),
        ..v1::Question::default()
    };
    let due_time = Some(prost_types::Timestamp { seconds: 1_700_000_000, nanos: 0 });
    let reminder = v1::Reminder {
        id: 6,
        agent: "bob".to_owned(),
        body: text.to_owned(),
        due_time,
        ..v1::Reminder::default()
    };
    v1::BeginTurnResponse {
        turn: Some(v1::Turn { id: 1, error: text.to_owned(), ..v1::Turn::default() }),
        delivery: Some(delivery),
        pending_count: 2,
        already_sent: vec![message; 2],
        already_asked: vec![question; 2],
        already_reminded: vec![reminder; 2],
        commands: Vec::new(),
    }
}

/// Returns the lines without a frame.
fn of_hive(prompt: &str) -> Vec<&str> {
    prompt.lines().filter(|line| !line.starts_with(FRAME)).collect()
}

fn everywhere(text: &str, presentation: Presentation, first: u8) {
    let hostile = begun(text, first);
    let told = |begun| prompt(begun, presentation).expect("the turn of a fuzzed text is readable");
    let prompt = told(&hostile);
    anything(&hostile, presentation);
    // An error with a blank text is not shown, so a blank text is compared with an empty one.
    let plain = if text.trim().is_empty() { "" } else { "x" };
    let harmless = told(&begun(plain, first));
    let (ours, models) = (of_hive(&prompt), of_hive(&harmless));
    assert_eq!(ours.len(), models.len(), "a sender added a line to Hive's:\n{prompt}");
    assert_eq!(ours[1..], models[1..], "a sender changed a line of Hive's:\n{prompt}");
    // The first line contains a name, and nothing of it in front or behind.
    let (head, model) = (ours[0], models[0]);
    assert!(head.starts_with(&trigger::opening(17)), "{head:?}");
    let after = model.rsplit_once('x').map_or("", |(_, after)| after);
    assert!(head.ends_with(after), "{head:?}");
    // The path is made by this host, but directories also have names.
    let reset = trigger::reset(Some(Path::new(&text.replace('\0', "\u{1}"))));
    assert_eq!(reset.trim_end().lines().count(), 1, "{reset:?}");
    assert_eq!(seen::offender(reset.trim_end()), None, "{reset:?}");
}

/// The prompt of a turn; `None` if the harness cannot read how it begins.
fn prompt(begun: &v1::BeginTurnResponse, presentation: Presentation) -> Option<String> {
    let begun = read::begun(begun.clone()).ok()?;
    Some(trigger::mail(&begun, presentation, "", "hive"))
}

/// Checks the properties of every prompt.
fn anything(begun: &v1::BeginTurnResponse, presentation: Presentation) {
    received(begun);
    let Some(prompt) = prompt(begun, presentation) else { return };
    let id = begun
        .delivery
        .as_ref()
        .and_then(|delivery| delivery.message.as_ref())
        .map_or(0, |message| message.id);
    assert!(prompt.starts_with(&trigger::opening(id)), "{prompt:?}");
    assert!(!attaches(&prompt), "claude would attach a file: {prompt:?}");
    assert_eq!(seen::offender(&prompt), None, "{prompt:?}");
    assert!(
        prompt.len() <= begun.encoded_len() * GROWTH_MAX + WORDS_BYTES_MAX,
        "{} bytes of prompt",
        prompt.len()
    );
    let body = begun
        .delivery
        .as_ref()
        .and_then(|delivery| delivery.message.as_ref())
        .map_or("", |message| &message.body);
    let framed = inert::frame(body);
    assert!(framed.lines().all(|line| line.starts_with(FRAME)), "{framed:?}");
    assert!(
        presentation != Presentation::Whole || prompt.contains(&framed),
        "the body stands in it as a whole"
    );
}

/// Checks the same mail as the result of `recv`.
fn received(begun: &v1::BeginTurnResponse) {
    let Some(delivery) = &begun.delivery else { return };
    let Some(message) = &delivery.message else { return };
    // Many copies take time, so only inputs with a length divisible by 8 are repeated.
    let many = message.body.len().is_multiple_of(8) && message.body.len() * 32 <= RESULT_BODIES_MAX;
    let times = if many { 32 } else { 1 };
    let result = entry::entries(vec![delivery; times]);
    // A blank line separates two entries; a body has none.
    let heads: Vec<&str> =
        result.lines().filter(|line| !line.starts_with("| ") && !line.is_empty()).collect();
    let notes = heads.iter().filter(|line| **line == "(line breaks are shown as ⏎)").count();
    assert_eq!(heads.len() - notes, times, "an entry more than there is:\n{result}");
    assert!(
        heads.iter().all(|line| line.starts_with(&format!("#{} from ", message.id))
            || line.starts_with("(line breaks")),
        "{heads:?}"
    );
    assert_eq!(seen::offender(&result), None, "{result:?}");
    assert!(
        message.body.len() > RESULT_BODIES_MAX || result.chars().count() <= RESULT_CHARS_MAX,
        "{} characters",
        result.chars().count()
    );
}

/// Returns whether the CLI would attach a file: an `@` at the beginning, or after a character that
/// is white space in JavaScript.
fn attaches(prompt: &str) -> bool {
    let mut before = None;
    prompt.chars().any(|c| {
        let hit = c == '@' && before.is_none_or(|c: char| c.is_whitespace() || c == '\u{feff}');
        before = Some(c);
        hit
    })
}

/// Templates and what is filled into them.
fn templates(text: &str) {
    let kept = markers::select(text, "agent");
    assert!(kept.len() <= text.len(), "only markers and blocks are taken out");
    assert!(text.contains("role") || kept == text, "without a marker nothing is taken out");
    assert_eq!(
        placeholders::fill(text, &[("a", "{a}"), ("label", "{label}")]),
        text,
        "a value is never looked at again"
    );
    let name = AgentName::parse("x").expect("a name");
    let of = |value: &str| Identity {
        label: value.to_owned(),
        domain: value.to_owned(),
        operator_pronouns: value.to_owned(),
        hive_name: value.to_owned(),
        swarm_name: value.to_owned(),
        mcp_server_name: "hive".to_owned(),
        parent: value.to_owned(),
        role: value.to_owned(),
        kin: Kin {
            parent_role: value.to_owned(),
            children: vec![Child { name: name.clone(), role: value.to_owned() }; 3],
            children_count: 4,
        },
    };
    let (hostile, plain) = (system::render(&of(text)), system::render(&of("x")));
    assert!(
        hostile.len() <= text.len() * 16 + KIN_BYTES_MAX + plain.len(),
        "{} bytes of system prompt",
        hostile.len()
    );
    assert!(hostile.contains(text.trim()), "what is filled in stays as it is");
}
