"""Encrypted connections: only to trusted servers, and only under the name that was called."""

import datetime as dt
import ssl
from collections.abc import Iterator

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from headgate.errors import DiscoveryFailed
from headgate.mcp.client.from_mcp import ImportOptions, from_mcp
from headgate.mcp.client.network import system_trust
from tests.hostile.server import LEGACY, MODERN, faulty_server
from tests.mcp.client.importing import call

pytestmark = pytest.mark.anyio

START = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
END = dt.datetime(2120, 1, 1, tzinfo=dt.UTC)


def certificate(folder, name):
    """Make a self-signed certificate for a name; return the server's TLS settings and the client's."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(START)
        .not_valid_after(END)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / f"{name}.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(path)
    return server, ssl.create_default_context(cadata=made.public_bytes(serialization.Encoding.PEM).decode())


@pytest.fixture
def forgotten_trust() -> Iterator[None]:
    """Load the certificates of this machine anew, and again after the test."""
    system_trust.cache_clear()
    yield
    system_trust.cache_clear()


@pytest.mark.requirement("S0-34")
async def test_the_environment_adds_no_certificate_and_logs_no_key(tmp_path, monkeypatch, forgotten_trust):
    server_side, _ = certificate(tmp_path, "localhost")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "localhost.pem"))
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))
    async with faulty_server(tls=server_side) as server:
        with pytest.raises(DiscoveryFailed):
            await from_mcp(server.url, "ns")
        assert server.seen == []
    assert not (tmp_path / "keys").exists()


@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_a_trusted_server_is_used_over_tls(tmp_path, era):
    server_side, client_side = certificate(tmp_path, "localhost")
    options = ImportOptions(tls=client_side)
    async with (
        faulty_server(era=era, tls=server_side, token="secret-token") as server,
        await from_mcp(server.url, "ns", "secret-token", options=options) as imported,
    ):
        assert server.url.startswith("https://")
        for n in range(3):
            assert (await call(imported[0], {"n": n})).ok


async def test_an_untrusted_server_and_a_wrong_name_are_refused_before_a_request_is_sent(tmp_path):
    server_side, client_side = certificate(tmp_path, "elsewhere.example")
    for options in (ImportOptions(), ImportOptions(tls=client_side)):
        async with faulty_server(tls=server_side) as server:
            with pytest.raises(DiscoveryFailed) as caught:
                await from_mcp(server.url, "ns", "canary-token", options=options)
            assert caught.value.details["reason"] == "upstream_unreachable"
            assert server.seen == []
