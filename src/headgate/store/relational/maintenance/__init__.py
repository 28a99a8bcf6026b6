"""Keep the tables in good order: check them, write column blocks, prune what is old."""
