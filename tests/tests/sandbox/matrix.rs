//! Level × mechanism: each attempt has the levels at which it succeeds.

use std::collections::BTreeMap;
use std::path::Path;

use hive_tests::rig::host;
use hive_tests::sandbox_probe::Targets;

use crate::session::{self, Session};
use crate::stage::{self, KEY, Stage};

/// The agents, in the order of the columns below: `sandbox`, `shared_files`, `none`.
const AGENTS: [&str; 3] = ["ada", "bob", "eve"];
/// An attempt and where it succeeds, by column.
type Row = (&'static str, [bool; 3]);
const Y: bool = true;
const N: bool = false;

/// From claude's place.
const BY_CLAUDE: &[Row] = &[
    // The permitted actions of an agent.
    ("write-own-state", [Y, Y, Y]),
    ("write-own-home", [Y, Y, Y]),
    ("write-tmp", [Y, Y, Y]),
    ("connect-own-socket", [Y, Y, Y]),
    ("loopback", [Y, Y, Y]),
    // Writing.
    ("write-program", [N, Y, Y]),
    ("write-profile", [N, Y, Y]),
    ("write-configuration", [N, N, Y]),
    ("write-peer-state", [N, N, Y]),
    ("write-system", [N, N, N]),
    // Reading.
    ("read-ssh-key", [N, Y, Y]),
    ("read-tmp", [N, Y, Y]),
    ("read-shared-memory", [N, Y, Y]),
    ("read-peer-state", [N, N, Y]),
    ("read-database", [N, N, Y]),
    ("read-hived-log", [N, N, Y]),
    // Sockets with a path.
    ("connect-operator", [N, N, Y]),
    ("connect-peer", [N, N, Y]),
    ("connect-tmux", [N, Y, Y]),
    ("connect-ssh-agent", [N, Y, Y]),
    ("connect-dbus", [N, Y, Y]),
    ("command-tmux", [N, Y, Y]),
    // Abstract sockets.
    ("connect-screen", [N, N, Y]),
    // Processes.
    ("see-broker", [N, N, Y]),
    ("see-program", [N, N, Y]),
    ("environment-of-program", [N, N, Y]),
    // Namespaces, which would undo mounts.
    ("unshare", [N, N, Y]),
    ("session-key", [N, N, Y]),
    ("other-descriptors", [N, N, N]),
];

/// From a shell task and from an MCP server of the agent's own, besides the above.
const BY_TASK: &[Row] = &[
    ("key-of-claude", [N, N, Y]),
    ("token-of-bridge", [N, N, Y]),
    ("read-token", [N, N, Y]),
    ("read-login", [N, N, Y]),
    ("see-harness-files", [N, N, Y]),
    ("connect-harness", [N, N, Y]),
];

/// Rows whose result depends on the place.
fn wanted(by: &str) -> BTreeMap<&'static str, [bool; 3]> {
    let rows = BY_CLAUDE.iter().chain(if by == "claude" { &[] } else { BY_TASK });
    rows.copied().collect()
}

fn targets(stage: &Stage, session: &Session, agent: &str, port: u16, broker: i32) -> Targets {
    let rig = &stage.rig;
    let map = |pairs: &[(&str, &str)]| {
        pairs.iter().map(|(name, path)| ((*name).to_owned(), rig.path(path))).collect()
    };
    let own = |rest: &str| format!("agents/{agent}/{rest}");
    let inode = |pid: u32| {
        use std::os::unix::fs::MetadataExt as _;
        std::fs::metadata(format!("/proc/{pid}/exe")).expect("it runs").ino()
    };
    let as_pid = |pid: u32| i32::try_from(pid).expect("a number");
    let one = |name: &str, path: &Path| (name.to_owned(), path.to_path_buf());
    let mut read: BTreeMap<String, _> = map(&[
        ("read-ssh-key", "operator/.ssh/id"),
        ("read-peer-state", "agents/zoe/state/secret"),
        ("read-database", "state/hive.db"),
        ("read-hived-log", "log/hived.log"),
    ]);
    read.extend([
        one("read-tmp", &session.tmp_file),
        one("read-shared-memory", &session.memory_file),
    ]);
    let mut write: BTreeMap<String, _> = map(&[
        ("write-own-state", &own("state")),
        ("write-own-home", &own("home")),
        ("write-program", "operator/bin/tool"),
        ("write-profile", "operator/.bashrc"),
        ("write-configuration", "hive.toml"),
        ("write-peer-state", "agents/zoe/state/open"),
    ]);
    write.extend([one("write-tmp", Path::new("/tmp")), one("write-system", Path::new("/usr/bin"))]);
    let mut connect: BTreeMap<String, _> = map(&[
        ("connect-own-socket", &format!("run/agents/{agent}/hive.sock")),
        ("connect-operator", "run/hived.sock"),
        ("connect-peer", "run/agents/zoe/hive.sock"),
    ]);
    connect.extend([
        one("connect-tmux", &session.tmux),
        one("connect-ssh-agent", &session.ssh_agent),
        one("connect-dbus", &session.dbus),
    ]);
    let tmux = ["tmux", "-S", &session.tmux.display().to_string(), "show-options", "-g"]
        .map(str::to_owned);
    let unshare = ["unshare", "--user", "--map-root-user", "true"].map(str::to_owned);
    Targets {
        read,
        write,
        connect,
        connect_abstract: [("connect-screen".to_owned(), session.screen.clone())].into(),
        connect_port: [("loopback".to_owned(), port)].into(),
        process: [
            ("see-broker".to_owned(), (broker, inode(broker.cast_unsigned()))),
            ("see-program".to_owned(), (as_pid(session.program), inode(session.program))),
        ]
        .into(),
        environment: [("environment-of-program".to_owned(), session::SECRET.to_owned())].into(),
        key: [("session-key".to_owned(), "hive-probe".to_owned())].into(),
        command: [
            ("command-tmux".to_owned(), tmux.to_vec()),
            ("unshare".to_owned(), unshare.to_vec()),
        ]
        .into(),
    }
}

