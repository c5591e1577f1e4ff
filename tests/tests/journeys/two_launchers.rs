//! Two launchers of one hive: one has the place, and the other changes nothing.

use std::path::Path;

use hive_core::reason::Reason;
use hive_proto::v1::launcher_service_client::LauncherServiceClient;
use hive_proto::v1::{
    GetBrokerStatusRequest, HarnessState, LaunchRequest, LaunchResponse, StartAgentRequest,
    StopAgentRequest, WantedState,
};
use hive_tests::rig::{Rig, fresh_id, run, soon};
use rustix::process::Pid;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tonic::{Code, Status, Streaming};

use crate::steps::handled;
use crate::up::{Up, hive};

const PATH: &str = "/usr/bin:/bin";
/// Launchers that attach at the same time.
const LAUNCHERS: usize = 8;
const ROUNDS: usize = 20;

/// Waits until both harnesses wait for mail, and returns them: one for each agent.
async fn harnesses(rig: &Rig) -> [Pid; 2] {
    let operator = rig.operator().await;
    operator.does("ada", HarnessState::Idle).await;
    operator.does("bob", HarnessState::Idle).await;
    ["ada", "bob"].map(|agent| rig.the_one(agent, "hive"))
}

#[tokio::test]
async fn a_second_up_ends_and_leaves_the_first_one_alone() {
    let rig = hive();
    let up = Up::start(&rig, Path::new(PATH)).await;
    let before = harnesses(&rig).await;
    let said = run(Up::command(&rig, Path::new(PATH))).await;
    assert_eq!(said.code, 5, "{said:?}");
    assert!(said.stderr.contains("a hive runs here already"), "{said:?}");
    assert_eq!(harnesses(&rig).await, before);
    handled(&rig, &rig.operator().await, "ada", "Hello ada.").await;
    up.interrupted(rig).await;
}

#[tokio::test]
async fn of_hives_that_start_at_one_moment_one_comes_up() {
    let rig = hive();
    for round in 0..5 {
        let mut starting = JoinSet::new();
        for _ in 0..3 {
            let mut up = Up::spawn(&rig, Path::new(PATH), &[]);
            starting.spawn(async move { (up.comes_up().await, up) });
        }
        let (mut running, mut ended) = (Vec::new(), Vec::new());
        for (is_up, up) in starting.join_all().await {
            if is_up { running.push(up) } else { ended.push(up) }
        }
        let said: Vec<&str> = running.iter().chain(&ended).map(|up| up.said.as_str()).collect();
        assert_eq!(running.len(), 1, "round {round}:\n{}", said.join("\n---\n"));
        for up in ended {
            assert!(up.said.contains("a hive runs here already"), "{}", up.said);
            assert_eq!(up.status().await.code(), Some(5));
        }
        let before = harnesses(&rig).await;
        handled(&rig, &rig.operator().await, "bob", "Hello bob.").await;
        assert_eq!(harnesses(&rig).await, before, "round {round}");
        running.remove(0).interrupted_only(&rig).await;
    }
    rig.end().await;
}

/// Attaches a launcher over a connection of its own.
async fn attach(socket: &Path) -> Result<Streaming<LaunchResponse>, Status> {
    let channel = hive_proto::connect::connect(socket).await.expect("a broker answers");
    let launched = LauncherServiceClient::new(channel).launch(LaunchRequest {}).await;
    launched.map(tonic::Response::into_inner)
}

/// Reads on to the step that says how bob is wanted.
async fn bob_is_wanted(steps: &mut Streaming<LaunchResponse>) -> WantedState {
    soon("the launcher is notified of bob", async {
        loop {
            let step = steps.message().await.expect("it is attached").expect("it goes on");
            if let Some(bob) = step.harnesses.iter().find(|harness| harness.name == "bob") {
                return bob.wanted();
            }
        }
    })
    .await
}

async fn is_attached(rig: &Rig) -> bool {
    let status = rig.operator().await.admin().get_broker_status(GetBrokerStatusRequest {}).await;
    status.expect("it is read").into_inner().launcher_attached
}

#[tokio::test(flavor = "multi_thread")]
async fn of_launchers_that_attach_at_one_moment_one_has_the_place() {
    let rig = Rig::duo().await;
    let admin = rig.operator().await.admin();
    for round in 0..ROUNDS {
        let barrier = std::sync::Arc::new(Barrier::new(LAUNCHERS));
        let mut attaching = JoinSet::new();
        for _ in 0..LAUNCHERS {
            let (barrier, socket) = (std::sync::Arc::clone(&barrier), rig.operator_socket());
            attaching.spawn(async move {
                barrier.wait().await;
                attach(&socket).await
            });
        }
        let mut attached = Vec::new();
        for result in attaching.join_all().await {
            match result {
                Ok(steps) => attached.push(steps),
                Err(status) => {
                    let reason = hive_proto::status::reason(&status);
                    assert_eq!(reason, Some(Reason::LauncherAttached), "{status:?}");
                    assert_eq!(status.code(), Code::FailedPrecondition);
                }
            }
        }
        assert_eq!(attached.len(), 1, "round {round}");
        let mut steps = attached.remove(0);
        assert_eq!(bob_is_wanted(&mut steps).await, WantedState::Running);
        assert!(is_attached(&rig).await);
        // The refused ones took nothing from it.
        let stop = StopAgentRequest {
            request_id: fresh_id(),
            name: "bob".to_owned(),
            ..StopAgentRequest::default()
        };
        admin.clone().stop_agent(stop).await.expect("stopped");
        assert_eq!(bob_is_wanted(&mut steps).await, WantedState::Stopped);
        let start = StartAgentRequest {
            request_id: fresh_id(),
            name: "bob".to_owned(),
            ..StartAgentRequest::default()
        };
        admin.clone().start_agent(start).await.expect("started");
        assert_eq!(bob_is_wanted(&mut steps).await, WantedState::Running);
        let refused = attach(&rig.operator_socket()).await.expect_err("it is attached");
        assert_eq!(hive_proto::status::reason(&refused), Some(Reason::LauncherAttached));
        drop(steps);
        soon("the place is free", async { while is_attached(&rig).await {} }).await;
    }
    rig.end().await;
}
