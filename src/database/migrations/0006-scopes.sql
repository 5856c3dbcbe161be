-- What API keys may do. Those that were issued before may do everything, as may clients whose tokens state no scopes.

ALTER TABLE api_keys
  ADD COLUMN scopes text[] NOT NULL DEFAULT '{read,write}'
    CHECK (cardinality(scopes) > 0 AND scopes <@ '{read,write}'::text[]);
