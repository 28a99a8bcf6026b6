"""Check, copy, back up and measure a store."""
