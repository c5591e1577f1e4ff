//! The program `hive`: reads the command line, runs its command, and ends with an exit code.

use std::fmt::Display;
use std::io::{IsTerminal as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::ExitCode;

use clap::Parser as _;
use hive_core::agent::LEFT_CODE;
use hive_core::isolation::{Expected, Level, REPORT_FD_ENV, RESTART_CODE};
use hive_core::name::AgentName;
use hive_harness::cli::{Cli, Command, ConfineArgs, McpArgs, ServeArgs};
use hive_harness::config::Config;
use hive_harness::confine::ConfineError;
use hive_harness::exit::{self, Failure};
use hive_harness::isolation::{Dirs, Isolation, IsolationError, Report};
use hive_harness::settings::{InvalidSettings, Source};
use hive_harness::task::init;
use hive_harness::turn::output::Leaving;
use hive_harness::{boot, confine, driver, fence, guard, isolation, publish, scrub, wake};
use hive_log::journal;
use tokio::runtime::Runtime;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Serve(args) => serve(*args).unwrap_or_else(fail),
        Command::Wake(args) => run(wake::run(args)),
        Command::Publish(args) => run(publish::run(args)),
        Command::Mcp(args) => fail(become_bridge(&args)),
        // claude and the sandboxes start the following at every use, so nothing is set up before.
        Command::Scrub(args) => {
            let not_run = scrub::run(args);
            stop(not_run.code(), &not_run)
        }
        Command::Fence(args) => {
            let not_run = fence::run(args);
            stop(not_run.code(), &not_run)
        }
        Command::Guard(args) => {
            guard::run(&args).map_or(ExitCode::SUCCESS, |why| stop(guard::REFUSED, &why))
        }
        Command::Confine(args) => run_confine(args).map_or_else(fail, ExitCode::from),
        Command::TaskInit(args) => init::run(&args).map_or_else(
            |error| {
                let next = "run the task again";
                let sentence = format!("hive task-init cannot start the command: {error}; {next}");
                stop(init::NOT_STARTED, &sentence)
            },
            ExitCode::from,
        ),
        Command::Probe(args) => isolation::run(&args).map_or_else(
            |error| stop(exit::FAILURE, &format!("hive probe: {error}")),
            ExitCode::from,
        ),
    }
}

/// Prints why the program ends, and returns the exit code.
fn stop(code: u8, why: &dyn Display) -> ExitCode {
    // If stderr is closed, there is no reader for an error.
    let _ = writeln!(std::io::stderr(), "{why}");
    ExitCode::from(code)
}

fn fail(failure: Failure) -> ExitCode {
    stop(failure.code(), &failure)
}

/// Runs a command that makes calls to the broker.
fn run(command: impl Future<Output = Result<(), Failure>>) -> ExitCode {
    let done = runtime().and_then(|runtime| {
        log("warn", None);
        runtime.block_on(command)
    });
    done.map_or_else(fail, |()| ExitCode::from(exit::OK))
}

fn serve(args: ServeArgs) -> Result<ExitCode, Failure> {
    // This comes before any other code opens a descriptor.
    let report = Report::inherit().map_err(isolation_failure)?;
    log("info", args.agent.as_ref());
    let home = std::env::var_os("HOME").map(Into::into);
    let mut source = Source::new(&args, std::env::args_os(), home);
    let usage = |error: InvalidSettings| {
        Failure::new(exit::USAGE, error.to_string(), exit::chain(&error), "see hive serve --help")
    };
    let mut config = source.load().map_err(usage)?;
    let mut is_renewed = false;
    if let Some(expected) = isolation::expected().map_err(isolation_failure)? {
        is_renewed = report.is_some() && expected.level == Level::Sandbox;
        source.isolate(isolate(expected, &config, report)?);
        config = source.load().map_err(usage)?;
        boot::home::move_state(&config.home_dir).map_err(|error| {
            let why = format!("{}: {error}", config.home_dir.join(".claude.json").display());
            Failure::new(
                exit::FAILURE,
                "claude's state cannot be moved into its directory",
                why,
                "check the rights of the agent's home",
            )
        })?;
    }
    let runtime = runtime()?;
    let leaving = runtime.block_on(driver::run(config, source))?;
    drop(runtime);
    finish(&leaving, is_renewed)
}

