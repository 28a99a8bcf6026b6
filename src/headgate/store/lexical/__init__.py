"""Search by words, as far as no database has a part in it: cutting text, segments of the index, queries, ranking."""
