-- The facts of an event: the value of an enum and a number; the kind says which. Both are NULL for a kind without facts, and in events that are older than these
-- columns. `store/table/event/facts.rs` has them by kind.
ALTER TABLE event ADD COLUMN code INTEGER;
ALTER TABLE event ADD COLUMN number INTEGER;
