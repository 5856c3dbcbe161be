-- no transaction
-- By key: whether anything refers to one that is removed. Equal values share their space, so that the indexes are small.
DROP INDEX CONCURRENTLY IF EXISTS quota_reservations_key;
CREATE INDEX CONCURRENTLY quota_reservations_key ON quota_reservations (key_id);
DROP INDEX CONCURRENTLY IF EXISTS jobs_key;
CREATE INDEX CONCURRENTLY jobs_key ON jobs (key_id);
