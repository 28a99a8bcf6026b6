-- SHA-256 of the ids of removed connections. An id is made from a name and must never mean another connection.
CREATE TABLE connection_gone(home int, digest bytea, PRIMARY KEY(home, digest));
