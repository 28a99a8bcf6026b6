"""Which network addresses may be called: public ones, this machine by its names, private ones by the owner's word.

Who dials does so by a literal address that passed here, so a name server that changes its answer in between (DNS
rebinding) gains nothing.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Set as AbstractSet

from headgate.errors import AddressBlocked

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


def is_this_machine(host: str) -> bool:
    """Whether a host name, without being resolved, can only mean this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    address = _literal(host)
    return address is not None and _is_in(address, _LOOPBACK)


def permitted_addresses(addresses: Iterable[str], host: str, *, allowed_hosts: AbstractSet[str]) -> list[str]:
    """Choose the addresses that the host may have, in their order; none if it has none at all.

    Public addresses are accepted; loopback, for a host name that means this machine; private ranges, for hosts that
    were allowed by name. Link-local addresses (cloud metadata among them), multicast and the like never are.

    Raises:
        AddressBlocked: it has addresses, and none of them may be called.
    """
    resolved = list(dict.fromkeys(addresses))
    permitted = [address for address in resolved if _may_call(address, host, allowed_hosts)]
    if resolved and not permitted:
        raise AddressBlocked(
            f"{host} leads to {resolved[-1]}, which must not be called.", details={"host": host}
        )
    return permitted


def _may_call(text: str, host: str, allowed_hosts: AbstractSet[str]) -> bool:
    literal = _literal(text)
    if literal is None:
        return False
    address = _innermost(literal)
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
