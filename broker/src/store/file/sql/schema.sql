-- The schema of a new database: what all migrations make of an empty one. A test compares the two.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE agent (
    id                    INTEGER PRIMARY KEY,
    name                  TEXT NOT NULL UNIQUE,
    source                INTEGER NOT NULL CHECK (source IN (0, 1, 2)),
    parent_id             INTEGER REFERENCES agent (id),
    role                  TEXT NOT NULL DEFAULT '',
    model                 TEXT NOT NULL DEFAULT '',
    policy                TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(policy)),
    declared              TEXT CHECK (declared IS NULL OR json_valid(declared)),
    retired               INTEGER NOT NULL DEFAULT 0 CHECK (retired IN (0, 1)),
    status_text           TEXT NOT NULL DEFAULT '',
    status_time           INTEGER,
    harness_state         INTEGER NOT NULL DEFAULT 1,
    harness_state_time    INTEGER NOT NULL,
    revision              TEXT NOT NULL DEFAULT '',
    context_tokens        INTEGER NOT NULL DEFAULT 0,
    context_window_tokens INTEGER NOT NULL DEFAULT 0,
    session_epoch         INTEGER NOT NULL DEFAULT 0,
    session_token         TEXT,
    park_cause            INTEGER,
    park_until_time       INTEGER,
    park_until_boot       INTEGER,
    park_error            TEXT NOT NULL DEFAULT '',
    failures_in_a_row     INTEGER NOT NULL DEFAULT 0,
    operator_told         INTEGER NOT NULL DEFAULT 0 CHECK (operator_told IN (0, 1)),
    context_time INTEGER,
    available_models TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(available_models)),
    stopped INTEGER NOT NULL DEFAULT 0 CHECK (stopped IN (0, 1)),
    purged_name TEXT CHECK (purged_name IS NULL OR retired = 1),
    on_demand INTEGER NOT NULL DEFAULT 0 CHECK (on_demand IN (0, 1)),
    restart_count INTEGER NOT NULL DEFAULT 0,
    restarts_told INTEGER NOT NULL DEFAULT 0,
    heard INTEGER NOT NULL DEFAULT 0 CHECK (heard IN (0, 1, 2)),
    CHECK (id <> 1 OR source = 0)
) STRICT;

CREATE TABLE inbox (
    agent_id     INTEGER PRIMARY KEY REFERENCES agent (id),
    open_count   INTEGER NOT NULL DEFAULT 0 CHECK (open_count >= 0),
    stored_bytes INTEGER NOT NULL DEFAULT 0 CHECK (stored_bytes >= 0),
    system_run   INTEGER NOT NULL DEFAULT 0 CHECK (system_run >= 0),
    ready_count INTEGER NOT NULL DEFAULT 0 CHECK (ready_count >= 0),
    leased_count INTEGER NOT NULL DEFAULT 0 CHECK (leased_count >= 0)
) STRICT;

CREATE TABLE message (
    id             INTEGER PRIMARY KEY,
    origin_kind    INTEGER NOT NULL CHECK (origin_kind IN (1, 2, 3, 4)),
    origin_id      INTEGER,
    origin_name    TEXT NOT NULL,
    to_id          INTEGER NOT NULL,
    body           TEXT NOT NULL,
    in_reply_to    INTEGER,
    accept_time    INTEGER NOT NULL,
    system_kind    INTEGER,
    turn_id        INTEGER,
    coalescing_key TEXT,
    question_id INTEGER,
    reminder_id INTEGER,
    recipient_count INTEGER NOT NULL DEFAULT 1 CHECK (recipient_count >= 0),
    traceparent BLOB
) STRICT;

CREATE INDEX message_by_turn ON message (turn_id) WHERE turn_id IS NOT NULL;

CREATE INDEX message_by_reply ON message (in_reply_to) WHERE in_reply_to IS NOT NULL;

