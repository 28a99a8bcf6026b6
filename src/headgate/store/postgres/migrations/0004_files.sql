-- When a file was last stored, in microseconds; NULL: before this was noted. One that no record uses goes some time later.
ALTER TABLE blob ADD COLUMN noted_at bigint;
