//! A claude that stays for one turn after another, real and scripted side by side.

use hive_tests::api::{Api, Gate, Reply, Script};
use hive_tests::scripted::script::Step;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::process::Child;

use crate::rig::{Resident, Rig};
use crate::shapes::compare;

const PROMPT: &str = "Message 17 from agent bob:\n| wake up\n";

fn send(child: &Child, signal: Signal) {
    let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())).expect("it runs");
    kill_process(pid, signal).expect("it takes signals");
}

fn is_result(event: &Value) -> bool {
    event["type"] == "result"
}

fn wait() -> Step {
    Step::Tool { tool: "recv".to_owned(), input: json!({"wait_seconds": 150}) }
}

/// A real and a scripted one that wait in a tool call.
async fn waiting(real: &Rig, scripted: &Rig) -> (Api, [Resident; 2]) {
    let tool = Reply::tool("mcp__hive__recv", json!({"wait_seconds": 150}));
    let api = Api::start(Script::new().when("wake up", [tool, Reply::text("Done.")]));
    let script = scripted
        .script([("wake up", vec![wait()]), ("", vec![Step::Text { text: "Done.".to_owned() }])]);
    let mut both = [
        Resident::start(&mut real.real(&api.url())),
        Resident::start(&mut scripted.scripted(Some(&script))),
    ];
    for (resident, rig) in both.iter_mut().zip([real, scripted]) {
        resident.prompt(json!(PROMPT)).await;
        rig.broker.wait_for_calls(1).await;
    }
    (api, both)
}

#[tokio::test]
async fn turns_follow_each_other_in_one_process() {
    let (real, scripted) = (Rig::new().await, Rig::new().await);
    let meta = || Reply::tool("mcp__hive__get_agent_meta", json!({}));
    let api = Api::start(Script::new().when("", [meta(), Reply::text("Done.")]));
    let tool = Step::Tool { tool: "get_agent_meta".to_owned(), input: json!({}) };
    let script = scripted.script([("", vec![tool, Step::Text { text: "Done.".to_owned() }])]);
    let mut both = [
        Resident::start(&mut real.real(&api.url())),
        Resident::start(&mut scripted.scripted(Some(&script))),
    ];
    let mut told = Vec::new();
    for resident in &mut both {
        let mut events = resident.turn(PROMPT).await;
        resident.prompt(json!([{"type": "text", "text": PROMPT}])).await;
        events.extend(resident.until(is_result).await);
        told.push(events);
    }
    compare(&told[0], &told[1]);
    assert_eq!(
        told[1].iter().filter(|event| event["subtype"] == "init").count(),
        2,
        "each turn has its own"
    );
    for mut resident in both {
        resident.close();
        let finished = resident.end().await;
        assert_eq!(
            (finished.code, finished.events.len(), finished.stderr.as_str()),
            (Some(0), 0, ""),
            "{finished:?}"
        );
    }
}

#[tokio::test]
async fn an_interrupt_ends_a_tool_call_and_not_the_process() {
    let (real, scripted) = (Rig::new().await, Rig::new().await);
    let (_api, mut both) = waiting(&real, &scripted).await;
    let mut told = Vec::new();
    for resident in &mut both {
        resident.control("r1", json!({"subtype": "interrupt"})).await;
        let mut events = resident.until(is_result).await;
        // The events before the interrupt are those of any turn.
        events.drain(
            ..events
                .iter()
                .position(|event| event["type"] == "control_response")
                .expect("an answer"),
        );
        events.extend(resident.turn("Message 18 from agent bob:\n| go on\n").await);
        told.push(events);
    }
    compare(&told[0], &told[1]);
    assert_eq!(told[1][3]["terminal_reason"], "aborted_tools");
    assert_eq!(told[1].last().map(|event| &event["result"]), Some(&json!("Done.")));
}

#[tokio::test]
async fn an_interrupt_ends_an_answer_that_is_not_complete() {
    let (real, scripted) = (Rig::new().await, Rig::new().await);
    let gate = Gate::new();
    let api = Api::start(Script::new().when("", [Reply::pause("I was going to", &gate)]));
    let script = scripted.script([(
        "",
        vec![Step::Text { text: "I was going to".to_owned() }, Step::Hang { hang: true }],
    )]);
    let mut resident = Resident::start(real.real(&api.url()).arg("--include-partial-messages"));
    resident.prompt(json!(PROMPT)).await;
    resident.until(|event| event["event"]["type"] == "content_block_delta").await;
    let mut stand_in = Resident::start(&mut scripted.scripted(Some(&script)));
    stand_in.prompt(json!(PROMPT)).await;
    stand_in.until(|event| event["type"] == "assistant").await;
    let mut told = Vec::new();
    for resident in [&mut resident, &mut stand_in] {
        resident.control("r1", json!({"subtype": "interrupt"})).await;
        let mut events = resident.until(is_result).await;
        events.retain(|event| {
            matches!(event["type"].as_str(), Some("control_response" | "user" | "result"))
        });
        told.push(events);
    }
    compare(&told[0], &told[1]);
    assert_eq!(told[1][2]["terminal_reason"], "aborted_streaming");
    gate.open();
}

