//! `function-order`: see [`hive_tests::function_order`].

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Parser;
use hive_tests::function_order::{Map, recorded, script};

/// Writes the linker script that puts the functions that a program runs next to each other
#[derive(Debug, Parser)]
struct Cli {
    /// The map of the program, as lld writes it
    #[arg(long)]
    map: PathBuf,
    /// A directory with the logs of starts, by `qemu -d in_asm,page`
    #[arg(long)]
    start: PathBuf,
    /// A directory with the logs of work
    #[arg(long)]
    work: PathBuf,
    /// The script to write
    #[arg(long)]
    into: PathBuf,
    /// Keep the names that the script has: they are of the same program, optimized in another way
    #[arg(long)]
    add: bool,
}

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    let map = std::fs::read_to_string(&cli.map)
        .with_context(|| format!("{} cannot be read", cli.map.display()))?;
    let map = Map::parse(&map)?;
    let start = recorded(&map, &cli.start)?;
    let work = recorded(&map, &cli.work)?;
    let before = match cli.add {
        true => std::fs::read_to_string(&cli.into)
            .with_context(|| format!("{} cannot be read", cli.into.display()))?,
        false => String::new(),
    };
    let (text, summary) = script(&map, &start, &work, &before);
    std::fs::write(&cli.into, text)
        .with_context(|| format!("{} cannot be written", cli.into.display()))?;
    writeln!(std::io::stdout(), "{}: {summary}", cli.into.display())?;
    Ok(())
}
