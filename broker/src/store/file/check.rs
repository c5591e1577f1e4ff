//! Checking: reads the whole database and reports its problems as sentences.
//!
//! SQLite checks the file itself, then its references; then the rules check what must be true of
//! every hive, however old. Each statement reads a snapshot of its own, so that the log can be
//! folded in between. Checking repairs nothing, and shares no statement with the code that writes
//! the tables. Invariant: a rule that cannot be checked is a problem, never silence.

use std::path::Path;

use rusqlite::{Connection, ErrorCode};
use tokio_util::sync::CancellationToken;

use crate::store::error::StoreError;
use crate::store::file::backup::long_reader;

/// Most problems that a check reports.
pub const PROBLEMS_MAX: usize = 100;

/// Statements that return a sentence for every breach of a rule.
const RULES: &[&str] = &[
    // Every agent has an inbox, which counts its unsettled deliveries.
    "SELECT format('agent `%s` has no inbox', name) FROM agent WHERE id NOT IN (SELECT agent_id FROM inbox)",
    "SELECT format('the inbox of `%s` counts %d unsettled deliveries and has %d', name, counted, found) FROM (SELECT a.name, \
     i.open_count AS counted, (SELECT count(*) FROM open_delivery d WHERE d.agent_id = a.id) AS found \
     FROM inbox i JOIN agent a ON a.id = i.agent_id) WHERE counted <> found",
    "SELECT format('the inbox of `%s` counts %d ready and %d leased deliveries and has %d and %d', name, ready_count, leased_count, \
     ready, leased) FROM (SELECT a.name, i.ready_count, i.leased_count, \
     (SELECT count(*) FROM open_delivery d WHERE d.agent_id = a.id AND d.queue IN (1, 2)) AS ready, \
     (SELECT count(*) FROM open_delivery d WHERE d.agent_id = a.id AND d.queue = 0) AS leased \
     FROM inbox i JOIN agent a ON a.id = i.agent_id) WHERE ready_count <> ready OR leased_count <> leased",
    "SELECT format('message %d to `%s` is settled, and is not', s.message_id, a.name) FROM open_delivery d \
     JOIN settled_delivery s ON s.message_id = d.message_id AND s.agent_id = d.agent_id JOIN agent a ON a.id = d.agent_id",
    "SELECT format('message %d is in the inbox of `%s` %d times', d.message_id, a.name, count(*)) FROM open_delivery d \
     JOIN agent a ON a.id = d.agent_id GROUP BY d.agent_id, d.message_id HAVING count(*) > 1",
    "SELECT format('`%s` is charged for %d bytes of unsettled messages and has sent %d', name, counted, found) FROM (SELECT a.name, \
     i.stored_bytes AS counted, coalesce(s.bytes, 0) AS found FROM inbox i JOIN agent a ON a.id = i.agent_id LEFT JOIN \
     (SELECT sender_id, sum(body_bytes) AS bytes FROM open_delivery GROUP BY sender_id) s \
     ON s.sender_id = a.id) WHERE counted <> found",
    // Deliveries are of messages, to agents.
    "SELECT format('there is a delivery of message %d to `%s`, and no such message', d.message_id, a.name) FROM delivery d \
     JOIN agent a ON a.id = d.agent_id WHERE NOT EXISTS (SELECT 1 FROM message m WHERE m.id = d.message_id)",
    "SELECT format('there is a delivery of message %d to agent number %d, and no such agent', message_id, agent_id) FROM delivery \
     WHERE agent_id NOT IN (SELECT id FROM agent)",
    "SELECT format('the delivery of message %d to `%s` goes by %d bytes, and its text has %d', m.id, a.name, d.body_bytes, \
     octet_length(m.body)) FROM delivery d JOIN message m ON m.id = d.message_id JOIN agent a ON a.id = d.agent_id \
     WHERE d.body_bytes <> octet_length(m.body)",
    "SELECT format('message %d went to one recipient, and is in the inbox of `%s` too', m.id, a.name) FROM delivery d \
     JOIN message m ON m.id = d.message_id JOIN agent a ON a.id = d.agent_id WHERE m.to_id NOT IN (0, d.agent_id)",
    "SELECT format('message %d to everyone states %d recipients and has %d deliveries', id, stated, found) FROM (SELECT m.id, \
     m.recipient_count AS stated, (SELECT count(*) FROM settled_delivery d WHERE d.message_id = m.id) + \
     (SELECT count(*) FROM agent a JOIN open_delivery d ON d.agent_id = a.id AND d.queue IN (0, 1, 2, 4) \
     AND d.message_id = m.id) AS found FROM message m WHERE m.to_id = 0) WHERE stated <> found",
    // A lease has one holder: an open turn of that agent, or a consumer with a time.
    "SELECT format('message %d is leased from the inbox of `%s` to nobody', d.message_id, a.name) FROM open_delivery d \
     JOIN agent a ON a.id = d.agent_id WHERE d.state = 2 AND (d.lease_token IS NULL \
     OR (d.lease_turn_id IS NULL) = (d.lease_until_boot IS NULL))",
    "SELECT format('message %d is leased from the inbox of `%s` to turn %d, which is not open', d.message_id, a.name, \
     d.lease_turn_id) FROM open_delivery d JOIN agent a ON a.id = d.agent_id WHERE d.state = 2 AND d.lease_turn_id IS NOT NULL \
     AND NOT EXISTS (SELECT 1 FROM turn t WHERE t.id = d.lease_turn_id AND t.agent_id = d.agent_id AND t.outcome IS NULL)",
    "SELECT format('turn %d holds message %d without carrying it', d.lease_turn_id, d.message_id) FROM open_delivery d \
     WHERE d.state = 2 AND d.lease_turn_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM turn_delivery td \
     WHERE td.turn_id = d.lease_turn_id AND td.message_id = d.message_id)",
    "SELECT format('%d leases share one token, among them that of message %d', count(*), min(message_id)) FROM open_delivery \
     WHERE state = 2 AND lease_token IS NOT NULL GROUP BY lease_token HAVING count(*) > 1",
    "SELECT format('message %d is leased from the inbox of the operator, whose mail is not leased', message_id) FROM open_delivery \
     WHERE agent_id = 1 AND state = 2",
    "SELECT format('message %d is a dead letter of `%s` that never failed', d.message_id, a.name) FROM open_delivery d \
     JOIN agent a ON a.id = d.agent_id WHERE d.state = 4 AND d.failures < 1",
    "SELECT format('the delivery of message %d to `%s` does not wait, and has a backoff', d.message_id, a.name) FROM open_delivery d \
     JOIN agent a ON a.id = d.agent_id WHERE d.state <> 1 AND d.not_before_boot IS NOT NULL",
    // Turns, and the tree.
    "SELECT format('turn %d of `%s` is open, and not of its present session', t.id, a.name) FROM turn t \
     JOIN agent a ON a.id = t.agent_id WHERE t.outcome IS NULL AND (a.session_token IS NULL OR a.session_epoch <> t.session_epoch)",
    "SELECT format('tool calls are counted for turn %d, which has not ended', turn_id) FROM turn_tool \
     WHERE turn_id NOT IN (SELECT id FROM turn WHERE outcome IS NOT NULL) GROUP BY turn_id",
    "SELECT format('message %d to `%s` is not settled, and that agent was purged', d.message_id, a.purged_name) FROM open_delivery d \
     JOIN agent a ON a.id = d.agent_id WHERE a.purged_name IS NOT NULL AND d.state IN (1, 2, 3, 4)",
    "SELECT format('the parent of `%s` is `%s`, who is retired', a.name, p.name) FROM agent a JOIN agent p ON p.id = a.parent_id \
     WHERE a.retired = 0 AND p.retired = 1",
    "WITH RECURSIVE above (id, upper) AS (SELECT id, parent_id FROM agent WHERE parent_id IS NOT NULL UNION \
     SELECT above.id, agent.parent_id FROM above JOIN agent ON agent.id = above.upper WHERE agent.parent_id IS NOT NULL) \
     SELECT format('`%s` is its own ancestor', (SELECT name FROM agent WHERE agent.id = above.id)) FROM above WHERE id = upper",
    // Questions, reminders and loose ends, and their ends.
    "SELECT format('the asker of question %d was told %d outcomes', q.id, m.told) FROM question q JOIN (SELECT question_id, to_id, \
     count(*) AS told FROM message WHERE question_id IS NOT NULL AND system_kind IN (6, 7, 8) GROUP BY question_id, to_id) m \
     ON m.question_id = q.id AND m.to_id = q.asker_id WHERE m.told > (q.state <> 1)",
    "SELECT format('reminder %d became %d messages', r.id, coalesce(m.found, 0)) FROM reminder r LEFT JOIN (SELECT reminder_id, \
     count(*) AS found FROM message WHERE reminder_id IS NOT NULL GROUP BY reminder_id) m ON m.reminder_id = r.id \
     WHERE coalesce(m.found, 0) <> (r.state = 2)",
    "SELECT format('question %d is open, and `%s` is retired', q.id, a.name) FROM question q \
     JOIN agent a ON a.id IN (q.asker_id, q.target_id) WHERE q.state = 1 AND a.retired = 1",
    "SELECT format('reminder %d is pending, and `%s` is retired', r.id, a.name) FROM reminder r JOIN agent a ON a.id = r.agent_id \
     WHERE r.state = 1 AND a.retired = 1",
    // Schedules, and their targets.
    "SELECT format('schedule %d has not ended, and `%s` is retired', s.id, a.name) FROM schedule s JOIN agent a ON a.id = s.owner_id \
     WHERE s.state <> 3 AND a.retired = 1",
    "SELECT format('schedule %d has not ended, and has no target', s.id) FROM schedule s \
     WHERE s.state <> 3 AND NOT EXISTS (SELECT 1 FROM schedule_target t WHERE t.schedule_id = s.id)",
    "SELECT format('`%s` is a target of schedule %d, and is retired', a.name, s.id) FROM schedule s \
     JOIN schedule_target t ON t.schedule_id = s.id JOIN agent a ON a.id = t.agent_id WHERE s.state <> 3 AND a.retired = 1",
    "SELECT format('schedule %d does not exist, and has a target', t.schedule_id) FROM schedule_target t \
     WHERE NOT EXISTS (SELECT 1 FROM schedule s WHERE s.id = t.schedule_id)",
    // A span is a trace, an id and flags, and mostly a parent.
    "SELECT format('message %d has a trace context of %d bytes', id, octet_length(traceparent)) FROM message \
     WHERE traceparent IS NOT NULL AND octet_length(traceparent) NOT IN (25, 33)",
    "SELECT format('turn %d has a trace context of %d bytes', id, octet_length(traceparent)) FROM turn \
     WHERE traceparent IS NOT NULL AND octet_length(traceparent) NOT IN (25, 33)",
    "SELECT format('reminder %d has a trace context of %d bytes', id, octet_length(traceparent)) FROM reminder \
     WHERE traceparent IS NOT NULL AND octet_length(traceparent) <> 25",
    // Events are in the pages that say so.
    "SELECT format('the events %d to %d cannot be read', first, last) FROM event_page WHERE NOT json_valid(events)",
    "SELECT format('the events %d to %d are in a page with the events %s to %s', first, last, events ->> '$[0][0]', \
     events ->> '$[#-1][0]') FROM event_page WHERE json_valid(events) AND (events ->> '$[0][0]' IS NOT first \
     OR events ->> '$[#-1][0]' IS NOT last)",
    // The first answer to a request is found by its number.
    "SELECT format('the answers to requests in page %d cannot be read', id) FROM request_page WHERE CASE WHEN json_valid(answers) \
     THEN EXISTS (SELECT 1 FROM json_each(answers) s, json_each(s.value, '$[3]') e \
     WHERE length(e.value ->> 1) IS NOT 32 OR json_type(e.value, '$[2]') IS NOT 'text') \
     OR EXISTS (SELECT 1 FROM json_each(answers) s WHERE json_type(s.value, '$[3]') IS NOT 'array') ELSE TRUE END",
    "SELECT format('the answers to the requests of agent number %d from `%s-%d` on cannot be read', caller_id, series, first) \
     FROM request_block WHERE CASE WHEN json_valid(answers) THEN EXISTS (SELECT 1 FROM json_each(answers) e \
     WHERE length(e.value ->> 1) IS NOT 32 OR json_type(e.value, '$[2]') IS NOT 'text') ELSE TRUE END",
    "SELECT format('the answers to the requests of agent number %d from `%s-%d` on are those from %s on', caller_id, series, first, \
     answers ->> '$[0][0]') FROM request_block WHERE json_valid(answers) AND answers ->> '$[0][0]' IS NOT first",
];

