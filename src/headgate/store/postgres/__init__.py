"""The PostgreSQL engine: many homes in one database, any number of processes on any number of machines."""
