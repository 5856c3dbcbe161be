-- The clock of everything that is stored with a time that decides, which tests replace. Not now(): that is when the transaction
-- began, before it waited for a lock.
CREATE OR REPLACE FUNCTION clock_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp()';
