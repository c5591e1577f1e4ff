//! Sockets: one with a listener is never taken over; a dead one is replaced; a file that is no
//! socket is left alone.

use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::os::unix::net::UnixListener;

use hive_tests::binary;
use hive_tests::rig::call::did;
use hive_tests::rig::{Process, Rig, request, run};
use rustix::process::Signal;

#[tokio::test]
async fn a_live_socket_is_not_stolen() {
    let mut rig = Rig::new("[agents.ada]\n");
    rig.start_broker().await;
    let inode = |rig: &Rig| rig.operator_socket().metadata().expect("it is there").ino();
    let before = inode(&rig);
    let error = rig.refused_broker_by(rig.broker_command_in("state-2", "run")).await;
    assert!(
        error.contains("another process answers on") && error.contains("run/hived.sock"),
        "{error}"
    );
    assert_eq!(inode(&rig), before, "the socket is the first one's still");
    rig.agent("ada").await.send("operator", "still here").await;
}

#[tokio::test]
async fn two_brokers_do_not_share_a_database() {
    let mut rig = Rig::new("[agents.ada]\n");
    rig.start_broker().await;
    let error = rig.refused_broker_by(rig.broker_command_in("state", "run-2")).await;
    assert!(error.contains("another hived is running on the state directory"), "{error}");
    assert!(!rig.path("run-2/hived.sock").exists());
    rig.agent("ada").await.send("operator", "still here").await;
}

#[tokio::test]
async fn a_dead_socket_is_replaced() {
    let mut rig = Rig::new("[agents.ada]\n");
    rig.start_broker().await;
    let id = rig.agent("ada").await.send("operator", "before").await;
    rig.kill_broker().await;
    for socket in [rig.operator_socket(), rig.agent_socket("ada")] {
        assert!(socket.metadata().expect("a killed broker leaves it").file_type().is_socket());
    }
    rig.start_broker().await;
    rig.agent("ada").await.send("operator", "after").await;
    assert_eq!(rig.operator().await.messages().await[0].id, id);
    rig.stop_broker().await;
    for socket in [rig.operator_socket(), rig.agent_socket("ada")] {
        assert!(!socket.exists(), "one that ends in good order takes its sockets along");
    }
}

#[tokio::test]
async fn a_file_that_is_no_socket_is_left_alone() {
    let mut rig = Rig::new("[agents.ada]\n[agents.bob]\n");
    std::fs::create_dir_all(rig.path("run")).expect("a directory");
    std::fs::write(rig.operator_socket(), "precious").expect("a file");
    let error = rig.refused_broker().await;
    assert!(error.contains("hived.sock is there and is no socket; move it away"), "{error}");
    assert_eq!(std::fs::read_to_string(rig.operator_socket()).expect("it is there"), "precious");
    std::fs::remove_file(rig.operator_socket()).expect("it is ours");

    // A fault of one agent's socket is logged, and the other agents are served.
    std::fs::create_dir_all(rig.path("run/agents/ada")).expect("a directory");
    std::fs::write(rig.agent_socket("ada"), "precious").expect("a file");
    rig.start_broker().await;
    assert!(rig.broker().log().contains("hive.sock is there and is no socket"), "{}", rig.logs());
    rig.agent("bob").await.send("ada", "for later").await;
    assert_eq!(std::fs::read_to_string(rig.agent_socket("ada")).expect("it is there"), "precious");
    // A link to another socket is not followed.
    rig.stop_broker().await;
    std::fs::remove_file(rig.agent_socket("ada")).expect("it is ours");
    let other = UnixListener::bind(rig.path("other.sock")).expect("a socket");
    std::os::unix::fs::symlink(rig.path("other.sock"), rig.operator_socket()).expect("a link");
    let error = rig.refused_broker().await;
    assert!(error.contains("is no socket"), "{error}");
    drop(other);
}

#[tokio::test]
async fn a_new_and_a_retired_agent_change_their_own_sockets_alone() {
    let mut rig = Rig::new("[agents.ada]\n[agents.bob]\n");
    std::fs::create_dir_all(rig.path("run/agents/ada")).expect("a directory");
    std::fs::write(rig.agent_socket("ada"), "precious").expect("a file");
    rig.start_broker().await;
    // From here on the socket of ada could be opened, so whatever looked at it would do that.
    std::fs::remove_file(rig.agent_socket("ada")).expect("it is ours");
    let inode = |rig: &Rig| rig.agent_socket("bob").metadata().expect("it is there").ino();
    let (before, operator) = (inode(&rig), rig.operator().await.channel());
    for name in ["eve", "dan"] {
        did(&operator, &request::create_agent(name)).await;
        rig.agent(name).await.send("operator", "I am served").await;
    }
    did(&operator, &request::retire_agent("eve")).await;
    assert!(!rig.agent_socket("eve").exists());
    rig.agent("dan").await.send("operator", "I am served still").await;
    assert_eq!(inode(&rig), before);
    assert!(!rig.agent_socket("ada").exists(), "{}", rig.logs());
    assert_eq!(rig.broker().log().matches("an agent has no socket").count(), 1, "{}", rig.logs());

    // A reload looks at all of them.
    rig.broker().signal(Signal::HUP);
    rig.broker().says("the configuration file was read again").await;
    rig.agent("ada").await.send("operator", "I am served now").await;
    assert_eq!(inode(&rig), before);
}

#[tokio::test]
async fn a_path_that_linux_cannot_address_is_reported() {
    let rig = Rig::new("[agents.ada]\n");
    let deep = "d".repeat(100);
    let error = rig.refused_broker_by(rig.broker_command_in("state", &deep)).await;
    assert!(
        error.contains("more than the 107 that Linux allows; choose a shorter runtime_dir"),
        "{error}"
    );
    let mut hivectl = Process::command(&binary::find("hivectl", "hivectl"));
    hivectl.arg("--socket").arg(rig.path(&deep).join("hived.sock")).arg("status");
    let said = run(hivectl).await;
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.stderr.contains("107"), "{said:?}");
}
