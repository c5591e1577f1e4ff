-- What a question asks the operator to approve, and what approving it has changed.

-- NULL for a plain question.
ALTER TABLE question ADD COLUMN effect TEXT CHECK (effect IS NULL OR json_valid(effect));
ALTER TABLE question ADD COLUMN changes TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(changes));
