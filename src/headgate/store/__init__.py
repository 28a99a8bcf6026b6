"""Keep and find rows: the only SQL in the house."""
