//! A hive that `hivectl up` has brought up, with the probe in claude's place.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use hive_tests::binary;
use hive_tests::rig::{Process, Rig, host};

use crate::probe;

pub(crate) struct Hive {
    pub(crate) rig: Rig,
}

impl Hive {
    /// One whose agents are confined; `None` where the host does not allow it, which is said or a failure.
    pub(crate) async fn confined() -> Option<Self> {
        let mut trial = Process::command("bwrap".as_ref());
        trial.args(["--dev-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "true"]);
        let possible = match trial.status().await {
            Ok(status) => status.success(),
            Err(_) => false,
        };
        if !host::allows("bubblewrap", possible) {
            return None;
        }
        let hive = Self::up(&[]).await;
        assert!(hive.said().contains("isolation: each agent in its own namespaces"), "{}", hive.said());
        Some(hive)
    }

    /// `hivectl up` with these arguments; it serves when this returns.
    pub(crate) async fn up(args: &[&str]) -> Self {
        let mut rig = Rig::new("[agents.ada]\n[agents.bob]\n");
        std::fs::write(rig.path("claude"), probe::script(rig.dir())).expect("a script");
        std::fs::set_permissions(rig.path("claude"), Permissions::from_mode(0o755)).expect("a mode");
        // `up` finds the others beside itself, so all have to be there.
        for (package, name) in [("hive-broker", "hived"), ("hive-harness", "hive"), ("hive-mcp-bridge", "hive-mcp")] {
            drop(binary::find(package, name));
        }
        let mut up = Process::command(&binary::find("hivectl", "hivectl"));
        up.arg("up").arg("--config").arg(rig.path("hive.toml")).arg("--state").arg(rig.dir());
        up.arg("--claude").arg(rig.path("claude")).args(args).current_dir(rig.dir());
        rig.spawn("up", up);
        rig.harness("up").says("Ctrl-C ends it").await;
        Self { rig }
    }

    /// What `hivectl up` has said.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(self.rig.path("up.log")).unwrap_or_default()
    }

    /// What the probe of an agent could do, sorted.
    pub(crate) fn could(&self, agent: &str) -> Vec<String> {
        let found = std::fs::read_to_string(self.rig.path(format!("agents/{agent}/state/could"))).expect("the probe has run");
        let mut found: Vec<String> = found.lines().map(str::to_owned).collect();
        found.sort();
        assert_eq!(found.pop().as_deref(), Some("~done"), "the probe ran to its end");
        found
    }

    pub(crate) async fn end(self) {
        self.rig.end().await;
    }
}
