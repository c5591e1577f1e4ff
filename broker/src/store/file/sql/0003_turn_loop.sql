-- The turn loop: how old the measure of a context is, the models that an agent may be switched to, the tools of a turn, and sums of turns.

ALTER TABLE agent ADD COLUMN context_time INTEGER;
ALTER TABLE agent ADD COLUMN available_models TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(available_models));

-- How often a turn called which tool; goes with its turn.
CREATE TABLE turn_tool (
    turn_id INTEGER NOT NULL,
    name    TEXT NOT NULL,
    count   INTEGER NOT NULL CHECK (count > 0),
    PRIMARY KEY (turn_id, name)
) STRICT, WITHOUT ROWID;

-- For sums of the turns of an agent that ended in a window. One page more at the end of a turn, and none on the path of a message.
CREATE INDEX turn_ended ON turn (agent_id, end_time) WHERE end_time IS NOT NULL;
