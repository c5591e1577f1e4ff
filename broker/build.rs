//! Refuses to build a broker whose SQLite lacks `fdatasync`, and gives the linker the order of its
//! functions.
//!
//! The flags of SQLite are in `.cargo/config.toml`, which Cargo reads only in the checkout. A build
//! from another directory would lose them without a word, and each commit would be slower.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    check_sqlite();
    order_functions();
}

fn check_sqlite() {
    println!("cargo::rerun-if-env-changed=LIBSQLITE3_FLAGS");
    let flags = env::var("LIBSQLITE3_FLAGS").unwrap_or_default();
    if !flags.split_whitespace().any(|flag| flag == "-DHAVE_FDATASYNC=1") {
        println!(
            "cargo::error=LIBSQLITE3_FLAGS does not have -DHAVE_FDATASYNC=1, so SQLite would sync with fsync, which is slower. \
             Build in the checkout, where .cargo/config.toml sets it, or set it to the value in that file"
        );
    }
}

/// Puts the functions that the broker runs next to each other in a release; see
/// `docs/adr/0049-order-of-functions.md`. Only with the linker that comes with Rust: the one of GNU
/// takes more than ten minutes for as many patterns.
fn order_functions() {
    println!("cargo::rerun-if-changed=functions.ld");
    if of_cargo("PROFILE") == "release" && links_with_lld() {
        let script = PathBuf::from(of_cargo("CARGO_MANIFEST_DIR")).join("functions.ld");
        println!("cargo::rustc-link-arg-bin=hived=-Wl,-T,{}", script.display());
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
