-- The spans in which messages were sent and turns ran, and in which reminders were set: the trace in 16 bytes, the span in 8, the flags in 1, and the
-- parent span in 8 if there is one; NULL without a trace. No column has a CHECK, which would have SQLite read every row that there is.
ALTER TABLE message ADD COLUMN traceparent BLOB;
ALTER TABLE turn ADD COLUMN traceparent BLOB;
ALTER TABLE reminder ADD COLUMN traceparent BLOB;
