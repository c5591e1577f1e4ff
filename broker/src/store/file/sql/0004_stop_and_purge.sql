-- Agents that the operator stopped or purged.

ALTER TABLE agent ADD COLUMN stopped INTEGER NOT NULL DEFAULT 0 CHECK (stopped IN (0, 1));

-- The name that a purged agent had. Its row stays for what it sent; `name` is then one that no agent can have, so that the name is free.
ALTER TABLE agent ADD COLUMN purged_name TEXT CHECK (purged_name IS NULL OR retired = 1);

-- Directories of purged agents that the program which runs the harnesses of this host still has to delete.
CREATE TABLE purge (
    id   INTEGER PRIMARY KEY REFERENCES agent (id),
    name TEXT NOT NULL,
    time INTEGER NOT NULL
) STRICT;
CREATE INDEX purge_by_name ON purge (name);
