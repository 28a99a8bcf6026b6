-- How often a limit of requests was used, by all machines together. name: a digest of what the limit counts. at: when it
-- was last used, by the server's clock; old rows are removed. The latest time that a machine has seen is in meta: latest_time.
CREATE TABLE limit_use(
  home int, name bytea, uses bigint NOT NULL, at timestamptz NOT NULL, PRIMARY KEY(home, name)) WITH (fillfactor = 50);

-- What may still be tried, of what is counted here at every attempt: guesses and registrations. at: by the server's clock.
CREATE TABLE limit_bucket(
  home int, name bytea, level float8 NOT NULL, at timestamptz NOT NULL, PRIMARY KEY(home, name)) WITH (fillfactor = 50);
