-- Runs of approved actions: queued with the approval, run one at a time, at most 3 times.

-- State: 1 queued, 2 running, 3 done, 4 failed.
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
