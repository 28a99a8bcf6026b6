"""Read records: one module for each kind of read, the SQL that plans are compiled to."""
