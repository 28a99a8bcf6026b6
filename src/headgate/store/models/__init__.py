"""Models for search by meaning: they turn texts into vectors, and know nothing of a store."""
