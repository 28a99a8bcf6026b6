-- Details of reads that are old are folded: a fold stands for the events from first to last, sums them up line by line,
-- and is sealed after the seal before them. end_seal is the seal of the last block that it replaced, after which the
-- chain goes on. Folds are the beginning of the chain; no block lies before one.
CREATE TABLE audit_fold(
  last INTEGER PRIMARY KEY, first INTEGER NOT NULL, events BLOB NOT NULL, end_seal BLOB NOT NULL,
  seal BLOB NOT NULL) STRICT;
CREATE TRIGGER fold_keeps BEFORE UPDATE ON audit_fold BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END;
CREATE TRIGGER fold_stays BEFORE DELETE ON audit_fold BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END;
-- A block leaves only after the fold that stands for it was written.
DROP TRIGGER audit_stays;
CREATE TRIGGER audit_stays BEFORE DELETE ON audit
  WHEN NOT EXISTS (SELECT 1 FROM audit_fold WHERE last >= old.seq AND first <= old.seq)
  BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END;
CREATE VIEW audit_chain(seq, events, seal, first, end_seal) AS
  SELECT last, events, seal, first, end_seal FROM audit_fold
  UNION ALL SELECT seq, events, seal, NULL, NULL FROM audit;