#[tokio::test]
async fn requests_between_turns_are_answered() {
    let (real, scripted) = (Rig::new().await, Rig::new().await);
    let api = Api::start(Script::new());
    let mut both = [
        Resident::start(&mut real.real(&api.url())),
        Resident::start(&mut scripted.scripted(None)),
    ];
    let mut told = Vec::new();
    for resident in &mut both {
        let mut events = resident.turn("Message from self:\n| continue\n").await;
        for subtype in ["interrupt", "mcp_status", "get_context_usage", "no_such_request"] {
            resident.control(subtype, json!({"subtype": subtype})).await;
            events.extend(resident.until(|event| event["type"] == "control_response").await);
        }
        resident
            .control("model", json!({"subtype": "set_model", "model": "claude-sonnet-5-5"}))
            .await;
        events.extend(resident.until(|event| event["type"] == "control_response").await);
        events.extend(resident.turn("Message from self:\n| continue\n").await);
        told.push(events);
    }
    // The text of the friendly agent is not compared.
    for event in told.iter_mut().flatten().filter(|event| is_result(event)) {
        event["result"] = json!("");
    }
    compare(&told[0], &told[1]);
    let unknown = |events: &[Value]| {
        events.iter().find(|event| event["response"]["subtype"] == "error").cloned()
    };
    assert_eq!(unknown(&told[1]), unknown(&told[0]));
    let models = |events: &[Value]| {
        events
            .iter()
            .filter_map(|event| event["model"].as_str().map(str::to_owned))
            .collect::<Vec<_>>()
    };
    assert_eq!(models(&told[1]), ["claude-haiku-4-5", "claude-sonnet-5-5"]);
    assert_eq!(models(&told[1]), models(&told[0]));
}

#[tokio::test]
async fn signals_end_it_as_they_end_the_real_one() {
    for (signal, in_turn, code) in [
        (Signal::TERM, false, 143),
        (Signal::INT, false, 0),
        (Signal::TERM, true, 143),
        (Signal::INT, true, 0),
    ] {
        let (real, scripted) = (Rig::new().await, Rig::new().await);
        let (_api, both) = waiting(&real, &scripted).await;
        for mut resident in both {
            if !in_turn {
                resident.control("r1", json!({"subtype": "interrupt"})).await;
                resident.until(is_result).await;
            }
            send(&resident.child, signal);
            let finished = resident.end().await;
            assert_eq!(finished.code, Some(code), "{signal:?} {in_turn}: {finished:?}");
            let results = finished.events.iter().filter(|event| is_result(event)).count();
            assert_eq!(
                results,
                usize::from(in_turn && signal == Signal::INT),
                "{signal:?} {in_turn}: {finished:?}"
            );
        }
    }
}

#[tokio::test]
async fn bad_lines_end_it_as_they_end_the_real_one() {
    for (line, words) in [
        ("no json at all!", "Error parsing streaming input line"),
        (r#"{"type":"user"}"#, "Expected message role 'user'"),
    ] {
        let (real, scripted) = (Rig::new().await, Rig::new().await);
        let api = Api::start(Script::new());
        for mut resident in [
            Resident::start(&mut real.real(&api.url())),
            Resident::start(&mut scripted.scripted(None)),
        ] {
            resident.write(r#"{"type":"novelty"}"#).await;
            resident.write(line).await;
            let finished = resident.end().await;
            assert!(
                finished.code == Some(1) && finished.stderr.contains(words),
                "{line}: {finished:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_turn_goes_on_to_its_end_where_stdin_has_ended() {
    let rig = Rig::new().await;
    let marker = rig.path("marker");
    let script = rig.script([(
        "",
        vec![Step::WaitFile { wait_file: marker.clone() }, Step::Text { text: "Done.".to_owned() }],
    )]);
    let mut resident = Resident::start(&mut rig.scripted(Some(&script)));
    resident.prompt(json!(PROMPT)).await;
    resident.until(|event| event["subtype"] == "init").await;
    resident.close();
    std::fs::write(marker, b"").expect("a file");
    let finished = resident.end().await;
    assert_eq!((finished.code, &finished.result()["result"]), (Some(0), &json!("Done.")));
}
