//! Claude's calls before the first tool call: answered at once, with or without a broker.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hive_tests::mcp::{Client, ClientError};
use serde_json::{Value, json};

use crate::rig::{self, hive, stopped};

async fn listed(groups: Option<&str>) -> Vec<String> {
    let broker = stopped();
    let mut command = rig::command(&broker.socket());
    if let Some(groups) = groups {
        command.env("HIVE_TOOL_GROUPS", groups);
    }
    let mut client = Client::spawn(&mut command).expect("hive-mcp starts");
    client.handshake().await.expect("the handshake works");
    let tools = client.list_tools().await.expect("tools are listed");
    tools.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect()
}

#[tokio::test]
async fn the_handshake_is_answered_fast_while_the_broker_is_dead() {
    let broker = stopped();
    let started = Instant::now();
    let mut client = Client::spawn(&mut rig::command(&broker.socket())).expect("hive-mcp starts");
    let hello = client.handshake().await.expect("the handshake works");
    let tools = client.list_tools().await.expect("tools are listed");
    let took = started.elapsed();
    assert_eq!(hello["serverInfo"]["name"], "hive");
    assert_eq!(hello["protocolVersion"], "2025-11-25");
    assert_eq!(tools.len(), 11);
    // Tens of milliseconds on an idle machine; the limit allows for a busy one and still excludes
    // any wait for the broker.
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[tokio::test]
async fn the_probe_for_a_newer_protocol_is_refused_and_the_handshake_goes_on() {
    let broker = stopped();
    let mut client = Client::spawn(&mut rig::command(&broker.socket())).expect("hive-mcp starts");
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "claude-code", "version": "2.1.330"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for params in [json!({"_meta": meta}), json!({})] {
        let probe = client
            .start_as(json!("server-discover-probe-1"), "server/discover", params)
            .await
            .expect("the bridge reads");
        let refused = probe.result().await.expect_err("the newer protocol is not spoken");
        assert!(matches!(refused, ClientError::Refused(_)), "{refused}");
    }
    client.handshake().await.expect("the handshake still works");
}

#[tokio::test]
async fn only_the_agents_groups_are_listed() {
    let messaging = ["send", "recv", "ask", "answer"];
    let inbox = ["get_loose_ends", "cancel_loose_end", "remind", "request_next_turn"];
    let meta = ["set_status", "get_agent_meta", "list_agents"];
    let default = [&messaging[..], &inbox, &meta].concat();
    assert_eq!(listed(None).await, default);
    assert_eq!(listed(Some("messaging,inbox,meta,execution")).await, default);
    assert_eq!(listed(Some("meta")).await, meta);
    assert_eq!(listed(Some("inbox")).await, inbox);
    assert_eq!(listed(Some("messaging,web_tools")).await, messaging);
    let lifecycle = ["start", "kill", "restart", "list_containers"];
    assert_eq!(listed(Some("lifecycle")).await, lifecycle);
    assert_eq!(listed(Some("lifecycle,meta")).await, [&meta[..], &lifecycle].concat());
    let diagnostics = ["get_logs", "get_host_journal"];
    assert_eq!(listed(Some("diagnostics")).await, diagnostics);
    let scheduling = [
        "request_schedule_prompt",
        "edit_schedule",
        "cancel_schedule",
        "fire_schedule_now",
        "list_schedules",
    ];
    assert_eq!(listed(Some("scheduling")).await, scheduling);
    assert!(listed(Some("")).await.is_empty());
}

#[tokio::test]
async fn a_tool_that_is_not_listed_cannot_be_called() {
    let broker = hive().await;
    let mut client = Client::spawn(rig::command(&broker.socket()).env("HIVE_TOOL_GROUPS", "meta"))
        .expect("hive-mcp starts");
    client.handshake().await.expect("the handshake works");
    let pending = client
        .start_tool("send", json!({"to": "bob", "body": "x"}), "toolu_1")
        .await
        .expect("the bridge reads");
    let refused = pending.tool_result().await.expect_err("there is no such tool");
    assert!(refused.to_string().contains("there is no tool send"), "{refused}");
    assert!(broker.with(|state| state.calls.is_empty()));
}

#[tokio::test]
async fn the_list_is_small_and_its_hints_are_honest() {
    let broker = stopped();
    let mut client = rig::connected(&broker).await;
    let answer = client.request("tools/list", json!({})).await.expect("tools are listed");
    let bytes = answer.to_string().len();
    // The limit is 10 KB for the default groups; this leaves room for later tools.
    assert!(bytes < 7_000, "tools/list has {bytes} bytes");
    let tools = answer["tools"].as_array().expect("a list");
    let hints: BTreeMap<&str, &Value> = tools
        .iter()
        .map(|tool| (tool["name"].as_str().expect("a name"), &tool["annotations"]))
        .collect();
    let adds = |idempotent: bool| json!({"readOnlyHint": false, "destructiveHint": false, "idempotentHint": idempotent, "openWorldHint": false});
    assert_eq!(*hints["send"], adds(false));
    assert_eq!(*hints["recv"], adds(false), "recv leases, so it is no read");
    for (tool, idempotent) in [
        ("ask", false),
        ("answer", true),
        ("remind", false),
        ("request_next_turn", true),
        ("set_status", true),
    ] {
        assert_eq!(*hints[tool], adds(idempotent), "{tool}");
    }
    let takes_away = json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": true, "openWorldHint": false});
    assert_eq!(*hints["cancel_loose_end"], takes_away);
    for tool in ["get_loose_ends", "get_agent_meta", "list_agents"] {
        assert_eq!(*hints[tool], json!({"readOnlyHint": true, "openWorldHint": false}), "{tool}");
    }
}

#[tokio::test]
async fn schemas_are_exact_and_short() {
    let broker = stopped();
    let mut client = rig::connected(&broker).await;
    let tools = client.list_tools().await.expect("tools are listed");
    let schema = |name: &str| {
        let tool = tools.iter().find(|tool| tool["name"] == name).expect("it is listed");
        tool["inputSchema"].clone()
    };
    let send = json!({
        "type": "object",
        "properties": {
            "to": {"type": "string", "description": "Agent name, `operator`, `<parent>`, or `*` for every other agent."},
            "body": {"type": "string", "description": "The text."},
            "in_reply_to": {"type": "integer", "minimum": 1, "description": "Id of the message this answers."},
        },
        "required": ["to", "body"],
        "additionalProperties": false,
    });
    assert_eq!(schema("send"), send);
    assert_eq!(schema("recv")["properties"]["wait_seconds"]["maximum"], 180);
    assert_eq!(schema("recv")["properties"]["max"]["maximum"], 32);
    assert_eq!(schema("recv")["required"], Value::Null);
    assert_eq!(schema("get_agent_meta")["properties"]["name"]["type"], "string");
    let ask = json!({
        "type": "object",
        "properties": {
            "question": {
                "type": "string", "maxLength": 8192, "description": "The question, with all that is needed to answer it.",
            },
            "options": {
                "type": "array", "items": {"type": "string"}, "maxItems": 20,
                "description": "Answers to offer, one line each; free text stays possible.",
            },
            "multi": {"type": "boolean", "description": "Several options may be chosen."},
            "ttl_seconds": {
                "type": "integer", "minimum": 1, "maximum": 31_622_400, "description": "Expires after so long; default never.",
            },
            "to": {"type": "string", "description": "`operator` (default), agent name or `<parent>`."},
        },
        "required": ["question"],
        "additionalProperties": false,
    });
    assert_eq!(schema("ask"), ask);
    assert_eq!(schema("answer")["required"], json!(["id"]));
    assert_eq!(schema("answer")["properties"]["choices"]["items"]["type"], "string");
    assert_eq!(
        schema("cancel_loose_end")["properties"]["kind"],
        json!({"type": "string", "enum": ["question", "reminder"]})
    );
    assert_eq!(schema("cancel_loose_end")["required"], json!(["kind", "id"]));
    assert_eq!(schema("get_loose_ends")["required"], Value::Null);
    assert_eq!(schema("remind")["required"], json!(["message"]));
    assert_eq!(schema("remind")["properties"]["delay_seconds"]["maximum"], 316_224_000);
    assert_eq!(schema("set_status")["properties"]["text"]["maxLength"], 200);
}
