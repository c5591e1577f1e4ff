//! Journeys of an agent that runs on demand: its harness ends when there is no work.

use std::time::Duration;

use crate::support::{Harness, Stage, wait_until};
use hive_core::agent::LEFT_CODE;
use hive_harness::token;
use hive_in_process::{Reaction, Recorded, State as Calls};
use hive_proto::v1::{self, HarnessState as State, TurnOutcome as Outcome};
use hive_proto::{connect, harness_v1};
use hive_tests::rig::fresh_id;
use tonic::Status;

const STATUS: &str = "ReportHarnessStatus";
/// A short time without work.
const SOON: &str = "on_demand_idle_ms = 200\n";

/// Lets the harness of bob run on demand from now on.
async fn run_on_demand(stage: &Stage) {
    let start = v1::StartAgentRequest {
        request_id: fresh_id(),
        name: "bob".to_owned(),
        on_demand: Some(true),
        ..v1::StartAgentRequest::default()
    };
    stage.broker.operator().await.admin().start_agent(start).await.expect("it runs on demand");
}

/// Waits until the harness waits for mail, and makes no other call before its next heartbeat.
async fn waits_for_mail(stage: &Stage) {
    let rests = |state: &Calls| {
        let is_idle = |call: &Recorded| {
            let report: Option<v1::ReportHarnessStatusRequest> = call.request(STATUS);
            report.is_some_and(|report| report.state() == State::Idle)
        };
        let is_called = |method: &str| state.calls.iter().any(|call| call.method == method);
        is_called("Heartbeat") && is_called("BeginTurn") && state.calls.iter().any(is_idle)
    };
    stage.broker.wait_until("the harness waits for mail", rests).await;
}

async fn assert_left(stage: &Stage, hive: &mut Harness, attached: usize) {
    assert_eq!(hive.exit().await.code(), Some(i32::from(LEFT_CODE)));
    let log = stage.read("hive.log");
    assert!(log.contains("on demand and has no work"), "{log}");
    assert!(!log.contains("the session is lost"), "{log}");
    assert_eq!(stage.broker.requests::<v1::AttachRequest>("Attach").len(), attached, "{log}");
    stage.broker.operator().await.does("bob", State::Offline).await;
}

#[tokio::test]
async fn a_harness_without_work_ends_and_the_next_one_runs_the_mail() {
    let stage = Stage::bounded(SOON);
    run_on_demand(&stage).await;
    let mut hive = stage.serve("well", &[]);
    assert_left(&stage, &mut hive, 1).await;
    stage.mail("x").await;
    let mut hive = stage.serve("well", &[]);
    assert_eq!(stage.end().await.outcome(), Outcome::Ok);
    assert_left(&stage, &mut hive, 2).await;
}

#[tokio::test]
async fn a_harness_whose_answer_is_lost_has_left() {
    let stage = Stage::bounded(SOON);
    let mut hive = stage.serve("well", &[("HIVE_HEARTBEAT_SECS", "30")]);
    waits_for_mail(&stage).await;
    // The next call is the question; the session ends, and the harness asks again.
    stage.broker.react(Reaction::ActAndRefuse(Status::unavailable("the answer is lost")));
    run_on_demand(&stage).await;
    assert_left(&stage, &mut hive, 1).await;
    assert_eq!(stage.broker.requests::<v1::LeaveRequest>("Leave").len(), 2);
}

#[tokio::test]
async fn an_older_broker_keeps_the_harness() {
    let stage = Stage::bounded(SOON);
    let _hive = stage.serve("well", &[("HIVE_HEARTBEAT_SECS", "30")]);
    waits_for_mail(&stage).await;
    stage.broker.react(Reaction::Refuse(Status::unimplemented("no such method")));
    run_on_demand(&stage).await;
    stage.next::<v1::LeaveRequest>("Leave").await;
    stage.mail("x").await;
    assert_eq!(stage.end().await.outcome(), Outcome::Ok);
}

#[tokio::test]
async fn a_shell_task_keeps_its_harness() {
    let stage = Stage::in_groups(&["messaging", "inbox", "execution"], SOON);
    let mut hive = stage.serve("well", &[("HIVE_HEARTBEAT_SECS", "1")]);
    waits_for_mail(&stage).await;
    let socket = stage.path("home/.hive/tasks.sock");
    wait_until("tasks can be started", || socket.exists()).await;
    let channel = connect::connect_lazy(&socket).expect("a path");
    let mut tasks = harness_v1::task_service_client::TaskServiceClient::new(channel);
    let run = harness_v1::RunTaskRequest {
        request_id: token::random(),
        command: "touch started; while [ ! -e go ]; do sleep 0.02; done".to_owned(),
        timeout: None,
        wait: Some(Duration::from_secs(30).try_into().expect("a span")),
    };
    let run = tasks.run_task(run);
    let keeps = async {
        stage.appears("state/started").await;
        run_on_demand(&stage).await;
        // More than the rest is over after two signs of life.
        let beats = || stage.broker.requests::<v1::HeartbeatRequest>("Heartbeat").len();
        let before = beats();
        let is_later = |state: &Calls| {
            state.calls.iter().filter(|call| call.method == "Heartbeat").count() >= before + 2
        };
        stage.broker.wait_until("the harness lives", is_later).await;
        assert_eq!(stage.broker.requests::<v1::LeaveRequest>("Leave").len(), 0);
        std::fs::write(stage.path("state/go"), "").expect("written");
    };
    let (task, ()) = tokio::join!(run, keeps);
    let task = task.expect("it ran").into_inner().task.expect("a task");
    assert_eq!(task.state(), harness_v1::TaskState::Exited, "{task:?}");
    assert_left(&stage, &mut hive, 1).await;
}
