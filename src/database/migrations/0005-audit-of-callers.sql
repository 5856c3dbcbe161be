-- What callers change is in the audit trail too.

ALTER TABLE audit_entries
  -- The API key or the token client that made the change; null for an operator.
  ADD COLUMN key_id text,
  DROP CONSTRAINT audit_entries_actor_check,
  ADD CONSTRAINT audit_entries_actor_check CHECK (actor IN ('admin', 'cli', 'key', 'client'));
