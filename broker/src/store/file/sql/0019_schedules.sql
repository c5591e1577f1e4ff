-- Schedules: mail that an agent has sent to its targets again and again.

-- State: 1 active, 2 paused, 3 ended. The due times follow from the first one, the interval and the zone; `next_number` is the number of the next one.
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

-- The last message of each target, whether it stands for a due time, how many earlier ones it says were skipped, and how many were skipped since.
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
