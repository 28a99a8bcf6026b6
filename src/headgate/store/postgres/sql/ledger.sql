-- name: count_entries
-- Note how many entries the chain has; it never has fewer.
INSERT INTO meta AS m VALUES(:home, 'audit_entries', ?)
ON CONFLICT (home, k) DO UPDATE SET v = greatest(m.v, excluded.v)

-- name: chain_with
-- Those that hold some bytes.
SELECT seq, events, seal, first, end_seal FROM audit_chain WHERE home=:home AND seq > ? AND position(?::bytea IN events) > 0 ORDER BY seq

-- name: epoch
-- A number that differs after anything was granted, revoked, logged, declared or connected; the latest time.
SELECT sum(v) FILTER (WHERE k IN ('ledger', 'chain', 'catalog'))::bigint,
  coalesce(max(v) FILTER (WHERE k='latest_time'), 0)
FROM meta WHERE home=:home AND k IN ('ledger', 'chain', 'catalog', 'latest_time')

-- name: raise_ledger_version
-- Begin to change grants, tokens or sessions: no other transaction of the home does until this one ends.
UPDATE meta SET v = v + 1 WHERE home=:home AND k='ledger' RETURNING v

-- name: lock_chain
-- Begin to add to the chain: no other transaction of the home does until this one ends.
UPDATE meta SET v = v + 1 WHERE home=:home AND k='chain' RETURNING v

-- name: begin_budget
-- Start the count of a grant for a day from what the log has, unless there is one.
INSERT INTO budget
SELECT :home, ?1, ?2, coalesce((SELECT records FROM spent WHERE home=:home AND grant_id=?1 AND day=?2), 0)
ON CONFLICT DO NOTHING

-- name: counted_budget
-- How many records of a grant were counted for a day.
SELECT records FROM budget WHERE home=:home AND grant_id=? AND day=?

-- name: count_budget
-- Count records of a grant for a day if its limit leaves that many; one row if it does. Some may be given back.
UPDATE budget SET records = records + ?3
WHERE home=:home AND grant_id=?1 AND day=?2 AND (?3 < 0 OR records + ?3 <= ?4) RETURNING records

-- name: keep_cursor
-- Keep cursors under their names; some may be there.
INSERT INTO kept_cursor SELECT :home, name, token, at FROM unnest(?::text[], ?::text[], ?::bigint[]) AS kept(name, token, at)
ON CONFLICT DO NOTHING

-- name: kept_cursor
-- The cursor of a name.
SELECT token FROM kept_cursor WHERE home=:home AND name=?

-- name: drop_old_cursors
-- Drop the cursors from before a time, and all but the newest so many.
DELETE FROM kept_cursor WHERE home=:home AND (at < ?1
  OR at < (SELECT at FROM kept_cursor WHERE home=:home ORDER BY at DESC LIMIT 1 OFFSET ?2::bigint))

-- name: drop_cursors
-- Drop every cursor.
DELETE FROM kept_cursor WHERE home=:home
