//! The ledger of a campaign: a line for each of its runs, so that totals can be added.
//!
//! What it is not: a checkpoint to resume from; a run depends on its seed alone. Invariant: a line
//! is written whole at the end of a run, and lines are never changed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Line {
    /// The end of the run, in ms since 1970.
    pub date_ms: i64,
    /// The first seed of the run.
    pub seed: u64,
    /// The number of units that the campaign counts.
    pub count: u64,
    /// The figures of the run, by name.
    pub figures: BTreeMap<String, u64>,
    /// The problems found, a sentence each.
    pub violations: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Ledger {
    path: PathBuf,
}

impl Ledger {
    /// Returns the ledger of this campaign below the target directory.
    pub fn of(campaign: &str) -> Self {
        Self::at(
            &hive_tests::binary::workspace()
                .join("target/campaigns")
                .join(format!("{campaign}.jsonl")),
        )
    }

    pub fn at(path: &Path) -> Self {
        Self { path: path.to_path_buf() }
    }

    /// Appends a run.
    pub fn add(&self, line: &Line) -> io::Result<()> {
        if let Some(dir) = self.path.parent() {
            std::fs::create_dir_all(dir)?;
        }
        let mut text = serde_json::to_string(line)?;
        text.push('\n');
        File::options().create(true).append(true).open(&self.path)?.write_all(text.as_bytes())
    }

    /// Returns all runs so far, oldest first; none if there is no file.
    pub fn lines(&self) -> io::Result<Vec<Line>> {
        match std::fs::read_to_string(&self.path) {
            Ok(text) => text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Returns the sum of all runs.
    pub fn total(&self) -> io::Result<Line> {
        let mut total = Line::default();
        for line in self.lines()? {
            (total.date_ms, total.seed) = (line.date_ms, line.seed);
            total.count += line.count;
            for (name, figure) in line.figures {
                *total.figures.entry(name).or_default() += figure;
            }
            total.violations.extend(line.violations);
        }
        Ok(total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_add_up() {
        let dir = tempfile::tempdir().expect("a directory");
        let ledger = Ledger::at(&dir.path().join("deep/torture.jsonl"));
        assert_eq!(ledger.total().expect("no file is no error"), Line::default());
        for seed in [1, 2] {
            let figures = BTreeMap::from([("messages".to_owned(), 10 * seed)]);
            ledger
                .add(&Line {
                    date_ms: 5,
                    seed,
                    count: 3,
                    figures,
                    violations: vec![seed.to_string()],
                })
                .expect("written");
        }
        let total = ledger.total().expect("read");
        assert_eq!((total.seed, total.count, total.figures["messages"]), (2, 6, 30));
        assert_eq!(total.violations, ["1", "2"]);
        assert_eq!(ledger.lines().expect("read").len(), 2);
    }
}
