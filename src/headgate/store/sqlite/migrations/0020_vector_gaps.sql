-- Vectors are made of the newest records first: the numbers below the last one whose vectors are still to be made, as "first-last".
ALTER TABLE vector_shelf ADD COLUMN gaps TEXT NOT NULL DEFAULT '';
