-- name: find_token
-- A token by its digest.
SELECT kind, subject_id, issued_at, client_id, grant_id, package_id, expires_at, revoked_at, name, scope FROM token WHERE digest=?

-- name: grant_by_id
-- A grant.
SELECT document, package_id, revoked_at, consumed_at, daily_records FROM grant_issued WHERE id=?

-- name: grants_of_package
-- The grants of a package.
SELECT document, package_id, revoked_at, consumed_at, daily_records FROM grant_issued WHERE package_id=? ORDER BY id

-- name: all_grants
-- Every grant, newest first.
SELECT document, package_id, revoked_at, consumed_at, daily_records FROM grant_issued ORDER BY issued_at DESC, id

-- name: spent_records
-- How many records were shown under a grant on a day.
SELECT records FROM spent WHERE grant_id=? AND day=?

-- name: shown_since
-- How many records were shown under each grant on each day from a day on.
SELECT grant_id, day, records FROM spent WHERE day >= ?

-- name: owner_tokens
-- Every token of a kind, newest first.
SELECT digest, issued_at, expires_at, revoked_at, name, scope FROM token WHERE kind=? ORDER BY issued_at DESC, digest

-- name: revoke_token
-- End a token.
UPDATE token SET revoked_at=coalesce(revoked_at, ?) WHERE digest=?

-- name: token_exists
-- One row if there is a token.
SELECT 1 FROM token WHERE digest=?

-- name: grant_exists
-- One row if there is a grant.
SELECT 1 FROM grant_issued WHERE id=?

-- name: insert_grant
-- Add a grant.
INSERT INTO grant_issued(id, document, package_id, issued_at, consumed_at, daily_records)
VALUES(?, ?, ?, ?, ?, ?)

-- name: insert_token
-- Add a token.
INSERT INTO token(digest, kind, subject_id, client_id, grant_id, package_id, issued_at, expires_at, name, scope)
VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)

-- name: replace_grant
-- Give a grant other terms.
UPDATE grant_issued SET document=?, daily_records=? WHERE id=?

-- name: revoke_grant
-- End a grant that has not ended.
UPDATE grant_issued SET revoked_at=? WHERE id=? AND revoked_at IS NULL

-- name: consume_grant
-- Note that a grant for one use had its token.
UPDATE grant_issued SET consumed_at=? WHERE id=? AND consumed_at IS NULL

-- name: journal_taken
-- How many bytes of a journal are in the chain.
SELECT taken FROM audit_journal WHERE name=?

-- name: put_journal
-- Note how many bytes of a journal are in the chain.
INSERT INTO audit_journal VALUES(?, ?) ON CONFLICT(name) DO UPDATE SET taken = excluded.taken

-- name: delete_journal
-- Forget a journal.
DELETE FROM audit_journal WHERE name=?

-- name: insert_audit
-- Add a block to the chain.
INSERT INTO audit VALUES(?, ?, ?)

-- name: counted_entries
-- How many entries the chain should have.
SELECT v FROM meta WHERE k='audit_entries'

-- name: count_entries
-- Note how many entries the chain has; it never has fewer.
INSERT INTO meta VALUES('audit_entries', ?) ON CONFLICT (k) DO UPDATE SET v = max(v, excluded.v)

-- name: add_spent
-- Count records that were shown under a grant on a day.
INSERT INTO spent VALUES(?, ?, ?)
ON CONFLICT(grant_id, day) DO UPDATE SET records = records + excluded.records

-- name: last_pruned
-- The end of what was pruned.
SELECT last FROM audit_pruned ORDER BY last DESC LIMIT 1

-- name: insert_pruned
-- Add the line that stands for pruned blocks.
INSERT INTO audit_pruned(last, first, events, end_seal, seal) VALUES(?, ?, ?, ?, ?)

-- name: delete_pruned
-- Remove the blocks that the line stands for.
DELETE FROM audit WHERE seq <= ?

-- name: chain_blocks
-- Some blocks and lines for pruned ones after a place, in order.
SELECT seq, events, seal, first, end_seal FROM audit_chain WHERE seq > ? ORDER BY seq LIMIT ?

-- name: chain_after
-- All blocks and lines for pruned ones after a place, in order.
SELECT seq, events, seal, first, end_seal FROM audit_chain WHERE seq > ? ORDER BY seq

-- name: chain_with
-- Those that hold some bytes.
SELECT seq, events, seal, first, end_seal FROM audit_chain WHERE seq > ? AND instr(events, ?) > 0 ORDER BY seq

