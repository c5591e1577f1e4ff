//! Refuses to build a broker whose SQLite lacks `fdatasync`, and gives the linker the order of its
//! functions.
//!
//! The flags of SQLite are in `.cargo/config.toml`, which Cargo reads only in the checkout. A build
//! from another directory would lose them without a word, and each commit would be slower.

mod functions;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    check_sqlite();
    functions::order("hived");
}

fn check_sqlite() {
    println!("cargo::rerun-if-env-changed=LIBSQLITE3_FLAGS");
    let flags = std::env::var("LIBSQLITE3_FLAGS").unwrap_or_default();
    if !flags.split_whitespace().any(|flag| flag == "-DHAVE_FDATASYNC=1") {
        println!(
            "cargo::error=LIBSQLITE3_FLAGS does not have -DHAVE_FDATASYNC=1, so SQLite would sync with fsync, which is slower. \
             Build in the checkout, where .cargo/config.toml sets it, or set it to the value in that file"
        );
    }
}
