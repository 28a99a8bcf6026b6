"""Statements by name, the connection that runs them, the catalog, and the tables that reading and changing share."""