-- name: chain_backwards
-- Every block that holds something before a place, newest first: the last of them may reach beyond it.
SELECT seq, events, seal, first, end_seal FROM audit_chain
WHERE seq <= coalesce((SELECT min(seq) FROM audit_chain WHERE seq >= ?), ?) ORDER BY seq DESC

-- name: chain_head
-- The end of the chain.
SELECT seq, coalesce(end_seal, seal) FROM audit_chain ORDER BY seq DESC LIMIT 1

-- name: owner_password
-- The hash of the owner's password.
SELECT password FROM owner

-- name: owner_link
-- The link by which a password may be set.
SELECT link, link_ends_at FROM owner WHERE link IS NOT NULL

-- name: owner_link_digest
-- The digest of that link.
SELECT link FROM owner

-- name: browser
-- What a browser holds.
SELECT made_at, used_at, proved_at FROM owner_browser WHERE digest=? AND kind=?

-- name: put_link
-- Store a link in place of the last one.
INSERT INTO owner(id, link, link_ends_at) VALUES(1, ?, ?)
ON CONFLICT(id) DO UPDATE SET link = excluded.link, link_ends_at = excluded.link_ends_at

-- name: set_password
-- Store the hash of a password, and remove the link.
INSERT INTO owner(id, password) VALUES(1, ?)
ON CONFLICT(id) DO UPDATE SET password = excluded.password, link = NULL, link_ends_at = NULL

-- name: put_browser
-- Store what a browser holds.
INSERT INTO owner_browser(digest, kind, made_at, used_at, proved_at) VALUES(?, ?, ?, ?, ?)

-- name: note_browser_use
-- Note when what a browser holds was last used and last proved.
UPDATE owner_browser SET used_at=?, proved_at=? WHERE digest=?

-- name: delete_browser
-- Remove what a browser holds.
DELETE FROM owner_browser WHERE digest=?

-- name: end_browsers
-- Remove what browsers hold of a kind, except one.
DELETE FROM owner_browser WHERE kind=? AND digest<>?

-- name: delete_owner
-- Remove the password and the link.
DELETE FROM owner

-- name: delete_passkeys
-- Remove every passkey.
DELETE FROM owner_passkey

-- name: delete_browsers
-- Remove everything that browsers hold.
DELETE FROM owner_browser

-- name: passkeys
-- Every passkey, the oldest first.
SELECT id, party, name, public_key, uses, made_at, used_at FROM owner_passkey ORDER BY made_at, id

-- name: delete_old_challenges
-- Forget challenges that have ended.
DELETE FROM owner_challenge WHERE ends_at<=?

-- name: challenge_exists
-- One row if a challenge was answered.
SELECT 1 FROM owner_challenge WHERE digest=?

-- name: insert_challenge
-- Note that a challenge was answered.
INSERT INTO owner_challenge VALUES(?, ?)

-- name: put_passkey
-- Store a passkey, or note its use.
INSERT INTO owner_passkey(id, party, name, public_key, uses, made_at, used_at) VALUES(?, ?, ?, ?, ?, ?, ?)
ON CONFLICT(id) DO UPDATE SET uses = excluded.uses, used_at = excluded.used_at

-- name: passkey_exists
-- One row if there is a passkey.
SELECT 1 FROM owner_passkey WHERE id=?

-- name: delete_passkey
-- Remove a passkey.
DELETE FROM owner_passkey WHERE id=?

-- name: oauth_entry
-- A document of the authorization server.
SELECT document FROM oauth_entry WHERE kind=? AND key=?

-- name: oauth_entries
-- Every document of a kind.
SELECT document FROM oauth_entry WHERE kind=? ORDER BY key

-- name: put_oauth_entry
-- Store a document in place of the last one.
INSERT INTO oauth_entry(kind, key, document, expires_at) VALUES(?, ?, ?, ?)
ON CONFLICT(kind, key) DO UPDATE SET document = excluded.document, expires_at = excluded.expires_at

-- name: delete_oauth_entry
-- Remove a document.
DELETE FROM oauth_entry WHERE kind=? AND key=?

-- name: delete_ended_oauth_entries
-- Remove the documents that have ended.
DELETE FROM oauth_entry WHERE expires_at <= ?

-- name: set_token_family
-- Note which approval a token comes from.
UPDATE token SET family=? WHERE digest=?

-- name: token_family
-- Which approval a token comes from.
SELECT family FROM token WHERE digest=?

-- name: revoke_family
-- End every token of one approval.
UPDATE token SET revoked_at=? WHERE family=? AND revoked_at IS NULL
