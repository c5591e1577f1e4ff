//! What the page shows: each number changes with the calls that it is about.

use hive_proto::v1::attach_response::Step;
use hive_proto::v1::turn_service_client::TurnServiceClient;
use hive_proto::v1::{
    AckDeliveryRequest, AttachRequest, BeginTurnResponse, DeliveryState, EndTurnRequest,
    NackDeliveryRequest, ReceiveMessagesResponse, TurnOutcome, TurnUsage,
    ack_delivery_request::Target,
};
use hive_tests::rig::call::{did, done, in_session};
use hive_tests::rig::{Client, Rig, request, soon};

use crate::scrape::{Page, scrape, shows};

const METRICS: &str = "[broker.metrics]\nsocket = \"metrics.sock\"\n";

async fn hive(config: &str) -> Rig {
    let mut rig = Rig::new(&format!("{METRICS}{config}"));
    rig.start_broker().await;
    rig
}

async fn lease(client: &Client) -> String {
    let received: ReceiveMessagesResponse = done(&client.channel(), &request::receive()).await;
    let [leased] = &received.deliveries[..] else { panic!("{received:?}") };
    leased.lease_token.clone()
}

#[tokio::test]
async fn mail_is_counted_from_the_send_to_the_end() {
    let rig = hive("[agents.ada]\n[agents.bob]\n").await;
    let socket = rig.path("metrics.sock");
    let before = scrape(&socket).await;
    assert_eq!(before.value("hive_inbox_deliveries{agent=\"ada\"}"), 0.0);
    assert_eq!(before.value("hive_inboxes"), 3.0, "with the operator's");
    assert_eq!(before.value("hive_agents{state=\"offline\"}"), 2.0);
    assert_eq!(before.value("hive_database_usable"), 1.0);
    assert!(before.value("hive_start_time_seconds") > 1e9);
    // A shipped build has a commit.
    let version =
        format!("hive_build_info{{version=\"{}\",commit=\"\"}}", env!("CARGO_PKG_VERSION"));
    assert_eq!(before.value(&version), 1.0);

    let (operator, ada) = (rig.operator().await, rig.agent("ada").await);
    for body in ["one", "two", "three"] {
        operator.send("ada", body).await;
    }
    let sent = shows(&socket, "three messages are shown", |page| {
        page.value("hive_inbox_deliveries{agent=\"ada\"}") == 3.0
    })
    .await;
    assert_eq!(sent.value("hive_deliveries{state=\"ready\"}"), 3.0);
    assert_eq!(sent.value("hive_inbox_deliveries{agent=\"bob\"}"), 0.0);
    assert!(sent.value("hive_inbox_oldest_ready_age_seconds{agent=\"ada\"}") > 0.0);
    assert_eq!(sent.value("hive_inbox_oldest_ready_age_seconds{agent=\"bob\"}"), 0.0);
    for family in ["hive_commit_duration_seconds", "hive_commit_sync_duration_seconds"] {
        let count = format!("{family}_count");
        assert!(sent.value(&count) >= before.value(&count) + 3.0, "{}", sent.text);
        assert!(sent.value(&format!("{family}_sum")) > 0.0, "{}", sent.text);
        let all = format!("{family}_bucket{{le=\"+Inf\"}}");
        assert_eq!(sent.value(&all), sent.value(&count));
    }
    assert!(
        sent.value("hive_commit_sync_duration_seconds_sum")
            <= sent.value("hive_commit_duration_seconds_sum")
    );
    assert!(sent.value("hive_commit_items_sum") >= before.value("hive_commit_items_sum") + 3.0);

    let (acked, nacked, dead) = (lease(&ada).await, lease(&ada).await, lease(&ada).await);
    let leased = shows(&socket, "three leases are shown", |page| {
        page.value("hive_inbox_leased_deliveries{agent=\"ada\"}") == 3.0
    })
    .await;
    assert_eq!(leased.value("hive_deliveries{state=\"leased\"}"), 3.0);
    assert_eq!(leased.value("hive_deliveries{state=\"ready\"}"), 0.0);

    let ack = AckDeliveryRequest { target: Some(Target::LeaseToken(acked)) };
    did(&ada.channel(), &ack).await;
    let nack = |lease_token, permanent| NackDeliveryRequest {
        lease_token,
        permanent,
        ..NackDeliveryRequest::default()
    };
    did(&ada.channel(), &nack(nacked, false)).await;
    did(&ada.channel(), &nack(dead, true)).await;
    let settled = shows(&socket, "a dead letter is shown", |page| {
        page.value("hive_deliveries{state=\"dead\"}") == 1.0
    })
    .await;
    assert_eq!(settled.value("hive_dead_letters_total"), 1.0);
    assert_eq!(settled.value("hive_redeliveries_total{cause=\"nacked\"}"), 1.0);
    assert_eq!(settled.value("hive_redeliveries_total{cause=\"lease_expired\"}"), 0.0);
    assert_eq!(settled.value("hive_deliveries{state=\"leased\"}"), 0.0);
    assert_eq!(settled.value("hive_deliveries{state=\"ready\"}"), 1.0);

    let dead = rig.operator().await.all_deliveries("ada").await;
    let dead = dead.iter().find(|delivery| delivery.state() == DeliveryState::Dead);
    let id = dead.and_then(|delivery| delivery.message.as_ref()).expect("a dead letter").id;
    let done = rig.hivectl(&["dead-letters", "redrive", &id.to_string(), "--agent", "ada"]).await;
    assert_eq!(done.code, 0, "{done:?}");
    let again = shows(&socket, "the redriven letter is shown", |page| {
        page.value("hive_deliveries{state=\"dead\"}") == 0.0
    })
    .await;
    assert_eq!(again.value("hive_redeliveries_total{cause=\"redriven\"}"), 1.0);
    assert_eq!(again.value("hive_dead_letters_total"), 1.0, "a counter never goes down");
    rig.end().await;
}

