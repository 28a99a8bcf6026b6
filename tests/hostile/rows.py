"""Hostile cases of the MCP door and of record text: what comes in, and what must happen.

A test that shows a case is marked `@pytest.mark.hostile(1, ...)`. A case without such a test fails the suite,
and so does a mark that names no case.
"""

from __future__ import annotations

ROWS: dict[int, str] = {
    1: "no Authorization on /mcp -> 401, resource_metadata and scope in the challenge, authentication_error",
    2: "random token of 43 characters -> 401, constant body",
    3: "token expired 1 s ago -> /mcp 401; /v1 403 grant_expired",
    4: "token with another audience -> 401",
    5: "?access_token= with a valid one -> 401, not logged",
    6: "two Authorization headers -> 401 or 400, no choice made between them",
    7: "revoke, then call -> the next request is 401 or 403 grant_revoked",
    8: "Origin: https://evil.example -> 403, nothing executed",
    9: "Host: evil.example -> 421 misdirected_request",
    10: "Mcp-Name differs from the body's -> 400 -32020",
    11: "MCP-Protocol-Version: 2099-01-01 -> 400 -32022 or -32020",
    12: "JSON array batch -> 400 -32600 or -32700",
    13: "200 000 times [ -> 400 -32700, little memory",
    14: "5 MB body, honest length -> 413 resource_limit",
    15: "Content-Length: 10, 5 bytes, then silence -> closed",
    16: "1 000 connections with half a header -> all closed, others served meanwhile",
    17: "id: null -> 400",
    18: "session id of one principal with another's token -> nothing of the first is reached",
    19: "GET /mcp -> 405",
    20: "POST /mcp/ -> served, no redirect, no way past the door",
    84: "record text closes the fence -> stays inside, escaped",
    85: "terminal sequences in a title -> shown as escapes",
    86: "newline in a sender's name -> starts no new line",
    87: "data: and javascript: links, files that are pages -> inert text; attachment in a sandbox",
    88: "2 MB text through fetch -> bounded, says so, continuation, code points whole",
}
