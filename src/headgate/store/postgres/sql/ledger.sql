-- name: find_token
-- A token by its digest.
SELECT kind, subject_id, issued_at, client_id, grant_id, package_id, expires_at, revoked_at, name, scope FROM token WHERE home=:home AND digest=?

-- name: grant_by_id
-- A grant.
SELECT document, package_id, revoked_at, consumed_at, daily_records FROM grant_issued WHERE home=:home AND id=?

-- name: grants_of_package
-- The grants of a package.
SELECT document, package_id, revoked_at, consumed_at, daily_records FROM grant_issued WHERE home=:home AND package_id=? ORDER BY id

-- name: all_grants
-- Every grant, newest first.
SELECT document, package_id, revoked_at, consumed_at, daily_records FROM grant_issued WHERE home=:home ORDER BY issued_at DESC, id

-- name: spent_records
-- How many records were shown under a grant on a day.
SELECT records FROM spent WHERE home=:home AND grant_id=? AND day=?

-- name: shown_since
-- How many records were shown under each grant on each day from a day on.
SELECT grant_id, day, records FROM spent WHERE home=:home AND day >= ?

-- name: owner_tokens
-- Every token of a kind, newest first.
SELECT digest, issued_at, expires_at, revoked_at, name, scope FROM token WHERE home=:home AND kind=? ORDER BY issued_at DESC, digest

-- name: revoke_token
-- End a token.
UPDATE token SET revoked_at=coalesce(revoked_at, ?) WHERE home=:home AND digest=?

-- name: token_exists
-- One row if there is a token.
SELECT 1 FROM token WHERE home=:home AND digest=?

-- name: grant_exists
-- One row if there is a grant.
SELECT 1 FROM grant_issued WHERE home=:home AND id=?

-- name: insert_grant
-- Add a grant.
INSERT INTO grant_issued(home, id, document, package_id, issued_at, consumed_at, daily_records)
VALUES(:home, ?, ?, ?, ?, ?, ?)

