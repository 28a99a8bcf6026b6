"""Store and find records: the only package that speaks SQL."""
