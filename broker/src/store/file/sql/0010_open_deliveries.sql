-- Unsettled deliveries are few and change with every message; settled ones are many and are only read. So they are in two tables, and a commit on the path
-- of a message touches few pages, however long the history is.

CREATE TABLE open_delivery (
    agent_id         INTEGER NOT NULL,
    -- 1 and 2: ready, in the lane with this code. 3: leased. 4: held or dead. Each is in the order of its messages.
    queue            INTEGER NOT NULL,
    message_id       INTEGER NOT NULL,
    lane             INTEGER NOT NULL CHECK (lane IN (1, 2)),
    state            INTEGER NOT NULL CHECK (state BETWEEN 1 AND 4),
    failures         INTEGER NOT NULL DEFAULT 0 CHECK (failures >= 0),
    cause            INTEGER,
    not_before_boot  INTEGER,
    lease_token      TEXT,
    lease_turn_id    INTEGER,
    lease_until_boot INTEGER,
    lease_ms         INTEGER,
    -- The stream that holds the lease.
    lease_stream     TEXT,
    -- The receive that gave the lease: the digest of its content in 16 bytes, and its request id.
    lease_request    BLOB,
    -- How the holder of the last lease ended it; NULL while it is leased, and if the holder did not end it.
    lease_end        INTEGER,
    turn_id          INTEGER,
    state_time       INTEGER NOT NULL,
    sender_id        INTEGER,
    body_bytes       INTEGER NOT NULL,
    last_error       TEXT NOT NULL DEFAULT '',
    output_tail      TEXT NOT NULL DEFAULT '',
    -- Not stored: only a settled delivery has one.
    settled_by       TEXT NOT NULL GENERATED ALWAYS AS ('') VIRTUAL,
    PRIMARY KEY (agent_id, queue, message_id),
    CHECK (queue = CASE state WHEN 1 THEN lane WHEN 2 THEN 3 ELSE 4 END),
    CHECK (state <> 2 OR lease_token IS NOT NULL),
    CHECK (lease_turn_id IS NULL OR lease_until_boot IS NULL)
) STRICT, WITHOUT ROWID;
-- Leases with an end. Those of a stream that lives have none, and so cost nothing here.
CREATE INDEX open_delivery_until ON open_delivery (lease_until_boot) WHERE queue = 3 AND lease_until_boot < 9223372036854775807;
CREATE INDEX open_delivery_backoff ON open_delivery (agent_id, not_before_boot) WHERE not_before_boot IS NOT NULL;
CREATE INDEX open_delivery_apart ON open_delivery (state, message_id) WHERE queue = 4;

CREATE TABLE settled_delivery (
    message_id    INTEGER NOT NULL,
    agent_id      INTEGER NOT NULL,
    lane          INTEGER NOT NULL CHECK (lane IN (1, 2)),
    state         INTEGER NOT NULL CHECK (state BETWEEN 5 AND 7),
    failures      INTEGER NOT NULL DEFAULT 0 CHECK (failures >= 0),
    cause         INTEGER,
    -- The last lease, so that a repeated settlement has the result of the first.
    lease_token   TEXT,
    lease_turn_id INTEGER,
    lease_end     INTEGER,
    turn_id       INTEGER,
    state_time    INTEGER NOT NULL,
    settled_by    TEXT NOT NULL DEFAULT '',
    sender_id     INTEGER,
    body_bytes    INTEGER NOT NULL,
    last_error    TEXT NOT NULL DEFAULT '',
    output_tail   TEXT NOT NULL DEFAULT '',
    -- Not stored: only an unsettled delivery has them.
    not_before_boot  INTEGER GENERATED ALWAYS AS (NULL) VIRTUAL,
    lease_until_boot INTEGER GENERATED ALWAYS AS (NULL) VIRTUAL,
    lease_ms         INTEGER GENERATED ALWAYS AS (NULL) VIRTUAL,
    lease_stream     TEXT GENERATED ALWAYS AS (NULL) VIRTUAL,
    lease_request    BLOB GENERATED ALWAYS AS (NULL) VIRTUAL,
    PRIMARY KEY (message_id, agent_id)
) STRICT, WITHOUT ROWID;

INSERT INTO open_delivery (agent_id, queue, message_id, lane, state, failures, cause, not_before_boot, lease_token, lease_turn_id, lease_until_boot, lease_ms,
    lease_stream, lease_request, lease_end, turn_id, state_time, sender_id, body_bytes, last_error, output_tail)
    SELECT agent_id, CASE state WHEN 1 THEN lane WHEN 2 THEN 3 ELSE 4 END, message_id, lane, state, failures, cause,
    CASE state WHEN 1 THEN not_before_boot END, lease_token, lease_turn_id, lease_until_boot, lease_ms, lease_stream, NULL, lease_end, turn_id, state_time,
    sender_id, body_bytes, last_error, output_tail
    FROM delivery WHERE state BETWEEN 1 AND 4 ORDER BY 1, 2, 3;
INSERT INTO settled_delivery (message_id, agent_id, lane, state, failures, cause, lease_token, lease_turn_id, lease_end, turn_id, state_time, settled_by,
    sender_id, body_bytes, last_error, output_tail)
    SELECT message_id, agent_id, lane, state, failures, cause, lease_token, lease_turn_id, lease_end, turn_id, state_time, settled_by,
    sender_id, body_bytes, last_error, output_tail
    FROM delivery WHERE state BETWEEN 5 AND 7 ORDER BY 1, 2;
DROP TABLE delivery;

-- A repeated receive finds the leases of the first by their rows.
UPDATE open_delivery SET lease_request = CAST(given.fingerprint || CAST(given.request_id AS BLOB) AS BLOB)
    FROM (SELECT r.caller_id, r.fingerprint, r.request_id, lease.value ->> 0 AS message_id, lease.value ->> 1 AS token
        FROM request r, json_each(r.answer, '$.leases') lease WHERE r.rpc = 'ReceiveMessages') given
    WHERE open_delivery.agent_id = given.caller_id AND open_delivery.queue = 3 AND open_delivery.message_id = given.message_id
        AND open_delivery.lease_token = given.token;
DELETE FROM request WHERE rpc = 'ReceiveMessages';

-- All deliveries, for reads that may take their time.
CREATE VIEW delivery AS
    SELECT agent_id, message_id, lane, state, failures, cause, not_before_boot, lease_token, lease_turn_id, lease_until_boot, lease_ms, lease_stream,
        lease_request, lease_end, turn_id, state_time, settled_by, sender_id, body_bytes, last_error, output_tail FROM open_delivery
    UNION ALL
    SELECT agent_id, message_id, lane, state, failures, cause, not_before_boot, lease_token, lease_turn_id, lease_until_boot, lease_ms, lease_stream,
        lease_request, lease_end, turn_id, state_time, settled_by, sender_id, body_bytes, last_error, output_tail FROM settled_delivery;

-- Counts that would otherwise read the whole inbox.
ALTER TABLE inbox ADD COLUMN ready_count INTEGER NOT NULL DEFAULT 0 CHECK (ready_count >= 0);
ALTER TABLE inbox ADD COLUMN leased_count INTEGER NOT NULL DEFAULT 0 CHECK (leased_count >= 0);
UPDATE inbox SET ready_count = (SELECT count(*) FROM open_delivery d WHERE d.agent_id = inbox.agent_id AND d.queue IN (1, 2)),
    leased_count = (SELECT count(*) FROM open_delivery d WHERE d.agent_id = inbox.agent_id AND d.queue = 3);
