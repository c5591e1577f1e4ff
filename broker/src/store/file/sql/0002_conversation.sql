-- Questions, reminders, what co-processes publish, and what waits on the operator.

ALTER TABLE message ADD COLUMN question_id INTEGER;
ALTER TABLE message ADD COLUMN reminder_id INTEGER;
ALTER TABLE event ADD COLUMN question_id INTEGER;
ALTER TABLE event ADD COLUMN reminder_id INTEGER;

-- Asker and target are agents, or the operator, who is agent 1. Questions are kept.
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
    CHECK ((state = 1) = (close_time IS NULL)),
    CHECK ((state = 2) = (message_id IS NOT NULL))
) STRICT;
CREATE INDEX reminder_by_agent ON reminder (agent_id, state, id);
CREATE INDEX reminder_due ON reminder (due_time) WHERE state = 1;
CREATE INDEX reminder_closed ON reminder (close_time) WHERE state <> 1;
CREATE INDEX reminder_by_turn ON reminder (turn_id) WHERE turn_id IS NOT NULL;

-- Loose ends that co-processes published; one set for each label of an agent.
CREATE TABLE published_loose_end (
    id          INTEGER PRIMARY KEY,
    agent_id    INTEGER NOT NULL REFERENCES agent (id),
    label       TEXT NOT NULL,
    key         TEXT NOT NULL,
    text        TEXT NOT NULL,
    create_time INTEGER NOT NULL,
    UNIQUE (agent_id, label, key)
) STRICT;

-- What began to wait on the operator and has not been told yet: written with what waits, deleted when it was told.
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
