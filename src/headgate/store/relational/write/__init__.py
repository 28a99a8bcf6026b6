"""Change the store: declarations, accounts, records and files."""
