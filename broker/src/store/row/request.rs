//! The rows of counted requests: pages, each with those that were written together, and blocks of
//! neighbouring numbers, which are made of many pages at once.
//!
//! Clients count their calls: the request id `client-17` is of the series `client` and has the
//! number 17. With a row for each request a commit would change as many pages of the file as it has
//! clients, or more. Invariant: only an id that is written exactly so is counted, so two ids never
//! have the same series and number.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rusqlite::types::Type;
use rusqlite::{Error, Result};
use serde::{Deserialize, Serialize, Serializer};

use crate::store::codec::integer;
use crate::store::columns::{columns, sql};
use crate::store::key::AgentKey;
use crate::store::statement::{Sql, Statements, all, one, run};

/// The numbers of a block. Those of plain receipts make a row that fits in a page of the table.
const BLOCK: u64 = 8;

/// Blocks are made of all pages when there are so many of them, or so many bytes in them.
const PAGES_MAX: usize = 64;
const PAGES_BYTES_MAX: usize = 64 * 1024;

/// Bytes of the longest answer in a page or a block. A longer one has a row of its own.
pub(in crate::store) const ANSWER_BYTES_MAX: usize = 64;

/// A request id as a client counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct Counted<'i> {
    pub(in crate::store) series: &'i str,
    pub(in crate::store) number: u64,
}

impl<'i> Counted<'i> {
    /// Returns the series and the number of an id, if it has them.
    pub(in crate::store) fn of(id: &'i str) -> Option<Self> {
        let (series, digits) = id.rsplit_once('-')?;
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        let is_shortest = digits == "0" || !digits.starts_with('0');
        let number: u64 = digits.parse().ok().filter(|_| is_number && is_shortest)?;
        i64::try_from(number).ok().map(|_| Self { series, number })
    }
}

/// A series of a caller's requests of one RPC.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::store) struct Series {
    pub(in crate::store) caller: AgentKey,
    pub(in crate::store) rpc: Cow<'static, str>,
    pub(in crate::store) name: String,
}

/// The answer to a counted request. A row has it as an array of its values.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "(u64, String, String)")]
pub(in crate::store) struct Entry {
    pub(in crate::store) number: u64,
    /// Digest of the content.
    pub(in crate::store) fingerprint: [u8; 16],
    /// The answer, as JSON.
    pub(in crate::store) answer: String,
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        let fingerprint = format!("{:032x}", u128::from_be_bytes(self.fingerprint));
        (self.number, fingerprint, &self.answer).serialize(to)
    }
}

impl TryFrom<(u64, String, String)> for Entry {
    type Error = std::num::ParseIntError;

    fn try_from(
        (number, digest, answer): (u64, String, String),
    ) -> std::result::Result<Self, Self::Error> {
        let fingerprint = u128::from_str_radix(&digest, 16)?.to_be_bytes();
        Ok(Self { number, fingerprint, answer })
    }
}

/// Answers by series.
pub(in crate::store) type Answers = BTreeMap<Series, Vec<Entry>>;

columns! {
    /// A page as it was read.
    struct Page, const PAGE {
        id: i64 = "id",
        /// JSON: for each series its caller, RPC, name and answers.
        answers: String = "answers",
        time: i64 = "time",
    }
}

/// All pages.
#[derive(Debug, Default)]
pub(in crate::store) struct Pages {
    answers: Answers,
    count: usize,
    bytes: usize,
    /// The time of the newest request in them.
    time: i64,
    /// Pages that cannot be read. They stay until the retention deletes them.
    unreadable: Vec<i64>,
}

impl Pages {
    pub(in crate::store) fn read(from: &impl Statements) -> Result<Self> {
        const SQL: &str = sql!("SELECT ", PAGE, " FROM request_page ORDER BY id");
        let mut pages = Self::default();
        for Page { id, answers, time } in all(from, Sql::Direct(SQL), [])? {
            let Ok(series) = parsed::<Vec<(i64, String, String, Vec<Entry>)>>(&answers) else {
                pages.unreadable.push(id);
                continue;
            };
            let series = series.into_iter().map(|(caller, rpc, name, entries)| {
                (Series { caller: AgentKey(caller), rpc: Cow::Owned(rpc), name }, entries)
            });
            pages.add(series, answers.len(), time);
        }
        Ok(pages)
    }

    /// Returns an error if there is a page that cannot be read. A request that is not found may be
    /// in it.
    pub(in crate::store) fn all_are_read(&self) -> Result<()> {
        let Some(id) = self.unreadable.first() else { return Ok(()) };
        let problem = format!("the answers to requests in page {id} cannot be read");
        Err(Error::FromSqlConversionFailure(1, Type::Text, problem.into()))
    }

    /// Writes a page with answers of a batch.
    pub(in crate::store) fn write(
        &mut self,
        to: &impl Statements,
        answers: Answers,
        time: i64,
    ) -> Result<()> {
        const SQL: &str = "INSERT INTO request_page (time, answers) VALUES (?1, ?2)";
        let series = answers.iter().map(|(series, entries)| {
            let Series { caller, rpc, name } = series;
            (caller.0, rpc, name, entries)
        });
        let text = json(&series.collect::<Vec<_>>())?;
        run(to, Sql::Direct(SQL), (time, &text))?;
        self.add(answers, text.len(), time);
        Ok(())
    }

