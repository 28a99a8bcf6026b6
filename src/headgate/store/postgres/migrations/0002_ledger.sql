-- Grants, tokens, the chain of disclosures and the owner's sign-in, as in SQLite. That the chain only grows is a matter of
-- rights there: a role that serves a home may not change or remove what is in it (migrate.py).
-- Pages of grants, tokens and counts are filled by half: so a grant can be revoked where the disk has no room for another page.
CREATE TABLE grant_issued(
  home int, id text COLLATE "C", document bytea NOT NULL, package_id text COLLATE "C", issued_at bigint NOT NULL,
  revoked_at bigint, consumed_at bigint, daily_records bigint, PRIMARY KEY(home, id)) WITH (fillfactor = 50);
CREATE INDEX grant_package ON grant_issued(home, package_id) WHERE package_id IS NOT NULL;

CREATE TABLE token(
  home int, digest bytea, kind text NOT NULL, subject_id text NOT NULL, client_id text, grant_id text, package_id text,
  issued_at bigint NOT NULL, expires_at bigint, revoked_at bigint, name text, scope text, family text COLLATE "C",
  PRIMARY KEY(home, digest)) WITH (fillfactor = 50);
CREATE INDEX token_family ON token(home, family) WHERE family IS NOT NULL;

CREATE TABLE audit(home int, seq bigint, events bytea NOT NULL, seal bytea NOT NULL, PRIMARY KEY(home, seq));
CREATE TABLE audit_fold(
  home int, last bigint, first bigint NOT NULL, events bytea NOT NULL, end_seal bytea NOT NULL, seal bytea NOT NULL,
  PRIMARY KEY(home, last));
CREATE VIEW audit_chain(home, seq, events, seal, first, end_seal) WITH (security_invoker = true) AS
  SELECT home, last, events, seal, first, end_seal FROM audit_fold
  UNION ALL SELECT home, seq, events, seal, NULL, NULL FROM audit;
CREATE TABLE audit_journal(home int, name text COLLATE "C", taken bigint NOT NULL, PRIMARY KEY(home, name));
CREATE TABLE spent(
  home int, grant_id text COLLATE "C", day bigint, records bigint NOT NULL, PRIMARY KEY(home, grant_id, day))
  WITH (fillfactor = 50);

CREATE TABLE owner(home int, id int, password text, link bytea, link_ends_at bigint, PRIMARY KEY(home, id));
CREATE TABLE owner_browser(
  home int, digest bytea, kind text NOT NULL, made_at bigint NOT NULL, used_at bigint NOT NULL, proved_at bigint NOT NULL,
  PRIMARY KEY(home, digest));
CREATE TABLE owner_passkey(
  home int, id bytea, party text NOT NULL, name text NOT NULL, public_key bytea NOT NULL, uses bigint NOT NULL,
  made_at bigint NOT NULL, used_at bigint, PRIMARY KEY(home, id));
CREATE TABLE owner_challenge(home int, digest bytea, ends_at bigint NOT NULL, PRIMARY KEY(home, digest));

CREATE TABLE oauth_entry(
  home int, kind text COLLATE "C", key bytea, document bytea NOT NULL, expires_at bigint, PRIMARY KEY(home, kind, key));
CREATE INDEX oauth_entry_end ON oauth_entry(home, expires_at) WHERE expires_at IS NOT NULL;

-- How many records of a grant were promised to requests on a day: what daily limits are judged by.
CREATE TABLE budget(
  home int, grant_id text COLLATE "C", day bigint, records bigint NOT NULL, PRIMARY KEY(home, grant_id, day))
  WITH (fillfactor = 50);
