//! The audit: what must be true of a hive's database at any moment. For tests and simulations only.
//!
//! Invariant: it shares no statement with the store or with the operator's check, so it has no
//! mistake in common with them.

use rusqlite::{Connection, Result};

/// Questions whose answer is the number of rows that break a rule.
const RULES: &[(&str, &str)] = &[
    (
        "an inbox counts its unsettled deliveries",
        "SELECT count(*) FROM inbox i WHERE open_count <> \
         (SELECT count(*) FROM open_delivery d WHERE d.agent_id = i.agent_id)",
    ),
    (
        "an inbox counts its ready and its leased deliveries",
        "SELECT count(*) FROM inbox i WHERE ready_count * 1000000 + leased_count <> \
         (SELECT coalesce(sum(iif(d.state = 1, 1000000, d.state = 2)), 0) FROM open_delivery d WHERE d.agent_id = i.agent_id)",
    ),
    (
        "a delivery is open or settled, once",
        "SELECT count(*) - count(DISTINCT message_id || '.' || agent_id) FROM delivery",
    ),
    (
        "a sender's stored bytes are those of its unsettled bodies",
        "SELECT count(*) FROM inbox i WHERE stored_bytes <> coalesce((SELECT sum(length(CAST(m.body AS BLOB))) FROM open_delivery d \
         JOIN message m ON m.id = d.message_id WHERE m.origin_id = i.agent_id AND m.origin_id <> 1), 0)",
    ),
    (
        "every agent has an inbox",
        "SELECT count(*) FROM agent a WHERE NOT EXISTS (SELECT 1 FROM inbox i WHERE i.agent_id = a.id)",
    ),
    (
        "no delivery without its message and its recipient",
        "SELECT count(*) FROM delivery d WHERE NOT EXISTS (SELECT 1 FROM message m WHERE m.id = d.message_id) \
         OR NOT EXISTS (SELECT 1 FROM agent a WHERE a.id = d.agent_id)",
    ),
    (
        "a message has as many deliveries as it states recipients",
        "SELECT count(*) FROM message m WHERE recipient_count <> iif(to_id <> 0, 1, \
         (SELECT count(*) FROM agent a WHERE EXISTS (SELECT 1 FROM delivery d WHERE d.agent_id = a.id AND d.message_id = m.id)))",
    ),
    (
        "a leased delivery has exactly one holder: an open turn, or a consumer with a time",
        "SELECT count(*) FROM delivery d WHERE d.state = 2 AND (d.lease_token IS NULL \
         OR (d.lease_turn_id IS NULL) = (d.lease_until_boot IS NULL) \
         OR (d.lease_turn_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM turn t WHERE t.id = d.lease_turn_id \
             AND t.agent_id = d.agent_id AND t.outcome IS NULL)))",
    ),
    (
        "no two live leases share a token",
        "SELECT count(*) - count(DISTINCT lease_token) FROM delivery WHERE state = 2",
    ),
    (
        "what a turn holds, it carries",
        "SELECT count(*) FROM delivery d WHERE d.state = 2 AND d.lease_turn_id IS NOT NULL AND NOT EXISTS \
         (SELECT 1 FROM turn_delivery td WHERE td.turn_id = d.lease_turn_id AND td.message_id = d.message_id)",
    ),
    (
        "an open turn belongs to the present session",
        "SELECT count(*) FROM turn t JOIN agent a ON a.id = t.agent_id WHERE t.outcome IS NULL \
         AND (a.session_token IS NULL OR a.session_epoch <> t.session_epoch)",
    ),
    (
        "tools are counted for turns that ended",
        "SELECT count(*) FROM turn_tool u WHERE NOT EXISTS (SELECT 1 FROM turn t WHERE t.id = u.turn_id AND t.end_time IS NOT NULL)",
    ),
    (
        "the operator leases nothing",
        "SELECT count(*) FROM delivery WHERE agent_id = 1 AND state = 2",
    ),
    (
        "a dead letter used an attempt",
        "SELECT count(*) FROM delivery WHERE state = 4 AND failures < 1",
    ),
    (
        "only what waits has a backoff",
        "SELECT count(*) FROM delivery WHERE state <> 1 AND not_before_boot IS NOT NULL",
    ),
    (
        "no active agent has a retired parent",
        "SELECT count(*) FROM agent a JOIN agent p ON p.id = a.parent_id WHERE a.retired = 0 AND p.retired = 1",
    ),
    (
        "events have holes only before the first event of a new log",
        "SELECT count(*) FROM (SELECT kind, sequence, lag(sequence) OVER (ORDER BY sequence) AS before FROM event) \
         WHERE kind <> 35 AND before IS NOT NULL AND before <> sequence - 1",
    ),
    (
        "ids of all kinds are of one sequence",
        "SELECT count(*) - count(DISTINCT id) FROM (SELECT id FROM message UNION ALL SELECT id FROM turn UNION ALL SELECT id FROM command \
         UNION ALL SELECT id FROM question UNION ALL SELECT id FROM reminder UNION ALL SELECT id FROM published_loose_end)",
    ),
    (
        "every closed question has exactly one event of its end, and an open one none",
        "WITH about AS MATERIALIZED (SELECT question_id, sum(kind = 23) AS asked, sum(kind BETWEEN 24 AND 26) AS ended FROM event \
         WHERE question_id IS NOT NULL GROUP BY question_id) \
         SELECT count(*) FROM question q JOIN about e ON e.question_id = q.id WHERE e.asked > 0 AND e.ended <> (q.state <> 1)",
    ),
    (
        "the asker of a closed question has exactly one outcome in its inbox, unless it withdrew the question or is retired",
        "SELECT count(*) FROM question q JOIN agent a ON a.id = q.asker_id JOIN message ask ON ask.id = q.message_id WHERE \
         (SELECT count(*) FROM message m WHERE m.question_id = q.id AND m.to_id = q.asker_id AND m.system_kind IN (6, 7, 8)) <> \
         CASE WHEN q.state = 1 THEN 0 \
              WHEN q.state = 4 AND (q.closed_by = a.name OR (q.asker_id = 1 AND q.closed_by <> '')) THEN 0 \
              ELSE 1 END AND NOT (q.state = 4 AND q.closed_by = '')",
    ),
    (
        "a reminder that fired is one message, and one that did not is none",
        "SELECT count(*) FROM reminder r WHERE (SELECT count(*) FROM message m WHERE m.reminder_id = r.id) <> (r.state = 2)",
    ),
    (
        "a retired agent has no open question and no pending reminder",
        "SELECT (SELECT count(*) FROM question q JOIN agent a ON a.id IN (q.asker_id, q.target_id) WHERE q.state = 1 AND a.retired = 1) \
         + (SELECT count(*) FROM reminder r JOIN agent a ON a.id = r.agent_id WHERE r.state = 1 AND a.retired = 1)",
    ),
    (
        "a purged agent has no unsettled mail",
        "SELECT count(*) FROM delivery d JOIN agent a ON a.id = d.agent_id \
         WHERE a.name LIKE '#%' AND d.state NOT IN (5, 6, 7)",
    ),
    (
        "a request is answered once",
        "SELECT count(*) - count(DISTINCT caller || ' ' || rpc || ' ' || id) FROM (SELECT caller_id AS caller, rpc, request_id AS id FROM request \
         UNION ALL SELECT caller_id, rpc, series || '-' || (e.value ->> 0) FROM request_block, json_each(answers) e \
         UNION ALL SELECT s.value ->> 0, s.value ->> 1, (s.value ->> 2) || '-' || (e.value ->> 0) \
         FROM request_page p, json_each(p.answers) s, json_each(s.value, '$[3]') e)",
    ),
];

/// Returns a sentence for each rule that this database breaks.
pub fn broken_rules(conn: &Connection) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for (rule, sql) in RULES {
        let broken: i64 = conn.prepare_cached(sql)?.query_row([], |row| row.get(0))?;
        if broken != 0 {
            problems.push(format!("Audit: it is not true that {rule}: {broken}"));
        }
    }
    Ok(problems)
}
