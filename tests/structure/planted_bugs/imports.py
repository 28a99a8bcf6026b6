"""Mistakes in the import of remote MCP servers as operations."""

from __future__ import annotations

from tests.structure.planted import Bug

_CONTENT = "src/headgate/mcp/client/forward.py"
_DISCOVER = "src/headgate/mcp/client/upstream.py"
_FORWARD = "src/headgate/mcp/client/forward.py"
_IMPORT = "src/headgate/mcp/client/from_mcp.py"
_MAPPING = "src/headgate/mcp/client/mapping.py"
_NETWORK = "src/headgate/mcp/client/network.py"

BUGS = (
    Bug(
        "tests/sources/test_plain_keys.py"
        "::test_importing_again_into_a_connection_of_an_older_form_adds_nothing",
        "an older connection gets keys of the newest form",
        "src/headgate/sources/importing.py",
        "if 0 < source.plain_form <= form else items",
        "if source.plain_form else items",
    ),
    Bug(
        "S0-01",
        "the repr of an adapter shows its whole address",
        _IMPORT,
        'return f"FromMCP({self._parsed.public!r},',
        'return f"FromMCP({self.endpoint!r},',
    ),
    Bug(
        "S0-02 S0-07",
        "the last tool is left out",
        _IMPORT,
        "seen = {tool.name: tool for tool in tools}",
        "seen = {tool.name: tool for tool in tools[:2]}",
    ),
    Bug(
        "S0-03",
        "the query of an address is dropped",
        "src/headgate/mcp/client/pool.py",
        "port=endpoint.port, target=url.raw_path",
        "port=endpoint.port, target=url.path.encode()",
    ),
    Bug(
        "S0-04",
        "a failed discovery has no cause",
        _IMPORT,
        "details=reason_details(error),\n            ) from error",
        "details=reason_details(error),\n            ) from None",
    ),
    Bug(
        "S0-05",
        "a refused token is any failure",
        _IMPORT,
        "raise Unauthorized(details=reason_details(error)) from error",
        "raise DiscoveryFailed(details=reason_details(error)) from error",
    ),
    Bug(
        "S0-06",
        "a list that goes in a circle is read to the limit",
        _DISCOVER,
        "        seen.add(cursor)\n",
        "        seen = {cursor}\n",
    ),
    Bug(
        "S0-08",
        "a prefixed tool is called by its prefixed name",
        _FORWARD,
        '{"name": tool.name, "arguments"',
        '{"name": tool.spec.name, "arguments"',
    ),
    Bug(
        "S0-09",
        "the server chooses the namespace",
        _MAPPING,
        "        naming.namespace,\n        # Only",
        "        naming.server_name or naming.namespace,\n        # Only",
    ),
    Bug(
        "S0-10",
        "a tool that calls itself read-only is a query",
        _MAPPING,
        "op_type=OperationType.MUTATION",
        'op_type=OperationType("query" if (annotations or {}).get("readOnlyHint") else "mutation")',
    ),
    Bug(
        "S0-11",
        "imported tools are visible outside",
        _MAPPING,
        "visibility=Visibility.INTERNAL",
        "visibility=Visibility.EXTERNAL",
    ),
    Bug(
        "S0-12",
        "unknown keywords of an input schema are dropped",
        _MAPPING,
        'input_schema=fields["inputSchema"]',
        'input_schema={key: one for key, one in fields["inputSchema"].items() if key[:2] != "x-"}',
    ),
    Bug(
        "S0-13",
        "the dialect of an output schema is dropped",
        _MAPPING,
        "output_schema=declared or (",
        'output_schema={key: one for key, one in (declared or {}).items() if key != "$schema"} or (',
    ),
    Bug(
        "S0-14",
        "the errors that a tool declares are not",
        _MAPPING,
        "error_schemas=(*GENERIC_ERRORS, *errors)",
        "error_schemas=GENERIC_ERRORS",
    ),
    Bug(
        "S0-15",
        "an imported tool needs a scope",
        _MAPPING,
        "error_schemas=(*GENERIC_ERRORS, *errors),",
        "error_schemas=(*GENERIC_ERRORS, *errors),\n"
        '        access_control=__import__("headgate").AccessControl(required_scopes=("mcp",)),',
    ),
    Bug(
        "S0-16",
        "an imported tool counts as code of this process",
        _IMPORT,
        "provenance=Provenance.FROM_MCP",
        "provenance=Provenance.LOCAL",
    ),
    Bug(
        "S0-17",
        "the token is for every server",
        _IMPORT,
        "with_http_token(self.name, token)",
        'with_http_token("mcp", token)',
    ),
    Bug(
        "S0-18",
        "arguments that are null are not sent",
        _FORWARD,
        'return dict(cast("Mapping[str, Any]", value))',
        'return {key: one for key, one in cast("Mapping[str, Any]", value).items() if one is not None}',
    ),
    Bug(
        "S0-19",
        "an empty object counts as nothing",
        _FORWARD,
        "data = content if structured is None else structured",
        "data = structured or content",
    ),
    Bug("S0-20", "audio is unknown", _CONTENT, '    "audio": _audio,\n', ""),
    Bug(
        "S0-21",
        "texts are stripped",
        _CONTENT,
        '"text": _string(fields.get("text"))}',
        '"text": _string(fields.get("text")).strip()}',
    ),
    Bug(
        "S0-21",
        "a text is parsed where an output is declared",
        _FORWARD,
        '    structured = raw.get("structuredContent")\n',
        '    structured = raw.get("structuredContent")\n'
        "    if structured is None and tool.output is not None and content:\n"
        "        try:\n"
        '            structured = __import__("json").loads(content[0]["text"])\n'
        "        except ValueError:\n"
        "            structured = None\n",
    ),
    Bug(
        "S0-22",
        "only the texts of a failure are in its details",
        "src/headgate/operations/envelope.py",
        '        "content": list(content),\n        "structuredContent": structured_content,',
        '        "content": [block for block in content if block["type"] == "text"],\n'
        '        "structuredContent": structured_content,',
    ),
    Bug(
        "S0-23",
        "a lost session is not opened again",
        "src/headgate/mcp/client/upstream.py",
        "for _attempt in (1, 2):",
        "for _attempt in (1,):",
    ),
    Bug(
        "S0-24",
        "the general token goes before the one of the namespace",
        _FORWARD,
        'context.capabilities.get(namespace) or context.capabilities.get("mcp")',
        'context.capabilities.get("mcp") or context.capabilities.get(namespace)',
    ),
    Bug(
        "S0-25",
        "a missing extra is not named",
        "src/headgate/__init__.py",
        "needs more: pip install 'headgate[mcp]'",
        "cannot be imported",
    ),
    Bug(
        "S0-26",
        "a program can be started by the system's call",
        _NETWORK,
        "async def resolve(host: str, port: int)",
        'def _start(path: str) -> int:\n    return __import__("os").spawnv(0, path, [path])\n\n\n'
        "async def resolve(host: str, port: int)",
    ),
    Bug(
        "S0-26",
        "the library that starts programs is imported by its name",
        _NETWORK,
        "async def resolve(host: str, port: int)",
        'def _start(path: str) -> int:\n    return __import__("importlib").import_module("subprocess").call(path)\n\n\n'
        "async def resolve(host: str, port: int)",
    ),
    Bug(
        "S0-27",
        "tools are in the order of their names",
        "src/headgate/mcp/client/pins.py",
        "in listing.tools.items()",
        "in sorted(listing.tools.items())",
    ),
    Bug(
        "S0-28",
        "what breaks the declared schema is not reported",
        _FORWARD,
        "data, issues = forwarding.shape(tool.output, structured)",
        "data, _ = forwarding.shape(tool.output, structured)",
    ),
    Bug(
        "S0-29",
        "a tool without an output schema has none here either",
        _MAPPING,
        "(MCP_CONTENT_SCHEMA if blocks else {})",
        "{}",
    ),
    Bug(
        "S0-30",
        "blocks go before structured content",
        _FORWARD,
        "data = content if structured is None else structured",
        "data = structured = content or structured",
    ),
    Bug(
        "S0-31",
        "only the first block is data",
        _FORWARD,
        "data = content if structured is None else structured",
        "data = content[:1] if structured is None else structured",
    ),
    Bug(
        "S0-32",
        "a failure does not name its tool",
        _FORWARD,
        "tool=tool.name, namespace=namespace)",
        "namespace=namespace)",
    ),
    Bug(
        "S0-33",
        "arguments are sent under another name",
        _FORWARD,
        '"arguments": arguments, **more}',
        '"input": arguments, **more}',
    ),
    Bug(
        "S0-34",
        "the environment can add a certificate",
        _NETWORK,
        "create_ssl_context(trust_env=False)",
        "create_ssl_context(trust_env=True)",
    ),
    Bug(
        "S0-35",
        "the import uses a library that its extra does not bring",
        _CONTENT,
        "import json\n",
        "import json\n\nimport apsw\n",
    ),
    Bug("S0-36 S4-11", "an import is not used", _CONTENT, "import json\n", "import json\nimport os\n"),
    Bug(
        "S0-37 S0-B4",
        "the operations import the HTTP library",
        "src/headgate/operations/registration.py",
        "from __future__ import annotations\n",
        "from __future__ import annotations\n\nimport httpx2\n",
    ),
    Bug(
        "S0-B1",
        "the extra for imports brings a web server",
        "pyproject.toml",
        'mcp = ["cryptography>=46.0.7", "mcp>=2.3,<3"]',
        'mcp = ["cryptography>=46.0.7", "mcp>=2.3,<3", "uvicorn>=0.54,<0.55"]',
    ),
    Bug(
        "S0-B2",
        "a tool that says it streams is another kind of operation",
        _MAPPING,
        "op_type=OperationType.MUTATION",
        'op_type=OperationType("query" if (annotations or {}).get("streamingHint") else "mutation")',
    ),
    Bug(
        "S0-B3",
        "an adapter takes a registry",
        _IMPORT,
        "        options: ImportOptions | None = None,\n    ) -> None:",
        "        options: ImportOptions | None = None,\n        registry: Any = None,\n    ) -> None:",
    ),
    Bug(
        "S0-B5",
        "no content is one empty text",
        _CONTENT,
        "    if not isinstance(blocks, list):\n        return []\n",
        '    if not isinstance(blocks, list):\n        return [{"type": "text", "text": ""}]\n',
    ),
    Bug(
        "S0-B6",
        "a composing operation gets an envelope",
        "src/headgate/operations/dispatch.py",
        "return envelope.unwrap()",
        "return envelope",
    ),
    Bug(
        "S0-B7",
        "a transport of the program is closed",
        "src/headgate/mcp/client/wire.py",
        "        if isinstance(self._transport, PooledTransport):\n            await self._transport.aclose()\n",
        "        await self._transport.aclose()\n",
    ),
    Bug(
        "S0-B8",
        "the result of a failure is checked like any other",
        _FORWARD,
        "if not is_error and tool.output is not None:",
        "if tool.output is not None:",
    ),
    Bug(
        "tests/mcp/client/test_tools.py::test_tools_are_registered_only_under_a_namespace_that_the_program_gave",
        "operations are registered under the name of a host",
        "src/headgate/mcp/client/from_mcp.py",
        "if not self._adapter.is_named:",
        "if False:",
    ),
    Bug(
        "tests/mcp/client/test_tools.py::test_a_callback_gets_the_progress_of_its_own_call_while_the_tool_runs",
        "progress is reported under another token",
        "src/headgate/mcp/client/session.py",
        '"progressToken": number}}',
        '"progressToken": 0}}',
    ),
    Bug(
        "tests/mcp/client/test_tools.py::test_a_callback_that_fails_and_progress_that_is_none_leave_the_call_alone",
        "progress of another call is passed on",
        "src/headgate/mcp/client/session.py",
        "on_progress is None or str(token).encode() != state.rpc_id",
        "on_progress is None",
    ),
    Bug(
        "tests/mcp/client/test_tools.py::test_a_call_may_wait_longer_than_the_limits_when_its_caller_names_a_time",
        "a time that a caller names has no effect on the silence of a server",
        "src/headgate/mcp/client/request_state.py",
        "if self.waiting.is_patient:",
        "if False:",
    ),
    Bug(
        "tests/mcp/client/test_tools.py::test_a_hundred_calls_at_once_all_succeed",
        "calls made at once are refused",
        "src/headgate/mcp/client/tools.py",
        "asyncio.Semaphore(limits.concurrency)",
        "asyncio.Semaphore(1000)",
    ),
)
