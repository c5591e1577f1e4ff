-- The events of a commit are a few rows, not one each: a message has three events, and they were a tenth of what it costs. `store/row/event.rs` has the values
-- of an event in their order; those at the end that are null can be missing.
CREATE TABLE event_page (
    -- The numbers of its last and its first event.
    last   INTEGER PRIMARY KEY,
    first  INTEGER NOT NULL,
    -- The time of its newest event.
    time   INTEGER NOT NULL,
    -- Its agents: for each the bit with the rest of its id divided by 62. A page without the bit has no event of that agent.
    agents INTEGER NOT NULL,
    -- A JSON array of its events, each an array.
    events TEXT NOT NULL,
    CHECK (first <= last)
) STRICT;

INSERT INTO event_page (last, first, time, agents, events)
    WITH RECURSIVE page (first) AS (
        SELECT min(sequence) FROM event
        UNION ALL
        SELECT (SELECT min(sequence) FROM event WHERE sequence >= page.first + 64) FROM page WHERE page.first IS NOT NULL
    )
    SELECT
        (SELECT max(sequence) FROM event WHERE sequence BETWEEN page.first AND page.first + 63),
        page.first,
        (SELECT max(time) FROM event WHERE sequence BETWEEN page.first AND page.first + 63),
        (SELECT coalesce(sum(DISTINCT 1 << (agent_id % 62)), 0) FROM event
            WHERE sequence BETWEEN page.first AND page.first + 63 AND agent_id IS NOT NULL),
        (SELECT json_group_array(
                json_array(sequence, kind, time, agent_id, message_id, code, number, turn_id, detail, question_id, reminder_id)
                ORDER BY sequence)
            FROM event WHERE sequence BETWEEN page.first AND page.first + 63)
    FROM page WHERE page.first IS NOT NULL;

DROP TABLE event;

-- All events, for reads that do not have to be fast. One with a condition on `page` reads only those pages.
CREATE VIEW event AS SELECT
    p.last AS page,
    e.value ->> 0 AS sequence,
    e.value ->> 1 AS kind,
    e.value ->> 2 AS time,
    e.value ->> 3 AS agent_id,
    e.value ->> 4 AS message_id,
    e.value ->> 5 AS code,
    e.value ->> 6 AS number,
    e.value ->> 7 AS turn_id,
    coalesce(e.value ->> 8, '') AS detail,
    e.value ->> 9 AS question_id,
    e.value ->> 10 AS reminder_id
FROM event_page p, json_each(p.events) e;
