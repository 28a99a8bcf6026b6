"""Read records: the SQL that plans are compiled to."""
