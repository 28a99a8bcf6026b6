-- name: raise_pruned_seq
-- Refuse bookmarks up to a change number from now on.
UPDATE meta SET v = greatest(v, ?) WHERE home=:home AND k='pruned_seq'

-- name: record_to_erase
-- What an erasure has to know of a record.
SELECT rid, deleted FROM record WHERE home=:home AND sid=? AND key=sha256(convert_to(?, 'UTF8'))

-- name: erase_record
-- Leave a tombstone without content, under another key.
UPDATE record SET record_id=?1, key=sha256(convert_to(?1, 'UTF8')), seq=?2, born_seq=?3, sort=NULL, ts=NULL,
  emitted_at=0, deleted=true, changed=NULL, long=NULL, digest='', body=NULL
WHERE home=:home AND rid=?4

-- name: delete_unused_blobs
-- Forget the files that no record refers to.
DELETE FROM blob b
WHERE b.home=:home AND NOT EXISTS (SELECT 1 FROM blob_use u WHERE u.home=:home AND u.blob_id = b.blob_id)

-- name: delete_unused_blob
-- Forget a file, if it was last stored before a time, and no record uses it.
DELETE FROM blob b WHERE b.home=:home AND b.blob_id=? AND coalesce(b.noted_at, 0) < ?
AND NOT EXISTS (SELECT 1 FROM blob_use u WHERE u.home=:home AND u.blob_id = b.blob_id)

-- name: oldest_sort
-- The first place in a shelf's order.
SELECT sort FROM record WHERE home=:home AND sid=? AND NOT deleted AND sort IS NOT NULL
ORDER BY substr(sort, 1, 512) ASC, sort ASC LIMIT 1

-- name: newest_sort
-- The last place in a shelf's order.
SELECT sort FROM record WHERE home=:home AND sid=? AND NOT deleted AND sort IS NOT NULL
ORDER BY substr(sort, 1, 512) DESC, sort DESC LIMIT 1

-- name: take_lease
-- Take or renew a lease; one row if it is held.
INSERT INTO lease VALUES(:home, ?1, ?2, ?3)
ON CONFLICT (home, name) DO UPDATE SET holder = excluded.holder, ends_at = excluded.ends_at
WHERE lease.holder = excluded.holder OR lease.ends_at <= ?4 RETURNING 1

-- name: end_lease
-- Give a lease up.
DELETE FROM lease WHERE home=:home AND name=? AND holder=?

-- name: table_size
-- How many pages the table of records has, and how many it had when the server last counted its rows.
SELECT pg_relation_size(oid) / 8192, relpages FROM pg_class WHERE oid = 'record'::regclass

-- name: gather_statistics
-- Let the server count the rows of the tables that reads choose an index of.
ANALYZE record, typed, chunk, child_key, word_segment, word_leaf, life, invalid, blob_use, shelf, meta

-- name: delete_blob_parts
-- Remove the bytes of some files.
DELETE FROM blob_part WHERE home=:home AND blob_id = ANY(?::text[])

-- name: space_of_tables
-- How much space the tables of all homes take, and the version of their schema.
SELECT (SELECT max(version) FROM headgate_schema)::bigint, coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'home'
WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace

-- name: vacuum
-- Free the space of deleted rows in some tables.
VACUUM {tables}

-- name: raise_latest_time
-- Note a time that a machine has seen, unless a later one is noted.
INSERT INTO meta VALUES(:home, 'latest_time', ?)
ON CONFLICT (home, k) DO UPDATE SET v = excluded.v WHERE meta.v < excluded.v

-- name: latest_time
-- The latest time that a machine has seen.
SELECT v FROM meta WHERE home=:home AND k='latest_time'
