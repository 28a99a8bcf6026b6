-- Sealed cursors by the names that clients have for them. at: when it was kept, in microseconds; they end after a day.
CREATE TABLE kept_cursor(
  home int, name text COLLATE "C", token text NOT NULL, at bigint NOT NULL, PRIMARY KEY(home, name));
CREATE INDEX kept_cursor_at ON kept_cursor(home, at);
