//! The order of functions in a program: from a map of the linker and recordings of what ran, the
//! linker script that puts the functions that ran next to each other.
//!
//! Linux maps the code of a program by 64 KiB at a time, so functions that are apart cost memory
//! and faults for everything between them. A recording is a log of `qemu -d in_asm,page`, which has
//! each instruction that was translated, and the place of the program.
//!
//! Invariant: a name in the script has no part that depends on the compiler's version, on the
//! directory of the sources or on the order of the compiler's work; such parts are `*`.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::io::BufReader;
use std::path::Path;
use std::sync::LazyLock;

use anyhow::{Context as _, bail};
use regex::Regex;

/// Names are cut where they differ from those of all functions that did not run, but not before
/// this length, so that they mean little else in a program that has changed.
const SHORTEST: usize = 60;

/// The sections with the code of a program, a function each, in the order of their addresses.
#[derive(Debug)]
pub struct Map {
    sections: Vec<Section>,
}

#[derive(Debug)]
struct Section {
    address: u64,
    bytes: u64,
    name: String,
}

/// The functions of a [`Map`] that ran, by their index.
pub type Ran = BTreeSet<usize>;

impl Map {
    /// Reads the map that `lld -Map` writes: a line for each part of an object, with its address,
    /// its size and `FILE:(SECTION)`.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let mut sections: Vec<_> = text.lines().filter_map(Section::parse).collect();
        if sections.is_empty() {
            bail!("the map names no function; is it one of lld?");
        }
        sections.sort_by_key(|section| section.address);
        Ok(Self { sections })
    }

    fn at(&self, address: u64) -> Option<usize> {
        let index =
            self.sections.partition_point(|section| section.address <= address).checked_sub(1)?;
        let section = &self.sections[index];
        (address - section.address < section.bytes).then_some(index)
    }

    fn bytes(&self, functions: &Ran) -> u64 {
        functions.iter().map(|index| self.sections[*index].bytes).sum()
    }
}

impl Section {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        let bytes = u64::from_str_radix(words.nth(1)?, 16).ok()?;
        let (_, name) = line.split_once(":(")?;
        let name = name.strip_suffix(')')?;
        (name.starts_with(".text.") && bytes > 0).then(|| Self {
            address,
            bytes,
            name: name.to_owned(),
        })
    }
}

/// Reads all recordings in a directory.
pub fn recorded(map: &Map, dir: &Path) -> anyhow::Result<Ran> {
    let mut ran = Ran::new();
    let entries = dir.read_dir().with_context(|| format!("{} cannot be read", dir.display()))?;
    for entry in entries {
        let path = entry?.path();
        let mut read = || -> anyhow::Result<()> {
            read_log(map, BufReader::new(std::fs::File::open(&path)?), &mut ran)
        };
        read().with_context(|| format!("{} cannot be read", path.display()))?;
    }
    if ran.is_empty() {
        bail!("no recording in {} has a function of the map", dir.display());
    }
    Ok(ran)
}

/// Adds the functions of one log. The first region of its first layout is where the program lies.
fn read_log(map: &Map, mut log: impl std::io::BufRead, ran: &mut Ran) -> anyhow::Result<()> {
    let mut base = None;
    let mut line = Vec::new();
    loop {
        line.clear();
        // A log has bytes of the program, which need not be text.
        if log.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        let Ok(text) = std::str::from_utf8(&line) else {
            continue;
        };
        match base {
            None => {
                base =
                    text.split_once('-').and_then(|(start, _)| u64::from_str_radix(start, 16).ok());
            }
            Some(base) => {
                let address = text
                    .strip_prefix("0x")
                    .and_then(|text| text.split_once(':'))
                    .and_then(|(address, _)| u64::from_str_radix(address, 16).ok());
                if let Some(index) = address
                    .and_then(|address| address.checked_sub(base))
                    .and_then(|address| map.at(address))
                {
                    ran.insert(index);
                }
            }
        }
    }
}

/// What a script names.
#[derive(Debug)]
pub struct Summary {
    names: usize,
    start: u64,
    work: u64,
    all: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} names; of {} KiB of code, {} KiB run at a start and {} KiB more at work",
            self.names,
            self.all / 1024,
            self.start / 1024,
            self.work / 1024
        )
    }
}

