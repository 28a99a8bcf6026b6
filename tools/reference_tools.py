"""The page of docs/reference on the MCP tools, as a model sees them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from headgate.mcp.serve.tools import DOCUMENT_IDENTITY, IDENTITY, OPERATIONAL, READ_ONLY, WHOLE
from headgate.model.query import SearchMode


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


#: What an answer holds beside what was selected.
_MEMBERS = {
    "query_records": (
        f"Beside `data`, the fields, a row has its identity ({_listed(IDENTITY)}) and how it was served",
        f"({_listed(OPERATIONAL)}). What rows share stands above them once: `stream`, `sources`, and in `all` the",
        "values that every row has; fields without a value are left out.",
    ),
    "fetch": (
        "`metadata` has the short fields, `untrusted`, and the identity of the record:",
        f"{_listed(DOCUMENT_IDENTITY)}.",
    ),
}


def tools_page() -> str:
    """Show the instructions, and each tool with its description and arguments."""
    surface = WHOLE.with_modes(tuple(SearchMode))
    hints = ", ".join(f"`{name}: {json.dumps(value)}`" for name, value in READ_ONLY.items())
    return "\n".join(
        [
            "# Tools",
            "",
            "The six MCP tools of `/mcp` and of `headgate mcp`, with the texts that a model reads. For a grant on built-in",
            "sources `schema` and `search` say which kinds of records it shows: mail, calendar, bank. Else they are the same",
            "for every client; what differs is what the calls answer. Arguments that are not listed are refused, but `q` for",
            "`query`.",
            "Errors are in [errors](errors.md), and the words in the [glossary](glossary.md).",
            "",
            f"All of them only read: {hints}.",
            "The values `semantic` and `hybrid` of `mode` in `search` are offered where search by meaning is",
            "[set up](../how-to/configure.md).",
            "",
            "## Instructions",
            "",
            "The server sends these when a client connects:",
            "",
            "\n>\n".join(f"> {part}" for part in surface.instructions.split("\n\n")),
            "",
            *(line for tool in surface.tools for line in _tool_section(tool)),
            "## Resources",
            "",
            "Every answer is complete without them. A client that reads resources can use these addresses too:",
            "",
            "| URI | what it is |",
            "|---|---|",
            *(f"| `{one['uriTemplate']}` | {one['title']}. |" for one in surface.templates),
            "",
        ]
    )


def _tool_section(tool: Mapping[str, Any]) -> Iterator[str]:
    schema = tool["inputSchema"]
    yield f"## `{tool['name']}`"
    yield ""
    yield f"*{tool['title']}.* {_escaped(tool['description'])}"
    yield ""
    yield "| argument | type | meaning |"
    yield "|---|---|---|"
    for name, one in schema["properties"].items():
        needed = " Required." if name in schema.get("required", ()) else ""
        yield f"| `{name}` | {_type(one)} | {_escaped(one['description'])}{needed} |"
    yield ""
    members = _listed(tool["outputSchema"]["oneOf"][0]["required"])
    yield f"`structuredContent` of an answer has {members}; that of a failure has `error`."
    yield from _MEMBERS.get(tool["name"], ())
    yield ""


def _type(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(f"`{word}`" for word in schema["enum"])
    if schema["type"] == "array":
        return f"list of {schema['items']['type']}s"
    if schema["type"] == "integer":
        most = f" to {schema['maximum']}" if "maximum" in schema else " or more"
        return f"integer, {schema['minimum']}{most}"
    return str(schema["type"])


def _escaped(text: str) -> str:
    """Keep signs of the text from being read as Markdown."""
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "&lt;")
