-- Clients of the identity provider that may not use /admin, whether they have called or not. Apart from their blocks in organizations.

CREATE TABLE admin_blocked_clients (
  client text PRIMARY KEY CHECK (char_length(client) BETWEEN 1 AND 255),
  blocked_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
-- Before, a block in any organization was one here as well.
INSERT INTO admin_blocked_clients (client) SELECT DISTINCT client FROM api_keys WHERE kind = 'oidc' AND revoked_at IS NOT NULL;
