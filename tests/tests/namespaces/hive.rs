//! A real hived with the test in the place of `hivectl up`, and programs in pid namespaces of their
//! own.
//!
//! Invariant: programs end with the test: their stdin is a pipe of the test's, and what is in a
//! namespace ends with its first process.

use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::process::Stdio;

use hive_proto::supervisor::{Link, Reached, SUPERVISOR_FD_ENV, ToBroker, ToUp, pair};
use hive_tests::rig::{Process, Rig, host, soon};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::inside;

pub(crate) const GET_SELF: &str = "/hive.v1.TopologyService/GetSelf";
pub(crate) const GET_SERVER_INFO: &str = "/hive.v1.ServerInfoService/GetServerInfo";
pub(crate) const GET_STATUS: &str = "/hive.v1.AdminService/GetBrokerStatus";
pub(crate) const ATTACH: &str = "/hive.v1.TurnService/Attach";

/// A broker that the test supervises.
pub(crate) struct Hive {
    pub(crate) rig: Rig,
    link: Option<Link>,
}

/// Whether this host lets a test make pid namespaces.
pub(crate) async fn is_possible() -> bool {
    let mut trial = Process::command("unshare".as_ref());
    trial.args(["--user", "--map-current-user", "--pid", "--fork", "--kill-child", "--"]);
    trial.args(["unshare", "--user", "--map-current-user", "--pid", "--fork", "true"]);
    let possible = trial.status().await.is_ok_and(|status| status.success());
    host::allows("pid namespaces within pid namespaces", possible)
}

impl Hive {
    /// A hive with the agents `ada` and `bob`, neither of them described yet; `None` if the host
    /// does not allow it.
    pub(crate) async fn new() -> Option<Self> {
        if !is_possible().await {
            return None;
        }
        let mut hive = Self { rig: Rig::new("[agents.ada]\n[agents.bob]\n"), link: None };
        hive.start().await;
        Some(hive)
    }

    /// Starts hived with a new link.
    pub(crate) async fn start(&mut self) {
        let (up, broker) = pair().expect("a pair of sockets");
        let hived = self.rig.broker_command();
        // The shell passes its stdin on under another number: a test must not have descriptors that
        // other programs inherit.
        let mut command = Process::command("sh".as_ref());
        command.args(["-c", "exec 7<&0 </dev/null; exec \"$0\" \"$@\""]);
        let hived = hived.as_std();
        command.arg(hived.get_program()).args(hived.get_args()).env(SUPERVISOR_FD_ENV, "7");
        command
            .envs(hived.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .stdin(Stdio::from(broker));
        self.link = Some(Link::new(up).expect("a link"));
        self.rig.start_broker_by(command).await;
    }

    /// Sends a packet and returns what hived answers.
    pub(crate) async fn tell(&self, packet: ToBroker, descriptor: Option<OwnedFd>) -> ToUp {
        let link = self.link.as_ref().expect("hived is linked");
        let asked = link.ask(&packet, descriptor.as_ref().map(OwnedFd::as_fd));
        soon("hived answers on the link", asked).await.expect("hived answers")
    }

    /// Describes the sandbox of an agent.
    pub(crate) async fn confine(&self, agent: &str, peer: &Peer) {
        let answer =
            self.tell(ToBroker::Sandbox { agent: agent.to_owned() }, Some(peer.namespace())).await;
        assert_eq!(answer, ToUp::Done);
    }

    pub(crate) async fn complete(&self) {
        assert_eq!(self.tell(ToBroker::Complete, None).await, ToUp::Done);
    }

    pub(crate) async fn report(
        &self,
        agent: &str,
        reached: Reached,
        notes: &[&str],
        accepted: bool,
    ) -> ToUp {
        let notes = notes.iter().map(|note| (*note).to_owned()).collect();
        self.tell(ToBroker::Isolation { agent: agent.to_owned(), reached, notes, accepted }, None)
            .await
    }

    /// Ends the link, as `hivectl up` does when it dies.
    pub(crate) fn unlink(&mut self) {
        self.link = None;
    }
}

/// A program that carries out orders.
pub(crate) struct Peer {
    child: Child,
    orders: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Peer {
    /// A peer in a pid namespace of its own.
    pub(crate) async fn sandboxed() -> Self {
        let mut command = Process::command("unshare".as_ref());
        command
            .args(["--user", "--map-current-user", "--pid", "--fork", "--kill-child", "--"])
            .arg(this_program());
        Self::start(command, inside::PEER).await
    }

    pub(crate) async fn on_host() -> Self {
        Self::start(Process::command(&this_program()), inside::PEER).await
    }

    async fn start(command: Command, role: &str) -> Self {
        let mut peer = Self::spawn(command, role);
        assert_eq!(peer.said().await, "ready");
        peer
    }

    /// A program on the host that connects, hands the connection to another, and ends.
    pub(crate) fn ghost() -> Self {
        Self::spawn(Process::command(&this_program()), inside::GHOST)
    }

    fn spawn(mut command: Command, role: &str) -> Self {
        command.args(inside::arguments()).env(inside::ROLE_ENV, role).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("it starts");
        let orders = child.stdin.take().expect("a pipe");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Self { child, orders, lines }
    }

    /// The pid namespace that it is in; `unshare` is outside, and has made it.
    pub(crate) fn namespace(&self) -> OwnedFd {
        let pid = self.child.id().expect("it runs");
        std::fs::File::open(format!("/proc/{pid}/ns/pid_for_children")).expect("it runs").into()
    }

    pub(crate) async fn write(&mut self, order: &str) {
        self.orders.write_all(format!("{order}\n").as_bytes()).await.expect("it reads");
    }

    pub(crate) async fn said(&mut self) -> String {
        loop {
            let line = soon("a peer says something", self.lines.next_line())
                .await
                .expect("text")
                .expect("it is not at its end");
            if let Some(said) = line.strip_prefix(inside::MARK) {
                return said.to_owned();
            }
        }
    }

    /// Sends an order and returns its result.
    pub(crate) async fn order(&mut self, order: &str) -> String {
        self.write(order).await;
        self.said().await
    }

    /// Calls an RPC without a field set.
    pub(crate) async fn call(&mut self, socket: &Path, rpc: &str) -> String {
        self.order(&format!("call {} {rpc} =", socket.display())).await
    }

    /// Calls the RPC from a pid namespace below.
    pub(crate) async fn call_below(&mut self, socket: &Path, rpc: &str) -> String {
        self.order(&format!("below call {} {rpc} =", socket.display())).await
    }

    pub(crate) async fn ended(&mut self) {
        soon("a peer ends", self.child.wait()).await.expect("it can be waited for");
    }
}

fn this_program() -> std::path::PathBuf {
    std::env::current_exe().expect("the test runs")
}

/// Whether a call was refused for the place of its peer.
pub(crate) fn is_untrusted(said: &str) -> bool {
    said.starts_with("PermissionDenied PEER_NOT_TRUSTED: ")
}
