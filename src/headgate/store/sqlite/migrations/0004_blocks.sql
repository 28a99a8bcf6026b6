-- Events enter the chain in blocks, one event to a line: seal = HMAC-SHA256(key, seal before || events), and seq is
-- the number of a block's last event. What was written before are blocks of one event each, with the same seals.
ALTER TABLE audit RENAME COLUMN event TO events;
