"""Make an answer fit its budget and safe to quote. Pure."""
