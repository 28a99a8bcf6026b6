-- The owner's passkeys: public keys, each bound to the name of the server that it was made for.
CREATE TABLE owner_passkey(
  id BLOB PRIMARY KEY, party TEXT NOT NULL, name TEXT NOT NULL, public_key BLOB NOT NULL, uses INTEGER NOT NULL,
  made_at INTEGER NOT NULL, used_at INTEGER) STRICT, WITHOUT ROWID;

-- Challenges that were answered, until they would have ended anyway: each is answered once.
CREATE TABLE owner_challenge(digest BLOB PRIMARY KEY, ends_at INTEGER NOT NULL) STRICT, WITHOUT ROWID;
