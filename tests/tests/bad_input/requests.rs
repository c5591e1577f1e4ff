//! Invalid requests of a client: each answer says what is wrong with which field, and nothing
//! changes.

use hive_core::reason::Reason;
use hive_proto::v1::command::Command as Order;
use hive_proto::v1::*;
use hive_tests::rig::request::{self, send};
use hive_tests::rig::{Rig, fresh_id, to};
use prost::Message as _;
use tonic::Code;
use tonic::metadata::MetadataMap;

use crate::ask::{bad_field, call, call_bytes, call_with, did, done, in_session, refused};

async fn hive() -> Rig {
    let mut rig = Rig::new("[agents.ada]\n[agents.bob]\n[agents.robert]\n");
    rig.start_broker().await;
    rig
}

#[tokio::test]
async fn an_unknown_recipient_is_refused_with_the_nearest_names_and_gets_no_inbox() {
    let rig = hive().await;
    let (ada, operator) = (rig.agent("ada").await, rig.operator().await.channel());
    let before = rig.on_disk();
    for (written, nearest) in [
        ("bobb", "did you mean `bob`"),
        ("rober", "did you mean `robert`"),
        ("zzzzzzzz", "no agent `zzzzzzzz`"),
    ] {
        for channel in [&ada.channel(), &operator] {
            refused(channel, &send(written, "hello"), Reason::AgentNotFound, &[written, nearest])
                .await;
        }
    }
    for written in ["", "Bob", "bob ", "../bob", "operator\n", &"b".repeat(64)] {
        bad_field(&ada.channel(), &send(written, "hello"), "to.agent").await;
    }
    let said = rig.hivectl(&["send", "bobb", "hello"]).await;
    assert_eq!(said.code, 3, "{said:?}");
    assert!(said.stderr.contains("did you mean `bob`"), "{said:?}");
    for (written, reason) in
        [("operator", Reason::FieldInvalid), ("<parent>", Reason::FieldInvalid)]
    {
        refused(
            &operator,
            &send(written, "to myself"),
            reason,
            &["the operator cannot write to themselves"],
        )
        .await;
    }
    rig.unchanged(&before, "a wrong recipient");
    rig.operator().await.admin().retire_agent(request::retire_agent("bob")).await.expect("gone");
    let before = rig.on_disk();
    refused(&ada.channel(), &send("bob", "hello"), Reason::AgentRetired, &["`bob` was retired"])
        .await;
    rig.unchanged(&before, "a retired recipient");
}

#[tokio::test]
async fn a_body_has_a_bound_in_bytes_and_is_not_empty() {
    let rig = hive().await;
    let ada = rig.agent("ada").await;
    let before = rig.on_disk();
    for body in ["x".repeat(32_769), "\u{1f41d}".repeat(8_193), "x".repeat(90_000)] {
        let bytes = body.len().to_string();
        let words = [bytes.as_str(), "32768"];
        refused(&ada.channel(), &send("bob", &body), Reason::BodyTooLarge, &words).await;
        let wake = request::wake("ci", body);
        refused(&ada.channel(), &wake, Reason::BodyTooLarge, &words).await;
    }
    bad_field(&ada.channel(), &send("bob", ""), "body").await;
    bad_field(&ada.channel(), &request::wake("ci", ""), "body").await;
    // Refused by its length, before it is read; the connection stays open.
    for bytes in [1 << 20, 5 << 20] {
        let request = send("bob", "x".repeat(bytes));
        let words = [request.encoded_len().to_string(), "32768".to_owned()];
        refused(
            &ada.channel(),
            &request,
            Reason::BodyTooLarge,
            &words.each_ref().map(String::as_str),
        )
        .await;
        let wake = request::wake("ci", request.body);
        let words = [wake.encoded_len().to_string(), "32768".to_owned()];
        refused(&ada.channel(), &wake, Reason::BodyTooLarge, &words.each_ref().map(String::as_str))
            .await;
    }
    rig.unchanged(&before, "a body that was refused");
    for body in ["x".repeat(32_768), "\u{1f41d}".repeat(8_192)] {
        let id = ada.send("bob", &body).await;
        assert_eq!(
            rig.operator().await.delivery("bob", id).await.message.expect("it").body,
            body,
            "to the byte"
        );
    }
}

