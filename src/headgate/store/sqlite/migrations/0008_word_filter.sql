-- Which words a segment of the word index cannot hold; NULL: it was written before there were filters.
ALTER TABLE word_segment ADD COLUMN filter BLOB;