CREATE INDEX message_by_coalescing_key ON message (coalescing_key) WHERE coalescing_key IS NOT NULL;

CREATE TABLE turn (
    id                    INTEGER PRIMARY KEY,
    agent_id              INTEGER NOT NULL REFERENCES agent (id),
    kind                  INTEGER NOT NULL CHECK (kind BETWEEN 1 AND 4),
    conversation          TEXT NOT NULL,
    session_epoch         INTEGER NOT NULL,
    process_token         TEXT NOT NULL,
    boot_id               TEXT NOT NULL,
    message_id            INTEGER,
    attempt               INTEGER NOT NULL DEFAULT 0,
    next_turn_requested   INTEGER NOT NULL DEFAULT 0 CHECK (next_turn_requested IN (0, 1)),
    outcome               INTEGER,
    settled               TEXT,
    start_time            INTEGER NOT NULL,
    end_time              INTEGER,
    error                 TEXT NOT NULL DEFAULT '',
    output_tail           TEXT NOT NULL DEFAULT '',
    input_tokens          INTEGER NOT NULL DEFAULT 0,
    cache_read_tokens     INTEGER NOT NULL DEFAULT 0,
    cache_creation_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens         INTEGER NOT NULL DEFAULT 0,
    cost_micro_usd        INTEGER NOT NULL DEFAULT 0,
    inference_count       INTEGER NOT NULL DEFAULT 0,
    tool_call_count       INTEGER NOT NULL DEFAULT 0,
    model                 TEXT NOT NULL DEFAULT '',
    context_tokens        INTEGER NOT NULL DEFAULT 0,
    context_window_tokens INTEGER NOT NULL DEFAULT 0,
    compacted             INTEGER NOT NULL DEFAULT 0 CHECK (compacted IN (0, 1)),
    traceparent BLOB,
    CHECK ((outcome IS NULL) = (end_time IS NULL))
) STRICT;

CREATE UNIQUE INDEX turn_open ON turn (agent_id, conversation) WHERE outcome IS NULL;

CREATE INDEX turn_by_agent ON turn (agent_id, id);

