"""Pure: JSON Schema. Guard a foreign one, check values, normalise them, fingerprint and compare definitions."""
