//! Attempts of a curious or hostile program in an agent's sandbox, one for each mechanism.
//!
//! Invariant: it harms nothing, however badly a sandbox fails. What it writes goes to files that a
//! test has made for that, and no process gets a signal but signal 0.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::net::TcpStream;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

/// The attempts to make.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Targets {
    /// Files to read, by the attempt's name.
    pub read: BTreeMap<String, PathBuf>,
    /// Files to open for writing, or directories to create a file in.
    pub write: BTreeMap<String, PathBuf>,
    /// Unix sockets to connect to.
    pub connect: BTreeMap<String, PathBuf>,
    /// Abstract names to connect to.
    pub connect_abstract: BTreeMap<String, String>,
    /// Ports of 127.0.0.1 to connect to.
    pub connect_port: BTreeMap<String, u16>,
    /// Processes of the host to see, with the inode of the program that they run.
    pub process: BTreeMap<String, (i32, u64)>,
    /// Texts to find in the environment of any other process.
    pub environment: BTreeMap<String, String>,
    /// Keys of the session keyring, by their description.
    pub key: BTreeMap<String, String>,
    /// Commands that must succeed.
    pub command: BTreeMap<String, Vec<String>>,
}

/// Tries everything and writes to `out`, in JSON, why each attempt failed; an attempt that
/// succeeded has `null`.
pub fn run(targets: &Path, out: &Path) -> ExitCode {
    let done = || -> io::Result<()> {
        let targets: Targets = serde_json::from_slice(&std::fs::read(targets)?)?;
        let result = serde_json::to_vec(&attempts(&targets))?;
        // Beside it first: the test waits for the file.
        let part = out.with_extension("part");
        std::fs::write(&part, result)?;
        std::fs::rename(part, out)
    };
    match done() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "sandbox-probe: {error}");
            ExitCode::FAILURE
        }
    }
}

fn attempts(targets: &Targets) -> BTreeMap<String, Option<String>> {
    let Targets {
        read,
        write,
        connect,
        connect_abstract,
        connect_port,
        process,
        environment,
        key,
        command,
    } = targets;
    let mut all = BTreeMap::new();
    let mut note = |name: &str, result: io::Result<()>| {
        all.insert(name.to_owned(), result.err().map(|error| error.to_string()));
    };
    for (name, path) in read {
        note(
            name,
            std::fs::read(path).and_then(|bytes| {
                if bytes.is_empty() { Err(absent("it is empty")) } else { Ok(()) }
            }),
        );
    }
    for (name, path) in write {
        note(name, open_for_writing(path));
    }
    for (name, path) in connect {
        note(name, UnixStream::connect(path).map(drop));
    }
    for (name, abstract_name) in connect_abstract {
        let address = SocketAddr::from_abstract_name(abstract_name.as_bytes());
        note(name, address.and_then(|address| UnixStream::connect_addr(&address)).map(drop));
    }
    for (name, port) in connect_port {
        note(name, TcpStream::connect(("127.0.0.1", *port)).map(drop));
    }
    for (name, (pid, program)) in process {
        note(name, see_process(*pid, *program));
    }
    for (name, text) in environment {
        note(name, find_in_environments(text));
    }
    for (name, description) in key {
        note(name, succeed(&["keyctl", "search", "@s", "user", description].map(str::to_owned)));
    }
    for (name, words) in command {
        note(name, succeed(words));
    }
    note("other-descriptors", other_descriptors());
    all
}

fn absent(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, why)
}

fn open_for_writing(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        let probe = path.join("written-by-the-probe");
        return File::create(&probe).map(drop);
    }
    OpenOptions::new().append(true).open(path).map(drop)
}

/// A process of the host: it is there, runs that program, and takes signals.
fn see_process(pid: i32, program: u64) -> io::Result<()> {
    let found = std::fs::metadata(format!("/proc/{pid}/exe"))?;
    if found.ino() != program {
        return Err(absent("another process has this number"));
    }
    Ok(test_kill_process(Pid::from_raw(pid).ok_or_else(|| absent("0"))?)?)
}

fn find_in_environments(text: &str) -> io::Result<()> {
    let own = std::process::id().to_string();
    let found = std::fs::read_dir("/proc")?.flatten().any(|entry| {
        let name = entry.file_name();
        let is_other = name.to_str().is_some_and(|name| name != own && name.parse::<i32>().is_ok());
        let environment = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        is_other && String::from_utf8_lossy(&environment).contains(text)
    });
    if found { Ok(()) } else { Err(absent("no environment that can be read has it")) }
}

fn succeed(words: &[String]) -> io::Result<()> {
    let (program, arguments) = words.split_first().ok_or_else(|| absent("no command"))?;
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!(
        "{}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    )))
}

/// Descriptors besides the standard ones that lead to a file, and not to the probe's own directory
/// of descriptors.
fn other_descriptors() -> io::Result<()> {
    let others: Vec<String> = std::fs::read_dir("/proc/self/fd")?
        .flatten()
        .filter(|entry| {
            entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse::<i32>().ok())
                .is_some_and(|fd| fd > 2)
        })
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .map(|target| target.display().to_string())
        // The directory that is read here, and the lock on the working directory, which claude and
        // what it starts hold.
        .filter(|target| !target.ends_with("/fd") && !target.ends_with("/state"))
        .collect();
    if others.is_empty() { Err(absent("there is none")) } else { Ok(()) }
}
