-- name: count_entries
-- Note how many entries the chain has; it never has fewer.
INSERT INTO meta VALUES('audit_entries', ?) ON CONFLICT (k) DO UPDATE SET v = max(v, excluded.v)

-- name: chain_with
-- Those that hold some bytes.
SELECT seq, events, seal, first, end_seal FROM audit_chain WHERE seq > ? AND instr(events, ?) > 0 ORDER BY seq
