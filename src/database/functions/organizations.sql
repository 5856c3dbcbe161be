-- The lock of an organization, for what is counted over all of its rows: take it first and count in a later statement. At a
-- higher isolation level every statement would see the snapshot from before the wait, and grant too much.
CREATE OR REPLACE FUNCTION organization_lock(p_organization_id text) RETURNS organizations LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_organization organizations;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'the lock of an organization needs the isolation level READ COMMITTED';
  END IF;
  SELECT * INTO v_organization FROM organizations WHERE id = p_organization_id FOR NO KEY UPDATE;
  RETURN v_organization;
END $$;
