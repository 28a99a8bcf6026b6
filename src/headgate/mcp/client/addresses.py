"""Which addresses may be called: the endpoint as configured, and each address its name resolves to.

Pure functions. The network backend checks every address just before it dials exactly that one.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import httpx2

from headgate.errors import AdapterConfigInvalid, AddressBlocked

_PORTS = {"http": 80, "https": 443}

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
_Networks = tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]


def _networks(*texts: str) -> _Networks:
    return tuple(ipaddress.ip_network(text) for text in texts)


# The special-purpose registries of IANA, written out: what the standard library calls private or global differs
# between versions of Python.

#: The rest of an address in one of these is the IPv4 address that is really called.
_CARRIES_IPV4 = _networks("::ffff:0:0/96", "64:ff9b::/96")
_LOOPBACK = _networks("127.0.0.0/8", "::1/128")
_PRIVATE = _networks(
    "10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "198.18.0.0/15", "fc00::/7"
)
_NEVER = _networks(
    "0.0.0.0/8",
    "169.254.0.0/16",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.31.196.0/24",
    "192.52.193.0/24",
    "192.88.99.0/24",
    "192.175.48.0/24",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "2001::/23",
    "2001:db8::/32",
    # 6to4 tunnels: where a packet goes depends on the nearest relay.
    "2002::/16",
    "2620:4f:8000::/48",
    "3fff::/20",
)
#: Outside of this no public IPv6 address is assigned: local NAT64, IPv4-compatible and site-local ones are elsewhere.
_PUBLIC_IPV6 = _networks("2000::/3")


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


def is_this_machine(host: str) -> bool:
    """Whether a host name, without being resolved, can only mean this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address = _literal(host)
    return address is not None and _is_in(address, _LOOPBACK)


def check_address(address: str, host: str, *, allowed_hosts: AbstractSet[str]) -> None:
    """Accept an address that the host may have.

    Public addresses are accepted; loopback, for a host name that means this machine; private ranges, for hosts that
    were allowed by name. Link-local addresses (cloud metadata among them), multicast and the like never are.

    Raises:
        AddressBlocked: the address must not be called.
    """
    literal = _literal(address)
    if literal is None or not _may_call(_innermost(literal), host, allowed_hosts):
        raise AddressBlocked(f"{host} leads to {address}, which must not be called.", details={"host": host})


def _may_call(address: IPAddress, host: str, allowed_hosts: AbstractSet[str]) -> bool:
    if _is_in(address, _LOOPBACK):
        return is_this_machine(host) or host in allowed_hosts
    if _is_in(address, _PRIVATE):
        return host in allowed_hosts
    is_public = isinstance(address, ipaddress.IPv4Address) or _is_in(address, _PUBLIC_IPV6)
    return is_public and not _is_in(address, _NEVER)


def _is_in(address: IPAddress, networks: _Networks) -> bool:
    return any(address in network for network in networks)


def _innermost(address: IPAddress) -> IPAddress:
    """Unwrap an IPv4 address that travels inside an IPv6 one."""
    return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF) if _is_in(address, _CARRIES_IPV4) else address


def _literal(text: str) -> IPAddress | None:
    try:
        return ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
