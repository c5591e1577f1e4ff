//! A toolchain that rustup installed in the operator's home, granted by the recipe of
//! `docs/isolation.md`.

use std::path::{Path, PathBuf};
use std::process::Command;

use hive_tests::rig::{Rig, host};

use super::hive::{Hive, path};
use super::installed::{Installed, same};

every!(a_shell_task_builds_and_runs_a_crate);

/// The sysroot of the tests' own toolchain and the program `rustup`, if there is one.
fn toolchain() -> Option<(PathBuf, PathBuf)> {
    let said = Command::new("rustc").args(["--print", "sysroot"]).current_dir("/").output().ok()?;
    let sysroot = PathBuf::from(String::from_utf8(said.stdout).ok()?.trim());
    let rustup = std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|dir| dir.join("rustup"))
        .find(|path| path.is_file())?;
    (said.status.success() && sysroot.parent()?.ends_with("toolchains"))
        .then_some((sysroot, rustup))
}

/// Installs it in the operator's home: the same files under second names.
fn install(rig: &Rig, sysroot: &Path, rustup: &Path) {
    let name = sysroot.file_name().and_then(|name| name.to_str()).expect("a toolchain has a name");
    let to = format!("operator/.rustup/toolchains/{name}");
    let settings =
        format!("version = \"12\"\nprofile = \"minimal\"\ndefault_toolchain = \"{name}\"\n");
    rig.user_file("operator/.rustup/settings.toml", &settings, 0o644);
    for dir in ["downloads", "tmp", "update-hashes"] {
        rig.user_dir(&format!("operator/.rustup/{dir}"));
    }
    for program in ["cargo", "rustc"] {
        same(rig, &sysroot.join("bin").join(program), &format!("{to}/bin/{program}"));
        same(rig, rustup, &format!("operator/.cargo/bin/{program}"));
    }
    all_below(rig, &sysroot.join("lib"), &format!("{to}/lib"));
}

fn all_below(rig: &Rig, from: &Path, to: &str) {
    for entry in std::fs::read_dir(from).expect("a directory").flatten() {
        let (path, to) = (entry.path(), format!("{to}/{}", entry.file_name().display()));
        if path.is_dir() { all_below(rig, &path, &to) } else { same(rig, &path, &to) }
    }
}

async fn a_shell_task_builds_and_runs_a_crate(installed: Installed) {
    let found = toolchain();
    if !host::allows("a toolchain of rustup", found.is_some()) {
        return;
    }
    let (sysroot, rustup) = found.expect("looked at");
    let grants = "writable = [\"~/project\"]\nreadable = [\"~/.cargo/bin\", \"~/.rustup\"]\nenv = { RUSTUP_HOME = \"R/operator/.rustup\" }";
    let prepare = async |rig: &Rig| {
        install(rig, &sysroot, &rustup);
        rig.user_file(
            "operator/project/Cargo.toml",
            "[package]\nname = \"tiny\"\nversion = \"1.0.0\"\nedition = \"2021\"\n",
            0o644,
        );
        rig.user_file(
            "operator/project/src/main.rs",
            "fn main() { println!(\"six times seven is {}\", 6 * 7); }\n",
            0o644,
        );
    };
    let mut hive = Hive::start_with(installed, grants, prepare, |rig, bin, up| {
        up.env("PATH", path(&[bin, &rig.path("operator/.cargo/bin")]));
    })
    .await;
    let project = hive.text("operator/project");
    let said =
        hive.run(&format!("cd {project} && type -P cargo && cargo run --offline 2>&1")).await;
    assert!(said.contains("six times seven is 42"), "{said}");
    assert!(said.contains(&hive.text("operator/.cargo/bin/cargo")), "{said}");
    assert!(hive.rig().path("operator/project/target/debug/tiny").is_file());
    // The agent cannot change directories that it may only read.
    let said = hive.run("touch \"$RUSTUP_HOME/settings.toml\" 2>&1 || echo refused").await;
    assert!(said.contains("Read-only file system") && said.contains("refused"), "{said}");
    hive.end().await;
}
