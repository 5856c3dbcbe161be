/** Customers, their API keys, and who changed them. */
export const ORGANIZATIONS = `
CREATE TABLE organizations (
  id text PRIMARY KEY,
  name text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 100),
  plan text NOT NULL CHECK (plan IN ('free', 'pro')),
  -- Null for the limit of the plan.
  monthly_limit integer CHECK (monthly_limit >= 0),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- A deleted organization keeps its row, because its usage remains available.
  deleted_at timestamptz
);
CREATE INDEX organizations_created ON organizations (created_at, id);
CREATE INDEX organizations_name ON organizations (name);

CREATE TABLE api_keys (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations (id),
  name text NOT NULL CHECK (char_length(name) BETWEEN 1 AND 100),
  -- The first characters of the key, for people; the key itself is not stored.
  prefix text NOT NULL,
  -- SHA-256 of the key.
  hash bytea NOT NULL UNIQUE CHECK (octet_length(hash) = 32),
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamptz,
  revoked_at timestamptz,
  -- Accurate to one minute.
  last_used_at timestamptz,
  -- The key that it was rotated to.
  replaced_by text REFERENCES api_keys (id)
);
CREATE INDEX api_keys_organization ON api_keys (organization_id, created_at, id);

-- What operators changed, over HTTP and by commands. It is stored as long as usage.
CREATE TABLE audit_entries (
  id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  actor text NOT NULL CHECK (actor IN ('admin', 'cli')),
  action text NOT NULL,
  -- Null for a change of all organizations.
  organization_id text REFERENCES organizations (id),
  target text,
  before jsonb,
  after jsonb,
  request_id text,
  -- The service's own ID of the request, and the address that it came from.
  call_id text,
  address text
);
CREATE INDEX audit_entries_organization ON audit_entries (organization_id, id);
`;
