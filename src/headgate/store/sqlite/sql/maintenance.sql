-- name: shelf_names
-- Every shelf with its connection and the name of its stream.
SELECT sid, connection_id, name FROM shelf JOIN stream USING (stid) ORDER BY connection_id, name, sid

-- name: shelf_records
-- What a backup's digest of a shelf covers: its records, tombstones included, in order of arrival.
SELECT record_id, seq, deleted, digest FROM record WHERE rid > ? AND rid < ? ORDER BY rid

-- name: live_total
-- How many live records the store holds.
SELECT coalesce(sum(live), 0) FROM shelf

-- name: blob_ids
-- Every file that is stored.
SELECT blob_id FROM blob

-- name: blobs
-- Every file that is stored, with its size.
SELECT blob_id, size_bytes FROM blob

-- name: next_sid_of_records
-- The next shelf number that some record has.
SELECT sid FROM record INDEXED BY record_key WHERE sid > ? ORDER BY sid LIMIT 1

-- name: shelf_to_check
-- What a shelf's row says about its records.
SELECT live, next_n, seq FROM shelf WHERE sid=?

-- name: chunks_to_check
-- The pieces of a long text with their checksums.
SELECT n, sum, text FROM chunk WHERE rid=? AND fid=? ORDER BY n

-- name: has_undated_changes
-- One row if there are changes that no noted day covers, and today is not noted.
SELECT 1 FROM meta
WHERE k='seq' AND v > (SELECT coalesce(max(seq), 0) FROM change_day)
  AND NOT EXISTS (SELECT 1 FROM change_day WHERE day=?)

-- name: note_day
-- Note the number that the last change has today.
INSERT INTO change_day SELECT ?, v FROM meta WHERE k='seq'

-- name: last_change_before
-- The last change number noted before a day.
SELECT max(seq) FROM change_day WHERE day < ?

-- name: delete_days
-- Forget the notes of old days.
DELETE FROM change_day WHERE day < ?

-- name: raise_pruned_seq
-- Refuse bookmarks up to a change number from now on.
UPDATE meta SET v = max(v, ?) WHERE k='pruned_seq'

-- name: some_lives
-- Some rows of life after a place, and whether the record is a tombstone of an old deletion.
SELECT l.rid, l.seq, r.deleted AND r.seq <= ?1 FROM life l LEFT JOIN record r ON r.rid = l.rid
WHERE (l.rid, l.seq) > (?2, ?3) ORDER BY l.rid, l.seq LIMIT ?4

-- name: delete_life
-- Forget what a record was before one change.
DELETE FROM life WHERE rid=? AND seq=?

-- name: delete_record_row
-- Remove a record's own row.
DELETE FROM record WHERE rid=?

-- name: record_to_erase
-- What an erasure has to know of a record.
SELECT rid, deleted FROM record WHERE sid=? AND record_id=?

-- name: erase_record
-- Leave a tombstone without content, under another key.
UPDATE record SET record_id=?, seq=?, born_seq=?, sort=NULL, ts=NULL, emitted_at=0, deleted=1,
  changed=NULL, long=NULL, digest=x'', body=NULL
WHERE rid=?

-- name: note_erasure
-- Note an erasure on its shelf.
UPDATE shelf SET live=live-?, seq=? WHERE sid=?

-- name: next_change_number
-- Take the next change number.
UPDATE meta SET v = v + 1 WHERE k='seq' RETURNING v

-- name: delete_idempotency_keys
-- Forget the reports of all repeatable batches.
DELETE FROM idempotency

-- name: set_pruned_seq
-- Refuse all bookmarks up to a change number from now on.
UPDATE meta SET v=? WHERE k='pruned_seq'

-- name: note_unused_blobs
-- Note the files that no record refers to as gone.
INSERT OR IGNORE INTO blob_gone SELECT blob_id FROM blob WHERE blob_id NOT IN (SELECT blob_id FROM blob_use)

