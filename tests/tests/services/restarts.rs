//! Restarts of the broker's service: the sockets stay, calls that are retried succeed, and nothing
//! is lost or doubled.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

use hive_proto::connect::connect;
use hive_proto::status::is_transient;
use hive_proto::v1::CreateAgentRequest;
use hive_proto::v1::message_service_client::MessageServiceClient;
use hive_tests::rig::{Client, fresh_id, request, soon};
use tokio::net::UnixStream;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::Status;

use crate::bed::Bed;

const CONFIG: &str =
    "[broker]\nsocket_group = \"hive-operators\"\n[agents.ada]\n[agents.bob]\nparent = \"ada\"\n";
/// Longest time until a call that is retried has succeeded.
const RETRY_MAX: Duration = Duration::from_secs(20);
const RESTARTS: usize = 10;
const SENDERS: usize = 4;
/// Agents, so that their names have more than 128 KiB.
const MANY: usize = 2_200;

fn inode(path: &Path) -> u64 {
    std::fs::symlink_metadata(path).expect("the socket is there").ino()
}

async fn kept(bed: &Bed) -> String {
    bed.property("hived.service", "NFileDescriptorStore").await
}

#[tokio::test]
async fn the_sockets_of_agents_outlive_restarts_and_kills_and_not_a_stop() {
    let Some(bed) = Bed::boot(CONFIG).await else { return };
    bed.run(&["systemctl", "start", "hived"]).await;
    assert_eq!(bed.property("hived", "StatusText").await, "serving calls");
    let (ada, bob) = (bed.socket(Some("ada")), bed.socket(Some("bob")));
    let first = (inode(&ada), inode(&bob));

    // A call that begins while there is no broker waits in the kernel.
    bed.run(&["systemctl", "kill", "--signal=KILL", "--kill-who=main", "hived"]).await;
    let waited = bed.client(Some("ada")).await;
    send(&bed.socket(Some("ada")), "bob", "sent while it was away").await;
    drop(waited);
    bed.run(&["systemctl", "restart", "hived"]).await;
    assert_eq!((inode(&ada), inode(&bob)), first);
    assert_eq!(kept(&bed).await, "2");

    // An agent's socket is kept before the agent is known to be there, and no longer than the
    // agent.
    let operator = bed.client(None).await;
    create(&operator, "eve").await.expect("created");
    assert_eq!(kept(&bed).await, "3");
    let eve = bed.socket(Some("eve"));
    let created = inode(&eve);
    bed.run(&["systemctl", "restart", "hived"]).await;
    assert_eq!(inode(&eve), created);
    bed.run(&["hivectl", "agent", "retire", "eve"]).await;
    assert_eq!(kept(&bed).await, "2");
    assert!(!eve.exists());

    // A file that was put in the place of a socket is not the socket.
    let aside = bob.with_extension("aside");
    std::fs::rename(&bob, &aside).expect("renamed");
    drop(UnixListener::bind(&bob).expect("another socket, on which no process listens"));
    // The broker's own, as one that another broker of its user has bound.
    let owner = std::fs::metadata(aside.parent().expect("a directory")).expect("it is there");
    chown(&bob, Some(owner.uid()), Some(owner.gid())).expect("root may");
    let put = inode(&bob);
    bed.run(&["systemctl", "restart", "hived"]).await;
    assert!(![first.1, put].contains(&inode(&bob)));
    assert_eq!((inode(&ada), kept(&bed).await.as_str()), (first.0, "2"));
    send(&bob, "ada", "by the new one").await;

    bed.run(&["systemctl", "stop", "hived.socket", "hived.service"]).await;
    let refused = UnixStream::connect(&ada).await.expect_err("no broker is meant to run");
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    bed.run(&["systemctl", "start", "hived"]).await;
    send(&ada, "bob", "after the stop").await;
    bed.end().await;
}

/// Linux starts no program with a variable of more than 128 KiB, and systemd hands over the names
/// of all kept sockets in one.
#[tokio::test]
async fn the_sockets_of_many_agents_with_long_names_outlive_a_restart() {
    let names: Vec<String> = (0..MANY).map(|number| format!("agent-{number:057}")).collect();
    assert!(names.join(":").len() > 128 * 1024);
    let agents: String = names.iter().map(|name| format!("[agents.{name}]\n")).collect();
    let Some(bed) = Bed::boot(&agents).await else { return };
    let inodes =
        || -> Vec<u64> { names.iter().map(|name| inode(&bed.socket(Some(name)))).collect() };
    bed.run(&["systemctl", "start", "hived"]).await;
    let (first, all) = (inodes(), MANY.to_string());
    assert_eq!(kept(&bed).await, all);
    bed.run(&["systemctl", "restart", "hived"]).await;
    assert_eq!(inodes(), first);
    assert_eq!(kept(&bed).await, all);
    send(&bed.socket(Some(&names[0])), &names[MANY - 1], "after the restart").await;
    bed.end().await;
}

