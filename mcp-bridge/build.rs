//! Gives the linker the order of the functions of `hive-mcp`.

#[path = "../broker/functions.rs"]
mod functions;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    functions::order("hive-mcp");
}
