//! Unused connections by the thousand: those of one agent are limited, and those of all agents
//! leave files for the operator and for a connection of each agent.

use hive_core::limits::AGENT_CONNECTIONS_MAX;
use hive_tests::rig::{Process, Rig, soon};
use tokio::net::UnixStream;

use super::frames::{self, Raw};
use super::scene::{Scene, round};

/// Maximum memory that the broker may keep of these connections, in bytes.
const KEPT_MAX: u64 = 32 * 1024 * 1024;
/// The number of connections that an attacker tries to open.
const TRIED: usize = 2000;

/// Starts a hive whose broker may have this many files.
async fn with_files(files: usize) -> Rig {
    let mut rig = Rig::new("[agents.mallory]\n[agents.mordred]\n[agents.carol]\n[agents.dave]\n");
    let broker = rig.broker_command();
    let mut limited = Process::command("/bin/sh".as_ref());
    limited.args(["-c", r#"ulimit -n "$1"; shift; exec "$@""#, "sh", &files.to_string()]);
    limited.arg(broker.as_std().get_program()).args(broker.as_std().get_args());
    limited.env("HIVE_LOG", "info");
    rig.start_broker_by(limited).await;
    rig
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn half_open_connections_are_bounded_and_leave_room_for_the_others() {
    // Fewer files than are tried, and enough for all that two agents may have.
    let mut scene = Scene::on(with_files(400).await).await;
    let talk = scene.talk();
    let (mut open, mut turned_away) = (Vec::new(), 0);
    for number in 0..TRIED {
        let socket = scene.rig.agent_socket("mallory");
        // Some send nothing, some send a preface and then nothing, some an incomplete frame.
        let raw = match number % 3 {
            0 => Raw::mute(&socket).await,
            1 => Raw::greet(&socket, &[]).await,
            _ => Raw::mute(&socket).await,
        };
        match raw {
            Ok(mut raw) if number % 3 == 2 => match raw.send_deaf(&frames::PREFACE[..7]).await {
                Ok(()) => open.push(raw),
                Err(_) => turned_away += 1,
            },
            Ok(raw) => open.push(raw),
            Err(_) => turned_away += 1,
        }
    }
    // A connection over the limit gets an error and is closed.
    let mut told = 0;
    for raw in open.iter_mut().skip(AGENT_CONNECTIONS_MAX + 8) {
        told += usize::from(raw.end().await == Some(frames::ENHANCE_YOUR_CALM));
    }
    assert!(told + turned_away >= TRIED / 2, "{told} were answered, {turned_away} not let in");
    // The neighbour's new connections are served, and so is the operator's.
    for _ in 0..20 {
        let (carol, dave) = (scene.rig.agent("carol").await, scene.rig.agent("dave").await);
        drop((carol, dave));
        scene.rig.operator().await.get_agent("dave").await;
    }
    scene.served(talk, "half-open connections").await;
    // Mallory's own log has it once, not two thousand times.
    let said = scene.rig.broker().log().matches("connections were not accepted").count();
    assert_eq!(said, 1, "{}", scene.rig.logs());
    drop(open);
    scene.recovered("half-open connections", KEPT_MAX).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_that_use_up_their_files_take_none_of_the_operator_and_the_others() {
    // Few enough that two agents at their limits use up what agents may have.
    let mut rig = with_files(96).await;
    let (carol, dave) = (rig.agent("carol").await, rig.agent("dave").await);
    for _ in 0..10 {
        round(&carol, &dave).await;
    }
    let mut held = Vec::new();
    for socket in [rig.agent_socket("mallory"), rig.agent_socket("mordred")]
        .iter()
        .cycle()
        .take(2 * AGENT_CONNECTIONS_MAX)
    {
        held.push(
            UnixStream::connect(socket)
                .await
                .expect("the kernel keeps them until they are accepted"),
        );
    }
    rig.broker().says("agents have all files open that they may have").await;
    // Connected clients are still served, and so are new ones of the operator and of an agent that
    // has no other.
    for _ in 0..10 {
        round(&carol, &dave).await;
    }
    rig.operator().await.get_agent("dave").await;
    drop(dave);
    rig.agent("dave").await.send("operator", "back again").await;
    drop(held);
    // New clients are served again, as soon as the files are free.
    for name in ["mallory", "mordred", "carol"] {
        let again = soon("it is served again", rig.agent(name)).await;
        again.send("operator", "still here").await;
    }
    let log = rig.broker().log();
    assert!(log.matches("agents have all files open").count() <= 8, "{log}");
    assert!(!log.contains("Too many open files"), "{log}");
    assert!(!log.contains("panicked"), "{log}");
}
