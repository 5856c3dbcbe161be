-- Callers with tokens of an identity provider, beside the API keys, and the persons who make changes.

ALTER TABLE organizations
  -- The value of a claim by which the identity provider names the organization.
  ADD COLUMN external_id text CHECK (char_length(external_id) BETWEEN 1 AND 255);
CREATE UNIQUE INDEX organizations_external_id ON organizations (external_id) WHERE deleted_at IS NULL;

ALTER TABLE api_keys
  -- 'oidc': a client of the identity provider, whose row is added at its first call. It is blocked when it is revoked.
  ADD COLUMN kind text NOT NULL DEFAULT 'key' CHECK (kind IN ('key', 'oidc')),
  ADD COLUMN client text CHECK (char_length(client) BETWEEN 1 AND 255),
  ALTER COLUMN prefix DROP NOT NULL,
  ALTER COLUMN hash DROP NOT NULL,
  ADD CONSTRAINT api_keys_kind CHECK (
    CASE kind WHEN 'key' THEN prefix IS NOT NULL AND hash IS NOT NULL AND client IS NULL
      ELSE prefix IS NULL AND hash IS NULL AND client IS NOT NULL END);
CREATE UNIQUE INDEX api_keys_client ON api_keys (organization_id, client) WHERE client IS NOT NULL;

-- Who made a change with a token: sub, and email when the token has one.
ALTER TABLE audit_entries ADD COLUMN person jsonb;
