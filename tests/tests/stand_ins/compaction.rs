//! `/compact`: the scripted claude reports it, and remembers afterwards, as the real one does.

use hive_tests::api::{Api, Kind, Reply, Script, Usage};
use hive_tests::scripted::failure::Failure;
use hive_tests::scripted::script::Step;
use serde_json::{Value, json};

use crate::rig::{Finished, Resident, Rig, run};
use crate::shapes::compare;

const TOO_LONG: &str =
    "Compaction failed · conversation could not be reduced below the context limit";

fn text(text: &str) -> Step {
    Step::Text { text: text.to_owned() }
}

fn prompt(number: u32) -> String {
    format!("Message {number} from agent bob:\n| number {number}\n")
}

/// The boundary as stored, and what of the conversation is seen behind it.
fn after(session: &[Value]) -> (Value, Vec<Value>) {
    let place =
        session.iter().rposition(|line| line["subtype"] == "compact_boundary").expect("a boundary");
    let kept = &session[place]["compactMetadata"]["preservedMessages"]["uuids"];
    let seen = |(index, line): &(usize, &Value)| {
        let is_kept = kept.as_array().is_some_and(|kept| kept.contains(&line["uuid"]));
        line["message"].is_object() && (*index > place || is_kept)
    };
    let seen = session.iter().enumerate().filter(seen).map(|(_, line)| line.clone()).collect();
    (session[place].clone(), seen)
}

fn is_kept(session: &[Value], words: &str) -> bool {
    after(session)
        .1
        .iter()
        .any(|line| line["isCompactSummary"] != true && line["message"].to_string().contains(words))
}

#[tokio::test]
async fn a_success_looks_the_same() {
    let real = Rig::new().await;
    let words = ["one", "two", "three"];
    let script = words.iter().zip(1..).fold(Script::new(), |script, (word, number)| {
        script.when(&format!("number {number}"), [Reply::text(word)])
    });
    let api = Api::start(script);
    let scripted = Rig::new().await;
    let [one, two, three] = words.map(|word| vec![text(word)]);
    let script = scripted.script([("number 1", one), ("number 2", two), ("number 3", three)]);
    let mut told: Vec<(Finished, Finished)> = Vec::new();
    for prompt in [prompt(1), "/compact".to_owned(), prompt(2), prompt(3), "/compact".to_owned()] {
        let real = run(&mut real.real(&api.url()), &prompt).await;
        let scripted = run(&mut scripted.scripted(Some(&script)), &prompt).await;
        assert_eq!((real.code, scripted.code), (Some(0), Some(0)), "{real:#?} {scripted:#?}");
        compare(&real.events, &scripted.events);
        told.push((real, scripted));
    }
    assert_eq!(api.count(Kind::Compaction), 2);
    assert_eq!(told[1].0.result()["local_command"], "compact");
    for rig in [&real, &scripted] {
        let session = rig.session();
        assert!(is_kept(&session, "three"), "the last words stay");
        assert!(
            !is_kept(&session, "number 3") && !is_kept(&session, "two"),
            "what came before does not"
        );
        let (boundary, seen) = after(&session);
        assert!(seen.iter().any(|line| line["isCompactSummary"] == true));
        assert_eq!(
            boundary["compactMetadata"]["preservedMessages"]["uuids"].as_array().map(Vec::len),
            Some(1)
        );
        let told =
            told.iter().flat_map(|(real, scripted)| real.events.iter().chain(&scripted.events));
        assert!(
            told.filter(|event| event["uuid"] == boundary["uuid"]).count() == 1,
            "the report equals the stored text"
        );
    }
    let (boundary, stored) = (after(&real.session()).0, after(&scripted.session()).0);
    let names = |value: &Value| {
        value.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect::<Vec<_>>()
    };
    for name in names(&stored) {
        assert!(names(&boundary).contains(&name), "{name}");
    }
}

#[tokio::test]
async fn a_failure_looks_the_same_and_leaves_no_boundary() {
    let real = Rig::new().await;
    let api =
        Api::start(Script::new().when("", [Reply::text("one")]).compacting([Reply::too_long()]));
    let scripted = Rig::new().await;
    let error = Step::CompactError { compact_error: TOO_LONG.to_owned() };
    let script = scripted.script([("/compact", vec![error]), ("", vec![text("one")])]);
    for prompt in ["/compact".to_owned(), prompt(1), "/compact".to_owned()] {
        let real = run(&mut real.real(&api.url()), &prompt).await;
        let scripted = run(&mut scripted.scripted(Some(&script)), &prompt).await;
        assert_eq!((real.code, scripted.code), (Some(0), Some(0)));
        compare(&real.events, &scripted.events);
    }
    assert!(api.count(Kind::Compaction) >= 1);
    for rig in [&real, &scripted] {
        assert!(!rig.session().iter().any(|line| line["subtype"] == "compact_boundary"));
    }
}

