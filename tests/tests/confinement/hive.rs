//! A hive that `hivectl up` has brought up, with the probe in claude's place.

use hive_tests::rig::{Rig, host};

use crate::probe;

pub(crate) struct Hive {
    pub(crate) rig: Rig,
}

impl Hive {
    /// Starts a hive whose agents are at this level. If the host does not allow it, prints a note
    /// and returns `None`, or fails.
    pub(crate) async fn at(level: &str) -> Option<Self> {
        let trial_rig = Rig::new("");
        let mut trial = trial_rig.user_command("bwrap".as_ref());
        trial.current_dir("/").args([
            "--unshare-user",
            "--unshare-pid",
            "--dev-bind",
            "/",
            "/",
            "--proc",
            "/proc",
            "true",
        ]);
        let possible = trial.status().await.is_ok_and(|status| status.success());
        if !host::allows("bubblewrap", possible) {
            return None;
        }
        Some(Self::up(level, &[]).await)
    }

    /// `hivectl up` with this level and these arguments; it serves when this returns.
    pub(crate) async fn up(level: &str, args: &[&str]) -> Self {
        let agents = "[agents.ada]\nreadable = [\"bin\"]\n[agents.bob]\nreadable = [\"bin\"]\n";
        let mut rig = Rig::unprivileged(&format!("[hive]\nisolation = \"{level}\"\n{agents}"));
        rig.user_file("claude", &probe::script(rig.dir()), 0o755);
        let mut up = rig.user_command(&rig.path("bin/hivectl"));
        up.arg("up").arg("--config").arg(rig.path("hive.toml")).arg("--state").arg(rig.dir());
        up.arg("--claude").arg(rig.path("claude")).args(args).current_dir(rig.dir());
        rig.spawn("up", up);
        rig.harness("up").says("Ctrl-C ends it").await;
        Self { rig }
    }

    /// Returns the output of `hivectl up`.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(self.rig.path("up.log")).unwrap_or_default()
    }

    /// Returns the attempts in which the probe of an agent succeeded, sorted.
    pub(crate) fn could(&self, agent: &str) -> Vec<String> {
        let found = std::fs::read_to_string(self.rig.path(format!("agents/{agent}/state/could")))
            .expect("the probe has run");
        let mut found: Vec<String> = found.lines().map(str::to_owned).collect();
        found.sort();
        assert_eq!(found.pop().as_deref(), Some("~done"), "the probe ran to its end");
        found
    }

    pub(crate) async fn end(self) {
        self.rig.end().await;
    }
}