-- name: delete_unused_blobs
-- Forget the files that no record refers to.
DELETE FROM blob WHERE blob_id NOT IN (SELECT blob_id FROM blob_use)

-- name: unused_blobs
-- Files that were last stored before a time, and that no record uses.
SELECT blob_id FROM blob b WHERE coalesce(noted_at, 0) < ?
AND NOT EXISTS (SELECT 1 FROM blob_use u WHERE u.blob_id = b.blob_id)

-- name: note_gone_blob
-- Note a file as one to be removed.
INSERT OR IGNORE INTO blob_gone VALUES(?)

-- name: delete_unused_blob
-- Forget a file, if it was last stored before a time, and no record uses it.
DELETE FROM blob WHERE blob_id=? AND coalesce(noted_at, 0) < ?
AND NOT EXISTS (SELECT 1 FROM blob_use u WHERE u.blob_id = blob.blob_id)

-- name: unnote_stored_blobs
-- Files that were stored again are not gone.
DELETE FROM blob_gone WHERE blob_id IN (SELECT blob_id FROM blob)

-- name: gone_blobs
-- The files that are still to be removed.
SELECT blob_id FROM blob_gone

-- name: delete_gone_blobs
-- Forget the files that were to be removed.
DELETE FROM blob_gone

-- name: live_of_connection
-- How many live records a connection holds.
SELECT coalesce(sum(live), 0) FROM shelf WHERE connection_id=?

-- name: blob_totals
-- How many files there are, and how large they are together.
SELECT count(*), coalesce(sum(size_bytes), 0) FROM blob

-- name: all_declarations
-- Every declared version of every connector, the newest last.
SELECT connector_key, document, version, position FROM declaration ORDER BY position

-- name: connections_by_age
-- Every connection, the oldest first.
SELECT id, connector_key, display_name FROM connection ORDER BY created_at, id

-- name: shelves_of_connection
-- What the shelves of a connection hold.
SELECT sid, stid, name, live, next_n, updated_at FROM shelf JOIN stream USING (stid)
WHERE connection_id=? ORDER BY sid

-- name: field_kind
-- How the typed column of a field holds its values.
SELECT kind FROM field WHERE stid=? AND name=?

-- name: oldest_sort
-- The first place in a shelf's order.
SELECT sort FROM record INDEXED BY record_sort
WHERE sid=? AND deleted=0 AND sort IS NOT NULL ORDER BY sort ASC LIMIT 1

-- name: newest_sort
-- The last place in a shelf's order.
SELECT sort FROM record INDEXED BY record_sort
WHERE sid=? AND deleted=0 AND sort IS NOT NULL ORDER BY sort DESC LIMIT 1

-- name: stored_size
-- The size of a live record's body, and the notes about its long texts.
SELECT length(body), long FROM record WHERE rid=? AND deleted=0

-- name: revoke_all_grants
-- End every grant that has not ended.
UPDATE grant_issued SET revoked_at = ? WHERE revoked_at IS NULL RETURNING id

-- name: revoke_owner_tokens
-- End every token of the owner that has not ended.
UPDATE token SET revoked_at = ? WHERE kind = 'owner' AND revoked_at IS NULL RETURNING kind

-- name: end_password
-- Remove the password and the link by which one is set.
DELETE FROM owner RETURNING 'password'

-- name: end_passkeys
-- Remove every passkey.
DELETE FROM owner_passkey RETURNING name

-- name: end_browser_secrets
-- Remove every session, and the marks of browsers that the owner signed in with.
DELETE FROM owner_browser RETURNING kind

-- name: end_gateway_callers
-- Remove every caller of the gateway, and its token.
DELETE FROM oauth_entry WHERE kind IN ('gateway_caller', 'gateway_token') RETURNING kind

-- name: last_revocation
-- When a grant or a token was last revoked.
SELECT max(at) FROM (
  SELECT max(revoked_at) AS at FROM grant_issued UNION ALL SELECT max(revoked_at) FROM token) AS revoked
