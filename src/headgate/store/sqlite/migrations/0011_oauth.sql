-- What the authorization server stores: clients, requests that wait for the owner, codes, refresh tokens. A secret is
-- known by its SHA-256 alone; the documents are those of headgate.auth.oauth.entries.
CREATE TABLE oauth_entry(
  kind TEXT NOT NULL, key BLOB NOT NULL, document BLOB NOT NULL, expires_at INTEGER,
  PRIMARY KEY(kind, key)) STRICT, WITHOUT ROWID;
CREATE INDEX oauth_entry_end ON oauth_entry(expires_at) WHERE expires_at IS NOT NULL;

-- All tokens that come from one approval; they are revoked together.
ALTER TABLE token ADD COLUMN family TEXT;
CREATE INDEX token_family ON token(family) WHERE family IS NOT NULL;