/// The script: first the functions of a start, then the others that ran at work. It has the names
/// of the script `before`, too: a program that is optimized in another way has other functions.
pub fn script(map: &Map, start: &Ran, work: &Ran, before: &str) -> (String, Summary) {
    let both: Ran = start.union(work).copied().collect();
    let mut groups = before.split("*(").skip(1).map(names_of);
    let (of_start, of_work) = (groups.next(), groups.next());
    let mut first = patterns(map, start);
    first.extend(of_start.into_iter().flatten());
    let mut second = patterns(map, &both);
    second.extend(of_work.into_iter().flatten());
    second.retain(|name| !first.contains(name));
    let mut text = String::from(
        "/* Generated by `make function-order`; do not edit.\n\n   \
         The functions that the program ran in a recording, at a start and then at work, so that they\n   \
         are next to each other. A name that a program does not have, or has elsewhere, costs\n   \
         memory and nothing else. See docs/adr/0049-order-of-functions.md. */\n\
         SECTIONS\n{\n  .text.hot :\n  {\n",
    );
    for names in [&first, &second].into_iter().filter(|names| !names.is_empty()) {
        text.push_str("    *(\n");
        for name in names {
            writeln!(text, "      {name}").expect("a string takes all text");
        }
        text.push_str("    )\n");
    }
    text.push_str("  }\n}\nINSERT BEFORE .text;\n");
    let all = map.sections.iter().map(|section| section.bytes).sum();
    let summary = Summary {
        names: first.len() + second.len(),
        start: map.bytes(start),
        work: map.bytes(&both) - map.bytes(start),
        all,
    };
    (text, summary)
}

/// The names of a script, or of a part of it.
fn names_of(script: &str) -> impl Iterator<Item = String> {
    script.lines().filter_map(|line| line.strip_prefix("      ")).map(str::to_owned)
}

/// The names of functions as patterns, cut where no function that did not run begins like them.
fn patterns(map: &Map, ran: &Ran) -> BTreeSet<String> {
    let mut others = BTreeSet::new();
    let mut names = BTreeSet::new();
    for (index, section) in map.sections.iter().enumerate() {
        let set = if ran.contains(&index) { &mut names } else { &mut others };
        set.insert(lasting(&section.name));
    }
    names
        .iter()
        .map(|name| {
            let before = others.range(..=name.clone()).next_back();
            let after = others.range(name.clone()..).next();
            let same = [before, after]
                .into_iter()
                .flatten()
                .map(|other| common(name, other))
                .max()
                .unwrap_or(0);
            match name.get(..(same + 1).max(SHORTEST)) {
                Some(cut) => format!("{}*", cut.trim_end_matches('*')),
                None => name.clone(),
            }
        })
        .collect()
}

/// The names of a script that no symbol of a program has, and how many it has in all.
pub fn unknown<'a>(script: &'a str, symbols: &BTreeSet<&str>) -> (Vec<&'a str>, usize) {
    let names: Vec<_> = script
        .lines()
        .filter_map(|line| line.strip_prefix("      .text."))
        .map(|name| name.strip_prefix("unlikely.").unwrap_or(name))
        .collect();
    let is_known = |name: &str| {
        let parts: Vec<_> = name.split('*').collect();
        symbols
            .range(parts[0]..)
            .take_while(|symbol| symbol.starts_with(parts[0]))
            .any(|symbol| has_parts(symbol, &parts))
    };
    let all = names.len();
    (names.into_iter().filter(|name| !is_known(name)).collect(), all)
}

