"""Several servers from one mcpServers block."""

import pytest

from headgate.errors import AdapterConfigInvalid, ConfigInvalid, DiscoveryFailed, Unauthorized
from headgate.mcp.client.servers import from_servers, read_servers
from headgate.operations.registry import Registry
from headgate.sources.secrets import Secrets
from tests.hostile.server import answers, faulty_server, http, tool
from tests.mcp.client.importing import call, until

pytestmark = pytest.mark.anyio


def private(path, words):
    path.write_text(words)
    path.chmod(0o600)
    return path


def test_only_http_entries_are_read_and_each_of_the_others_has_a_reason():
    entries, problems = read_servers(
        {
            "mcpServers": {
                "plain": {"url": "https://a.example/mcp"},
                "typed": {"type": "http", "url": "https://b.example/mcp"},
                "local": {"command": "uvx", "args": ["thing"]},
                "named": {"type": "stdio"},
                "old": {"type": "sse", "url": "https://c.example/sse"},
                "empty": {},
                "odd": 3,
            },
            "other": "things",
        }
    )
    assert [entry.name for entry in entries] == ["plain", "typed"]
    assert set(problems) == {"local", "named", "old", "empty", "odd"}
    assert "bridge" in problems["local"].message
    assert all(isinstance(problem, AdapterConfigInvalid) for problem in problems.values())


@pytest.mark.parametrize("document", [{}, [], None, {"mcpServers": []}])
def test_without_a_block_nothing_is_read(document):
    with pytest.raises(AdapterConfigInvalid):
        read_servers(document)


@pytest.mark.parametrize(
    "headers",
    [
        {"Authorization": "Bearer abcdefgh"},
        {"Authorization": "Bearer ${TOKEN}"},
        {"Authorization": "Bearer ${env:TOKEN}"},
        {"Authorization": "Basic ${file:/x}"},
        {"X-Api-Key": "${file:/x}"},
        {"Authorization": 3},
    ],
)
def test_a_token_is_named_and_neither_written_nor_taken_from_the_environment(headers):
    _, problems = read_servers({"mcpServers": {"s": {"url": "https://a.example/mcp", "headers": headers}}})
    assert "abcdefgh" not in problems["s"].message


async def test_tokens_come_from_private_files_and_from_the_keyring(tmp_path):
    path = private(tmp_path / "token", "file-token-1\n")
    secrets = Secrets(read_keyring=lambda service, user: {("svc", "me"): "ring-token-1"}.get((service, user)))
    async with faulty_server(token="file-token-1") as one, faulty_server(token="ring-token-1") as two:
        block = {
            "one": {"url": one.url, "headers": {"Authorization": f"Bearer ${{file:{path}}}"}},
            "two": {"url": two.url, "headers": {"authorization": "bearer keyring:svc/me"}},
        }
        async with await from_servers({"mcpServers": block}, secrets=secrets, required=True) as imported:
            assert imported.problems == {}
            registry = Registry(imported)
            assert sorted(item.id for item in registry) == ["one/echo", "one/other", "two/echo", "two/other"]
            for item in registry:
                assert (await call(item)).ok


async def test_one_server_in_trouble_keeps_no_other_out(tmp_path):
    opened = private(tmp_path / "open", "t")
    opened.chmod(0o644)
    refusing = {"server/discover": answers(http(401))}
    async with faulty_server() as good, faulty_server(faults=refusing) as strict, faulty_server() as gone:
        await gone.stop()
        block = {
            "good": {"url": good.url},
            "strict": {"url": strict.url},
            "gone": {"url": gone.url},
            "local": {"command": "npx"},
            "open": {"url": good.url, "headers": {"Authorization": f"Bearer ${{file:{opened}}}"}},
            "missing": {"url": good.url, "headers": {"Authorization": "Bearer ${file:/nowhere/at/all}"}},
            "a.b": {"url": good.url},
        }
        async with await from_servers({"mcpServers": block}) as imported:
            assert list(imported.servers) == ["good"]
            kinds = {name: type(problem) for name, problem in imported.problems.items()}
            assert kinds == {
                "strict": Unauthorized,
                "gone": DiscoveryFailed,
                "local": AdapterConfigInvalid,
                "open": ConfigInvalid,
                "missing": ConfigInvalid,
                "a.b": AdapterConfigInvalid,
            }
            assert len(list(imported)) == 2


async def test_when_all_are_required_one_failure_closes_the_rest():
    async with faulty_server(tools=[tool("t")]) as good:
        block = {"good": {"url": good.url}, "local": {"command": "npx"}}
        with pytest.raises(AdapterConfigInvalid):
            await from_servers({"mcpServers": block}, required=True)
        await until(lambda: good.open_connections == 0)
