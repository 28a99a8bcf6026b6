-- name: raise_pruned_seq
-- Refuse bookmarks up to a change number from now on.
UPDATE meta SET v = max(v, ?) WHERE k='pruned_seq'

-- name: record_to_erase
-- What an erasure has to know of a record.
SELECT rid, deleted FROM record WHERE sid=? AND record_id=?

-- name: erase_record
-- Leave a tombstone without content, under another key.
UPDATE record SET record_id=?, seq=?, born_seq=?, sort=NULL, ts=NULL, emitted_at=0, deleted=1,
  changed=NULL, long=NULL, digest=x'', body=NULL
WHERE rid=?

-- name: delete_unused_blobs
-- Forget the files that no record refers to.
DELETE FROM blob WHERE blob_id NOT IN (SELECT blob_id FROM blob_use)

-- name: delete_unused_blob
-- Forget a file, if it was last stored before a time, and no record uses it.
DELETE FROM blob WHERE blob_id=? AND coalesce(noted_at, 0) < ?
AND NOT EXISTS (SELECT 1 FROM blob_use u WHERE u.blob_id = blob.blob_id)

-- name: oldest_sort
-- The first place in a shelf's order.
SELECT sort FROM record INDEXED BY record_sort
WHERE sid=? AND deleted=0 AND sort IS NOT NULL ORDER BY sort ASC LIMIT 1

-- name: newest_sort
-- The last place in a shelf's order.
SELECT sort FROM record INDEXED BY record_sort
WHERE sid=? AND deleted=0 AND sort IS NOT NULL ORDER BY sort DESC LIMIT 1
