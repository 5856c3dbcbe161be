-- The clock of everything that is stored with a time that decides, which tests replace. Not now(): that is when the transaction
-- began, before it waited for a lock.
CREATE OR REPLACE FUNCTION clock_now() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp()';

-- Whether a stored time has come. One that is later than its longest possible value was stored by a clock that was wrong.
CREATE OR REPLACE FUNCTION is_due(p_at timestamptz, p_longest interval) RETURNS boolean LANGUAGE sql STABLE AS $$ SELECT p_at <= clock_now() OR p_at > clock_now() + p_longest $$;
