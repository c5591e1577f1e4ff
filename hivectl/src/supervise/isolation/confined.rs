//! One harness under bubblewrap, from the check of its grants to its report.
//!
//! ```text
//!   up                          bwrap                       hived
//!    │ mounts, descriptors ────►│ sandbox is made, waits      │
//!    │◄──── process id (info) ──│                             │
//!    │──────────── pid namespace, as a descriptor ───────────►│
//!    │◄───────────────────── in force ────────────────────────│
//!    │──── go on (block) ──────►│ hive serve: probes          │
//!    │◄──── what it found ──────│                             │
//!    │──────────── isolation that was reached ───────────────►│
//!    │──── accepted ───────────►│ claude may start            │
//! ```
//!
//! Invariant: nothing runs in a sandbox before the broker knows its namespace, and no claude before
//! its isolation is accepted.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hive_core::config::SandboxConfig;
use hive_core::isolation::{EXPECTED_ENV, Found, Level, REPORT_FD_ENV};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;
use tokio_util::task::AbortOnDropHandle;

use super::bwrap::Bubblewrap;
use super::own::Own;
use super::verdict::Verdict;
use super::{expected, grants, passwd, sandbox, shared, shown};
use crate::output::note;
use crate::output::text::visible_line;
use crate::spawn::spawn;
use crate::supervise::broker::link::Registrar;
use crate::supervise::process::start::{Prepared, Start, Started, Watch};
use crate::supervise::setup::binaries::Binaries;
use crate::supervise::setup::environment::Env;
use crate::supervise::setup::plan::{AgentPlan, Plan};

/// Maximum time for bubblewrap to make a sandbox.
const SANDBOX_MAX: Duration = Duration::from_secs(20);
const REPORT_MAX: Duration = Duration::from_secs(30);
const REPORT_BYTES_MAX: u64 = 256 * 1024;

/// The input of every start of an agent's harness under bubblewrap.
#[derive(Clone, Debug)]
pub(crate) struct Confined {
    pub(super) level: Level,
    pub(super) bwrap: Bubblewrap,
    pub(super) plan: Arc<Plan>,
    pub(super) agent: AgentPlan,
    pub(super) binaries: Binaries,
    pub(super) claude: PathBuf,
    pub(super) env: Env,
    pub(super) verdict: Verdict,
    pub(super) registrar: Registrar,
}

pub(super) struct Parts {
    /// The arguments of bubblewrap, up to its own descriptors.
    pub(super) args: Vec<OsString>,
    pub(super) env: Env,
    pub(super) inherited: Vec<OwnedFd>,
}

impl Confined {
    /// Checks the grants, writes the checks for the harness, and assembles the arguments.
    pub(super) fn parts(&self, own: &Own) -> Result<Parts, String> {
        let Self { level, bwrap, plan, agent, binaries, claude, env, .. } = self;
        let refused = |refused: grants::Refused| refused.to_string();
        let (grants, shown, args, inherited) = match level {
            Level::Sandbox => {
                let (grants, shown) =
                    (shown::grants(self).map_err(refused)?, shown::files(self).map_err(refused)?);
                let passwd = passwd::file(&agent.home_dir)
                    .map_err(|error| format!("/etc/passwd of the sandbox: {error}"))?;
                let inside = sandbox::Inside {
                    agent,
                    own,
                    shown: &shown,
                    grants: &grants,
                    passwd: passwd.as_raw_fd(),
                };
                let args = sandbox::arguments(bwrap, &inside);
                (grants, shown, args, vec![passwd])
            }
            Level::SharedFiles | Level::None => (
                shown::writable_only(self),
                Vec::new(),
                shared::arguments(plan, agent, own),
                Vec::new(),
            ),
        };
        let programs: Vec<PathBuf> = [&binaries.hive, &binaries.hive_mcp, claude]
            .into_iter()
            .flat_map(|path| path.canonicalize())
            .collect();
        let SandboxConfig { user_namespaces, .. } = agent.config.sandbox;
        let facts = expected::Facts {
            level: *level,
            bwrap: &bwrap.program,
            user_namespaces,
            own,
            shown: &shown,
            grants: &grants,
            programs: &programs,
        };
        expected::write(plan, agent, &facts).map_err(|error| error.to_string())?;
        let mut env = env.clone();
        env.insert(EXPECTED_ENV.into(), expected::path(agent).into_os_string());
        if *level == Level::Sandbox {
            // These variables name directories that do not exist, or belong to another user.
            env.retain(|name, _| name != "TMPDIR" && name != "XDG_RUNTIME_DIR");
            // Inside, programs have their real paths.
            for (name, program) in [("HIVE_CLAUDE", claude), ("HIVE_MCP", &binaries.hive_mcp)] {
                env.insert(
                    name.into(),
                    program.canonicalize().unwrap_or_else(|_| program.clone()).into_os_string(),
                );
            }
        }
        Ok(Parts { args, env, inherited })
    }

    /// Returns the program `hive` as it is called inside.
    pub(super) fn hive(&self) -> PathBuf {
        self.binaries.hive.canonicalize().unwrap_or_else(|_| self.binaries.hive.clone())
    }
}