/// Adds targets that a shell task and a server may not reach.
fn of_task(mut targets: Targets, stage: &Stage, agent: &str) -> Targets {
    let home = stage.rig.path(format!("agents/{agent}/home"));
    let list = |path: &Path| {
        vec!["sh".to_owned(), "-c".to_owned(), format!("ls -A '{}' | grep -q json", path.display())]
    };
    targets.environment.insert("key-of-claude".to_owned(), KEY.to_owned());
    targets.environment.insert("token-of-bridge".to_owned(), "HIVE_PROCESS_TOKEN=".to_owned());
    targets.read.insert("read-token".to_owned(), home.join(".hive/claude-mcp-config.json"));
    targets.read.insert("read-login".to_owned(), home.join(".claude/.credentials.json"));
    targets.command.insert("see-harness-files".to_owned(), list(&home.join(".hive")));
    targets.connect.insert("connect-harness".to_owned(), home.join(".hive/tasks.sock"));
    targets
}

#[tokio::test]
async fn each_level_allows_exactly_its_listed_access() {
    let tools = host::allows(
        "the programs of an operator's session (tmux, ssh-agent, dbus-daemon, Xvfb, keyctl)",
        session::is_possible().await,
    );
    if !tools || !stage::is_possible().await {
        return;
    }
    let levels = ["sandbox", "shared_files", "none"];
    let mut agents = String::new();
    for (agent, level) in AGENTS.iter().zip(levels) {
        agents.push_str(&format!(
            "[agents.{agent}]\nisolation = \"{level}\"\nreadable = [\"grant\", \"bin\"]\nenv = {{ SCRIPTED_CLAUDE_FILE = \"R/grant/{agent}.json\" }}\n"
        ));
        agents.push_str(&Stage::own_server(agent));
    }
    agents.push_str("[agents.zoe]\nisolation = \"none\"\n");
    let mut stage = Stage::set("", &agents);
    let rig = &stage.rig;
    rig.user_dir("grant");
    rig.user_file("operator/.ssh/id", "a key", 0o600);
    rig.user_file("operator/.bashrc", "# mine\n", 0o644);
    rig.user_file("operator/bin/tool", "#!/bin/sh\n", 0o755);
    rig.user_file("agents/zoe/state/secret", "for zoe", 0o600);
    rig.user_dir("agents/zoe/state/open");
    for agent in AGENTS {
        rig.user_file(&format!("agents/{agent}/home/.claude/.credentials.json"), "{}", 0o600);
    }
    let session = Session::start(rig).await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();

    // With a key in the session that `hivectl up` belongs to.
    let up = stage.command();
    let mut command = rig.user_command("keyctl".as_ref());
    let script = "keyctl add user hive-probe secret @s >/dev/null && exec \"$0\" \"$@\"";
    command
        .args(["session", "hive-test", "sh", "-c", script])
        .arg(up.as_std().get_program())
        .args(up.as_std().get_args());
    for (name, value) in up.as_std().get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    stage.start(command).await;
    let operator = stage.rig.operator().await;
    let status = stage.rig.hivectl(&["--json", "status"]).await;
    let status: serde_json::Value = serde_json::from_str(&status.stdout).expect("JSON");
    let broker = status["pid"]
        .as_i64()
        .and_then(|pid| i32::try_from(pid).ok())
        .expect("the broker's process");
    for agent in AGENTS {
        let targets = targets(&stage, &session, agent, port, broker);
        let further = of_task(targets.clone(), &stage, agent);
        stage.script(agent, &targets, &further);
        stage.script_server(agent, &further);
    }
    let mut watch = stage.rig.watch().await;
    for agent in AGENTS {
        operator.send(agent, "look around").await;
        watch.kind(agent, hive_proto::v1::EventKind::TurnEnded).await;
    }
    let mut wrong = Vec::new();
    for (column, agent) in AGENTS.iter().enumerate() {
        for by in ["claude", "task", "server"] {
            let tried = stage.tried(agent, by);
            let wanted = wanted(by);
            assert_eq!(tried.len(), wanted.len(), "every attempt has its row: {tried:?}");
            for (name, why) in tried {
                let row = wanted.get(name.as_str()).unwrap_or_else(|| panic!("no row {name}"));
                if row[column] != why.is_none() {
                    wrong.push(format!("{} from {by}: {name}: {why:?}", levels[column]));
                }
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new(), "{}", stage.said);
    session.end().await;
    stage.end().await;
}
