//! The table of a run: how many cases of each family passed, on the wire and through each kit.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result};

/// What the table is between, on its page.
const BEGIN: &str = "<!-- The table is written by make conformance. -->\n";
const END: &str = "<!-- End of the table. -->\n";

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Table {
    ways: Vec<String>,
    /// The passed cases and all cases, by family and way.
    cells: BTreeMap<(String, String), (usize, usize)>,
}

impl Table {
    /// Adds the results of one way.
    pub(crate) fn add(&mut self, way: &str, results: Vec<(String, bool)>) {
        self.ways.push(way.to_owned());
        for (family, passed) in results {
            let cell = self.cells.entry((family, way.to_owned())).or_default();
            cell.0 += usize::from(passed);
            cell.1 += 1;
        }
    }

    /// Writes the table into its page.
    pub(crate) fn write(&self, page: &Path) -> Result<()> {
        let text = std::fs::read_to_string(page)?;
        let (before, rest) = text.split_once(BEGIN).context("the page has no place for it")?;
        let (_, after) = rest.split_once(END).context("the place on the page has no end")?;
        std::fs::write(page, format!("{before}{BEGIN}{self}{END}{after}"))?;
        Ok(())
    }
}

impl std::fmt::Display for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut head = String::from("| cases of |");
        let mut line = String::from("| --- |");
        for way in &self.ways {
            write!(head, " {way} |")?;
            line.push_str(" --- |");
        }
        writeln!(f, "{head}\n{line}")?;
        let families: BTreeSet<&String> = self.cells.keys().map(|(family, _)| family).collect();
        let mut sums: BTreeMap<&String, (usize, usize)> = BTreeMap::new();
        for family in families {
            write!(f, "| {family} |")?;
            for way in &self.ways {
                let cell = self.cells.get(&(family.clone(), way.clone())).copied();
                let (passed, all) = cell.unwrap_or_default();
                let sum = sums.entry(way).or_default();
                *sum = (sum.0 + passed, sum.1 + all);
                write!(f, " {}", shown(passed, all))?;
            }
            writeln!(f)?;
        }
        write!(f, "| all |")?;
        for way in &self.ways {
            let (passed, all) = sums.get(way).copied().unwrap_or_default();
            write!(f, " {}", shown(passed, all))?;
        }
        writeln!(f)
    }
}

fn shown(passed: usize, all: usize) -> String {
    if all == 0 {
        "– |".to_owned()
    } else if passed == all {
        format!("{all} |")
    } else {
        format!("**{passed} of {all}** |")
    }
}
