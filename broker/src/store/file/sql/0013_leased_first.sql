-- The leased deliveries of an agent are before its ready ones, so that a page of both is changed when the oldest ready one is leased.
DROP VIEW delivery;
ALTER TABLE open_delivery RENAME TO leased_last;
CREATE TABLE open_delivery (
    agent_id         INTEGER NOT NULL,
    -- 0: leased. 1 and 2: ready, in the lane with this code. 4: held or dead. Each is in the order of its messages.
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
    CHECK (queue = CASE state WHEN 1 THEN lane WHEN 2 THEN 0 ELSE 4 END),
    CHECK (state <> 2 OR lease_token IS NOT NULL),
    CHECK (lease_turn_id IS NULL OR lease_until_boot IS NULL)
) STRICT, WITHOUT ROWID;
INSERT INTO open_delivery (agent_id, queue, message_id, lane, state, failures, cause, not_before_boot, lease_token, lease_turn_id, lease_until_boot, lease_ms,
    lease_stream, lease_request, lease_end, turn_id, state_time, sender_id, body_bytes, last_error, output_tail)
    SELECT agent_id, CASE queue WHEN 3 THEN 0 ELSE queue END, message_id, lane, state, failures, cause, not_before_boot, lease_token, lease_turn_id, lease_until_boot, lease_ms,
    lease_stream, lease_request, lease_end, turn_id, state_time, sender_id, body_bytes, last_error, output_tail
    FROM leased_last;
DROP TABLE leased_last;
CREATE INDEX open_delivery_backoff ON open_delivery (agent_id, not_before_boot) WHERE not_before_boot IS NOT NULL;

CREATE INDEX open_delivery_apart ON open_delivery (state, message_id) WHERE queue = 4;

CREATE VIEW delivery AS
    SELECT agent_id, message_id, lane, state, failures, cause, not_before_boot, lease_token, lease_turn_id, lease_until_boot, lease_ms, lease_stream,
        lease_request, lease_end, turn_id, state_time, settled_by, sender_id, body_bytes, last_error, output_tail FROM open_delivery
    UNION ALL
    SELECT agent_id, message_id, lane, state, failures, cause, not_before_boot, lease_token, lease_turn_id, lease_until_boot, lease_ms, lease_stream,
        lease_request, lease_end, turn_id, state_time, settled_by, sender_id, body_bytes, last_error, output_tail FROM settled_delivery;