#[tokio::test]
async fn a_turn_that_outgrew_the_window_fails_the_same_and_goes_on_after_a_compaction() {
    let real = Rig::new().await;
    let big = Reply::text("one").using(Usage::context(180_000));
    let api =
        Api::start(Script::new().when("number 1", [big]).when("number 2", [Reply::text("two")]));
    let scripted = Rig::new().await;
    let usage = Step::Usage { usage: [("cache_read_input_tokens".to_owned(), 180_000)].into() };
    let script =
        scripted.script([("number 1", vec![usage, text("one")]), ("number 2", vec![text("two")])]);
    for (prompt, code) in
        [(prompt(1), 0), (prompt(2), 1), ("/compact".to_owned(), 0), (prompt(2), 0)]
    {
        let mut command = real.real(&api.url());
        command.env("DISABLE_AUTO_COMPACT", "1");
        let real = run(&mut command, &prompt).await;
        let scripted = run(&mut scripted.scripted(Some(&script)), &prompt).await;
        assert_eq!(
            (real.code, scripted.code),
            (Some(code), Some(code)),
            "{prompt}: {real:#?} {scripted:#?}"
        );
        compare(&real.events, &scripted.events);
    }
    for rig in [&real, &scripted] {
        let session = rig.session();
        let prompts = after(&session)
            .1
            .into_iter()
            .filter(|line| line["message"]["content"] == json!(prompt(2)));
        assert_eq!(prompts.count(), 1, "what failed before the compaction is gone: {session:#?}");
    }
    assert_eq!(
        api.recorded().iter().filter(|request| request.prompt.contains("number 2")).count(),
        1
    );
}

#[tokio::test]
async fn refusals_look_the_same() {
    let (real, scripted) = (Rig::new().await, Rig::new().await);
    let api = Api::start(Script::new());
    for (reply, failure) in [
        (Reply::rate_limited(None), Failure::RateLimit),
        (Reply::unauthorized(), Failure::InvalidKey),
        (Reply::too_long(), Failure::PromptTooLong),
        (Reply::no_credit(), Failure::NoCredit),
    ] {
        api.set_script(Script::new().when("", [reply]));
        let mut command = real.real(&api.url());
        command.env("CLAUDE_CODE_MAX_RETRIES", "0");
        let finished = run(&mut command, &prompt(1)).await;
        let script = scripted.script([("", vec![Step::Fail { fail: failure }])]);
        let told = run(&mut scripted.scripted(Some(&script)), &prompt(1)).await;
        assert_eq!((finished.code, told.code), (Some(1), Some(1)), "{failure:?}");
        compare(&finished.events, &told.events);
    }
}

#[tokio::test]
async fn a_subscriptions_limit_looks_the_same() {
    let (real, scripted) = (Rig::new().await, Rig::new().await);
    let resets_at = 4_102_444_800;
    let api = Api::start(Script::new().when("", [Reply::usage_limit(resets_at)]));
    let mut command = real.real(&api.url());
    command.env_remove("ANTHROPIC_API_KEY").env("CLAUDE_CODE_OAUTH_TOKEN", "dummy-token");
    let mut finished = run(&mut command, &prompt(1)).await;
    let script = scripted.script([("", vec![Step::Fail { fail: Failure::UsageLimit(resets_at) }])]);
    let told = run(&mut scripted.scripted(Some(&script)), &prompt(1)).await;
    // The real one words the day, which depends on today's.
    let words = told.result()["result"].clone();
    for event in finished.events.iter_mut().filter(|event| event["type"] == "result") {
        assert!(
            event["result"]
                .as_str()
                .is_some_and(|text| text.starts_with("You've hit your 5-hour limit · resets ")),
            "{event}"
        );
        event["result"] = words.clone();
    }
    compare(&finished.events, &told.events);
    let limit = |events: &[Value]| {
        events
            .iter()
            .find(|event| event["type"] == "rate_limit_event")
            .map(|event| event["rate_limit_info"].clone())
    };
    assert_eq!(limit(&told.events), limit(&finished.events));
}

#[tokio::test]
async fn in_a_process_that_stays_it_looks_the_same() {
    let (real, scripted) = (Rig::new().await, Rig::new().await);
    let api = Api::start(Script::new().when("", [Reply::text("one")]));
    let script = scripted.script([("", vec![text("one")])]);
    let mut resident = Resident::start(&mut real.real(&api.url()));
    let mut stand_in = Resident::start(&mut scripted.scripted(Some(&script)));
    for content in [
        prompt(1),
        "/compact".to_owned(),
        " /compact".to_owned(),
        "/compact keep the paths".to_owned(),
        "/clear".to_owned(),
    ] {
        let told = [resident.turn(&content).await, stand_in.turn(&content).await];
        compare(&told[0], &told[1]);
    }
    assert_eq!(api.count(Kind::Compaction), 2);
    assert!(api.recorded().iter().any(|request| request.mentions("keep the paths")));
    for rig in [&real, &scripted] {
        assert_eq!(rig.sessions().len(), 2, "what was cleared away stays");
    }
}
