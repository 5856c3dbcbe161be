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

-- Records a change in the audit trail, in the transaction that makes it. Nothing is recorded without an actor, which is a change by
-- the service itself, nor when the values before and after are the same.
CREATE OR REPLACE FUNCTION audit_record(
  p_actor json, p_action text, p_organization_id text, p_target text, p_before jsonb, p_after jsonb
) RETURNS void LANGUAGE sql VOLATILE AS $$
  INSERT INTO audit_entries
    (at, actor, key_id, request_id, call_id, address, person, action, organization_id, target, before, after)
    SELECT clock_now(), kind, "keyId", "requestId", "callId", address, person, p_action, p_organization_id, p_target, p_before, p_after
      FROM json_to_record(p_actor)
        AS actor (kind text, "keyId" text, "requestId" text, "callId" text, address text, person jsonb)
      WHERE p_actor IS NOT NULL AND p_before IS DISTINCT FROM p_after
$$;

-- Adds a client of the identity provider, unless another call has, the organization is deleted, or as many as it may have called
-- in the last 30 days. The first call of a client is recorded only after its row is added. Each addition removes some clients that
-- were not used for 90 days; one that has usage or jobs stays for their sake, and one that is blocked stays blocked.
CREATE OR REPLACE FUNCTION token_client_add(
  p_id text, p_organization_id text, p_client text, p_name text, p_clients_max integer
) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_organization organizations := organization_lock(p_organization_id);
BEGIN
  DELETE FROM api_keys WHERE id IN (
    SELECT id FROM api_keys old WHERE organization_id = p_organization_id AND kind = 'oidc' AND revoked_at IS NULL
      AND coalesce(last_used_at, created_at) < clock_now() - interval '90 days'
      AND NOT EXISTS (SELECT FROM quota_reservations WHERE key_id = old.id) AND NOT EXISTS (SELECT FROM jobs WHERE key_id = old.id)
      LIMIT 5 FOR UPDATE SKIP LOCKED);
  INSERT INTO api_keys (id, organization_id, name, kind, client, created_at)
    SELECT p_id, v_organization.id, p_name, 'oidc', p_client, clock_now()
      WHERE v_organization.id IS NOT NULL AND v_organization.deleted_at IS NULL AND p_clients_max > (
        SELECT count(*) FROM api_keys WHERE organization_id = p_organization_id AND kind = 'oidc'
          AND coalesce(last_used_at, created_at) > clock_now() - interval '30 days')
    ON CONFLICT (organization_id, client) WHERE client IS NOT NULL DO NOTHING;
END $$;
