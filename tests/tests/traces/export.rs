//! The export itself: a collector that is away, that refuses, and that wants a token.

use axum::http::StatusCode;
use hive_tests::rig::Rig;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixStream};

use crate::collector::Collector;

const AGENTS: &str = "[agents.ada]\n[broker.metrics]\nsocket = \"metrics.sock\"\n";

async fn hive(config: &str) -> Rig {
    let mut rig = Rig::new(&format!("{AGENTS}{config}"));
    rig.start_broker().await;
    rig
}

/// Returns the exported and the dropped spans that the page of metrics shows.
async fn counted(rig: &Rig) -> (u64, u64) {
    let mut stream = UnixStream::connect(rig.path("metrics.sock")).await.expect("the page");
    let get = b"GET /metrics HTTP/1.1\r\nHost: hive\r\n\r\n";
    stream.write_all(get).await.expect("a request");
    let mut page = String::new();
    stream.read_to_string(&mut page).await.expect("an answer");
    let count = |result: &str| {
        let sample = format!("hive_trace_spans_total{{result=\"{result}\"}} ");
        let line = page.lines().find_map(|line| line.strip_prefix(&sample));
        line.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("{result}: {page}"))
    };
    (count("exported"), count("dropped"))
}

/// Waits until the page shows these counts; it is up to a second old.
async fn shows(rig: &Rig, counts: (u64, u64)) {
    let look = async { while counted(rig).await != counts {} };
    hive_tests::rig::soon(&format!("the counts are {counts:?}"), look).await;
}

#[tokio::test]
async fn spans_wait_for_a_collector_that_is_away() {
    let port = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = port.local_addr().expect("an address");
    let config = format!("[broker.traces]\notlp = \"http://{address}/v1/traces\"\n");
    drop(port);
    let rig = hive(&config).await;
    rig.operator().await.send("ada", "hello").await;
    let failed = async {
        loop {
            let status = rig.hivectl(&["--json", "status"]).await;
            if status.stdout.contains("could not be reached") {
                return status.stdout;
            }
        }
    };
    let status = hive_tests::rig::soon("the status shows it", failed).await;
    assert!(status.contains(&address.to_string()), "{status}");
    let collector = Collector::start_at(address).await;
    collector.named(["send ada"]).await;
    shows(&rig, (1, 0)).await;
    rig.end().await;
}

#[tokio::test]
async fn a_busy_collector_is_asked_again_and_one_that_refuses_is_not() {
    let collector = Collector::start().await;
    let rig = hive(&collector.config()).await;
    let operator = rig.operator().await;
    collector.answer(StatusCode::SERVICE_UNAVAILABLE);
    operator.send("ada", "one").await;
    collector.posts(1).await;
    collector.answer(StatusCode::OK);
    collector.named(["send ada"]).await;
    shows(&rig, (1, 0)).await;
    collector.answer(StatusCode::BAD_REQUEST);
    operator.send("ada", "two").await;
    shows(&rig, (1, 1)).await;
    assert_eq!(collector.spans().len(), 1);
    // A redirect is not followed, so it is a refusal.
    collector.answer(StatusCode::TEMPORARY_REDIRECT);
    operator.send("ada", "three").await;
    shows(&rig, (1, 2)).await;
    rig.end().await;
}

#[tokio::test]
async fn spans_that_a_collector_did_not_take_are_counted_as_dropped() {
    let collector = Collector::start().await;
    let rig = hive(&collector.config()).await;
    collector.reject(1);
    rig.operator().await.send("ada", "one").await;
    shows(&rig, (0, 1)).await;
    rig.end().await;
}

#[tokio::test]
async fn a_header_that_is_kept_in_a_file_is_sent_and_not_logged() {
    let collector = Collector::start().await;
    let headers = "headers = { authorization = { file = \"token\" } }\n";
    let mut rig = Rig::new(&format!("{AGENTS}{}{headers}", collector.config()));
    std::fs::write(rig.path("token"), "Bearer hunter2\n").expect("a file");
    rig.start_broker().await;
    rig.operator().await.send("ada", "hello").await;
    collector.named(["send ada"]).await;
    assert_eq!(collector.header("authorization").as_deref(), Some("Bearer hunter2"));
    assert_eq!(collector.header("content-type").as_deref(), Some("application/x-protobuf"));
    collector.answer(StatusCode::UNAUTHORIZED);
    rig.operator().await.send("ada", "again").await;
    shows(&rig, (1, 1)).await;
    assert!(!rig.logs().contains("hunter2"), "the token is in no log");
    rig.end().await;
}

#[tokio::test]
async fn a_broker_whose_header_cannot_be_read_does_not_start() {
    let config = "[broker.traces]\notlp = \"http://127.0.0.1:1/\"\nheaders = { authorization = { file = \"missing\" } }\n";
    let mut rig = Rig::new(&format!("{AGENTS}{config}"));
    let command = rig.broker_command();
    let status = rig.try_start_broker_by(command).await.expect_err("it does not start");
    assert!(!status.success());
    let said = rig.logs();
    assert!(
        said.contains("the header `authorization` of `broker.traces.headers` is not known"),
        "{said}"
    );
    rig.end().await;
}
