-- Limits of API keys, and the thresholds of the quota that were announced.

ALTER TABLE api_keys
  -- What the key may use of the organization's quota in a month; null without a limit of its own. It does not change.
  ADD COLUMN monthly_limit integer CHECK (monthly_limit >= 0),
  -- Of a key with a limit: the first key of its rotations, by which all of them are counted together.
  ADD COLUMN quota_key_id text REFERENCES api_keys (id),
  ADD CONSTRAINT api_keys_quota_key_check CHECK ((monthly_limit IS NULL) = (quota_key_id IS NULL));

-- As quota_periods, for the keys with a limit. A charge changes no column of an index (a HOT update).
CREATE TABLE quota_key_periods (
  organization_id text NOT NULL REFERENCES organizations (id),
  period_start date NOT NULL CHECK (extract(day FROM period_start) = 1),
  quota_key_id text NOT NULL REFERENCES api_keys (id),
  used integer NOT NULL CHECK (used >= 0),
  PRIMARY KEY (organization_id, period_start, quota_key_id)
);

ALTER TABLE quota_open_reservations
  -- Of the key that reserved, when it has a limit.
  ADD COLUMN quota_key_id text;

ALTER TABLE quota_periods
  -- The highest threshold, in percent of the limit, whose event was stored.
  ADD COLUMN announced_threshold smallint NOT NULL DEFAULT 0;