-- name: insert_token
-- Add a token.
INSERT INTO token(home, digest, kind, subject_id, client_id, grant_id, package_id, issued_at, expires_at, name, scope)
VALUES(:home, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: replace_grant
-- Give a grant other terms.
UPDATE grant_issued SET document=?, daily_records=? WHERE home=:home AND id=?

-- name: revoke_grant
-- End a grant that has not ended.
UPDATE grant_issued SET revoked_at=? WHERE home=:home AND id=? AND revoked_at IS NULL

-- name: consume_grant
-- Note that a grant for one use had its token.
UPDATE grant_issued SET consumed_at=? WHERE home=:home AND id=? AND consumed_at IS NULL

-- name: journal_taken
-- How many bytes of a journal are in the chain.
SELECT taken FROM audit_journal WHERE home=:home AND name=?

-- name: put_journal
-- Note how many bytes of a journal are in the chain.
INSERT INTO audit_journal VALUES(:home, ?, ?) ON CONFLICT(home, name) DO UPDATE SET taken = excluded.taken

-- name: delete_journal
-- Forget a journal.
DELETE FROM audit_journal WHERE home=:home AND name=?

-- name: insert_audit
-- Add a block to the chain.
INSERT INTO audit VALUES(:home, ?, ?, ?)

-- name: counted_entries
-- How many entries the chain should have.
SELECT v FROM meta WHERE home=:home AND k='audit_entries'

-- name: count_entries
-- Note how many entries the chain has; it never has fewer.
INSERT INTO meta AS m VALUES(:home, 'audit_entries', ?)
ON CONFLICT (home, k) DO UPDATE SET v = greatest(m.v, excluded.v)

-- name: add_spent
-- Count records that were shown under a grant on a day.
INSERT INTO spent VALUES(:home, ?, ?, ?)
ON CONFLICT(home, grant_id, day) DO UPDATE SET records = spent.records + excluded.records

-- name: last_pruned
-- The end of what was pruned.
SELECT last FROM audit_pruned WHERE home=:home ORDER BY last DESC LIMIT 1

-- name: insert_pruned
-- Add the line that stands for pruned blocks.
INSERT INTO audit_pruned(home, last, first, events, end_seal, seal)
VALUES(:home, ?, ?, ?, ?, ?)

-- name: delete_pruned
-- Remove the blocks that the line stands for.
DELETE FROM audit WHERE home=:home AND seq <= ?

-- name: chain_blocks
-- Some blocks and lines for pruned ones after a place, in order.
SELECT seq, events, seal, first, end_seal FROM audit_chain WHERE home=:home AND seq > ? ORDER BY seq LIMIT ?

-- name: chain_after
-- All blocks and lines for pruned ones after a place, in order.
SELECT seq, events, seal, first, end_seal FROM audit_chain WHERE home=:home AND seq > ? ORDER BY seq

-- name: chain_with
-- Those that hold some bytes.
SELECT seq, events, seal, first, end_seal FROM audit_chain WHERE home=:home AND seq > ? AND position(?::bytea IN events) > 0 ORDER BY seq

-- name: chain_backwards
-- Every block that holds something before a place, newest first: the last of them may reach beyond it.
SELECT seq, events, seal, first, end_seal FROM audit_chain
WHERE home=:home AND seq <= coalesce((SELECT min(seq) FROM audit_chain WHERE home=:home AND seq >= ?), ?) ORDER BY seq DESC

-- name: chain_head
-- The end of the chain.
SELECT seq, coalesce(end_seal, seal) FROM audit_chain WHERE home=:home ORDER BY seq DESC LIMIT 1

-- name: owner_password
-- The hash of the owner's password.
SELECT password FROM owner WHERE home=:home

-- name: owner_link
-- The link by which a password may be set.
SELECT link, link_ends_at FROM owner WHERE home=:home AND link IS NOT NULL

-- name: owner_link_digest
-- The digest of that link.
SELECT link FROM owner WHERE home=:home

-- name: browser
-- What a browser holds.
SELECT made_at, used_at, proved_at FROM owner_browser WHERE home=:home AND digest=? AND kind=?

-- name: put_link
-- Store a link in place of the last one.
INSERT INTO owner(home, id, link, link_ends_at) VALUES(:home, 1, ?, ?)
ON CONFLICT(home, id) DO UPDATE SET link = excluded.link, link_ends_at = excluded.link_ends_at

-- name: set_password
-- Store the hash of a password, and remove the link.
INSERT INTO owner(home, id, password) VALUES(:home, 1, ?)
ON CONFLICT(home, id) DO UPDATE SET password = excluded.password, link = NULL, link_ends_at = NULL

-- name: put_browser
-- Store what a browser holds.
INSERT INTO owner_browser(home, digest, kind, made_at, used_at, proved_at)
VALUES(:home, ?, ?, ?, ?, ?)

-- name: note_browser_use
-- Note when what a browser holds was last used and last proved.
UPDATE owner_browser SET used_at=?, proved_at=? WHERE home=:home AND digest=?

-- name: delete_browser
-- Remove what a browser holds.
DELETE FROM owner_browser WHERE home=:home AND digest=?

-- name: end_browsers
-- Remove what browsers hold of a kind, except one.
DELETE FROM owner_browser WHERE home=:home AND kind=? AND digest<>?

-- name: delete_owner
-- Remove the password and the link.
DELETE FROM owner WHERE home=:home

-- name: delete_passkeys
-- Remove every passkey.
DELETE FROM owner_passkey WHERE home=:home

-- name: delete_browsers
-- Remove everything that browsers hold.
DELETE FROM owner_browser WHERE home=:home

-- name: passkeys
-- Every passkey, the oldest first.
SELECT id, party, name, public_key, uses, made_at, used_at FROM owner_passkey WHERE home=:home ORDER BY made_at, id

-- name: delete_old_challenges
-- Forget challenges that have ended.
DELETE FROM owner_challenge WHERE home=:home AND ends_at<=?

-- name: challenge_exists
-- One row if a challenge was answered.
SELECT 1 FROM owner_challenge WHERE home=:home AND digest=?

-- name: insert_challenge
-- Note that a challenge was answered.
INSERT INTO owner_challenge VALUES(:home, ?, ?)

-- name: put_passkey
-- Store a passkey, or note its use.
INSERT INTO owner_passkey(home, id, party, name, public_key, uses, made_at, used_at)
VALUES(:home, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(home, id) DO UPDATE SET uses = excluded.uses, used_at = excluded.used_at

-- name: passkey_exists
-- One row if there is a passkey.
SELECT 1 FROM owner_passkey WHERE home=:home AND id=?

-- name: delete_passkey
-- Remove a passkey.
DELETE FROM owner_passkey WHERE home=:home AND id=?

-- name: oauth_entry
-- A document of the authorization server.
SELECT document FROM oauth_entry WHERE home=:home AND kind=? AND key=?

-- name: oauth_entries
-- Every document of a kind.
SELECT document FROM oauth_entry WHERE home=:home AND kind=? ORDER BY key

-- name: put_oauth_entry
-- Store a document in place of the last one.
INSERT INTO oauth_entry(home, kind, key, document, expires_at) VALUES(:home, ?, ?, ?, ?)
ON CONFLICT(home, kind, key) DO UPDATE SET document = excluded.document, expires_at = excluded.expires_at

-- name: delete_oauth_entry
-- Remove a document.
DELETE FROM oauth_entry WHERE home=:home AND kind=? AND key=?

-- name: delete_ended_oauth_entries
-- Remove the documents that have ended.
DELETE FROM oauth_entry WHERE home=:home AND expires_at <= ?

-- name: set_token_family
-- Note which approval a token comes from.
UPDATE token SET family=? WHERE home=:home AND digest=?

-- name: token_family
-- Which approval a token comes from.
SELECT family FROM token WHERE home=:home AND digest=?

-- name: revoke_family
-- End every token of one approval.
UPDATE token SET revoked_at=? WHERE home=:home AND family=? AND revoked_at IS NULL

-- name: epoch
-- A number that is another one after anything was granted, revoked, logged, declared or connected; version; latest time.
SELECT sum(v) FILTER (WHERE k IN ('ledger', 'chain', 'catalog'))::bigint, max(v) FILTER (WHERE k='version'),
  coalesce(max(v) FILTER (WHERE k='latest_time'), 0)
FROM meta WHERE home=:home AND k IN ('ledger', 'chain', 'catalog', 'version', 'latest_time')

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
