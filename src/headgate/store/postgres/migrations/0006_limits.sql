-- Attempts are rows of oauth_entry, and each process counts requests by itself.
DROP TABLE limit_use, limit_bucket;
