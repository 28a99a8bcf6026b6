-- name: shelf_names
-- Every shelf with its connection and the name of its stream.
SELECT h.sid, h.connection_id, s.name FROM shelf h JOIN stream s ON s.home = h.home AND s.stid = h.stid
WHERE h.home=:home ORDER BY h.connection_id, s.name, h.sid

-- name: shelf_records
-- What a backup's digest of a shelf covers: its records, tombstones included, in order of arrival.
SELECT record_id, seq, deleted, digest FROM record WHERE home=:home AND rid > ? AND rid < ? ORDER BY rid

-- name: live_total
-- How many live records the store holds.
SELECT coalesce(sum(live), 0)::bigint FROM shelf WHERE home=:home

-- name: blob_ids
-- Every file that is stored.
SELECT blob_id FROM blob WHERE home=:home

-- name: blobs
-- Every file that is stored, with its size.
SELECT blob_id, size_bytes FROM blob WHERE home=:home

-- name: next_sid_of_records
-- The next shelf number that some record has.
SELECT sid FROM record WHERE home=:home AND sid > ? ORDER BY sid LIMIT 1

-- name: shelf_to_check
-- What a shelf's row says about its records.
SELECT live, next_n, seq FROM shelf WHERE home=:home AND sid=?

-- name: chunks_to_check
-- The pieces of a long text with their checksums.
SELECT n, sum, text FROM chunk WHERE home=:home AND rid=? AND fid=? ORDER BY n

-- name: has_undated_changes
-- One row if there are changes that no noted day covers, and today is not noted.
SELECT 1 FROM meta
WHERE home=:home AND k='seq' AND v > (SELECT coalesce(max(seq), 0) FROM change_day WHERE home=:home)
  AND NOT EXISTS (SELECT 1 FROM change_day WHERE home=:home AND day=?)

-- name: note_day
-- Note the number that the last change has today.
INSERT INTO change_day SELECT :home, ?, v FROM meta WHERE home=:home AND k='seq'

-- name: last_change_before
-- The last change number noted before a day.
SELECT max(seq) FROM change_day WHERE home=:home AND day < ?

-- name: delete_days
-- Forget the notes of old days.
DELETE FROM change_day WHERE home=:home AND day < ?

-- name: raise_pruned_seq
-- Refuse bookmarks up to a change number from now on.
UPDATE meta SET v = greatest(v, ?) WHERE home=:home AND k='pruned_seq'

-- name: some_lives
-- Some rows of life after a place, and whether the record is a tombstone of an old deletion.
SELECT l.rid, l.seq, coalesce(r.deleted AND r.seq <= ?1, false) FROM life l
LEFT JOIN record r ON r.home = l.home AND r.rid = l.rid
WHERE l.home=:home AND (l.rid, l.seq) > (?2, ?3) ORDER BY l.rid, l.seq LIMIT ?4

-- name: delete_life
-- Forget what a record was before one change.
DELETE FROM life WHERE home=:home AND rid=? AND seq=?

-- name: delete_record_row
-- Remove a record's own row.
DELETE FROM record WHERE home=:home AND rid=?

-- name: record_to_erase
-- What an erasure has to know of a record.
SELECT rid, deleted FROM record WHERE home=:home AND sid=? AND key=sha256(convert_to(?, 'UTF8'))

-- name: erase_record
-- Leave a tombstone without content, under another key.
UPDATE record SET record_id=?1, key=sha256(convert_to(?1, 'UTF8')), seq=?2, born_seq=?3, sort=NULL, ts=NULL,
  emitted_at=0, deleted=true, changed=NULL, long=NULL, digest='', body=NULL
WHERE home=:home AND rid=?4

-- name: note_erasure
-- Note an erasure on its shelf.
UPDATE shelf SET live=live-?, seq=? WHERE home=:home AND sid=?

-- name: next_change_number
-- Take the next change number.
UPDATE meta SET v = v + 1 WHERE home=:home AND k='seq' RETURNING v

-- name: delete_idempotency_keys
-- Forget the reports of all repeatable batches.
DELETE FROM idempotency WHERE home=:home

-- name: set_pruned_seq
-- Refuse all bookmarks up to a change number from now on.
UPDATE meta SET v=? WHERE home=:home AND k='pruned_seq'

-- name: note_unused_blobs
-- Note the files that no record refers to as gone.
INSERT INTO blob_gone SELECT :home, blob_id FROM blob b
WHERE b.home=:home AND NOT EXISTS (SELECT 1 FROM blob_use u WHERE u.home=:home AND u.blob_id = b.blob_id)
ON CONFLICT DO NOTHING

-- name: delete_unused_blobs
-- Forget the files that no record refers to.
DELETE FROM blob b
WHERE b.home=:home AND NOT EXISTS (SELECT 1 FROM blob_use u WHERE u.home=:home AND u.blob_id = b.blob_id)

-- name: unused_blobs
-- Files that were last stored before a time, and that no record uses.
SELECT blob_id FROM blob b WHERE b.home=:home AND coalesce(noted_at, 0) < ?
AND NOT EXISTS (SELECT 1 FROM blob_use u WHERE u.home=:home AND u.blob_id = b.blob_id)

-- name: note_gone_blob
-- Note a file as one to be removed.
INSERT INTO blob_gone VALUES(:home, ?) ON CONFLICT DO NOTHING

