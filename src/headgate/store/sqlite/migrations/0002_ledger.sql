-- Grants are kept as they were approved; only their life (revoked, consumed) is ever changed.
CREATE TABLE grant_issued(
  id TEXT PRIMARY KEY, document BLOB NOT NULL, package_id TEXT, issued_at INTEGER NOT NULL,
  revoked_at INTEGER, consumed_at INTEGER, daily_records INTEGER) STRICT, WITHOUT ROWID;
CREATE INDEX grant_package ON grant_issued(package_id) WHERE package_id IS NOT NULL;

-- A token is known by its SHA-256 alone.
CREATE TABLE token(
  digest BLOB PRIMARY KEY, kind TEXT NOT NULL, subject_id TEXT NOT NULL, client_id TEXT, grant_id TEXT,
  package_id TEXT, issued_at INTEGER NOT NULL, expires_at INTEGER, revoked_at INTEGER) STRICT, WITHOUT ROWID;

-- The chain of disclosures: seal = HMAC-SHA256(key, seal before || event). It only grows.
CREATE TABLE audit(seq INTEGER PRIMARY KEY, event BLOB NOT NULL, seal BLOB NOT NULL) STRICT;
CREATE TRIGGER audit_keeps BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END;
CREATE TRIGGER audit_stays BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END;

-- How much of each journal is in the chain, in bytes.
CREATE TABLE audit_journal(name TEXT PRIMARY KEY, taken INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- How many records were shown under a grant on a day since 1970.
CREATE TABLE spent(
  grant_id TEXT NOT NULL, day INTEGER NOT NULL, records INTEGER NOT NULL,
  PRIMARY KEY(grant_id, day)) STRICT, WITHOUT ROWID;