/// Probes the sandbox for gaps, and reports them; `hivectl up` decides the consequences.
fn isolate(
    expected: Expected,
    config: &Config,
    report: Option<Report>,
) -> Result<Isolation, Failure> {
    let dirs = Dirs {
        home: config.home_dir.clone(),
        run: config.run_dir.clone(),
        state: config.state_dir.clone(),
    };
    let (isolation, found) =
        isolation::probe(expected, dirs, report.as_ref()).map_err(isolation_failure)?;
    for finding in &found.findings {
        tracing::warn!(severity = ?finding.severity, "{}", finding.sentence);
    }
    tracing::info!(
        level = isolation.expected.level.word(),
        findings = found.findings.len(),
        "the isolation was probed"
    );
    if let Some(report) = report {
        report.send(&found).map_err(isolation_failure)?;
    }
    Ok(isolation)
}

fn isolation_failure(error: IsolationError) -> Failure {
    Failure::new(
        exit::FAILURE,
        "the isolation of this agent cannot be probed",
        error.to_string(),
        "start the agent with hivectl up",
    )
}

/// Becomes the bridge that is installed beside this program, or on PATH. Returns only if that
/// fails.
fn become_bridge(args: &McpArgs) -> Failure {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let Some(program) = boot::mcp::find(None, boot::own_program().ok().as_deref(), &path) else {
        let next = "install hive-mcp beside hive, or add its directory to PATH";
        return Failure::new(
            exit::FAILURE,
            "there is no hive-mcp",
            "it is neither beside hive nor on PATH",
            next,
        );
    };
    let error = std::process::Command::new(&program).args(&args.arguments).exec();
    Failure::new(
        exit::FAILURE,
        "hive-mcp cannot be started",
        format!("{}: {error}", program.display()),
        "check the installation",
    )
}

fn run_confine(args: ConfineArgs) -> Result<u8, Failure> {
    let failed = |error: ConfineError| {
        Failure::new(confine::NOT_STARTED, "hive confine", error.to_string(), "")
    };
    runtime()?.block_on(confine::run(args)).map_err(failed)
}

/// Builds a runtime with one thread, which is enough: the work is claude's and the broker's.
fn runtime() -> Result<Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::new(exit::FAILURE, "cannot start", error.to_string(), ""))
}

/// `is_renewed`: whether the program that started this one makes a new sandbox for a restart.
fn finish(leaving: &Leaving, is_renewed: bool) -> Result<ExitCode, Failure> {
    match leaving {
        Leaving::Drained => Ok(ExitCode::from(exit::OK)),
        Leaving::NoWork => Ok(ExitCode::from(LEFT_CODE)),
        Leaving::Unanswered => Err(Failure::new(
            exit::UNREACHABLE,
            "ended before the broker confirmed that no turn is open",
            "the broker did not answer in time",
            "nothing is lost: the broker requeues the mail of an open turn by itself",
        )),
        Leaving::Restart if is_renewed => Ok(ExitCode::from(RESTART_CODE)),
        Leaving::Restart => Err(restart()),
    }
}

/// Becomes the program that is installed now, with the same arguments. Returns only if that fails.
fn restart() -> Failure {
    let failed = |why: String| {
        Failure::new(exit::FAILURE, "cannot start again", why, "start hive serve again")
    };
    let program = match boot::own_program() {
        Ok(program) => program,
        Err(error) => return failed(error.to_string()),
    };
    // Only the first start may take over.
    let arguments = std::env::args_os().skip(1).filter(|argument| argument != "--take-over");
    // The first start has used the descriptor of the report.
    failed(
        std::process::Command::new(program)
            .args(arguments)
            .env_remove(REPORT_FD_ENV)
            .exec()
            .to_string(),
    )
}

/// Starts the log; `agent` is known where `hive.toml` is read.
fn log(default: &str, agent: Option<&AgentName>) {
    let filter = std::env::var("HIVE_LOG")
        .or_else(|_| std::env::var("RUST_LOG"))
        .unwrap_or_else(|_| default.to_owned());
    let filter = hive_log::parse_lossy(&filter, |error| {
        // If stderr is closed, no log has a reader either.
        let _ = writeln!(std::io::stderr(), "{error}; it is ignored");
    });
    let log = tracing_subscriber::registry().with(filter);
    let fields: Vec<_> = agent.iter().map(|agent| ("AGENT", agent.as_str())).collect();
    if let Some(journal) = journal::of_stderr(&fields) {
        return log.with(journal).init();
    }
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false);
    log.with(lines).init();
}
