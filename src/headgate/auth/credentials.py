"""The credential cache: tokens that were granted to agents on this machine, one private file for each server.

Only a client's token is ever taken from it. Nothing here gets a token; that is the owner's consent. A file can be
wrong about the kind of its token, so that the server's word on it decides before anything is served.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec

from headgate.errors import ConfigInvalid, OwnerCredentialRefused
from headgate.home import read_private, write_private
from headgate.model.instants import instant

OWNER_VARIABLES = ("PDPP_OWNER_TOKEN", "PDPP_OWNER_SESSION_COOKIE")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_DEFAULT_PORTS = {"https": 443, "http": 80}
_OWNER_KINDS = frozenset({"owner", "control_plane", "owner_agent"})
#: The members in which servers name the kind of a token.
_KIND_MEMBERS = ("token_kind", "pdpp_token_kind", "kind", "role", "scope")


def provider_address(text: str) -> str:
    """Read a provider's address: https, or http on this machine; no path, no user.

    Different spellings of one address give the same text, since the token's file is found by it.

    Raises:
        ConfigInvalid: it is not such an address.
    """
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK)
    is_bare = not (parts.username or parts.query or parts.fragment or parts.path.strip("/"))
    if not host or not is_safe or not is_bare:
        raise ConfigInvalid(
            "The provider's address must be https://host, or http:// on this machine, without a path.",
            hint="Pass it with --provider-url.",
            param="provider_url",
        )
    name = f"[{host}]" if ":" in host else host
    is_default = port is None or port == _DEFAULT_PORTS[parts.scheme]
    return f"{parts.scheme}://{name}" if is_default else f"{parts.scheme}://{name}:{port}"


def refuse_owner_environment(environment: Mapping[str, str]) -> None:
    """Refuse to start if the environment holds an owner credential."""
    for name in OWNER_VARIABLES:
        if environment.get(name):
            raise OwnerCredentialRefused(f"{name} is set, which holds an owner's credential.")


def refuse_owner_bearer(bearer: Mapping[str, Any]) -> None:
    """Refuse a token that its server describes as an owner's."""
    if _is_owner(bearer):
        raise OwnerCredentialRefused("The server says that this token is an owner's.")


def _is_owner(described: Mapping[str, Any]) -> bool:
    kinds = (described.get(name) for name in _KIND_MEMBERS)
    return any(isinstance(kind, str) and kind in _OWNER_KINDS for kind in kinds)


def credential_path(cache_root: Path, provider_url: str) -> Path:
    """Name the file of the token for a server."""
    return cache_root / "clients" / f"{_UNSAFE.sub('_', urlsplit(provider_url).netloc)}.json"


def home_credential_path(cache_root: Path, home: Path, client: str | None = None) -> Path:
    """Name the file of a client's token for a home on this machine; without a client, the one for any."""
    mark = _mark(str(home))
    if client is None:
        return cache_root / "clients" / f"home-{mark}.json"
    # Names that differ only in what a file's name cannot hold get different files.
    name = client if not _UNSAFE.search(client) else f"{_UNSAFE.sub('_', client)[:40]}-{_mark(client)}"
    return cache_root / "clients" / f"home-{mark}.{name[:80]}.json"


def only_credential_path(cache_root: Path, home: Path) -> Path:
    """Find the one token file of a home; the one for any client if there is none yet."""
    for_any = home_credential_path(cache_root, home)
    paths = [for_any] if for_any.exists() else sorted(for_any.parent.glob(f"{for_any.stem}.*.json"))
    if len(paths) > 1:
        names = [path.name.removeprefix(f"{for_any.stem}.").removesuffix(".json") for path in paths]
        raise ConfigInvalid(
            f"Tokens are saved for several clients: {', '.join(names)}.",
            hint="Choose one with --client NAME.",
        )
    return paths[0] if paths else for_any


def _mark(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_token(path: Path, *, now_seconds: int, hint: str) -> str:
    """Read a client's token from its file."""
    content = read_private(path)
    if content is None:
        raise _unusable("There is no token for this server yet.", hint)
    credential = _credential(content, path, hint)
    if _is_owner(credential):
        raise OwnerCredentialRefused(f"{path} holds an owner's token.")
    token = credential.get("access_token")
    if not isinstance(token, str) or not token:
        raise _unusable(f"{path} holds no access_token.", hint)
    if _has_expired(credential.get("expires_at"), now_seconds):
        raise _unusable("The token for this server has expired.", hint)
    return token


def write_token(path: Path, provider_url: str, credential: Mapping[str, Any], *, created_at: str) -> None:
    """Write a client's token to a private file in a private directory."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    document = {
        "provider_url": provider_url,
        "authorization_server": provider_url,
        "client": {},
        "scope": credential.get("scope"),
        "created_at": created_at,
        "credential": dict(credential),
    }
    write_private(path, msgspec.json.format(msgspec.json.encode(document), indent=2))


def _credential(content: bytes, path: Path, hint: str) -> Mapping[str, Any]:
    try:
        document = msgspec.json.decode(content, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise _unusable(f"{path} is not a credential file.", hint) from error
    credential = document.get("credential")
    if not isinstance(credential, dict):
        raise _unusable(f"{path} holds no credential.", hint)
    return cast("Mapping[str, Any]", credential)


def _has_expired(expires_at: Any, now_seconds: int) -> bool:
    if isinstance(expires_at, int | float):
        return expires_at <= now_seconds
    if isinstance(expires_at, str):
        moment = instant(expires_at)
        return moment is None or moment <= now_seconds * 1_000_000
    return False


def _unusable(message: str, hint: str) -> ConfigInvalid:
    return ConfigInvalid(message, hint=hint)
