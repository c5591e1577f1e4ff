//! `git push` over ssh by the real client, which takes the agent's home from /etc/passwd: with a
//! deploy key, and with an ssh-agent of the operator's.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use hive_tests::rig::{Process, Rig, host, soon};
use hive_tests::scripted::appear;
use tokio::net::TcpListener;
use tokio::process::Child;
use tokio::task::JoinHandle;

use super::hive::Hive;
use super::installed::Installed;

native!(an_agent_pushes_with_a_deploy_key_and_with_an_agent_of_keys);

/// The program of the server, where tests/setup.sh installs it.
const SERVER: &str = "/usr/sbin/dropbear";

/// An ssh server of the hive's user. That user may have no shell on this host, so the server has a
/// /etc/passwd of its own.
struct Server {
    address: SocketAddr,
    user: String,
    /// The line of its key for `known_hosts`.
    known: String,
    running: JoinHandle<()>,
}

/// Runs a program of the hive's user to its end; what it put out.
fn done(rig: &Rig, program: &str, arguments: &[&str]) -> String {
    let mut command = rig.user_command(program.as_ref());
    let said = command
        .args(arguments)
        .as_std_mut()
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(said.status.success(), "{program} {arguments:?}: {said:?}");
    String::from_utf8_lossy(&said.stdout).into_owned()
}

/// Whether there are the programs for it.
fn is_possible() -> bool {
    let found = |program: &str| {
        let mut which = Process::command("sh".as_ref());
        which.args(["-c", "command -v \"$0\"", program]).stdout(Stdio::null());
        which.as_std_mut().status().is_ok_and(|status| status.success())
    };
    [SERVER, "dropbearkey", "git", "ssh", "ssh-agent", "ssh-add", "ssh-keygen"]
        .into_iter()
        .all(found)
}

impl Server {
    async fn start(rig: &Rig) -> Self {
        let (uid, gid) = rig.user();
        let names = std::fs::read_to_string("/etc/passwd").expect("the users of this host");
        let is_own = |line: &&str| line.split(':').nth(2) == Some(&uid.to_string());
        let user = names
            .lines()
            .find(is_own)
            .and_then(|line| line.split(':').next())
            .expect("a name")
            .to_owned();
        let home = rig.user_dir("server");
        let passwd = format!("{user}:x:{uid}:{gid}::{}:/bin/sh\n", home.display());
        let passwd = rig.user_file("passwd", &passwd, 0o644).display().to_string();
        let key = home.join("key").display().to_string();
        let said = done(rig, "dropbearkey", &["-t", "ed25519", "-f", &key]);
        let public =
            said.lines().find_map(|line| line.strip_prefix("ssh-ed25519 ")).expect("a public key");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("bound");
        let known = format!("[{}]:{} ssh-ed25519 {public}\n", address.ip(), address.port());
        let mut command = rig.user_command("bwrap".as_ref());
        command.args([
            "--die-with-parent",
            "--dev-bind",
            "/",
            "/",
            "--ro-bind",
            &passwd,
            "/etc/passwd",
            "--",
        ]);
        // For one connection, on its stdin.
        command.args([SERVER, "-i", "-s", "-r", &key]).current_dir("/").kill_on_drop(true);
        let running = tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let connection = connection.into_std().expect("a socket");
                connection.set_nonblocking(false).expect("a socket");
                let connection = std::os::fd::OwnedFd::from(connection);
                let output = connection.try_clone().expect("a second handle");
                command.stdin(Stdio::from(connection)).stdout(Stdio::from(output));
                let mut serving = command.spawn().expect("it starts");
                // The command keeps what its last child was given.
                command.stdin(Stdio::null()).stdout(Stdio::null());
                serving.wait().await.expect("it can be waited for");
            }
        });
        Self { address, user, known, running }
    }

    fn url(&self, repository: &str) -> String {
        format!("ssh://{}@{}{repository}", self.user, self.address)
    }
}

/// An ssh-agent with a key of its own.
async fn agent_of_keys(rig: &Rig, socket: &Path) -> Child {
    let mut agent = rig.user_command("ssh-agent".as_ref());
    agent
        .arg("-D")
        .arg("-a")
        .arg(socket)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    let agent = agent.spawn().expect("it starts");
    soon("the agent of keys listens", appear::wait(socket)).await.expect("watched");
    let mut add = rig.user_command("ssh-add".as_ref());
    let added =
        add.arg("-q").arg(rig.path("operator/key")).env("SSH_AUTH_SOCK", socket).status().await;
    assert!(added.expect("it runs").success());
    agent
}

async fn an_agent_pushes_with_a_deploy_key_and_with_an_agent_of_keys(installed: Installed) {
    if !host::allows("git, ssh and dropbear", is_possible()) {
        return;
    }
    let mut started = None;
    let ada = "readable = [\"~/agents.sock\"]\nenv = { SSH_AUTH_SOCK = \"R/operator/agents.sock\", GH_TOKEN = \"token-of-a-bot\" }";
    let mut hive = Hive::start(installed, ada, async |rig: &Rig| {
        let server = Server::start(rig).await;
        for dir in ["agents/ada/home/.ssh", "server/.ssh"] {
            let dir = rig.user_dir(dir);
            std::fs::set_permissions(&dir, std::os::unix::fs::PermissionsExt::from_mode(0o700))
                .expect("a mode");
        }
        for key in ["agents/ada/home/.ssh/id_ed25519", "operator/key"] {
            done(
                rig,
                "ssh-keygen",
                &["-q", "-t", "ed25519", "-N", "", "-f", &rig.path(key).display().to_string()],
            );
        }
        let allowed = ["agents/ada/home/.ssh/id_ed25519.pub", "operator/key.pub"]
            .map(|key| rig.read(key))
            .concat();
        rig.user_file("server/.ssh/authorized_keys", &allowed, 0o600);
        rig.user_file("agents/ada/home/.ssh/known_hosts", &server.known, 0o600);
        done(
            rig,
            "git",
            &["init", "-q", "--bare", &rig.path("server/repo.git").display().to_string()],
        );
        let keys = agent_of_keys(rig, &rig.path("operator/agents.sock")).await;
        started = Some((server, keys));
    })
    .await;
    let (server, mut keys) = started.expect("prepared");
    let repository = hive.text("server/repo.git");
    let commit = "git -c user.name=ada -c user.email=ada@hive commit -q --allow-empty -m";
    let push = format!("git push -q {} HEAD:refs/heads", server.url(&repository));
    hive.run(&format!(
        "git init -q w && cd w && {commit} one && SSH_AUTH_SOCK= {push}/by-key 2>&1"
    ))
    .await;
    hive.run(&format!(
        "cd w && {commit} two && mv ~/.ssh/id_ed25519 ~/.ssh/aside && {push}/by-agent 2>&1"
    ))
    .await;
    let pushed = done(
        hive.rig(),
        "git",
        &["-C", &repository, "for-each-ref", "--format=%(refname:short) %(subject)"],
    );
    assert_eq!(pushed, "by-agent two\nby-key one\n");
    let said = hive.run("echo \"$GH_TOKEN\"").await;
    assert!(said.contains("token-of-a-bot"), "{said}");
    server.running.abort();
    keys.kill().await.expect("it runs");
    hive.end().await;
}
