-- Where the lists of archive jobs end that state more videos than they have.

ALTER TABLE jobs
  -- The last video of the list when it was last read to such an end, when it first ended there, and how often it has since then.
  ADD COLUMN list_end text,
  ADD COLUMN list_ended_at timestamptz,
  ADD COLUMN list_end_reads smallint NOT NULL DEFAULT 0,
  -- How many videos the list states beyond those that it has, when it was last read to its end.
  ADD COLUMN hidden integer NOT NULL DEFAULT 0;
