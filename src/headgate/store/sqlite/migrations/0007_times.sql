-- When each field of a shelf last changed, in microseconds; fid 0: when a record came or went. A reader sees the latest
-- of the fields that it may see. What was stored before this step came when the shelf was last written.
CREATE TABLE shelf_time(
  sid INTEGER NOT NULL, fid INTEGER NOT NULL, at INTEGER NOT NULL,
  PRIMARY KEY(sid, fid)) STRICT, WITHOUT ROWID;
INSERT INTO shelf_time SELECT sid, 0, updated_at FROM shelf WHERE updated_at IS NOT NULL;
