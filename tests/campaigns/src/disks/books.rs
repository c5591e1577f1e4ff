//! The answers that clients got, and what must be true of the mail because of them.
//!
//! Invariant: a body is sent once, under one request id; so each body is in the mail at most once,
//! however often the request was repeated.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::Connection;

/// A send that may have to be repeated with the same request id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) number: u64,
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
    pub(crate) body: String,
}

/// The record of a run's answers.
#[derive(Debug, Default)]
pub(crate) struct Books {
    /// Receipts, and messages that a client read: id and body.
    pub(crate) told: BTreeMap<u64, String>,
    /// Sends answered with "unknown, try again".
    pub(crate) unknown: Vec<Said>,
    /// Deliveries that the broker reported as acked.
    pub(crate) acked: BTreeSet<u64>,
}

impl Books {
    /// Records an answer that this id is this message.
    pub(crate) fn tell(&mut self, id: u64, body: &str) -> Result<(), String> {
        match self.told.insert(id, body.to_owned()) {
            Some(before) if before != body => Err(format!("message {id} was told to be another")),
            Some(_) | None => Ok(()),
        }
    }

    /// Checks the books against the mail: all messages, and those that are not settled.
    pub(crate) fn check(&self, mail: &[(u64, String)], open: &BTreeSet<u64>) -> Vec<String> {
        let by_id: BTreeMap<u64, &str> =
            mail.iter().map(|(id, body)| (*id, body.as_str())).collect();
        let mut found = Vec::new();
        if by_id.len() != mail.len() {
            found.push("an id names two messages".to_owned());
        }
        for (id, body) in &self.told {
            if by_id.get(id) != Some(&body.as_str()) {
                found.push(format!("message {id} was answered, and it is not there"));
            }
        }
        let mut bodies = BTreeSet::new();
        for (id, body) in mail {
            if !bodies.insert(body) {
                found.push(format!("message {id} is there twice"));
            }
        }
        found.extend(
            self.acked
                .intersection(open)
                .map(|id| format!("message {id} was settled, and it is open again")),
        );
        found
    }

    /// Checks that a database without an open connection is sound, and checks the books against it.
    /// Returns `Err` if it cannot be read.
    pub(crate) fn audit(&self, database: &Path) -> Result<Vec<String>, String> {
        let sql = |error: rusqlite::Error| format!("the database cannot be read: {error}");
        let conn = Connection::open(database).map_err(sql)?;
        let sound: String =
            conn.query_row("PRAGMA integrity_check", [], |row| row.get(0)).map_err(sql)?;
        if sound != "ok" {
            return Err(format!(
                "the database is broken: {}",
                sound.lines().next().unwrap_or_default()
            ));
        }
        let mut check = conn.prepare("PRAGMA foreign_key_check").map_err(sql)?;
        if let Some(row) = check.query([]).map_err(sql)?.next().map_err(sql)? {
            return Err(format!(
                "table {} refers to a row that is not there",
                row.get::<_, String>(0).map_err(sql)?
            ));
        }
        let holes = "SELECT max(sequence) - min(sequence) + 1 - count(*) FROM event";
        let holes: i64 = conn.query_row(holes, [], |row| row.get(0)).map_err(sql)?;
        if holes != 0 {
            return Err(format!("{holes} events are missing"));
        }
        let number =
            |row: &rusqlite::Row<'_>| Ok(u64::try_from(row.get::<_, i64>(0)?).unwrap_or(0));
        let mut select = conn.prepare("SELECT id, body FROM message ORDER BY id").map_err(sql)?;
        let mail = select.query_map([], |row| Ok((number(row)?, row.get(1)?))).map_err(sql)?;
        let mail: Vec<(u64, String)> = mail.collect::<rusqlite::Result<_>>().map_err(sql)?;
        let mut select =
            conn.prepare("SELECT message_id FROM delivery WHERE state IN (1, 2)").map_err(sql)?;
        let open = select.query_map([], number).map_err(sql)?;
        let open: BTreeSet<u64> = open.collect::<rusqlite::Result<_>>().map_err(sql)?;
        Ok(self.check(&mail, &open))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mail(rows: &[(u64, &str)]) -> Vec<(u64, String)> {
        rows.iter().map(|(id, body)| (*id, (*body).to_owned())).collect()
    }

    #[test]
    fn each_broken_promise_is_found() {
        let mut books = Books::default();
        books.tell(1, "one").expect("new");
        books.tell(2, "two").expect("new");
        books.tell(2, "two").expect("the same");
        assert!(books.tell(2, "other").is_err());
        books.told.insert(2, "two".to_owned());
        books.acked.insert(1);
        let good = mail(&[(1, "one"), (2, "two"), (3, "unknown")]);
        assert_eq!(books.check(&good, &BTreeSet::from([2, 3])), [""; 0]);
        for (rows, open) in [
            (mail(&[(1, "one")]), BTreeSet::new()),
            (mail(&[(1, "one"), (2, "half")]), BTreeSet::new()),
            (mail(&[(1, "one"), (2, "two"), (3, "two")]), BTreeSet::new()),
            (good, BTreeSet::from([1])),
        ] {
            assert_eq!(books.check(&rows, &open).len(), 1, "{rows:?}");
        }
    }
}
