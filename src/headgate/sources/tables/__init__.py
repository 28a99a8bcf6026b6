"""Tables of any columns: CSV, JSON, Parquet, Excel and SQLite, with types, keys and times found by looking."""