#[tokio::test]
async fn turns_are_counted_by_outcome_with_their_tokens_and_cost() {
    let rig = hive("[agents.ada]\n[agents.bob]\n").await;
    let (socket, operator) = (rig.path("metrics.sock"), rig.operator().await);
    let ada = rig.agent("ada").await.channel();
    let mut turns = TurnServiceClient::new(ada.clone());
    let mut stream =
        turns.attach(AttachRequest::default()).await.expect("it attaches").into_inner();
    let first = soon("the harness is attached", stream.message()).await.expect("an answer");
    let Some(Step::Attached(attached)) = first.expect("an answer").step else { panic!("no step") };
    let session = attached.session_token;
    let attached = shows(&socket, "the harness is shown", |page| {
        page.value("hive_agents{state=\"offline\"}") == 1.0
    })
    .await;
    assert_eq!(attached.value("hive_waiting_calls"), 0.0);

    // A begin waits for mail.
    let (begin, channel, token) = (request::begin(), ada.clone(), session.clone());
    let begins = async move {
        let begun: BeginTurnResponse = done(&channel, &in_session(begin, &token)).await;
        begun.turn.expect("a turn").id
    };
    let mut begun = tokio::task::JoinSet::new();
    begun.spawn(begins);
    shows(&socket, "a waiting call is shown", |page| page.value("hive_waiting_calls") == 1.0).await;
    operator.send("ada", "work").await;
    let turn = soon("the turn begins", begun.join_next()).await;
    let turn = turn.expect("a call").expect("no panic");
    let usage = TurnUsage {
        input_tokens: 10,
        cache_read_tokens: 20,
        cache_creation_tokens: 30,
        output_tokens: 40,
        cost_micro_usd: 1_500_001,
        inference_count: 2,
        tool_call_count: 3,
    };
    let end = EndTurnRequest { usage: Some(usage), ..request::end_turn(turn, TurnOutcome::Ok) };
    // Reported twice, and counted once.
    did(&ada, &in_session(end.clone(), &session)).await;
    did(&ada, &in_session(end, &session)).await;

    operator.send("ada", "work that fails").await;
    let begin = in_session(request::begin(), &session);
    let begun: BeginTurnResponse = done(&ada, &begin).await;
    let turn = begun.turn.expect("a turn").id;
    let end = EndTurnRequest { usage: Some(usage), ..request::end_turn(turn, TurnOutcome::Failed) };
    did(&ada, &in_session(end, &session)).await;

    let page = shows(&socket, "both turns are shown", |page| {
        page.value("hive_turns_total{outcome=\"failed\"}") == 1.0
    })
    .await;
    for (sample, value) in [
        ("hive_turns_total{outcome=\"ok\"}", 1.0),
        ("hive_turns_total{outcome=\"rate_limited\"}", 0.0),
        ("hive_turn_tokens_total{type=\"input\"}", 20.0),
        ("hive_turn_tokens_total{type=\"cache_read\"}", 40.0),
        ("hive_turn_tokens_total{type=\"cache_creation\"}", 60.0),
        ("hive_turn_tokens_total{type=\"output\"}", 80.0),
        ("hive_turn_cost_usd_total", 3.000_002),
        ("hive_turn_inferences_total", 4.0),
        ("hive_turn_tool_calls_total", 6.0),
        ("hive_redeliveries_total{cause=\"turn_failed\"}", 1.0),
        ("hive_waiting_calls", 0.0),
    ] {
        assert_eq!(page.value(sample), value, "{sample}");
    }
    rig.end().await;
}

#[tokio::test]
async fn the_fullest_inboxes_have_names_and_the_rest_is_a_sum() {
    let names: Vec<String> = (0..230).map(|number| format!("a{number:03}")).collect();
    let config: String = names.iter().map(|name| format!("[agents.{name}]\n")).collect();
    let rig = hive(&config).await;
    let (socket, operator) = (rig.path("metrics.sock"), rig.operator().await);
    // The last by name are the fullest.
    operator.send("*", "to everyone").await;
    operator.send("a229", "once more").await;
    operator.send("a010", "once more").await;
    let page = shows(&socket, "all mail is shown", |page| {
        page.value("hive_deliveries{state=\"ready\"}") == 232.0
    })
    .await;
    let of = |page: &Page, family: &str| -> Vec<String> {
        let start = format!("{family}{{agent=\"");
        let names = page.samples.keys().filter_map(|sample| sample.strip_prefix(&start));
        names.map(|name| name.trim_end_matches("\"}").to_owned()).collect()
    };
    for family in [
        "hive_inbox_deliveries",
        "hive_inbox_leased_deliveries",
        "hive_inbox_oldest_ready_age_seconds",
    ] {
        let shown = of(&page, family);
        assert_eq!(shown.len(), 201, "{family}: {shown:?}");
        assert!(shown.contains(&"a229".to_owned()), "{family}: {shown:?}");
        assert!(shown.contains(&"(others)".to_owned()), "{family}: {shown:?}");
        assert!(!shown.contains(&"a228".to_owned()), "{family}: {shown:?}");
    }
    assert_eq!(page.value("hive_inboxes"), 231.0);
    // Of 231 inboxes 200 are named: 2 have two messages, 198 one; the operator's is empty.
    assert_eq!(page.value("hive_inbox_deliveries{agent=\"(others)\"}"), 30.0);
    assert!(page.value("hive_inbox_oldest_ready_age_seconds{agent=\"(others)\"}") > 0.0);
    rig.end().await;
}