#[tokio::test]
async fn text_that_is_no_text_is_refused() {
    let rig = hive().await;
    let ada = rig.agent("ada").await;
    let before = rig.on_disk();
    // A field of a string, by its number, that is not UTF-8: protobuf says that a reader has to
    // refuse it.
    let broken: [&[u8]; 4] = [b"\xff\xfe", b"ab\xc3", b"\xed\xa0\x80", b"\xc0\xaf"];
    for bytes in broken {
        for field in [1_u8, 3] {
            let mut request = send("bob", "").encode_to_vec();
            request.extend([field << 3 | 2, u8::try_from(bytes.len()).expect("short")]);
            request.extend(bytes);
            let refusal = call_bytes::<SendMessageRequest>(&ada.channel(), request)
                .await
                .map(drop)
                .expect_err("it is no text");
            assert!(
                matches!(refusal.code(), Code::Internal | Code::InvalidArgument),
                "{refusal:?}"
            );
        }
    }
    rig.unchanged(&before, "a text that is none");
    // Valid text is kept unchanged, however odd.
    for body in ["\0", "\u{1b}[31m\u{202e}\u{feff}", "\r\n\r", " ", "a\u{0}b"] {
        let id = ada.send("bob", body).await;
        assert_eq!(rig.operator().await.delivery("bob", id).await.message.expect("it").body, body);
    }
}

#[tokio::test]
async fn a_request_id_is_needed_has_a_bound_and_means_one_request() {
    let rig = hive().await;
    let (ada, bob) = (rig.agent("ada").await.channel(), rig.agent("bob").await.channel());
    let before = rig.on_disk();
    for request_id in [String::new(), "x".repeat(129), "with\nline".to_owned()] {
        bad_field(
            &ada,
            &SendMessageRequest { request_id: request_id.clone(), ..send("bob", "hello") },
            "request_id",
        )
        .await;
        let text = "busy".to_owned();
        bad_field(&ada, &SetStatusTextRequest { request_id, text }, "request_id").await;
    }
    rig.unchanged(&before, "a request without a good id");

    let first = SendMessageRequest { request_id: "\u{1f41d}".repeat(128), ..send("bob", "hello") };
    let receipt: SendMessageResponse = done(&ada, &first).await;
    let before = rig.on_disk();
    let again: SendMessageResponse = done(&ada, &first).await;
    assert_eq!(again, receipt);
    for other in [
        SendMessageRequest { body: "other".to_owned(), ..first.clone() },
        SendMessageRequest { to: to("robert"), ..first.clone() },
        SendMessageRequest { in_reply_to: receipt.message_id, ..first.clone() },
    ] {
        refused(&ada, &other, Reason::RequestIdReused, &["make a new id"]).await;
    }
    rig.unchanged(&before, "a request said twice");
    // A request id belongs to its caller and RPC: the same id of another caller or RPC is separate.
    let other: SendMessageResponse = done(&bob, &first).await;
    assert_ne!(other.message_id, receipt.message_id);
    let status = SetStatusTextRequest { request_id: first.request_id, text: "busy".to_owned() };
    did(&ada, &status).await;
}

#[tokio::test]
async fn trace_context_is_no_content_of_a_request() {
    let rig = hive().await;
    let ada = rig.agent("ada").await.channel();
    let first = send("bob", "hello");
    let mut answers = Vec::new();
    for trace in ["4bf92f3577b34da6a3ce929d0e0e4736", "0af7651916cd43dd8448eb211c80319c"] {
        let mut metadata = MetadataMap::new();
        for (key, value) in [
            ("traceparent", format!("00-{trace}-00f067aa0ba902b7-01")),
            ("tracestate", format!("vendor={trace}")),
            ("baggage", format!("run={trace}")),
        ] {
            metadata.insert(key, value.parse().expect("plain text"));
        }
        let sent = call_with(&ada, metadata, &first).await.expect("it is sent");
        answers.push(sent.decode::<SendMessageResponse>());
    }
    assert_eq!(answers[0], answers[1], "the first answer again");
    assert_eq!(rig.operator().await.all_deliveries("bob").await.len(), 1);
}