    fn add(
        &mut self,
        series: impl IntoIterator<Item = (Series, Vec<Entry>)>,
        bytes: usize,
        time: i64,
    ) {
        for (series, entries) in series {
            self.answers.entry(series).or_default().extend(entries);
        }
        self.count += 1;
        self.bytes += bytes;
        self.time = self.time.max(time);
    }

    /// Returns whether they are so many that blocks are to be made of them.
    pub(in crate::store) fn are_many(&self) -> bool {
        self.count >= PAGES_MAX || self.bytes >= PAGES_BYTES_MAX
    }

    /// Returns the answers of a series, in the order of their commits.
    pub(in crate::store) fn of(&self, series: &Series) -> &[Entry] {
        self.answers.get(series).map_or(&[], Vec::as_slice)
    }

    /// Makes blocks of the pages.
    pub(in crate::store) fn make_blocks(&mut self, to: &impl Statements) -> Result<()> {
        // No number is answered twice, so no such row is there. If one were, it should not stop the
        // mail.
        const SQL: &str = "INSERT OR REPLACE INTO request_block (caller_id, rpc, series, first, time, answers) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        for (Series { caller, rpc, name }, mut entries) in std::mem::take(&mut self.answers) {
            entries.sort_unstable_by_key(|entry| entry.number);
            for block in entries.chunk_by(|a, b| a.number / BLOCK == b.number / BLOCK) {
                let first = block.first().map(|entry| integer(entry.number));
                run(
                    to,
                    Sql::Direct(SQL),
                    (caller.0, &rpc, &name, first, self.time, json(&block)?),
                )?;
            }
        }
        let unreadable = std::mem::take(&mut self.unreadable);
        if unreadable.is_empty() {
            run(to, Sql::Direct("DELETE FROM request_page"), [])?;
        } else {
            let sql = "DELETE FROM request_page WHERE id NOT IN (SELECT value FROM json_each(?1))";
            run(to, Sql::Direct(sql), [json(&unreadable)?])?;
        }
        *self = Self { unreadable, ..Self::default() };
        Ok(())
    }
}

/// Returns the answer to a request from the blocks.
pub(in crate::store) fn in_blocks(
    from: &impl Statements,
    series: &Series,
    number: u64,
) -> Result<Option<Entry>> {
    // A number that was late has a block of its own beside that of its neighbours.
    const SQL: &str = "SELECT answers FROM request_block \
         WHERE caller_id = ?1 AND rpc = ?2 AND series = ?3 AND first BETWEEN ?4 AND ?5";
    let Series { caller, rpc, name } = series;
    let from_number = integer(number - number % BLOCK);
    let blocks: Vec<String> =
        all(from, Sql::Direct(SQL), (caller.0, rpc, name, from_number, integer(number)))?;
    for block in blocks {
        let entries: Vec<Entry> = parsed(&block)?;
        if let Some(entry) = entries.into_iter().find(|entry| entry.number == number) {
            return Ok(Some(entry));
        }
    }
    Ok(None)
}

/// Returns a number that none in the blocks of a series exceeds.
pub(in crate::store) fn highest_in_blocks(from: &impl Statements, series: &Series) -> Result<u64> {
    const SQL: &str = "SELECT max(first) FROM request_block \
         WHERE caller_id = ?1 AND rpc = ?2 AND series = ?3";
    let Series { caller, rpc, name } = series;
    let first: Option<u64> = one(from, Sql::Direct(SQL), (caller.0, rpc, name))?;
    Ok(first.map_or(0, |first| first - first % BLOCK + (BLOCK - 1)))
}

fn json(value: &impl Serialize) -> Result<String> {
    serde_json::to_string(value).map_err(|error| Error::ToSqlConversionFailure(Box::new(error)))
}

fn parsed<T: serde::de::DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text)
        .map_err(|error| Error::FromSqlConversionFailure(0, Type::Text, Box::new(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_counted_only_if_its_parts_give_it_back() {
        let parts = |id| Counted::of(id).map(|Counted { series, number }| (series, number));
        assert_eq!(parts("client-17"), Some(("client", 17)));
        assert_eq!(parts("a-b-0"), Some(("a-b", 0)));
        assert_eq!(parts("-7"), Some(("", 7)));
        assert_eq!(parts("a-9223372036854775807"), Some(("a", i64::MAX.unsigned_abs())));
        let others = ["a", "a-", "a-x", "a-+6", "6", "a-07", "a-00", "a-9223372036854775808"];
        assert_eq!(others.map(parts), [None; 8]);
        assert_eq!(parts("a-99999999999999999999"), None);
    }

    #[test]
    fn an_entry_is_an_array_that_gives_it_back() {
        let entry = Entry { number: 7, fingerprint: [1; 16], answer: "[1,2]".to_owned() };
        let text = json(&entry).expect("it is written");
        assert_eq!(text, r#"[7,"01010101010101010101010101010101","[1,2]"]"#);
        assert_eq!(parsed::<Entry>(&text).expect("it is read"), entry);
        parsed::<Entry>(r#"[7,"x","1"]"#).expect_err("no digest");
    }
}
