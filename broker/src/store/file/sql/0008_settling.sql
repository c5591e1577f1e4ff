-- How the holder of the last lease ended it, so that a repeated settlement has the same result. NULL while it is leased, and if the holder did not end it.
ALTER TABLE delivery ADD COLUMN lease_end INTEGER;
-- The stream that holds the lease.
ALTER TABLE delivery ADD COLUMN lease_stream TEXT;
-- It has all that a stream's window is counted from.
CREATE INDEX delivery_stream ON delivery (agent_id, lease_stream, message_id, body_bytes, failures) WHERE state = 2 AND lease_stream IS NOT NULL;
UPDATE delivery SET lease_end = CASE state WHEN 5 THEN 1 WHEN 1 THEN 2 ELSE 3 END
    WHERE lease_token IS NOT NULL AND lease_turn_id IS NULL AND settled_by = '' AND (state = 5 OR (state IN (1, 4) AND cause = 10));
