"""Hostile cases of the MCP door, of grants and of record text: what is tried, and what must happen.

A test that shows cases is marked ``@pytest.mark.hostile("46", "T1")``. A case without such a test fails the
suite, and so does a mark that names no case. Cases 67 to 83 are in test_storage_rows.py, those of imported
servers in test_upstream.py.
"""

from __future__ import annotations

_TABLE = """
1 no Authorization on /mcp | 401, resource_metadata and scope in the challenge, authentication_error
2 random token of 43 characters | 401, constant body
3 token expired 1 s ago | /mcp 401; /v1 403 grant_expired
4 token with another audience | 401
5 ?access_token= with a valid one | 401, not logged
6 two Authorization headers | 401 or 400, no choice made between them
7 revoke, then call | the next request is 401 or 403 grant_revoked
8 Origin: https://evil.example | 403, nothing executed
9 Host: evil.example | 421 misdirected_request
10 Mcp-Name differs from the body's | 400 -32020
11 MCP-Protocol-Version: 2099-01-01 | 400 -32022 or -32020
12 JSON array batch | 400 -32600 or -32700
13 200 000 times [ | 400 -32700, little memory
14 5 MB body, honest length | 413 resource_limit
15 Content-Length: 10, 5 bytes, then silence | closed
16 1 000 connections with half a header | all closed, others served meanwhile
17 id: null | 400
18 session id of one principal with another's token | nothing of the first is reached
19 GET /mcp | 405
20 POST /mcp/ | served, no redirect, no way past the door
21 a client registers javascript:alert(1) | invalid_redirect_uri
22 a client registers http://evil.example/cb, or a look-alike | refused; the look-alike is shown with its real host
23 a loopback redirect with another port, or another host | accepted; a page without a redirect
24 a redirect with ?x=1 added | a page without a redirect
25 an unknown client asks for authorization | a page, escaped, without a redirect
26 an unknown client asks for a token | 401 invalid_client
27 no code_challenge | invalid_request, with issuer and state
28 a wrong verifier, or a code used twice | invalid_grant; the code, or what it produced, ends
29 a code used by another client | invalid_grant
30 a code that is 61 seconds old, or used in parallel | invalid_grant; one success at most
31 a refresh token used again | a second pair within the window, else the family ends; strictly: it ends
32 50 refreshes in parallel | as the mode says; nothing lives after a revocation
33 a refresh with a wider scope or another resource | invalid_scope, invalid_target
34 a parameter twice | invalid_request
35 a document at https://169.254.169.254/ | no client, and no connection
36 a name that resolves to private addresses | refused before a packet is sent
37 a document behind a redirect, too large, of another client | no client
38 the page of consent in a frame, or its form from elsewhere | not framed; 403, nothing decided
39 a decision on another session's request | refused; one code at most
40 a client called <script>, 5 000 characters long | escaped, cut, shown as unverified
41 a flood of registrations | 429 with Retry-After; clients in use go on
42 100 wrong passwords, then the right one | slowed down; a passkey and the owner's browser still sign in
43 a passkey used without verifying the user | 401, logged
44 forged X-Forwarded-For | the same limit; metadata unchanged
45 prompt=none, or another response_type | interaction_required, unsupported_response_type
46 a record of an ungranted stream | the same as one that does not exist
47 a filter on a hidden field | refused, the same as on one that does not exist
48 a sort by a hidden field | refused; the order does not move when hidden values do
49 groups by a hidden field | refused
50 a search for a word that is only in a hidden field | no hits, and no words of the engine
51 the order of hits when hidden text changes | the same answer
52 a cursor of one grant with another's token | refused, and nothing is disclosed about the grant
53 a cursor that is a year old | expired
54 a range wider than the grant's | refused
55 a record without a time, and records at the very edge | not shown; exactly what lies inside
56 a hidden field that changes a hundred times | no change is reported
57 a record that leaves the grant's time | reported once
58 a relation to an ungranted stream | refused
59 the schema of a narrow grant | no hidden names
60 an ETag of somebody else's answer | own content
61 a field that is added after the grant | not shown
62 two connections with the same key, one granted | only the granted one
63 hidden and missing ids, timed | the same time
64 an owner's token on /mcp | refused
65 every field at once | refused
66 limits that are none | a documented clamp, with a warning
84 record text closes the fence | stays inside, escaped
85 terminal sequences in a title | shown as escapes
86 newline in a sender's name | starts no new line
87 data: and javascript: links, files that are pages | inert text; attachment in a sandbox
88 2 MB text through fetch | bounded, says so, continuation, code points whole
T1 forged handles | one answer for all
T2 cursors that carry data or authority | sealed, bound, and good after a rotation
T3 filters as an oracle | refused before anything is planned, in every spelling
T4 sort and ties by hidden values | the order does not move
T5 aggregates over hidden values | refused
T6 small groups | what the client could count itself, and no more; documented
T7 matches, snippets and scores | of granted text only
T8 search syntax | words are words
T9 the time of a grant | exact at both ends; what has no time is not shown
T10 relations | both ends granted; hidden children count nowhere
T11 counts, has_more, sizes | of what is visible only
T12 changes | of visible values only
T13 schema and metadata | projected through the grant
T14 errors | never a value, a statement or another's name
T15 timing | the same for hidden and missing
T16 what is remembered between requests | never one grant's for another
T17 a grant that ends between two pages | no second page
T18 an owner's token in an agent's hands | refused where agents ask
T19 the same stream of two connections | never mixed up
T20 a declaration that grows | grants do not
"""


def rows() -> dict[str, str]:
    """Give the cases by their names."""
    found = (line.partition(" ") for line in _TABLE.strip().splitlines())
    return {name: text for name, _, text in found}
