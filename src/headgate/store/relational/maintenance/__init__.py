"""Keep the tables in good order: check them, prune what is old."""