async fn create(operator: &Client, name: &str) -> Result<(), Status> {
    let request = CreateAgentRequest {
        request_id: fresh_id(),
        name: name.to_owned(),
        parent: "ada".to_owned(),
        ..CreateAgentRequest::default()
    };
    operator.admin().create_agent(request).await.map(drop)
}

/// Sends a message as a client that retries: the same request, until it is accepted.
pub(crate) async fn send(socket: &Path, recipient: &str, body: &str) {
    let request = request::send(recipient, body);
    let begun = Instant::now();
    loop {
        let sent = match connect(socket).await {
            Ok(channel) => {
                // A broker that dies ends its calls; one without an end would be a fault.
                let mut client = MessageServiceClient::new(channel);
                soon("the call ends", client.send_message(request.clone())).await.map(drop)
            }
            Err(error) => Err(Status::unavailable(error.to_string())),
        };
        match sent {
            Ok(()) => return,
            Err(status) => {
                let passes = is_transient(&status);
                assert!(passes && begun.elapsed() < RETRY_MAX, "it failed for good: {status:?}");
                tokio::task::yield_now().await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_restarts_under_sends_fail_no_call_and_lose_and_double_nothing() {
    let Some(bed) = Bed::boot(CONFIG).await else { return };
    bed.run(&["systemctl", "start", "hived"]).await;
    let ended = CancellationToken::new();
    let mut senders = JoinSet::new();
    for sender in 0..SENDERS {
        let (ada, ended) = (bed.socket(Some("ada")), ended.clone());
        senders.spawn(async move {
            let mut sent = Vec::new();
            while !ended.is_cancelled() {
                let body = format!("{sender} {}", sent.len());
                send(&ada, "bob", &body).await;
                sent.push(body);
            }
            sent
        });
    }
    for number in 0..RESTARTS {
        if number % 2 == 0 {
            bed.run(&["systemctl", "restart", "hived"]).await;
        } else {
            bed.run(&["systemctl", "kill", "--signal=KILL", "--kill-who=main", "hived"]).await;
            bed.run(&["systemctl", "start", "hived"]).await;
        }
        create(&bed.client(None).await, &format!("new-{number}")).await.expect("created");
    }
    ended.cancel();
    // A call that failed for good has panicked.
    let sent = senders.join_all().await.into_iter().flatten();
    let wanted: BTreeMap<_, _> = sent.map(|body| (body, 1)).collect();
    let mut found = BTreeMap::<String, u32>::new();
    for message in bed.client(None).await.messages().await {
        *found.entry(message.body).or_default() += 1;
    }
    assert!(wanted.len() > RESTARTS, "messages were sent meanwhile: {}", wanted.len());
    assert_eq!(found, wanted);
    // The last agent's socket is there, and so is every other's.
    assert_eq!(kept(&bed).await, (2 + RESTARTS).to_string());
    bed.end().await;
}

/// Returns a property of the broker's service as soon as it is another one than `before`.
async fn changed(bed: &Bed, name: &str, before: &str) -> String {
    soon(&format!("{name} changes"), async {
        loop {
            let now = bed.property("hived", name).await;
            if now != before {
                return now;
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_broker_that_hangs_is_started_again_and_one_that_works_is_not() {
    let Some(bed) = Bed::boot(CONFIG).await else { return };
    bed.run(&["mkdir", "-p", "/etc/systemd/system/hived.service.d"]).await;
    bed.write("/etc/systemd/system/hived.service.d/watchdog.conf", "[Service]\nWatchdogSec=3s\n");
    bed.run(&["systemctl", "daemon-reload"]).await;
    bed.run(&["systemctl", "start", "hived"]).await;
    let mut fed = bed.property("hived", "WatchdogTimestampMonotonic").await;
    for _ in 0..3 {
        fed = changed(&bed, "WatchdogTimestampMonotonic", &fed).await;
    }
    assert_eq!(bed.property("hived", "NRestarts").await, "0");
    let waiting = bed.socket(Some("ada"));
    bed.run(&["systemctl", "kill", "--signal=STOP", "--kill-who=main", "hived"]).await;
    // It waits in the kernel, and then for the next broker.
    send(&waiting, "bob", "sent while it hung").await;
    assert_ne!(bed.property("hived", "NRestarts").await, "0");
    bed.end().await;
}