-- name: delete_unused_blob
-- Forget a file, if it was last stored before a time, and no record uses it.
DELETE FROM blob b WHERE b.home=:home AND b.blob_id=? AND coalesce(b.noted_at, 0) < ?
AND NOT EXISTS (SELECT 1 FROM blob_use u WHERE u.home=:home AND u.blob_id = b.blob_id)

-- name: unnote_stored_blobs
-- Files that were stored again are not gone.
DELETE FROM blob_gone WHERE home=:home AND blob_id IN (SELECT blob_id FROM blob WHERE home=:home)

-- name: gone_blobs
-- The files that are still to be removed.
SELECT blob_id FROM blob_gone WHERE home=:home

-- name: delete_gone_blobs
-- Forget the files that were to be removed.
DELETE FROM blob_gone WHERE home=:home

-- name: live_of_connection
-- How many live records a connection holds.
SELECT coalesce(sum(live), 0)::bigint FROM shelf WHERE home=:home AND connection_id=?

-- name: blob_totals
-- How many files there are, and how large they are together.
SELECT count(*), coalesce(sum(size_bytes), 0)::bigint FROM blob WHERE home=:home

-- name: all_declarations
-- Every declared version of every connector, the newest last.
SELECT connector_key, document, version, position FROM declaration WHERE home=:home ORDER BY position

-- name: connections_by_age
-- Every connection, the oldest first.
SELECT id, connector_key, display_name FROM connection WHERE home=:home ORDER BY created_at, id

-- name: shelves_of_connection
-- What the shelves of a connection hold.
SELECT h.sid, h.stid, s.name, h.live, h.next_n, h.updated_at
FROM shelf h JOIN stream s ON s.home = h.home AND s.stid = h.stid
WHERE h.home=:home AND h.connection_id=? ORDER BY h.sid

-- name: field_kind
-- How the typed column of a field holds its values.
SELECT kind FROM field WHERE home=:home AND stid=? AND name=?

-- name: oldest_sort
-- The first place in a shelf's order.
SELECT sort FROM record WHERE home=:home AND sid=? AND NOT deleted AND sort IS NOT NULL
ORDER BY substr(sort, 1, 512) ASC, sort ASC LIMIT 1

-- name: newest_sort
-- The last place in a shelf's order.
SELECT sort FROM record WHERE home=:home AND sid=? AND NOT deleted AND sort IS NOT NULL
ORDER BY substr(sort, 1, 512) DESC, sort DESC LIMIT 1

-- name: stored_size
-- The size of a live record's body, and the notes about its long texts.
SELECT length(body), long FROM record WHERE home=:home AND rid=? AND NOT deleted

-- name: revoke_all_grants
-- End every grant that has not ended.
UPDATE grant_issued SET revoked_at = ? WHERE home=:home AND revoked_at IS NULL RETURNING id

-- name: revoke_owner_tokens
-- End every token of the owner that has not ended.
UPDATE token SET revoked_at = ? WHERE home=:home AND kind = 'owner' AND revoked_at IS NULL RETURNING kind

-- name: end_password
-- Remove the password and the link by which one is set.
DELETE FROM owner WHERE home=:home RETURNING 'password'

-- name: end_passkeys
-- Remove every passkey.
DELETE FROM owner_passkey WHERE home=:home RETURNING name

-- name: end_browser_secrets
-- Remove every session, and the marks of browsers that the owner signed in with.
DELETE FROM owner_browser WHERE home=:home RETURNING kind

-- name: end_gateway_callers
-- Remove every caller of the gateway, and its token.
DELETE FROM oauth_entry WHERE home=:home AND kind IN ('gateway_caller', 'gateway_token') RETURNING kind

-- name: last_revocation
-- When a grant or a token was last revoked.
SELECT max(at) FROM (
  SELECT max(revoked_at) AS at FROM grant_issued WHERE home=:home UNION ALL SELECT max(revoked_at) FROM token WHERE home=:home) AS revoked

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

-- name: add_limit_uses
-- Add uses of limits, in the order of their names: two machines that add to the same ones wait for each other in turn.
INSERT INTO limit_use AS l
SELECT :home, u.name, u.uses, clock_timestamp() FROM unnest(?::bytea[], ?::bigint[]) AS u(name, uses) ORDER BY u.name
ON CONFLICT (home, name) DO UPDATE SET uses = l.uses + excluded.uses, at = excluded.at

-- name: limit_uses
-- How often some limits were used.
SELECT name, uses FROM limit_use WHERE home=:home AND name = ANY(?::bytea[])

-- name: delete_old_limit_uses
-- Forget limits that were not used for ten minutes.
DELETE FROM limit_use WHERE home=:home AND at < clock_timestamp() - interval '10 minutes'

-- name: take_from_bucket
-- Take one from a bucket that fills at a rate a second; one row if it held one.
INSERT INTO limit_bucket AS b VALUES(:home, ?1, ?2::float8 - 1, clock_timestamp())
ON CONFLICT (home, name) DO UPDATE SET at = excluded.at,
  level = least(?2, b.level + greatest(extract(epoch FROM excluded.at - b.at), 0) * ?3::float8) - 1
WHERE b.level + greatest(extract(epoch FROM excluded.at - b.at), 0) * ?3 >= 1 RETURNING 1

-- name: delete_full_buckets
-- Forget buckets that are full again; the slowest takes ten minutes.
DELETE FROM limit_bucket WHERE home=:home AND at < clock_timestamp() - interval '1 hour'
