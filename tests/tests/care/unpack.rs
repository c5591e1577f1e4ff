//! A bundle, made by the real `hivectl` and unpacked.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use hive_tests::binary;
use hive_tests::rig::{Process, Rig, Said, soon};
use serde_json::Value;
use tokio::process::Command;

/// The files of a bundle by their names.
pub(crate) struct Unpacked {
    pub(crate) files: BTreeMap<String, String>,
    /// The names in their order.
    pub(crate) names: Vec<String>,
}

impl Unpacked {
    pub(crate) fn read(path: &Path) -> Self {
        let file = std::fs::File::open(path).expect("a bundle");
        let mut archive = tar::Archive::new(GzDecoder::new(file));
        let (mut files, mut names) = (BTreeMap::new(), Vec::new());
        for entry in archive.entries().expect("an archive") {
            let mut entry = entry.expect("an entry");
            assert_eq!(entry.header().mode().expect("a mode"), 0o600);
            let name = entry.path().expect("a path").display().to_string();
            let name = name.strip_prefix("hive-bundle/").expect("one directory").to_owned();
            let mut text = String::new();
            entry.read_to_string(&mut text).expect("text");
            names.push(name.clone());
            assert!(files.insert(name, text).is_none(), "each name once");
        }
        Self { files, names }
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        self.files.get(name).unwrap_or_else(|| panic!("{name} is not in {:?}", self.names))
    }

    pub(crate) fn json(&self, name: &str) -> Value {
        serde_json::from_str(self.text(name)).expect("JSON")
    }

    pub(crate) fn rows(&self, name: &str) -> Vec<Value> {
        let lines = self.text(name).lines();
        lines.map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// Returns the names of the files that have this text.
    pub(crate) fn having(&self, text: &str) -> Vec<&str> {
        let files = self.files.iter().filter(|(_, content)| content.contains(text));
        files.map(|(name, _)| name.as_str()).collect()
    }
}

pub(crate) fn command(rig: &Rig, env: &[(&str, &str)], args: &[&str]) -> Command {
    let mut command = Process::command(&binary::find("hivectl", "hivectl"));
    command.env("TZ", "UTC").envs(env.iter().copied()).current_dir(rig.dir());
    command.arg("--socket").arg(rig.operator_socket()).args(["debug", "bundle"]).args(args);
    command
}

/// Runs `hivectl debug bundle` in the hive's directory, with a secret environment.
pub(crate) async fn bundle(rig: &Rig, env: &[(&str, &str)], args: &[&str]) -> Said {
    let output = soon("hivectl ends", command(rig, env, args).output()).await.expect("it runs");
    Said {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
