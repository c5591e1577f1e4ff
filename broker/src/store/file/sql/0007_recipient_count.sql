-- The number of recipients is a column, because counting those of a broadcast looks into every inbox.
ALTER TABLE message ADD COLUMN recipient_count INTEGER NOT NULL DEFAULT 1 CHECK (recipient_count >= 0);
UPDATE message SET recipient_count = (SELECT count(*) FROM agent a WHERE EXISTS
    (SELECT 1 FROM delivery d WHERE d.agent_id = a.id AND d.message_id = message.id)) WHERE to_id = 0;
