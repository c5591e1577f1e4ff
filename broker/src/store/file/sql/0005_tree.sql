-- The children of an agent by name, for lists of agents and for what a prompt says of the tree. A commit on the path of a message touches none
-- of its columns, and so no page of it.
CREATE INDEX agent_by_parent ON agent (coalesce(parent_id, 1), name) WHERE retired = 0 AND id <> 1;
