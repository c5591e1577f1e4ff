//! Sockets that a supervisor opened: `hived` serves them and leaves their files, modes and
//! directories alone, over any number of starts.

use std::fs::Permissions;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use hive_tests::rig::{Client, DUO, Process, Rig, host, soon};
use rustix::process::Signal;
use tokio::process::Command;

/// Moves the socket from stdin to where supervisors put the first one, and becomes the command.
const HAND_OVER: &str = "exec 3<&0 0</dev/null; LISTEN_FDS=1 LISTEN_PID=$$; export LISTEN_FDS LISTEN_PID; exec \"$0\" \"$@\"";

/// A socket of a supervisor, with modes that `hived` would not choose.
struct Handed {
    listener: UnixListener,
    path: PathBuf,
    before: [(u32, u64); 2],
}

/// The mode of a file, and which file it is.
fn identity(path: &Path) -> (u32, u64) {
    let found = std::fs::symlink_metadata(path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    (found.mode() & 0o7777, found.ino())
}

impl Handed {
    fn open(path: PathBuf) -> Self {
        let dir = path.parent().expect("a directory").to_path_buf();
        std::fs::create_dir_all(&dir).expect("a directory");
        let listener = UnixListener::bind(&path).expect("a socket");
        std::fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("a mode");
        std::fs::set_permissions(&dir, Permissions::from_mode(0o710)).expect("a mode");
        let before = [identity(&dir), identity(&path)];
        Self { listener, path, before }
    }

    /// The command of the rig's broker, with this socket.
    fn command(&self, rig: &Rig) -> Command {
        let plain = rig.broker_command();
        let plain = plain.as_std();
        let mut command = Process::command("/bin/sh".as_ref());
        command.arg("-c").arg(HAND_OVER).arg(plain.get_program()).args(plain.get_args());
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command
            .stdin(Stdio::from(OwnedFd::from(self.listener.try_clone().expect("a second handle"))));
        command
    }

    fn untouched(&self) {
        let dir = self.path.parent().expect("a directory");
        assert_eq!([identity(dir), identity(&self.path)], self.before);
    }
}

/// Three starts; before each a client connects, whose call the next broker answers.
async fn serves(rig: &mut Rig, handed: &Handed, name: &str) {
    for start in 0..3 {
        let waiting: Client = rig.client_at(&handed.path).await;
        let name = name.to_owned();
        let answer = tokio::spawn(async move { waiting.get_agent(&name).await });
        rig.start_broker_by(handed.command(rig)).await;
        soon("the call that waited is answered", answer).await.expect("the call is answered");
        handed.untouched();
        if start == 1 {
            rig.kill_broker().await;
        } else {
            rig.stop_broker().await;
        }
        handed.untouched();
    }
}

#[tokio::test]
async fn the_operators_socket_stays_over_several_starts() {
    let mut rig = Rig::new(DUO);
    let handed = Handed::open(rig.operator_socket());
    serves(&mut rig, &handed, "ada").await;
    // `hived` removes only the sockets that it opened itself.
    assert!(!rig.agent_socket("ada").exists());
    rig.end().await;
}

#[tokio::test]
async fn an_agents_socket_stays_over_several_starts() {
    let mut rig = Rig::new(DUO);
    let handed = Handed::open(rig.agent_socket("ada"));
    serves(&mut rig, &handed, "ada").await;
    assert!(!rig.operator_socket().exists());
    rig.end().await;
}

/// A change of the users closes connections; the socket is served on for the new ones. An agent
/// that goes leaves it to the supervisor.
#[tokio::test]
async fn an_agents_socket_outlives_changes_of_the_configuration() {
    let mut rig = Rig::new(DUO);
    let handed = Handed::open(rig.agent_socket("ada"));
    rig.start_broker_by(handed.command(&rig)).await;
    let own = rustix::process::geteuid().as_raw();
    let others = DUO.replace("[agents.ada]", &format!("[agents.ada]\nuids = [{own}, 4242]"));
    for (round, config) in [others.as_str(), DUO].into_iter().enumerate() {
        rig.configure(config);
        rig.broker().signal(Signal::HUP);
        rig.broker().says_times("the configuration file was read again", round + 1).await;
        assert_eq!(rig.agent("ada").await.get_agent("ada").await.name, "ada");
        handed.untouched();
    }
    rig.configure("[hive]\nname = \"test\"\n[agents.bob]\n");
    rig.broker().signal(Signal::HUP);
    rig.broker().says_times("the configuration file was read again", 3).await;
    handed.untouched();
    rig.configure(DUO);
    rig.stop_broker().await;
    serves(&mut rig, &handed, "ada").await;
    rig.end().await;
}

/// With a group the mode decides who is the operator, so a mode that lets in others is refused and
/// not corrected.
#[tokio::test]
async fn an_operators_socket_that_is_open_to_all_is_refused_where_its_mode_decides() {
    let group = std::fs::read_to_string("/etc/group").unwrap_or_default();
    let Some(group) =
        group.lines().find_map(|line| line.split(':').next().filter(|name| !name.is_empty()))
    else {
        let _ = host::allows("naming a group", false);
        return;
    };
    let mut rig = Rig::new(&format!("{DUO}[broker]\nsocket_group = \"{group}\"\n"));
    let handed = Handed::open(rig.operator_socket());
    std::fs::set_permissions(&handed.path, Permissions::from_mode(0o666)).expect("a mode");
    let ended = rig.try_start_broker_by(handed.command(&rig)).await.expect_err("hived refuses");
    assert_eq!(ended.code(), Some(1));
    let log = rig.read("hived.log");
    assert!(
        log.contains("mode 0666") && log.contains("SocketMode=0660") && log.contains(group),
        "{log}"
    );
    assert_eq!(identity(&handed.path).0, 0o666);
    rig.end().await;
}
