-- Old blocks are moved to a file, and one line stands in their place. The table is the same, by another name.
ALTER TABLE audit_fold RENAME TO audit_pruned;