CREATE TABLE turn_delivery (
    turn_id     INTEGER NOT NULL,
    message_id  INTEGER NOT NULL,
    agent_id    INTEGER NOT NULL,
    tool_use_id TEXT,
    PRIMARY KEY (turn_id, message_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX turn_delivery_by_message ON turn_delivery (agent_id, message_id);

CREATE TABLE absorbed (
    turn_id    INTEGER NOT NULL,
    message_id INTEGER NOT NULL,
    PRIMARY KEY (turn_id, message_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE command (
    id          INTEGER PRIMARY KEY,
    agent_id    INTEGER NOT NULL REFERENCES agent (id),
    command     TEXT NOT NULL CHECK (json_valid(command)),
    create_time INTEGER NOT NULL,
    close_time  INTEGER,
    error       TEXT NOT NULL DEFAULT '',
    given_by    TEXT NOT NULL
) STRICT;

CREATE INDEX command_open ON command (agent_id, id) WHERE close_time IS NULL;

CREATE TABLE request (
    caller_id   INTEGER NOT NULL,
    rpc         TEXT NOT NULL,
    request_id  TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    answer      TEXT NOT NULL,
    time        INTEGER NOT NULL,
    PRIMARY KEY (caller_id, rpc, request_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE question (
    id                INTEGER PRIMARY KEY,
    asker_id          INTEGER NOT NULL REFERENCES agent (id),
    target_id         INTEGER NOT NULL REFERENCES agent (id),
    text              TEXT NOT NULL,
    options           TEXT NOT NULL CHECK (json_valid(options)),
    multi             INTEGER NOT NULL CHECK (multi IN (0, 1)),
    state             INTEGER NOT NULL DEFAULT 1 CHECK (state BETWEEN 1 AND 4),
    create_time       INTEGER NOT NULL,
    deadline_time     INTEGER,
    answer            TEXT CHECK (answer IS NULL OR json_valid(answer)),
    closed_by         TEXT NOT NULL DEFAULT '',
    operator_override INTEGER NOT NULL DEFAULT 0 CHECK (operator_override IN (0, 1)),
    close_time        INTEGER,
    turn_id           INTEGER,
    message_id        INTEGER NOT NULL,
    effect TEXT CHECK (effect IS NULL OR json_valid(effect)),
    changes TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(changes)),
    CHECK (asker_id <> target_id),
    CHECK ((state = 1) = (close_time IS NULL)),
    CHECK ((state = 2) = (answer IS NOT NULL))
) STRICT;

CREATE INDEX question_by_asker ON question (asker_id, state, id);

CREATE INDEX question_by_target ON question (target_id, state, id);

CREATE INDEX question_due ON question (deadline_time) WHERE state = 1 AND deadline_time IS NOT NULL;

CREATE INDEX question_by_turn ON question (turn_id) WHERE turn_id IS NOT NULL;

CREATE TABLE reminder (
    id          INTEGER PRIMARY KEY,
    agent_id    INTEGER NOT NULL REFERENCES agent (id),
    body        TEXT NOT NULL,
    state       INTEGER NOT NULL DEFAULT 1 CHECK (state BETWEEN 1 AND 3),
    create_time INTEGER NOT NULL,
    due_time    INTEGER NOT NULL,
    -- The delay that was asked for; NULL where a time was. Tells whether a later run asks for the same.
    delay_ms    INTEGER,
    close_time  INTEGER,
    message_id  INTEGER,
    turn_id     INTEGER,
    traceparent BLOB,
    CHECK ((state = 1) = (close_time IS NULL)),
    CHECK ((state = 2) = (message_id IS NOT NULL))
) STRICT;

CREATE INDEX reminder_by_agent ON reminder (agent_id, state, id);

CREATE INDEX reminder_due ON reminder (due_time) WHERE state = 1;

CREATE INDEX reminder_closed ON reminder (close_time) WHERE state <> 1;

CREATE INDEX reminder_by_turn ON reminder (turn_id) WHERE turn_id IS NOT NULL;

CREATE TABLE published_loose_end (
    id          INTEGER PRIMARY KEY,
    agent_id    INTEGER NOT NULL REFERENCES agent (id),
    label       TEXT NOT NULL,
    key         TEXT NOT NULL,
    text        TEXT NOT NULL,
    create_time INTEGER NOT NULL,
    UNIQUE (agent_id, label, key)
) STRICT;

CREATE TABLE action_run (
    question_id INTEGER PRIMARY KEY REFERENCES question (id),
    state       INTEGER NOT NULL DEFAULT 1 CHECK (state BETWEEN 1 AND 4),
    runs        INTEGER NOT NULL DEFAULT 0,
    create_time INTEGER NOT NULL,
    end_time    INTEGER,
    detail      TEXT NOT NULL DEFAULT '',
    CHECK ((state < 3) = (end_time IS NULL))
) STRICT;

CREATE INDEX action_run_open ON action_run (state, question_id) WHERE state < 3;

CREATE TABLE schedule (
    id          INTEGER PRIMARY KEY,
    owner_id    INTEGER NOT NULL REFERENCES agent (id),
    body        TEXT NOT NULL,
    first_time  INTEGER NOT NULL,
    interval_s  INTEGER CHECK (interval_s > 0),
    zone        TEXT NOT NULL DEFAULT '',
    late_max_s  INTEGER CHECK (late_max_s > 0),
    state       INTEGER NOT NULL DEFAULT 1 CHECK (state BETWEEN 1 AND 3),
    next_number INTEGER NOT NULL,
    next_time   INTEGER,
    create_time INTEGER NOT NULL,
    end_time    INTEGER,
    end_cause   TEXT NOT NULL DEFAULT '',
    CHECK ((state = 1) = (next_time IS NOT NULL)),
    CHECK ((state = 3) = (end_time IS NOT NULL))
) STRICT;

CREATE INDEX schedule_due ON schedule (next_time) WHERE state = 1;

CREATE INDEX schedule_by_owner ON schedule (owner_id, state, id);

CREATE INDEX schedule_ended ON schedule (end_time) WHERE state = 3;

CREATE TABLE schedule_target (
    schedule_id INTEGER NOT NULL,
    agent_id    INTEGER NOT NULL,
    message_id  INTEGER,
    is_due      INTEGER NOT NULL DEFAULT 0 CHECK (is_due IN (0, 1)),
    stated      INTEGER NOT NULL DEFAULT 0 CHECK (stated >= 0),
    skipped     INTEGER NOT NULL DEFAULT 0 CHECK (skipped >= 0),
    PRIMARY KEY (schedule_id, agent_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX schedule_target_by_agent ON schedule_target (agent_id);

CREATE TABLE attention (
    id          INTEGER PRIMARY KEY,
    kind        INTEGER NOT NULL CHECK (kind BETWEEN 1 AND 4),
    agent_id    INTEGER NOT NULL,
    subject     INTEGER NOT NULL,
    text        TEXT NOT NULL,
    create_time INTEGER NOT NULL,
    attempts    INTEGER NOT NULL DEFAULT 0,
    next_time   INTEGER NOT NULL DEFAULT 0,
    UNIQUE (kind, agent_id, subject)
) STRICT;

CREATE INDEX attention_due ON attention (next_time);

CREATE TABLE turn_tool (
    turn_id INTEGER NOT NULL,
    name    TEXT NOT NULL,
    count   INTEGER NOT NULL CHECK (count > 0),
    PRIMARY KEY (turn_id, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX turn_ended ON turn (agent_id, end_time) WHERE end_time IS NOT NULL;

CREATE TABLE purge (
    id   INTEGER PRIMARY KEY REFERENCES agent (id),
    name TEXT NOT NULL,
    time INTEGER NOT NULL
) STRICT;

CREATE INDEX purge_by_name ON purge (name);

CREATE INDEX agent_by_parent ON agent (coalesce(parent_id, 1), name) WHERE retired = 0 AND id <> 1;

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

CREATE VIEW delivery AS
    SELECT agent_id, message_id, lane, state, failures, cause, not_before_boot, lease_token, lease_turn_id, lease_until_boot, lease_ms, lease_stream,
        lease_request, lease_end, turn_id, state_time, settled_by, sender_id, body_bytes, last_error, output_tail FROM open_delivery
    UNION ALL
    SELECT agent_id, message_id, lane, state, failures, cause, not_before_boot, lease_token, lease_turn_id, lease_until_boot, lease_ms, lease_stream,
        lease_request, lease_end, turn_id, state_time, settled_by, sender_id, body_bytes, last_error, output_tail FROM settled_delivery;

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

-- Answers to requests of clients that count their calls. A request with any other id, or with a long answer, is in `request`.

-- Those that were written together, mostly of a commit. Blocks are made of all pages when there are many.
CREATE TABLE request_page (
    id      INTEGER PRIMARY KEY,
    time    INTEGER NOT NULL,
    -- For each series: the caller's id, the RPC, the series, and for each number the digest of the content and the answer.
    answers TEXT NOT NULL
) STRICT;

-- Those of neighbouring numbers of a series, from `first` on.
CREATE TABLE request_block (
    caller_id INTEGER NOT NULL,
    rpc       TEXT NOT NULL,
    series    TEXT NOT NULL,
    first     INTEGER NOT NULL,
    -- None of them was answered later.
    time      INTEGER NOT NULL,
    -- For each number: the digest of the content and the answer.
    answers   TEXT NOT NULL,
    PRIMARY KEY (caller_id, rpc, series, first)
) STRICT, WITHOUT ROWID;