#[tokio::test]
async fn choices_are_made_and_values_are_known() {
    let rig = hive().await;
    let (ada, operator) = (rig.agent("ada").await.channel(), rig.operator().await.channel());
    let before = rig.on_disk();
    let unsaid = Recipient { to: None };
    bad_field(&ada, &SendMessageRequest { to: None, ..send("bob", "x") }, "to").await;
    bad_field(&ada, &SendMessageRequest { to: Some(unsaid), ..send("bob", "x") }, "to").await;
    bad_field(&ada, &AckDeliveryRequest { target: None }, "target").await;
    let tell =
        |command| SendCommandRequest { request_id: fresh_id(), agent: "ada".to_owned(), command };
    bad_field(&operator, &tell(None), "command").await;
    bad_field(&operator, &tell(Some(Command::default())), "command").await;
    for key in [
        None,
        Some(DeliveryKey::default()),
        Some(DeliveryKey { agent: "ada".to_owned(), message_id: 0 }),
    ] {
        let request = RedriveDeliveryRequest { request_id: fresh_id(), key };
        refused(&operator, &request, Reason::FieldInvalid, &["key"]).await;
    }
    for state in [0, 99, -1, i32::MAX] {
        let list =
            ListDeliveriesRequest { states: vec![state], ..ListDeliveriesRequest::default() };
        refused(&ada, &list, Reason::FieldInvalid, &["states"]).await;
        let report = ReportHarnessStatusRequest { state, until_time: None };
        bad_field(&ada, &in_session(report, "s"), "state").await;
        let begin = BeginTurnRequest { kind: state, ..request::begin() };
        bad_field(&ada, &in_session(begin, "s"), "kind").await;
        let end = request::end_turn(1, TurnOutcome::Ok);
        let end = EndTurnRequest { outcome: state, ..end };
        bad_field(&ada, &in_session(end, "s"), "outcome").await;
    }
    rig.unchanged(&before, "a choice that was not made");
}

#[tokio::test]
async fn numbers_out_of_any_range_are_refused_or_find_nothing() {
    let rig = hive().await;
    let (ada, operator) = (rig.agent("ada").await.channel(), rig.operator().await.channel());
    let before = rig.on_disk();
    let span = |seconds, nanos| Some(prost_types::Duration { seconds, nanos });
    for wrong in [
        span(181, 0),
        span(-1, 0),
        span(0, -1),
        span(i64::MAX, 0),
        span(0, i32::MAX),
        span(i64::MIN, i32::MIN),
    ] {
        let receive = ReceiveMessagesRequest { wait: wrong, ..request::receive() };
        bad_field(&ada, &receive, "wait").await;
    }
    for wrong in [span(3601, 0), span(-1, 0)] {
        let receive = ReceiveMessagesRequest { lease_duration: wrong, ..request::receive() };
        bad_field(&ada, &receive, "lease_duration").await;
    }
    // A number of the log without its log, and one of another log.
    let (without, other) =
        (ListEventsRequest { after_sequence: 1, ..Default::default() }, "another log");
    bad_field(&ada, &without, "log_id").await;
    bad_field(
        &ada,
        &WatchEventsRequest { after_sequence: Some(1), ..Default::default() },
        "log_id",
    )
    .await;
    let other = ListEventsRequest { log_id: other.to_owned(), ..without };
    bad_field(&ada, &other, "log_id").await;
    let info: GetServerInfoResponse = done(&operator, &GetServerInfoRequest::default()).await;
    // The greatest number that an id can have, and the first that none has.
    for id in [(1 << 53) - 1, (1 << 53) - 2] {
        for channel in [&ada, &operator] {
            let get = GetMessageRequest { message_id: id };
            refused(channel, &get, Reason::MessageNotFound, &[]).await;
            let get = GetTurnRequest { turn_id: id };
            refused(channel, &get, Reason::TurnNotFound, &[]).await;
            let reply = SendMessageRequest { in_reply_to: id, ..send("bob", "x") };
            refused(channel, &reply, Reason::MessageNotFound, &[]).await;
            for page_size in [0, u32::MAX] {
                let events = ListEventsRequest {
                    after_sequence: id,
                    page_size,
                    log_id: info.log_id.clone(),
                    ..ListEventsRequest::default()
                };
                let listed: ListEventsResponse = done(channel, &events).await;
                assert_eq!(listed.events, []);
                let thread = ListMessagesRequest { thread_of: id, page_size, ..Default::default() };
                did(channel, &thread).await;
            }
        }
        let key = Some(DeliveryKey { agent: "ada".to_owned(), message_id: id });
        let redrive = RedriveDeliveryRequest { request_id: fresh_id(), key };
        refused(&operator, &redrive, Reason::DeliveryNotFound, &[]).await;
        let cancel = request::order("ada", Order::CancelTurn(CancelTurn { turn_id: id }));
        refused(&operator, &cancel, Reason::TurnNotFound, &[]).await;
    }
    for id in [0, 1 << 53, u64::MAX >> 1, u64::MAX] {
        bad_field(&ada, &GetMessageRequest { message_id: id }, "message_id").await;
        bad_field(&ada, &GetTurnRequest { turn_id: id }, "turn_id").await;
        let key = Some(DeliveryKey { agent: "ada".to_owned(), message_id: id });
        let redrive = RedriveDeliveryRequest { request_id: fresh_id(), key };
        bad_field(&operator, &redrive, "key.message_id").await;
        let close = CancelLooseEndRequest { request_id: fresh_id(), kind: 1, id };
        bad_field(&ada, &close, "id").await;
    }
    for id in [1 << 53, u64::MAX] {
        let reply = SendMessageRequest { in_reply_to: id, ..send("bob", "x") };
        bad_field(&ada, &reply, "in_reply_to").await;
        let list = ListMessagesRequest { thread_of: id, ..ListMessagesRequest::default() };
        bad_field(&ada, &list, "thread_of").await;
        let order = request::order("ada", Order::CancelTurn(CancelTurn { turn_id: id }));
        bad_field(&operator, &order, "command.cancel_turn.turn_id").await;
        let watch = WatchQuestionsRequest { question_id: id, ..WatchQuestionsRequest::default() };
        bad_field(&ada, &watch, "question_id").await;
        let finish = FinishPurgeRequest { request_id: fresh_id(), purge_id: id };
        bad_field(&operator, &finish, "purge_id").await;
        let lines = WatchTurnRequest { turn_id: 1, after_sequence: id, follow: false };
        bad_field(&ada, &lines, "after_sequence").await;
    }
    rig.unchanged(&before, "a number out of range");
}

