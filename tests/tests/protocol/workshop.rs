//! A directory as the pages describe it, beside a running hive: all examples by their names, the
//! contract in `proto`, and the libraries of each language.
//!
//! Invariant: a missing library is never passed over in silence ([`host::allows`]).

use std::path::{Path, PathBuf};

use hive_tests::binary::workspace;
use hive_tests::rig::{DUO, PATIENCE, Process, QUICK_LIMITS, Rig, Said, host, run, soon};
use tokio::net::UnixListener;
use tokio::process::Command;

use crate::pages;

/// The place of the libraries of gRPC for Go, from Debian's packages.
const GOCODE: &str = "/usr/share/gocode";

/// What a channel of an example tries, at least, before the broker is there again.
const ATTEMPTS: usize = 8;

/// The language of an example, by what has to be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Python,
    Node,
    Go,
    Shell,
}

impl Language {
    fn is_installed(self) -> bool {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let has = |name: &str| std::env::split_paths(&path).any(|dir| dir.join(name).exists());
        let cached = |path: &str| workspace().join(".cache").join(path).exists();
        match self {
            Self::Python => cached("python/installed"),
            Self::Node => has("node") && cached("node/node_modules/@grpc/grpc-js"),
            Self::Go => {
                let library = Path::new(GOCODE).join("src/google.golang.org/grpc");
                cached("python/bin/go") && has("protoc-gen-go-grpc") && library.exists()
            }
            Self::Shell => cached("buf/node_modules/.bin/buf"),
        }
    }
}

/// The directory and its hive.
#[derive(Debug)]
pub(crate) struct Workshop {
    pub(crate) rig: Rig,
}

impl Workshop {
    /// Returns one with a running broker of the agents ada and bob; `None` if the language is not
    /// installed.
    pub(crate) async fn of(language: Language) -> Option<Self> {
        Self::with(language, QUICK_LIMITS).await
    }

    /// Returns one with these limits.
    pub(crate) async fn with(language: Language, limits: &str) -> Option<Self> {
        let what = format!("the examples of {language:?} (tests/setup.sh installs the libraries)");
        if !host::allows(&what, language.is_installed()) {
            return None;
        }
        let mut rig = Rig::new(&format!("{DUO}{limits}"));
        rig.start_broker().await;
        let workshop = Self { rig };
        let (dir, cache) = (workshop.dir(), workspace().join(".cache"));
        std::fs::create_dir_all(&dir).expect("a directory");
        for (name, text) in pages::files() {
            std::fs::write(dir.join(name), text).expect("an example is written");
        }
        let link = |to: PathBuf, name: &str| {
            std::os::unix::fs::symlink(to, dir.join(name)).expect("a link");
        };
        link(workspace().join("proto"), "proto");
        link(cache.join("node/node_modules"), "node_modules");
        Some(workshop)
    }

    /// Returns the directory of the examples, which for Go is a package.
    pub(crate) fn dir(&self) -> PathBuf {
        self.rig.path("go/src/example.com/mail")
    }

    /// Returns whether an example has made this file.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.dir().join(name).exists()
    }

    /// Returns the command of an example, by the agent ada.
    pub(crate) fn example(&self, file: &str, args: &[&str]) -> Command {
        let extension = Path::new(file).extension().and_then(|extension| extension.to_str());
        match extension {
            Some("py") => self.command("python3", &[&[file], args].concat()),
            Some("mjs") => self.command("node", &[&[file], args].concat()),
            Some("sh") => self.command("sh", &[&["-eu", file], args].concat()),
            _ => panic!("{file} is not run by an interpreter"),
        }
    }

    /// Returns a command in the directory, with the environment of the agent ada.
    pub(crate) fn command(&self, program: &str, args: &[&str]) -> Command {
        let cache = workspace().join(".cache");
        let own = std::env::var_os("PATH").unwrap_or_default();
        let tools = [cache.join("python/bin"), cache.join("buf/node_modules/.bin")];
        let path = std::env::join_paths(tools.into_iter().chain(std::env::split_paths(&own)));
        let mut command = Process::command(Path::new("/usr/bin/env"));
        command.env("PATH", path.expect("a path")).arg(program).args(args);
        command.current_dir(self.dir()).env("HOME", self.rig.dir());
        command.env("HIVE_SOCKET", self.rig.agent_socket("ada"));
        // With the settings of tests/setup.sh, or the libraries are compiled again.
        let places = format!("{}:{GOCODE}", self.rig.path("go").display());
        command.env("GO111MODULE", "off").env("GOPATH", places).env("GOCACHE", cache.join("go"));
        command.env("GOTOOLCHAIN", "local").env("GOFLAGS", "-trimpath").env("CGO_ENABLED", "0");
        command
    }

    /// Runs a command to its end, which has to be a success; its output.
    pub(crate) async fn succeeds(&self, command: Command) -> String {
        let Said { code, stdout, stderr } = run(command).await;
        assert_eq!(code, 0, "{stdout}{stderr}");
        stdout
    }

    /// Runs a command to its end, which has to be a failure; its output.
    pub(crate) async fn fails(&self, command: Command) -> String {
        let Said { code, stdout, stderr } = run(command).await;
        assert_ne!(code, 0, "{stdout}{stderr}");
        stdout
    }

    /// Runs a command while no broker is there, and starts the broker after several attempts to
    /// connect; its output. The channel's own pauses would be longer than the test waits.
    pub(crate) async fn reconnects(&mut self, command: Command) -> String {
        self.rig.kill_broker().await;
        let socket = self.rig.agent_socket("ada");
        std::fs::remove_file(&socket).expect("a killed broker leaves its socket");
        let listener = UnixListener::bind(&socket).expect("a socket");
        self.rig.spawn("example", command);
        let attempts = async {
            for _ in 0..ATTEMPTS {
                drop(listener.accept().await.expect("a connection"));
            }
        };
        // By default there are 34 s between the first attempt and the eighth.
        let quick = tokio::time::timeout(PATIENCE / 3, attempts).await;
        assert!(quick.is_ok(), "the pauses are too long: {}", self.rig.logs());
        drop(listener);
        std::fs::remove_file(&socket).expect("the socket is ours");
        self.rig.start_broker().await;
        self.ended("example").await
    }

    /// Waits until a spawned example ends, which has to be a success; its output.
    pub(crate) async fn ended(&mut self, key: &str) -> String {
        let status = soon("the example ends", self.rig.harness(key).wait()).await;
        let said = self.rig.read(&format!("{key}.log"));
        assert!(status.success(), "{status}: {said}");
        self.rig.harness_ended(key);
        said
    }
}
