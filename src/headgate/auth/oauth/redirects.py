"""Where an authorization may be sent back to: compared as the texts that were sent, never as parsed URLs.

A parser normalises, and two parsers normalise differently; the browser that follows the redirect has a third one.
"""

from __future__ import annotations

import re

MAX_URIS = 10
MAX_URI_CHARS = 512
#: Private-use schemes can be claimed by any program of a device, so only these exact addresses are accepted.
PRIVATE_USE = frozenset({"cursor://anysphere.cursor-mcp/oauth/callback"})
#: A path or query of visible ASCII characters without ``#`` and without backslashes, which browsers read as slashes.
_REST = r'((?:[/?][!-"$-\[\]-~]*)?)'
#: A host name; its last label begins with a letter, so that no spelling of an IP address is one.
_HTTPS = re.compile(r"https://((?:[A-Za-z0-9-]+\.)*[A-Za-z][A-Za-z0-9-]*)(?::[0-9]{1,5})?" + _REST)
_LOOPBACK = re.compile(r"http://(127\.0\.0\.1|\[::1\]|localhost)(?::[0-9]{1,5})?" + _REST)


def is_allowed(uri: str) -> bool:
    """Say whether a client may register an address: https by name, http on loopback, or a listed private one."""
    return len(uri) <= MAX_URI_CHARS and (
        uri in PRIVATE_USE or bool(_HTTPS.fullmatch(uri)) or is_loopback(uri)
    )


def is_loopback(uri: str) -> bool:
    """Say whether an address is one of the owner's machine, where any program may listen."""
    return _LOOPBACK.fullmatch(uri) is not None


def matches(registered: str, requested: str) -> bool:
    """Compare byte for byte; only the port of a loopback address is free (RFC 8252, section 7.3)."""
    if registered == requested:
        return True
    ours, theirs = _LOOPBACK.fullmatch(registered), _LOOPBACK.fullmatch(requested)
    return ours is not None and theirs is not None and ours.groups() == theirs.groups()


def host_of(uri: str) -> str:
    """Give the host that a person is shown; of a private-use address the whole of it."""
    found = _HTTPS.fullmatch(uri) or _LOOPBACK.fullmatch(uri)
    return uri if found is None else found[1]