#[tokio::test]
async fn a_call_without_its_session_is_told_which_metadata_is_missing() {
    let rig = hive().await;
    let ada = rig.agent("ada").await.channel();
    let before = rig.on_disk();
    let end = request::end_turn(1, TurnOutcome::Ok);
    bad_field(&ada, &request::begin(), "hive-session-token").await;
    bad_field(&ada, &end, "hive-session-token").await;
    bad_field(&ada, &HeartbeatRequest {}, "hive-session-token").await;
    bad_field(&ada, &ReportTurnEventsRequest::default(), "hive-session-token").await;
    bad_field(&ada, &ServeLoginRequest::default(), "hive-session-token").await;
    let long = "x".repeat(129);
    for token in ["", long.as_str(), "caf\u{e9}"] {
        for request in [request::begin(), BeginTurnRequest::default()] {
            bad_field(&ada, &in_session(request, token), "hive-session-token").await;
        }
        let attach = in_session(AttachRequest::default(), token);
        bad_field(&ada, &attach, "hive-session-token").await;
        let wake = in_session(request::wake("ci", "built"), token);
        bad_field(&ada, &wake, "hive-session-token").await;
    }
    rig.unchanged(&before, "a call without its session");
}

#[tokio::test]
async fn a_harness_with_impossible_counts_harms_no_agent() {
    let rig = hive().await;
    let ada = rig.agent("ada").await.channel();
    let attached = call(&ada, &AttachRequest::default()).await.expect("attached");
    let session_token = match attached.decode::<AttachResponse>().step {
        Some(attach_response::Step::Attached(attached)) => attached.session_token,
        step => panic!("{step:?}"),
    };
    let begin = BeginTurnRequest { kind: TurnKind::Continue.into(), ..request::begin() };
    let begin = in_session(begin, &session_token);
    let turn = call(&ada, &begin).await.expect("begun").decode::<BeginTurnResponse>().turn;
    let turn_id = turn.expect("a turn").id;
    let line = |sequence, stream| TurnEvent { sequence, stream, ..TurnEvent::default() };
    for (event, field) in [
        (line(0, 1), "events.sequence"),
        (line(1 << 53, 1), "events.sequence"),
        (line(u64::MAX, 1), "events.sequence"),
        (line(1, 0), "events.stream"),
        (line(1, 99), "events.stream"),
    ] {
        let report = ReportTurnEventsRequest { turn_id, events: vec![event] };
        bad_field(&ada, &in_session(report, &session_token), field).await;
    }
    let usage = TurnUsage {
        input_tokens: u64::MAX,
        cache_read_tokens: u64::MAX,
        cache_creation_tokens: u64::MAX,
        output_tokens: u64::MAX,
        cost_micro_usd: u64::MAX,
        inference_count: u32::MAX,
        tool_call_count: u32::MAX,
    };
    let end = |retry_time| EndTurnRequest {
        error: "\u{1f41d}".repeat(10_000),
        output_tail: "\u{1f41d}".repeat(10_000),
        usage: Some(usage),
        model: "m".repeat(100_000),
        context_tokens: u64::MAX,
        context_window_tokens: u64::MAX,
        returned_tool_use_ids: vec![String::new(), "x".repeat(100_000)],
        retry_time: Some(prost_types::Timestamp { seconds: retry_time, nanos: 0 }),
        ..request::end_turn(turn_id, TurnOutcome::RateLimited)
    };
    let end = |retry_time| in_session(end(retry_time), &session_token);
    bad_field(&ada, &end(i64::MAX), "retry_time").await;
    did(&ada, &end(i64::MAX / 1000)).await;
    let operator = rig.operator().await;
    let turn = operator.turn(turn_id).await;
    assert!(
        turn.error.len() <= 4096 && turn.output_tail.len() <= 8192 && turn.model.len() <= 1000,
        "{turn:?}"
    );
    assert!(operator.get_agent("ada").await.park.is_some(), "it says that it is parked for ever");
    operator.send("ada", "for later").await;
    assert_eq!(rig.hivectl(&["agents"]).await.code, 0);
    assert_eq!(rig.hivectl(&["turn", "show", &turn_id.to_string()]).await.code, 0);
}

