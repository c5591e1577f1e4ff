//! The real CLI: its own spans are below the turn that it runs.

use hive_proto::v1::TurnOutcome;
use hive_tests::api::{Api, Reply, Script};
use hive_tests::claude;
use hive_tests::rig::{DUO, HarnessOptions, QUICK_LIMITS, Rig};
use serde_json::json;

use crate::collector::Collector;

#[tokio::test]
async fn the_spans_of_claude_itself_are_below_its_turn() {
    let claude = claude::find().unwrap_or_else(|missing| panic!("{missing}"));
    let collector = Collector::start().await;
    let mut rig = Rig::new(&format!("{DUO}{}{QUICK_LIMITS}", collector.config()));
    rig.start_broker().await;
    let send = json!({"to": "operator", "body": "All is well."});
    let steps = [Reply::tool("mcp__hive__send", send), Reply::text("I have reported.")];
    let api = Api::start(Script::new().when("please report", steps));
    let mut claude_env = claude::further_environment(&rig.path("unused"), &api.url());
    // The harness makes a directory of its own.
    claude_env.remove("CLAUDE_CODE_TMPDIR");
    let collector_url = format!("http://{}", collector.address);
    for (name, value) in [
        ("CLAUDE_CODE_ENABLE_TELEMETRY", "1"),
        ("CLAUDE_CODE_ENHANCED_TELEMETRY_BETA", "1"),
        ("OTEL_TRACES_EXPORTER", "otlp"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector_url),
    ] {
        claude_env.insert(name.to_owned(), value.to_owned());
    }
    let options = HarnessOptions { claude, claude_env, ..HarnessOptions::default() };
    rig.operator().await.send("ada", "please report").await;
    rig.start_harness_with("ada", &options);
    let [turn, interaction, tool, reply] = collector
        .named([
            "turn ada",
            "claude_code.interaction",
            "execute_tool mcp__hive__send",
            "send operator",
        ])
        .await;
    assert_eq!((&interaction.trace, &interaction.parent), (&turn.trace, &turn.id));
    assert_eq!((&tool.trace, &tool.parent), (&turn.trace, &turn.id));
    assert_eq!((&reply.trace, &reply.parent), (&turn.trace, &tool.id));
    assert_eq!(turn.attributes["gen_ai.response.model"], "claude-haiku-5-5");
    assert!(turn.attributes["gen_ai.usage.output_tokens"].parse::<u64>().expect("a number") > 0);
    let turns = rig.operator().await.turns("ada").await;
    assert_eq!(turns[0].outcome(), TurnOutcome::Ok);
    rig.end().await;
}
