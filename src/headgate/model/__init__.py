"""Values: what things are. No I/O, no rules."""