#[tokio::test]
async fn agents_with_impossible_settings_are_not_created() {
    let rig = hive().await;
    let operator = rig.operator().await.channel();
    let before = rig.on_disk();
    let create = |name: &str| request::create_agent(name);
    for name in [
        "",
        "Eve",
        "../../eve",
        "eve/..",
        "..",
        "operator",
        "hive",
        "1st",
        "e ve",
        "eve\0",
        "\u{1b}[1m",
        &"e".repeat(64),
    ] {
        bad_field(&operator, &create(name), "name").await;
    }
    refused(&operator, &create("ada"), Reason::AgentExists, &["`ada`"]).await;
    let parent = "adam".to_owned();
    refused(
        &operator,
        &CreateAgentRequest { parent, ..create("eve") },
        Reason::AgentNotFound,
        &["`ada`"],
    )
    .await;
    bad_field(&operator, &CreateAgentRequest { role: "r".repeat(1001), ..create("eve") }, "role")
        .await;
    for model in ["m".repeat(201), "--dangerously-skip-permissions".to_owned(), "a\nb".to_owned()] {
        bad_field(&operator, &CreateAgentRequest { model, ..create("eve") }, "model").await;
    }
    let policy = |policy: Policy| CreateAgentRequest { policy: Some(policy), ..create("eve") };
    let groups = Policy { tool_groups: vec!["mesaging".to_owned()], ..Policy::default() };
    bad_field(&operator, &policy(groups), "policy.tool_groups").await;
    let recipients = Policy { allowed_recipients: vec!["Bob".to_owned()], ..Policy::default() };
    bad_field(&operator, &policy(recipients), "policy.allowed_recipients").await;
    let set = |name: &str, parent: &str| SetParentRequest {
        request_id: fresh_id(),
        name: name.to_owned(),
        parent: parent.to_owned(),
        ..SetParentRequest::default()
    };
    refused(&operator, &set("ada", "ada"), Reason::TopologyCycle, &["circle"]).await;
    rig.unchanged(&before, "an agent that could not live");
    let left: Vec<_> = std::fs::read_dir(rig.path("run/agents"))
        .expect("it is there")
        .flatten()
        .map(|dir| dir.file_name())
        .collect();
    assert_eq!(left.len(), 3, "{left:?}");
}