/// Tables whose ids are of the hive's one sequence, with a name for their rows.
const NUMBERED: [(&str, &str); 7] = [
    ("message", "a message"),
    ("turn", "a turn"),
    ("command", "a command"),
    ("question", "a question"),
    ("reminder", "a reminder"),
    ("published_loose_end", "a loose end"),
    ("schedule", "a schedule"),
];

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// The problems, a sentence each, at most [`PROBLEMS_MAX`].
    pub problems: Vec<String>,
    /// The number of pages in the database; all were read.
    pub pages: u64,
}

/// Why nothing was checked.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The caller has disconnected, or the broker drains.
    #[error("the check was given up")]
    Stopped,
    /// The database cannot be used now.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Checks a database file.
pub(crate) fn check(path: &Path, stop: CancellationToken) -> Checked {
    match long_reader(path, stop) {
        Ok(conn) => {
            let mut checking = Checking { conn: &conn, checked: Checked::default() };
            checking.all();
            checking.checked
        }
        Err(error) => {
            Checked { problems: vec![format!("the file cannot be opened: {error}")], pages: 0 }
        }
    }
}

/// A check under way.
struct Checking<'c> {
    conn: &'c Connection,
    checked: Checked,
}

impl Checking<'_> {
    fn all(&mut self) {
        match self.conn.pragma_query_value(None, "page_count", |row| row.get::<_, u32>(0)) {
            Ok(pages) => self.checked.pages = u64::from(pages),
            Err(error) => self.unreadable("the size of the file", &error),
        }
        self.sentences("the file", &format!("PRAGMA integrity_check({PROBLEMS_MAX})"), |row| {
            let said: String = row.get(0)?;
            // SQLite begins its list with the name that the database has on this connection.
            let lines =
                said.lines().filter(|line| !matches!(*line, "ok" | "*** in database main ***"));
            Ok(lines.map(|line| format!("the file is damaged: {line}")).collect())
        });
        self.sentences("references", "PRAGMA foreign_key_check", |row| {
            let (table, number, of): (String, Option<i64>, String) =
                (row.get(0)?, row.get(1)?, row.get(2)?);
            let which = number.map_or_else(|| "a row".to_owned(), |number| format!("row {number}"));
            Ok(vec![format!(
                "{which} of the table `{table}` refers to a row of `{of}` that is not there"
            )])
        });
        for rule in RULES {
            self.sentences("the books", rule, |row| Ok(vec![row.get(0)?]));
        }
        for (number, (table, what)) in NUMBERED.into_iter().enumerate() {
            for (other, other_what) in &NUMBERED[..number] {
                let rule = format!(
                    "SELECT format('number %d was given to {what} and to {other_what}', id) FROM {table} \
                     WHERE id IN (SELECT id FROM {other})"
                );
                self.sentences("the books", &rule, |row| Ok(vec![row.get(0)?]));
            }
        }
    }

    /// Adds the sentences that a statement returns, up to the limit.
    fn sentences(
        &mut self,
        what: &str,
        sql: &str,
        say: impl Fn(&rusqlite::Row<'_>) -> rusqlite::Result<Vec<String>>,
    ) {
        let result = self.conn.prepare(sql).and_then(|mut select| {
            let mut rows = select.query([])?;
            while self.checked.problems.len() < PROBLEMS_MAX {
                let Some(row) = rows.next()? else { break };
                self.checked.problems.extend(say(row)?);
            }
            Ok(())
        });
        if let Err(error) = result {
            self.unreadable(what, &error);
        }
        self.checked.problems.truncate(PROBLEMS_MAX);
    }

    /// Adds the error that stopped a check as a problem, once. An interruption adds none, because
    /// its caller is gone.
    fn unreadable(&mut self, what: &str, error: &rusqlite::Error) {
        let problem = format!("{what} cannot be read to the end: {error}");
        let known = self.checked.problems.contains(&problem);
        if error.sqlite_error_code() != Some(ErrorCode::OperationInterrupted) && !known {
            self.checked.problems.push(problem);
        }
    }
}
