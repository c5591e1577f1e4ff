//! Peers: the kernel's report of the user at the other end. Another user may call nothing, even if
//! the mode of the socket's file allows it.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use hive_core::reason::Reason;
use hive_proto::connect::{ConnectError, connect};
use hive_proto::status;
use hive_tests::rig::{Rig, host, raw, soon};
use rustix::process::Signal;
use tonic::metadata::MetadataMap;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::authority_table::TABLE;
use crate::requests;
use crate::scene::{Things, path};

/// A uid that exists on no host.
const NOBODY_WE_KNOW: u32 = 48_211;

fn things() -> Things {
    Things {
        agent: "ada".to_owned(),
        message: 1,
        turn: 1,
        command: 1,
        session: "s".repeat(20),
        ..Things::default()
    }
}

/// Calls every RPC on a socket, and asserts that all are refused to this peer.
async fn all_refused(socket: PathBuf) {
    let channel = connect(&socket).await.expect("the file lets the peer in");
    let mut paths: Vec<(String, Vec<u8>)> =
        TABLE.iter().map(|row| (path(row), requests::of(row, &things()))).collect();
    paths.push(("/grpc.health.v1.Health/Check".to_owned(), Vec::new()));
    paths
        .push(("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo".to_owned(), Vec::new()));
    paths.push((
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo".to_owned(),
        Vec::new(),
    ));
    paths.push(("/no.such.Service/Call".to_owned(), Vec::new()));
    for (path, request) in paths {
        let refusal = raw::call(&channel, &path, MetadataMap::new(), request)
            .await
            .map(drop)
            .expect_err(&path);
        assert_eq!(status::reason(&refusal), Some(Reason::PeerNotTrusted), "{path}: {refusal:?}");
        assert_eq!(refusal.code(), tonic::Code::PermissionDenied, "{path}");
    }
}

fn open(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("it is ours");
}

#[tokio::test]
async fn a_socket_for_another_user_is_not_ours() {
    let mut rig = Rig::new(&format!("[agents.ada]\nuids = [{NOBODY_WE_KNOW}]\n[agents.bob]\n"));
    rig.start_broker().await;
    let before = rig.operator().await.get_agent("ada").await;
    all_refused(rig.agent_socket("ada")).await;
    assert_eq!(rig.operator().await.get_agent("ada").await, before);
    assert_eq!(
        rig.agent("bob")
            .await
            .try_send("ada", "hello")
            .await
            .map(|receipt| receipt.recipient_count)
            .ok(),
        Some(1)
    );
}

#[tokio::test]
async fn a_right_that_was_taken_away_ends_with_the_reload() {
    const READ: &str = "the configuration file was read again";
    let ours = "[agents.ada]\n[agents.bob]\n";
    let mut rig = Rig::new(ours);
    rig.start_broker().await;
    open(rig.dir(), 0o711);
    let (ada, bob) = (rig.agent("ada").await, rig.agent("bob").await);
    let watched = HealthClient::new(ada.channel())
        .watch(HealthCheckRequest::default())
        .await
        .expect("it is watched");
    let mut watched = watched.into_inner();
    assert!(watched.message().await.expect("an answer").is_some());

    rig.configure(&format!("[agents.ada]\nuids = [{NOBODY_WE_KNOW}]\n[agents.bob]\n"));
    rig.broker().signal(Signal::HUP);
    rig.broker().says_times(READ, 1).await;
    let ended = soon("the old connection ends", async {
        while let Ok(Some(_)) = watched.message().await {}
    });
    ended.await;
    all_refused(rig.agent_socket("ada")).await;
    bob.send("ada", "his connection stays").await;
    if host::is_root() {
        // The directory is open to the new user, although it was created for the test's own user
        // alone.
        let socket = rig.agent_socket("ada");
        let own = host::as_user(NOBODY_WE_KNOW, move || async move {
            let row = TABLE.iter().find(|row| row.method == "GetSelf").expect("a row");
            let channel = connect(&socket).await.expect("it may");
            raw::call(&channel, &path(row), MetadataMap::new(), requests::of(row, &things()))
                .await
                .map(drop)
        });
        own.expect("it is at home there now");
    }

    rig.configure(ours);
    rig.broker().signal(Signal::HUP);
    rig.broker().says_times(READ, 2).await;
    rig.agent("ada").await.send("bob", "back again").await;
}

/// A stranger's connections are more than a socket has places, and all stay open.
#[tokio::test]
async fn strangers_take_none_of_the_places_of_a_socket() {
    const PLACES: usize = 64;
    if !host::allows("being another user (tests do not run as root)", host::is_root()) {
        return;
    }
    let mut rig = Rig::new("[agents.ada]\nusers = [\"root\"]\n[agents.bob]\n");
    rig.start_broker().await;
    open(rig.dir(), 0o711);
    let socket = rig.agent_socket("ada");
    open(&socket, 0o666);
    let place = socket.clone();
    let strangers: Vec<_> = host::as_user(NOBODY_WE_KNOW, move || async move {
        let connect = |_| UnixStream::connect(&place).expect("the mode lets it in");
        (0..2 * PLACES).map(connect).collect()
    });
    let mut clients = Vec::new();
    // Half of them: a connection that has ended counts until the broker has noticed.
    for _ in 0..PLACES / 2 {
        let client = rig.agent("ada").await;
        client.send("bob", "there is a place for me").await;
        clients.push(client);
    }
    // A few strangers are answered why they may not, and the others are closed.
    let reason = || {
        let socket = socket.clone();
        host::as_user(NOBODY_WE_KNOW, move || async move {
            let row = TABLE.iter().find(|row| row.method == "GetSelf").expect("a row");
            // It may be closed before it is a connection of HTTP/2.
            let channel = connect(&socket).await.ok()?;
            let (path, request) = (path(row), requests::of(row, &things()));
            let call = raw::call(&channel, &path, MetadataMap::new(), request);
            status::reason(&call.await.map(drop).expect_err("it is a stranger"))
        })
    };
    assert_eq!(reason(), None);
    drop(strangers);
    let answered = soon("there is a place for a stranger again", async {
        loop {
            if let Some(reason) = reason() {
                return reason;
            }
        }
    });
    assert_eq!(answered.await, Reason::PeerNotTrusted);
}

