"""The authorization server's decisions: clients, redirects, requests, codes, tokens. HTTP is in `headgate.web.api.oauth`."""
