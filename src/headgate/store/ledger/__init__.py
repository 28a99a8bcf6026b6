"""Grants, tokens, the owner and the chain of disclosures."""
