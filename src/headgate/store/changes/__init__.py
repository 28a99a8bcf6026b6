"""Change the store: declarations, connections, records, rules and files, in the transactions of the writer."""
