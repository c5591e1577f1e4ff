//! The kits, and how their drivers start.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use tokio::process::Command;

/// The kits by their directories in `clients`.
pub(crate) const NAMES: [&str; 4] = ["python", "typescript", "go", "rust"];

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the command that starts the driver of a kit, as clients/build.sh has made it.
pub(crate) fn driver(name: &str) -> Result<Command> {
    let home = workspace();
    let driver = home.join("clients").join(name).join("conformance");
    let command = match name {
        "rust" => Command::new(beside("hive-conformance-driver")?),
        "python" => {
            let mut python = Command::new(home.join(".cache/python/bin/python"));
            python.arg(driver.join("driver.py")).env("PYTHONPATH", home.join("clients/python/src"));
            python
        }
        "typescript" => {
            let mut node = Command::new("node");
            // Handlers fail on purpose.
            node.arg("--no-warnings").arg(driver.join("driver.mjs"));
            node
        }
        "go" => Command::new(home.join(".cache/go-driver")),
        other => bail!("there is no kit `{other}`; the kits are {}", NAMES.join(", ")),
    };
    Ok(command)
}

/// Returns a program that was built with this one.
fn beside(name: &str) -> Result<PathBuf> {
    let program = std::env::current_exe()?;
    Ok(program.parent().context("the program is in a directory")?.join(name))
}
