//! The stand-in Messages API with injected errors, and the real claude's reactions.

use hive_tests::api::{Api, Gate, Kind, Reply, Script, Usage};
use serde_json::json;

use crate::rig::{Finished, Rig, finish, run, start};

const PROMPT: &str = "Message 17 from agent bob:\n| x\n";

async fn turn(rig: &Rig, api: &Api, retries: &str) -> Finished {
    let mut command = rig.real(&api.url());
    command.env("CLAUDE_CODE_MAX_RETRIES", retries);
    run(&mut command, PROMPT).await
}

#[tokio::test]
async fn a_broken_connection_is_tried_again_by_claude() {
    let rig = Rig::new().await;
    let api = Api::start(Script::new());
    for broken in [Reply::reset(), Reply::cut(), Reply::fault(), Reply::unauthorized()] {
        api.set_script(Script::new().when("", [broken.clone().times(1), Reply::text("Done.")]));
        let before = api.count(Kind::Turn);
        let finished = turn(&rig, &api, "2").await;
        assert_eq!(
            (finished.code, &finished.result()["result"]),
            (Some(0), &json!("Done.")),
            "{broken:?}: {finished:#?}"
        );
        assert_eq!(api.count(Kind::Turn) - before, 2, "{broken:?}");
    }
    api.set_script(Script::new().when("", [Reply::reset()]));
    let finished = turn(&rig, &api, "0").await;
    assert_eq!(
        (finished.code, &finished.result()["api_error_status"]),
        (Some(1), &json!(null)),
        "{finished:#?}"
    );
}

#[tokio::test]
async fn an_error_in_a_stream_keeps_the_text_before_it() {
    let rig = Rig::new().await;
    let api =
        Api::start(Script::new().when("", [Reply::stream_error().times(1), Reply::text("Done.")]));
    let finished = turn(&rig, &api, "2").await;
    assert_eq!(
        (finished.code, &finished.result()["result"]),
        (Some(0), &json!("Done.")),
        "{finished:#?}"
    );
}

#[tokio::test]
async fn an_answer_waits_for_the_test() {
    let rig = Rig::new().await;
    let (late, end) = (Gate::new(), Gate::new());
    let api = Api::start(Script::new().when("", [Reply::pause("Done.", &end).held(&late)]));
    let child = start(&mut rig.real(&api.url()), PROMPT).await;
    api.wait_for_requests(1).await;
    late.open();
    end.open();
    let finished = finish(child).await;
    assert_eq!(
        (finished.code, &finished.result()["result"]),
        (Some(0), &json!("Done.")),
        "{finished:#?}"
    );
}

#[tokio::test]
async fn a_test_says_how_large_the_context_is() {
    let rig = Rig::new().await;
    let usage = Usage::context(150_000);
    let api = Api::start(Script::new().when("", [Reply::text("Done.").using(usage)]));
    let finished = turn(&rig, &api, "0").await;
    let told =
        finished.events.iter().find(|event| event["type"] == "assistant").expect("an answer");
    let told = &told["message"]["usage"];
    let tokens = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
    let sum: u64 = tokens.into_iter().filter_map(|name| told[name].as_u64()).sum();
    assert_eq!((sum, usage.input + usage.cache_read + usage.cache_creation), (150_000, 150_000));
    let request = &api.recorded()[0];
    assert!(
        request.kind == Kind::Turn
            && request.system().contains("You are a test agent.")
            && request.mentions("| x")
    );
}
