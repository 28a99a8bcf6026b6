-- name: shelf_names
-- Every shelf with its connection and the name of its stream.
SELECT h.sid, h.connection_id, s.name FROM shelf h JOIN stream s ON s.{home} s.stid = h.stid
WHERE h.{home} true ORDER BY h.connection_id, s.name, h.sid

-- name: shelf_records
-- What a backup's digest of a shelf covers: its records, tombstones included, in order of arrival.
SELECT record_id, seq, deleted, digest FROM record WHERE {home} rid > ? AND rid < ? ORDER BY rid

-- name: live_total
-- How many live records the store holds.
SELECT CAST(coalesce(sum(live), 0) AS bigint) FROM shelf WHERE {home} true

-- name: blob_ids
-- Every file that is stored.
SELECT blob_id FROM blob WHERE {home} true

-- name: blobs
-- Every file that is stored, with its size.
SELECT blob_id, size_bytes FROM blob WHERE {home} true

-- name: next_sid_of_records
-- The next shelf number that some record has.
SELECT sid FROM record {index record_key} WHERE {home} sid > ? ORDER BY sid LIMIT 1

-- name: shelf_to_check
-- What a shelf's row says about its records.
SELECT live, next_n, seq FROM shelf WHERE {home} sid=?

-- name: chunks_to_check
-- The pieces of a long text with their checksums.
SELECT n, sum, text FROM chunk WHERE {home} rid=? AND fid=? ORDER BY n

-- name: has_undated_changes
-- One row if there are changes that no noted day covers, and today is not noted.
SELECT 1 FROM meta
WHERE {home} k='seq' AND v > (SELECT coalesce(max(seq), 0) FROM change_day WHERE {home} true)
  AND NOT EXISTS (SELECT 1 FROM change_day WHERE {home} day=?)

-- name: note_day
-- Note the number that the last change has today.
INSERT INTO change_day SELECT {home_value}?, v FROM meta WHERE {home} k='seq'

-- name: last_change_before
-- The last change number noted before a day.
SELECT max(seq) FROM change_day WHERE {home} day < ?

-- name: delete_days
-- Forget the notes of old days.
DELETE FROM change_day WHERE {home} day < ?

-- name: some_lives
-- Some rows of life after a place, and whether the record is a tombstone of an old deletion.
SELECT l.rid, l.seq, coalesce(r.deleted AND r.seq <= ?1, false) FROM life l
LEFT JOIN record r ON r.{home} r.rid = l.rid
WHERE l.{home} (l.rid, l.seq) > (?2, ?3) ORDER BY l.rid, l.seq LIMIT ?4

-- name: delete_life
-- Forget what a record was before one change.
DELETE FROM life WHERE {home} rid=? AND seq=?

-- name: delete_record_row
-- Remove a record's own row.
DELETE FROM record WHERE {home} rid=?

-- name: note_erasure
-- Note an erasure on its shelf.
UPDATE shelf SET live=live-?, seq=? WHERE {home} sid=?

-- name: next_change_number
-- Take the next change number.
UPDATE meta SET v = v + 1 WHERE {home} k='seq' RETURNING v

-- name: delete_idempotency_keys
-- Forget the reports of all repeatable batches.
DELETE FROM idempotency WHERE {home} true

-- name: set_pruned_seq
-- Refuse all bookmarks up to a change number from now on.
UPDATE meta SET v=? WHERE {home} k='pruned_seq'

-- name: note_unused_blobs
-- Note the files that no record refers to as gone.
INSERT INTO blob_gone SELECT {home_value}blob_id FROM blob b
WHERE b.{home} NOT EXISTS (SELECT 1 FROM blob_use u WHERE u.{home} u.blob_id = b.blob_id)
ON CONFLICT DO NOTHING

-- name: unused_blobs
-- Files that were last stored before a time, and that no record uses.
SELECT blob_id FROM blob b WHERE b.{home} coalesce(noted_at, 0) < ?
AND NOT EXISTS (SELECT 1 FROM blob_use u WHERE u.{home} u.blob_id = b.blob_id)

-- name: note_gone_blob
-- Note a file as one to be removed.
INSERT INTO blob_gone VALUES({home_value}?) ON CONFLICT DO NOTHING

-- name: unnote_stored_blobs
-- Files that were stored again are not gone.
DELETE FROM blob_gone WHERE {home} blob_id IN (SELECT blob_id FROM blob WHERE {home} true)

-- name: gone_blobs
-- The files that are still to be removed.
SELECT blob_id FROM blob_gone WHERE {home} true

-- name: delete_gone_blobs
-- Forget the files that were to be removed.
DELETE FROM blob_gone WHERE {home} true

-- name: live_of_connection
-- How many live records a connection holds.
SELECT CAST(coalesce(sum(live), 0) AS bigint) FROM shelf WHERE {home} connection_id=?

-- name: blob_totals
-- How many files there are, and how large they are together.
SELECT count(*), CAST(coalesce(sum(size_bytes), 0) AS bigint) FROM blob WHERE {home} true

-- name: all_declarations
-- Every declared version of every connector, the newest last.
SELECT connector_key, document, version, position FROM declaration WHERE {home} true ORDER BY position

-- name: connections_by_age
-- Every connection, the oldest first.
SELECT id, connector_key, display_name FROM connection WHERE {home} true ORDER BY created_at, id

-- name: shelves_of_connection
-- What the shelves of a connection hold.
SELECT h.sid, h.stid, s.name, h.live, h.next_n, h.updated_at
FROM shelf h JOIN stream s ON s.{home} s.stid = h.stid
WHERE h.{home} h.connection_id=? ORDER BY h.sid

-- name: field_kind
-- How the typed column of a field holds its values.
SELECT kind FROM field WHERE {home} stid=? AND name=?

-- name: stored_size
-- The size of a live record's body, and the notes about its long texts.
SELECT length(body), long FROM record WHERE {home} rid=? AND {live}

-- name: revoke_all_grants
-- End every grant that has not ended.
UPDATE grant_issued SET revoked_at = ? WHERE {home} revoked_at IS NULL RETURNING id

-- name: revoke_owner_tokens
-- End every token of the owner that has not ended.
UPDATE token SET revoked_at = ? WHERE {home} kind = 'owner' AND revoked_at IS NULL RETURNING kind

-- name: end_password
-- Remove the password and the link by which one is set.
DELETE FROM owner WHERE {home} true RETURNING 'password'

-- name: end_passkeys
-- Remove every passkey.
DELETE FROM owner_passkey WHERE {home} true RETURNING name

-- name: end_browser_secrets
-- Remove every session, and the marks of browsers that the owner signed in with.
DELETE FROM owner_browser WHERE {home} true RETURNING kind

-- name: end_gateway_callers
-- Remove every caller of the gateway, and its token.
DELETE FROM oauth_entry WHERE {home} kind IN ('gateway_caller', 'gateway_token') RETURNING kind

-- name: last_revocation
-- When a grant or a token was last revoked.
SELECT max(at) FROM (
  SELECT max(revoked_at) AS at FROM grant_issued WHERE {home} true UNION ALL SELECT max(revoked_at) FROM token WHERE {home} true) AS revoked
