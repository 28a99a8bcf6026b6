"""The resource server: the six reads under a grant."""
