-- Aggregates read the typed tables: the columns that were stored beside them are gone.
DROP TABLE column_block;
ALTER TABLE shelf DROP COLUMN col_seq;
-- The scale of a column's exact values: s<col> of the typed table holds them, beside the floats of c<col>, in units of 10**-scale.
-- NULL: there are none yet, or the column holds no numbers.
ALTER TABLE field ADD COLUMN scale INTEGER;
