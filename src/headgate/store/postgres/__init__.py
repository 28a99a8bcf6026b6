"""PostgreSQL: connections to one home of a database, its dialect and its schema; many homes share a database."""
