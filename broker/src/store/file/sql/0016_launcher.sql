-- What the launcher of the host carries out, and what it reported.

-- Whether the harness runs on demand only. `stopped` is above it.
ALTER TABLE agent ADD COLUMN on_demand INTEGER NOT NULL DEFAULT 0 CHECK (on_demand IN (0, 1));
-- Requested restarts, and those of which the parent knows.
ALTER TABLE agent ADD COLUMN restart_count INTEGER NOT NULL DEFAULT 0;
ALTER TABLE agent ADD COLUMN restarts_told INTEGER NOT NULL DEFAULT 0;
-- What the parent knows of the harness: 0 nothing special, 1 that it was stopped, 2 that it crashed.
ALTER TABLE agent ADD COLUMN heard INTEGER NOT NULL DEFAULT 0 CHECK (heard IN (0, 1, 2));