#[tokio::test]
async fn a_user_may_be_named_and_a_name_that_nobody_has_changes_nothing() {
    let named = |user: &str| format!("[agents.ada]\nusers = [\"{user}\"]\n[agents.bob]\n");
    let mut rig = Rig::new(&named("nobody"));
    rig.start_broker().await;
    all_refused(rig.agent_socket("ada")).await;
    rig.configure(&named("no-such-user"));
    rig.broker().signal(Signal::HUP);
    rig.broker().says_times("names the user `no-such-user` for the agent ada", 1).await;
    all_refused(rig.agent_socket("ada")).await;
    if host::is_root() {
        rig.configure(&named("root"));
        rig.broker().signal(Signal::HUP);
        rig.broker().says_times("the configuration file was read again", 1).await;
        rig.agent("ada").await.send("bob", "it is root's now").await;
    }
}

#[tokio::test]
async fn a_foreign_user_gets_nowhere() {
    if !host::allows("being another user (tests do not run as root)", host::is_root()) {
        return;
    }
    let mut rig = Rig::new(&format!(
        "[agents.ada]\n[agents.bob]\nuids = [{NOBODY_WE_KNOW}]\n[agents.cyd]\nuids = [0]\n"
    ));
    rig.start_broker().await;
    open(rig.dir(), 0o711);

    // The file's mode is the first barrier, or its access control list.
    for socket in [rig.operator_socket(), rig.agent_socket("ada"), rig.agent_socket("cyd")] {
        let answer =
            host::as_user(NOBODY_WE_KNOW, move || async move { connect(&socket).await.map(drop) });
        assert!(matches!(answer, Err(ConnectError::NotAllowed { .. })), "{answer:?}");
    }
    // The broker is the second, if that mode is too wide.
    open(&rig.operator_socket(), 0o666);
    open(&rig.path("run/agents/ada"), 0o755);
    open(&rig.agent_socket("ada"), 0o666);
    open(&rig.agent_socket("cyd"), 0o666);
    for socket in [rig.operator_socket(), rig.agent_socket("ada"), rig.agent_socket("cyd")] {
        host::as_user(NOBODY_WE_KNOW, move || all_refused(socket));
    }
    // The very same user is at home on the socket that was made for it.
    let socket = rig.agent_socket("bob");
    host::as_user(NOBODY_WE_KNOW, move || async move {
        let channel = connect(&socket).await.expect("it may");
        for method in ["GetSelf", "SendMessage", "Wake"] {
            let row = TABLE.iter().find(|row| row.method == method).expect("a row");
            let request =
                requests::of(row, &Things { agent: "bob".to_owned(), ..Things::default() });
            let answer = raw::call(&channel, &path(row), MetadataMap::new(), request).await;
            if method == "SendMessage" {
                // There is no `dan` here: the call passed the check and did not find him.
                assert_eq!(
                    status::reason(&answer.map(drop).expect_err("no dan")),
                    Some(Reason::AgentNotFound)
                );
            } else {
                drop(answer.unwrap_or_else(|refusal| panic!("{method}: {refusal:?}")));
            }
        }
    });
}

#[tokio::test]
async fn a_group_opens_the_operators_socket_to_its_members_only() {
    if !host::allows("being another user (tests do not run as root)", host::is_root()) {
        return;
    }
    let mut rig = Rig::new("[broker]\nsocket_group = \"nogroup\"\n[agents.ada]\n");
    rig.start_broker().await;
    open(rig.dir(), 0o711);
    let socket = rig.operator_socket();
    let group = std::os::unix::fs::MetadataExt::gid(&socket.metadata().expect("it is there"));
    let mode = socket.metadata().expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode, 0o660);
    // Allowed by its only group.
    let sent = host::as_user(group, move || async move {
        let channel = connect(&socket).await.expect("the group may");
        let row = TABLE.iter().find(|row| row.method == "CreateAgent").expect("a row");
        raw::call(&channel, &path(row), MetadataMap::new(), requests::of(row, &things()))
            .await
            .map(drop)
    });
    sent.expect("the operator may create agents");
    assert!(rig.agent_socket("eve").exists());
    let socket = rig.operator_socket();
    let answer =
        host::as_user(NOBODY_WE_KNOW, move || async move { connect(&socket).await.map(drop) });
    assert!(matches!(answer, Err(ConnectError::NotAllowed { .. })), "{answer:?}");
}
