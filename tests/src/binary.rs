//! The workspace's own binaries in tests: built when first asked for, so that none is stale.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Names a directory with binaries that are already built.
pub const DIR_ENV: &str = "HIVE_TEST_BIN_DIR";

/// The workspace's root.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("tests/ lies in the workspace")
        .to_path_buf()
}

/// The path of a binary of the workspace, built before if `HIVE_TEST_BIN_DIR` does not name a place
/// for it.
pub fn find(package: &str, name: &str) -> PathBuf {
    static BUILT: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    if let Some(dir) = std::env::var_os(DIR_ENV) {
        return PathBuf::from(dir).join(name);
    }
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    if built.get_or_insert_default().insert(name.to_owned()) {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.current_dir(workspace()).args([
            "build",
            "--quiet",
            "--package",
            package,
            "--bin",
            name,
        ]);
        if cfg!(not(debug_assertions)) {
            command.arg("--release");
        }
        let status = command.status().expect("cargo can be started");
        assert!(status.success(), "{name} of {package} cannot be built");
    }
    target_dir().join(name)
}

/// Returns the profile's binary directory: two levels above a test (`deps/`), one above a binary.
fn target_dir() -> PathBuf {
    let own = std::env::current_exe().expect("this program has a path");
    let dir = own.parent().expect("a program lies in a directory");
    if dir.ends_with("deps") {
        dir.parent().expect("deps/ lies in the target directory").to_path_buf()
    } else {
        dir.to_path_buf()
    }
}
