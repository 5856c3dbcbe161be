-- Addresses at which readers of feeds get the newest entries of an organization without a key.

CREATE TABLE feed_links (
  id text PRIMARY KEY,
  organization_id text NOT NULL REFERENCES organizations (id),
  -- SHA-256 of the token in the address.
  hash bytea NOT NULL UNIQUE,
  -- Only the entries of this one; null for all. A subscription that is removed leaves its links, which find nothing.
  subscription_id text,
  -- Only entries with this label, as `name:value`; null for any.
  label text,
  created_at timestamptz NOT NULL
);
CREATE INDEX feed_links_of_organization ON feed_links (organization_id, created_at, id);
