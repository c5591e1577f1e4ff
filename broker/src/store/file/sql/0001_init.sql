-- The first schema of a hive. A commit writes and syncs each page that it touches, so the tables on the path of a message have no index that
-- something else can stand in for.
--
--  Codes of enums are those of store/codec.rs. Times named `*_time` are wall milliseconds since 1970;
-- `*_boot` are milliseconds of the boot clock and void after a reboot.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;

-- The operator is agent 1, so that it can be a recipient and a parent like any other.
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
    CHECK (id <> 1 OR source = 0)
) STRICT;

-- What changes with every message, kept apart from the wide agent row.
CREATE TABLE inbox (
    agent_id     INTEGER PRIMARY KEY REFERENCES agent (id),
    open_count   INTEGER NOT NULL DEFAULT 0 CHECK (open_count >= 0),
    stored_bytes INTEGER NOT NULL DEFAULT 0 CHECK (stored_bytes >= 0),
    system_run   INTEGER NOT NULL DEFAULT 0 CHECK (system_run >= 0)
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
    coalescing_key TEXT
) STRICT;
CREATE INDEX message_by_turn ON message (turn_id) WHERE turn_id IS NOT NULL;
CREATE INDEX message_by_reply ON message (in_reply_to) WHERE in_reply_to IS NOT NULL;
CREATE INDEX message_by_coalescing_key ON message (coalescing_key) WHERE coalescing_key IS NOT NULL;

CREATE TABLE delivery (
    agent_id          INTEGER NOT NULL,
    message_id        INTEGER NOT NULL,
    lane              INTEGER NOT NULL CHECK (lane IN (1, 2)),
    state             INTEGER NOT NULL CHECK (state BETWEEN 1 AND 7),
    failures          INTEGER NOT NULL DEFAULT 0 CHECK (failures >= 0),
    cause             INTEGER,
    not_before_boot   INTEGER,
    lease_token       TEXT,
    lease_turn_id     INTEGER,
    lease_until_boot  INTEGER,
    lease_ms          INTEGER,
    turn_id           INTEGER,
    last_error        TEXT NOT NULL DEFAULT '',
    output_tail       TEXT NOT NULL DEFAULT '',
    state_time        INTEGER NOT NULL,
    settled_by        TEXT NOT NULL DEFAULT '',
    sender_id         INTEGER,
    body_bytes        INTEGER NOT NULL,
    PRIMARY KEY (agent_id, message_id),
    CHECK (state <> 2 OR lease_token IS NOT NULL),
    CHECK (lease_turn_id IS NULL OR lease_until_boot IS NULL)
) STRICT, WITHOUT ROWID;
CREATE INDEX delivery_ready ON delivery (agent_id, lane, message_id) WHERE state = 1;
CREATE INDEX delivery_leased ON delivery (lease_turn_id) WHERE state = 2 AND lease_turn_id IS NOT NULL;
CREATE INDEX delivery_lease_until ON delivery (lease_until_boot) WHERE state = 2 AND lease_until_boot IS NOT NULL;
CREATE INDEX delivery_apart ON delivery (state, message_id) WHERE state IN (3, 4);

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
    CHECK ((outcome IS NULL) = (end_time IS NULL))
) STRICT;
CREATE UNIQUE INDEX turn_open ON turn (agent_id, conversation) WHERE outcome IS NULL;
CREATE INDEX turn_by_agent ON turn (agent_id, id);

-- Which deliveries a turn carried; stays after the leases end, so that a later run knows the earlier ones.
CREATE TABLE turn_delivery (
    turn_id     INTEGER NOT NULL,
    message_id  INTEGER NOT NULL,
    agent_id    INTEGER NOT NULL,
    tool_use_id TEXT,
    PRIMARY KEY (turn_id, message_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX turn_delivery_by_message ON turn_delivery (agent_id, message_id);

-- Messages of earlier runs that stood in for an equal send of this turn; each stands in once a turn.
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

CREATE TABLE event (
    sequence   INTEGER PRIMARY KEY,
    kind       INTEGER NOT NULL,
    time       INTEGER NOT NULL,
    agent_id   INTEGER,
    message_id INTEGER,
    turn_id    INTEGER,
    detail     TEXT NOT NULL DEFAULT ''
) STRICT;