/// Whether a text has these parts in this order, the first at its begin and the last at its end.
fn has_parts(text: &str, parts: &[&str]) -> bool {
    let (Some((first, between)), Some(last)) = (parts.split_first(), parts.last()) else {
        return false;
    };
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let Some((_, between)) = between.split_last() else {
        return rest.is_empty();
    };
    for part in between {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

fn common(one: &str, other: &str) -> usize {
    one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count()
}

/// The name of a section without what changes from build to build.
fn lasting(name: &str) -> String {
    static CHANGING: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        [
            // The hash of a symbol of the old kind, as the standard library has them.
            ("17h[0-9a-f]{16}E", "17h*E"),
            // The number of a local symbol, one of several with its name.
            (r"(\.llvm)?\.[0-9]+$", "*"),
            // The hash of a crate; a reference back into the name, which depends on its length.
            ("Cs[0-9A-Za-z]+_([0-9])", "Cs*_${1}"),
            ("B[0-9A-Za-z]*_", "B*_"),
            // Which of the blocks `impl` of a module it is.
            ("([MX])s[0-9A-Za-z]*_", "${1}s*_"),
            (r"\*+", "*"),
        ]
        .map(|(pattern, with)| (Regex::new(pattern).expect("a constant"), with))
        .into()
    });
    CHANGING.iter().fold(name.to_owned(), |name, (pattern, with)| {
        pattern.replace_all(&name, *with).into_owned()
    })
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use std::collections::BTreeSet;

    use super::{Map, Ran, lasting, read_log, script, unknown};

    /// A map with sections of 16 bytes from 0x1000 on, and lines that are none.
    fn map(names: &[&str]) -> Map {
        let mut text =
            String::from("  VMA  LMA  Size Align Out In Symbol\n 1000 1000 100 16 .text\n");
        for (index, name) in names.iter().enumerate() {
            let address = 0x1000 + index * 16;
            writeln!(text, "  {address:x}  {address:x}  10 16  /a dir/x.o:({name})").expect("text");
            writeln!(text, "  {address:x}  {address:x}  10  1  a_symbol").expect("text");
        }
        text.push_str(
            "  2000  2000  8  8  x.o:(.rodata.str)\n  3000  3000  0  1  x.o:(.text.none)\n",
        );
        Map::parse(&text).expect("a map")
    }

    #[test]
    fn a_map_without_functions_is_refused() {
        assert!(Map::parse("  VMA  LMA\n  10 10 8 8 x.o:(.rodata)\n").is_err());
    }

    #[test]
    fn a_recording_names_the_functions_that_ran_and_no_other() {
        let map = map(&[".text.a", ".text.b", ".text.c"]);
        let log = b"page layout\nstart  end\n0000004000000000-0000004000100000 rw-\n\
            5000000000000000-5000000000000001 ---\nIN: \n0x400000100f: 90 nop\n\
            \xff\xfe\n0x4000001020: c3 ret\n0x4000001030: 90 behind all\n0x1010: 90 before all\n";
        let mut ran = Ran::new();
        read_log(&map, &log[..], &mut ran).expect("a log");
        assert_eq!(ran, Ran::from([0, 2]));
    }

    #[test]
    fn a_lasting_name_has_nothing_of_one_build() {
        for (name, expected) in [
            (".text._ZN3std2io5Error3new17h0123456789abcdefE", ".text._ZN3std2io5Error3new17h*E"),
            (".text._RNvMs4_NtCsdeN1_5broker4mail", ".text._RNvMs*_NtCs*_5broker4mail"),
            (".text._RINvCsa_4core4dropNtB5_4MailEB1f_", ".text._RINvCs*_4core4dropNtB*_4MailEB*_"),
            (".text._RNvCsa_3std4kind.1143", ".text._RNvCs*_3std4kind*"),
            (".text._RNvCsa_3std4kind.llvm.77", ".text._RNvCs*_3std4kind*"),
            (".text.sqlite3Step.constprop.0", ".text.sqlite3Step.constprop*"),
        ] {
            assert_eq!(lasting(name), expected);
        }
    }

    #[test]
    fn a_name_is_cut_where_no_function_that_did_not_run_begins_like_it() {
        let long = |tail: &str| format!(".text.{}{tail}", "x".repeat(60));
        let names =
            [".text.short", &long("_ran_often"), &long("_rests"), &long("_ran_later"), ".text.end"];
        let map = map(&names);
        let (text, _) = script(&map, &Ran::from([0, 1]), &Ran::from([3]), "");
        let of_start = format!("    *(\n      .text.short\n      {}*\n    )\n", long("_ran_o"));
        assert!(text.contains(&of_start), "{text}");
        let before = "*(\n      .text.old\n    )\n    *(\n      .text.short\n      .text.z\n    )";
        let (text, _) = script(&map, &Ran::from([0]), &Ran::new(), before);
        let both = "*(\n      .text.old\n      .text.short\n    )\n    *(\n      .text.z\n    )";
        assert!(text.contains(both), "{text}");
        let (text, summary) = script(&map, &Ran::from([0]), &Ran::from([0, 1, 2]), "");
        let of_work = format!("    *(\n      {}*\n      {}*\n    )\n", long("_ran_o"), long("_re"));
        assert!(text.contains(&of_work), "{text}");
        assert_eq!((summary.start, summary.work, summary.all), (16, 32, 80));
        assert!(text.contains(".text.hot :") && text.ends_with("}\nINSERT BEFORE .text;\n"));
    }

    #[test]
    fn names_that_no_symbol_has_are_found() {
        let text = "SECTIONS\n  .text.hot :\n    *(\n      .text.one\n      .text.on*\n      \
            .text.unlikely.a*c*e\n      .text.a*c*f\n      .text.a*e\n      .text.two\n    )\n";
        let symbols = BTreeSet::from(["one1", "abcde", "twos"]);
        assert_eq!(unknown(text, &symbols), (vec!["one", "a*c*f", "two"], 6));
    }
}
