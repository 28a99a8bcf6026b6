"""Know who is asking: owner, clients, tokens, keys."""
