"""Which addresses may be called."""

import ipaddress

import pytest
from hypothesis import given, strategies as st

from headgate.errors import AddressBlocked
from headgate.mcp.client.network import parse_endpoint
from headgate.operations.network_addresses import is_this_machine, permitted_addresses


def may_call(address, host="tools.example", allowed=()):
    try:
        permitted_addresses([address], host, allowed_hosts=set(allowed))
    except AddressBlocked:
        return False
    return True


@given(st.ip_addresses(v=4) | st.ip_addresses(v=6))
def test_without_permission_only_public_addresses_are_called(address):
    if may_call(str(address)):
        assert address.is_global
        assert not address.is_multicast


@given(st.ip_addresses(v=6, network="2002::/16"))
def test_a_tunnel_is_never_called(address):
    assert not may_call(str(address))
    assert not may_call(str(address), allowed=["tools.example"])


@given(st.ip_addresses(v=4))
def test_an_address_wrapped_in_another_is_judged_by_its_inside(address):
    number = int(address)
    wrapped = [
        ipaddress.IPv6Address((0xFFFF << 32) | number),
        ipaddress.IPv6Address((0x64FF9B << 96) | number),
    ]
    assert [may_call(str(outer)) for outer in wrapped] == [may_call(str(address))] * 2


@pytest.mark.parametrize("address", ["10.1.2.3", "192.168.0.1", "172.16.0.1", "fd00::1", "100.64.0.1"])
def test_a_private_address_needs_the_name_of_its_host(address):
    assert not may_call(address)
    assert may_call(address, allowed=["tools.example"])
    assert not may_call(address, allowed=["other.example"])


@pytest.mark.parametrize("address", ["169.254.169.254", "fe80::1", "0.0.0.0", "::", "224.0.0.1", "nonsense"])
def test_some_addresses_are_never_called(address):
    assert not may_call(address, allowed=["tools.example"])


@pytest.mark.parametrize(
    ("host", "here"),
    [
        ("localhost", True),
        ("api.localhost", True),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost.example", False),
        ("127.0.0.1.example", False),
        ("10.0.0.1", False),
    ],
)
def test_this_machine_is_what_can_only_mean_this_machine(host, here):
    assert is_this_machine(host) is here
    assert may_call("127.0.0.1", host) is here


def test_an_endpoint_shows_no_query():
    endpoint = parse_endpoint("https://a.example/mcp?key=secret")
    assert endpoint.public == "https://a.example/mcp"
    assert (endpoint.host, endpoint.port, endpoint.is_tls) == ("a.example", 443, True)


SPECIAL = [
    *("192.0.0.1", "192.0.0.9", "192.0.2.1", "192.31.196.1", "192.52.193.1", "192.88.99.1", "192.175.48.1"),
    *("198.51.100.1", "203.0.113.1", "240.0.0.1", "255.255.255.255"),
    # Carried in IPv6: compatible, translated, NAT64 of a local network, and site-local.
    *("::127.0.0.1", "::10.0.0.1", "::8.8.8.8", "::ffff:0:127.0.0.1", "64:ff9b:1::7f00:1", "fec0::1"),
    *("100::1", "2001::1", "2001:2::1", "2001:20::1", "2001:db8::1", "2620:4f:8000::1", "3fff::1", "5f00::1"),
    *("64:ff9b::192.0.0.9", "::ffff:192.88.99.1", "4000::1"),
]


@pytest.mark.parametrize("address", SPECIAL)
def test_an_address_of_a_special_registry_is_never_called(address):
    assert not may_call(address)
    assert not may_call(address, allowed=["tools.example"])


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"])
def test_a_public_address_is_called(address):
    assert may_call(address)


@given(st.ip_addresses())
def test_addresses_are_judged_alike_by_every_version_of_the_standard_library(address):
    """The answer must not use the library's own judgement, which changed between releases."""
    before = may_call(str(address))
    kinds = ("is_private", "is_global", "is_reserved", "is_link_local", "is_loopback", "is_multicast")
    with pytest.MonkeyPatch.context() as patch:
        for kind in (ipaddress.IPv4Address, ipaddress.IPv6Address):
            for name in kinds:
                patch.delattr(kind, name)
        assert may_call(str(address)) is before
