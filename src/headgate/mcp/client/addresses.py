"""Which addresses may be called: the endpoint as configured, and each address its name resolves to.

Pure functions. The network backend checks every address just before it dials exactly that one.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import httpx2

from headgate.errors import AdapterConfigInvalid, AddressBlocked

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
#: 6to4 tunnels: where a packet goes depends on the nearest relay.
_TUNNEL = ipaddress.ip_network("2002::/16")
_SHARED = ipaddress.ip_network("100.64.0.0/10")
_PORTS = {"http": 80, "https": 443}

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address


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
    """Parse the address of a server.

    Raises:
        AdapterConfigInvalid: it is no URL, carries a user or fragment, or is not https outside this machine.
    """
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


def is_this_machine(host: str) -> bool:
    """Whether a host name, without being resolved, can only mean this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address = _literal(host)
    return address is not None and address.is_loopback


def check_address(address: str, host: str, *, allowed_hosts: AbstractSet[str]) -> None:
    """Accept an address that the host may have.

    Public addresses are accepted; loopback, for a host name that means this machine; private ranges, for hosts that
    were allowed by name. Link-local addresses (cloud metadata among them), multicast and the like never are.

    Raises:
        AddressBlocked: the address must not be called.
    """
    found = _literal(address)
    if found is None or found in _TUNNEL or not _may_call(_innermost(found), host, allowed_hosts):
        raise AddressBlocked(f"{host} leads to {address}, which must not be called.", details={"host": host})


def _may_call(address: IPAddress, host: str, allowed_hosts: AbstractSet[str]) -> bool:
    if address.is_link_local or address.is_multicast or address.is_unspecified:
        return False
    if address.is_loopback:
        return is_this_machine(host) or host in allowed_hosts
    if address.is_private or address in _SHARED:
        return host in allowed_hosts
    return address.is_global


def _innermost(address: IPAddress) -> IPAddress:
    """Unwrap an IPv4 address that travels inside an IPv6 one."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _literal(text: str) -> IPAddress | None:
    try:
        return ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