impl Start for Confined {
    fn prepare(&self) -> Result<Prepared, String> {
        let own = Own::of_agent(&self.plan, &self.agent).map_err(|error| error.to_string())?;
        let Parts { mut args, mut env, mut inherited } = self.parts(&own)?;
        let pipe = || {
            rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
                .map_err(|error| format!("a pipe: {error}"))
        };
        let ((info, info_end), (block_end, block)) = (pipe()?, pipe()?);
        let (report, report_end) =
            UnixStream::pair().map_err(|error| format!("a pair of sockets: {error}"))?;
        for (option, fd) in [("--info-fd", &info_end), ("--block-fd", &block_end)] {
            args.extend([option.into(), fd.as_raw_fd().to_string().into()]);
        }
        args.extend(["--chdir".into(), self.agent.state_dir.clone().into_os_string(), "--".into()]);
        args.extend([self.hive().into_os_string(), "serve".into()]);
        env.insert(REPORT_FD_ENV.into(), report_end.as_raw_fd().to_string().into());
        inherited.extend([info_end, block_end, report_end.into()]);
        let watched = Watched {
            agent: self.agent.name.to_string(),
            verdict: self.verdict.clone(),
            registrar: self.registrar.clone(),
        };
        let started: Started = Box::new(move |pid| -> Watch {
            Box::new(AbortOnDropHandle::new(spawn(
                "sandbox",
                watched.run(pid, info, block, report),
            )))
        });
        let program = self.bwrap.program.clone();
        // It waits inside, until its namespace is known.
        Ok(Prepared { program, args, env, inherited, started, ready: None })
    }
}

struct Watched {
    agent: String,
    verdict: Verdict,
    registrar: Registrar,
}

impl Watched {
    async fn run(self, bwrap: u32, info: OwnedFd, block: OwnedFd, report: UnixStream) {
        let agent = self.agent.clone();
        let registration = match tokio::time::timeout(SANDBOX_MAX, self.register(info)).await {
            Ok(Ok(registration)) => registration,
            Ok(Err(Failed::Ended)) => return std::future::pending().await,
            Ok(Err(Failed::Host(error))) => {
                note(&format!("the sandbox of {agent} cannot be used: its namespace: {error}"));
                kill(bwrap);
                return std::future::pending().await;
            }
            Err(_) => {
                note(&format!(
                    "the sandbox of {agent} was not made within {} s",
                    SANDBOX_MAX.as_secs()
                ));
                kill(bwrap);
                return std::future::pending().await;
            }
        };
        // Closing it lets the program continue.
        drop(block);
        let mut answer = None;
        let found = tokio::time::timeout(REPORT_MAX, read_report(report, &mut answer)).await;
        let found = found.unwrap_or_else(|_| {
            Err(io::Error::other(format!("it did not come within {} s", REPORT_MAX.as_secs())))
        });
        let (shown, refused) = match found {
            Ok(Some(found)) => {
                let shown = self.verdict.judge(found);
                let refused = shown.refused.clone();
                (shown, refused)
            }
            // The end of a harness is reported with its last words.
            Ok(None) => (self.verdict.unknown(), None),
            Err(error) => {
                let why = format!(
                    "its report on its isolation cannot be read: {error}; it is started again"
                );
                answer = None;
                (self.verdict.unknown(), Some(why))
            }
        };
        registration.isolation(shown);
        match (refused, answer) {
            (Some(why), _) => {
                note(&format!("{agent} is ended: {}", visible_line(&why)));
                kill(bwrap);
            }
            // A harness that has ended does not read it.
            (None, Some(mut stream)) => drop(stream.write_all(b"\n").await),
            (None, None) => {}
        }
        // The registration holds as long as the process.
        std::future::pending::<()>().await;
    }

    async fn register(
        &self,
        info: OwnedFd,
    ) -> Result<crate::supervise::broker::link::Registration, Failed> {
        let mut text = Vec::new();
        pipe::Receiver::from_owned_fd(info)?.take(REPORT_BYTES_MAX).read_to_end(&mut text).await?;
        let Ok(info) = serde_json::from_slice::<serde_json::Value>(&text) else {
            return Err(Failed::Ended);
        };
        let pid = info["child-pid"]
            .as_u64()
            .and_then(|pid| u32::try_from(pid).ok())
            .ok_or(Failed::Ended)?;
        let namespace = File::open(format!("/proc/{pid}/ns/pid"))?;
        Ok(self.registrar.sandbox(self.agent.clone(), namespace.into()).await)
    }
}

enum Failed {
    /// Bubblewrap has ended; its output is in the log.
    Ended,
    Host(io::Error),
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::NotFound { Self::Ended } else { Self::Host(error) }
    }
}

/// Returns the report, and sets the stream for the answer; `None` where the process ended without a
/// report.
async fn read_report(
    report: UnixStream,
    answer: &mut Option<tokio::net::UnixStream>,
) -> io::Result<Option<Found>> {
    report.set_nonblocking(true)?;
    let stream = answer.insert(tokio::net::UnixStream::from_std(report)?);
    let mut text = Vec::new();
    stream.take(REPORT_BYTES_MAX).read_to_end(&mut text).await?;
    if text.is_empty() {
        return Ok(None);
    }
    Ok(Some(serde_json::from_slice(&text)?))
}

fn kill(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) {
        // The process may have ended by itself.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}
