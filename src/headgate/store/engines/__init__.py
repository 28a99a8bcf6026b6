"""Open the store of a home, and run its reads and writes on the connections of an engine."""
