//! The order of functions in a release, for the build scripts of programs: the linker script
//! `functions.ld` of the package. See `docs/adr/0049-order-of-functions.md`.

use std::env;
use std::path::PathBuf;
use std::process::Command;

/// Puts the functions that a program of this package runs next to each other in a release. Only
/// with the linker that comes with Rust: the one of GNU takes more than ten minutes for as many
/// patterns.
pub(crate) fn order(program: &str) {
    println!("cargo::rerun-if-changed=functions.ld");
    if of_cargo("PROFILE") == "release" && links_with_lld() {
        let script = PathBuf::from(of_cargo("CARGO_MANIFEST_DIR")).join("functions.ld");
        println!("cargo::rustc-link-arg-bin={program}=-Wl,-T,{}", script.display());
    }
}

/// Whether rustc uses its own lld: it does on this platform, if it has one and no other is chosen.
fn links_with_lld() -> bool {
    let platform = "x86_64-unknown-linux-gnu";
    let flags = of_cargo("CARGO_ENCODED_RUSTFLAGS");
    let chosen = !of_cargo("RUSTC_LINKER").is_empty()
        || flags.split('\x1f').any(|flag| flag.trim_start_matches("-C").starts_with("link"));
    if of_cargo("TARGET") != platform || of_cargo("HOST") != platform || chosen {
        return false;
    }
    let Ok(asked) = Command::new(of_cargo("RUSTC")).args(["--print", "sysroot"]).output() else {
        return false;
    };
    let sysroot = PathBuf::from(String::from_utf8_lossy(&asked.stdout).trim());
    sysroot.join("lib/rustlib").join(platform).join("bin/gcc-ld/ld.lld").exists()
}

/// A variable that Cargo sets for a build script.
fn of_cargo(name: &str) -> String {
    env::var(name).unwrap_or_default()
}
