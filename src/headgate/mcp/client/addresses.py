"""The address of a server as it is configured."""

from __future__ import annotations

from dataclasses import dataclass

import httpx2

from headgate.errors import AdapterConfigInvalid
from headgate.operations.network_addresses import is_this_machine

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class UpstreamEndpoint:
    """The address of one server, parsed and accepted."""

    url: httpx2.URL
    host: str
    port: int

    @property
    def is_tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.url.scheme == "https"

    @property
    def public(self) -> str:
        """Scheme, host and path, for display; the query is left out because it may hold a secret."""
        return str(self.url.copy_with(query=None))


def parse_endpoint(text: str, *, allow_insecure: bool = False) -> UpstreamEndpoint:
    """Parse the address of a server."""
    try:
        url = httpx2.URL(text)
        host, port = url.host, url.port
    except (httpx2.InvalidURL, TypeError, ValueError) as error:
        raise AdapterConfigInvalid("The endpoint is not a URL.") from error
    if url.scheme not in _PORTS or not host:
        raise AdapterConfigInvalid(
            "The endpoint must be an http or https URL with a host; stdio is not offered."
        )
    if url.userinfo or url.fragment:
        raise AdapterConfigInvalid("The endpoint must not carry a user, a password or a fragment.")
    if url.scheme == "http" and not (allow_insecure or is_this_machine(host)):
        raise AdapterConfigInvalid(f"The endpoint must be https: {host} is not this machine.")
    return UpstreamEndpoint(url, host, port or _PORTS[url.scheme])
