"""JSON Schema, pure: guard foreign schemas, check and normalise values, digest and compare definitions."""
