"""Search by meaning without a database: models, passages, vectors, the exact scan, and fusion with the word search."""
