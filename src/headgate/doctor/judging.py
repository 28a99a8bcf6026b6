"""What is wrong with an address, an answer, a clock or a tool: decided from values, without looking at anything."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from enum import StrEnum
from http import HTTPStatus
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec

_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MOST_DESCRIPTION_CHARS = 4096
_CLOCK_SECONDS = 60
_METADATA = re.compile(r'resource_metadata="([^"]*)"')
#: Keywords that some clients refuse at the top of an input schema.
_TOP_KEYWORDS = ("oneOf", "anyOf", "allOf", "$ref")


class Level(StrEnum):
    """How bad a finding is."""

    GOOD = "good"
    #: Works here, and not for every client.
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found, and what to do about it."""

    check: str
    level: Level
    text: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered; with a failure there is no status."""

    url: str
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    failure: str = ""


def good(check: str, text: str) -> Finding:
    """Report that nothing is wrong."""
    return Finding(check, Level.GOOD, text)


def problem(check: str, text: str, advice: str) -> Finding:
    """Return what is wrong and what to do."""
    return Finding(check, Level.PROBLEM, text, advice)


def judge_address(public_url: str) -> Iterator[Finding]:
    if not public_url:
        yield Finding(
            "address", Level.WARNING, "No public_url is set: only agents on this machine can connect.",
            "For Claude, ChatGPT and phones, serve over https and set public_url to that address.",
        )  # fmt: skip
        return
    parts = urlsplit(public_url)
    if parts.scheme != "https":
        yield problem(
            "address", f"{public_url} is not https.", "Put a proxy with https before Headgate; hosted agents need it."
        )  # fmt: skip
    elif _is_number(parts.hostname or ""):
        yield problem(
            "address", f"{public_url} has no name.", "Use a host name: agents refuse bare IP addresses."
        )
    elif parts.port not in {None, 443}:
        yield Finding(
            "port", Level.WARNING, f"{public_url} uses port {parts.port}.",
            "Serve on port 443: hosted agents do not call other ports.",
        )  # fmt: skip
    if parts.path or parts.query or parts.fragment:
        yield problem(
            "address", f"{public_url} has a path.", "Give Headgate a host name to itself: its address has no path."
        )  # fmt: skip
    elif parts.scheme == "https" and parts.port in {None, 443} and not _is_number(parts.hostname or ""):
        yield good("address", f"{public_url} is an address that agents can call.")


def judge_reached(check: str, answer: Answer) -> Finding | None:
    """Judge what would make every other check of an answer meaningless; None if there is nothing."""
    if answer.failure:
        return problem(
            check, f"{answer.url} cannot be reached: {answer.failure}.",
            "Look whether the server runs, the name leads to it, and the proxy passes requests on.",
        )  # fmt: skip
    if HTTPStatus.MULTIPLE_CHOICES <= answer.status < HTTPStatus.BAD_REQUEST:
        return problem(
            check, f"{answer.url} redirects to {answer.headers.get('location', 'nowhere')}.",
            "Set public_url to the address that answers itself: agents do not follow redirects with a token.",
        )  # fmt: skip
    if answer.status == HTTPStatus.MISDIRECTED_REQUEST:
        return problem(
            check, f"{answer.url} answers that this is not its name.",
            "Set public_url, or add the name to allowed_hosts, and start the server again.",
        )  # fmt: skip
    if answer.status == HTTPStatus.FORBIDDEN:
        return problem(
            check, f"{answer.url} is forbidden.",
            "Look at the firewall or bot protection before the server: agents call from data centres.",
        )  # fmt: skip
    return None


def judge_documents(base: str, resource: Answer, server: Answer) -> Iterator[Finding]:
    """Judge the two metadata documents: clients compare the addresses in them byte for byte."""
    documents: list[dict[str, Any]] = []
    for check, answer in (("resource metadata", resource), ("server metadata", server)):
        wrong = judge_reached(check, answer) or _judge_json(check, answer)
        if wrong is not None:
            yield wrong
            return
        documents.append(msgspec.json.decode(answer.body))
    named, described = documents
    expected = {
        "the resource": (named.get("resource"), f"{base}/mcp"),
        "the authorization server of the resource": (named.get("authorization_servers"), [base]),
        "the issuer": (described.get("issuer"), base),
    }
    wrong_names = [
        f"{what} is {named_value!r}, not {right!r}"
        for what, (named_value, right) in expected.items()
        if named_value != right
    ]
    if wrong_names:
        yield problem(
            "issuer", f"In the metadata {'; '.join(wrong_names)}.",
            f"Set public_url to exactly {base}, without a slash at its end, and start the server again.",
        )  # fmt: skip
    else:
        yield good("issuer", f"The metadata names {base} everywhere.")


def judge_challenge(base: str, answer: Answer) -> Finding:
    """Judge the answer to a call without a token: it must lead to the metadata."""
    wrong = judge_reached("challenge", answer)
    if wrong is not None:
        return wrong
    if answer.status != HTTPStatus.UNAUTHORIZED:
        return problem(
            "challenge", f"{answer.url} answers {answer.status} without a token, not 401.",
            "Look at the proxy: it must pass POST requests to /mcp on as they are.",
        )  # fmt: skip
    metadata = _METADATA.search(answer.headers.get("www-authenticate", ""))
    if metadata is None or not metadata[1].startswith(f"{base}/.well-known/oauth-protected-resource"):
        return problem(
            "challenge", f"{answer.url} does not name its metadata: {metadata[1] if metadata else 'nothing'}.",
            "Look at the proxy: it must pass the header WWW-Authenticate on, and public_url must be this address.",
        )  # fmt: skip
    return good("challenge", f"{answer.url} asks for a token and leads to the metadata.")


def judge_slash(answer: Answer) -> Finding:
    """Judge the answer at ``/mcp/``: some clients add the slash."""
    wrong = judge_reached("slash", answer)
    if wrong is not None:
        return wrong
    if answer.status != HTTPStatus.UNAUTHORIZED:
        return problem(
            "slash", f"{answer.url} answers {answer.status}, not as without the slash.",
            "Look at the proxy: it must pass /mcp/ on as well.",
        )  # fmt: skip
    return good("slash", "A slash at the end of the address changes nothing.")


def judge_clock(date: str, now_seconds: int, latest_seconds: int, noted_in: Path) -> Finding:
    """Judge the clock by the date of an answer, and by the latest time that the home has seen."""
    if latest_seconds - now_seconds > _CLOCK_SECONDS:
        return problem(
            "clock", f"The clock is {latest_seconds - now_seconds} seconds behind a time that was seen before.",
            "Set the clock: what expired by then stays expired. If the later time was wrong, stop everything that uses the "
            f"home and remove {noted_in}.",
        )  # fmt: skip
    try:
        apart = abs(int(parsedate_to_datetime(date).timestamp()) - now_seconds)
    except (ValueError, TypeError):
        return good("clock", "The clock has not gone back.")
    if apart > _CLOCK_SECONDS:
        return problem(
            "clock", f"This machine's clock and that of the public address are {apart} seconds apart.",
            "Set the clock, or let the system set it: tokens end by it.",
        )  # fmt: skip
    return good("clock", "The clock agrees with that of the public address.")


def judge_tools(tools: Sequence[Mapping[str, Any]]) -> Finding:
    """Judge names, descriptions and schemas of tools by what every known client accepts."""
    wrong = [text for tool in tools for text in _tool_problems(tool)]
    if wrong:
        return problem("tools", f"{'; '.join(wrong)}.", "Report this as a fault of Headgate.")
    return good("tools", f"{len(tools)} tools have names and schemas that every known client accepts.")


def _tool_problems(tool: Mapping[str, Any]) -> Iterator[str]:
    name, schema = str(tool.get("name")), cast("Mapping[str, Any] | None", tool.get("inputSchema"))
    if not _TOOL_NAME.fullmatch(name):
        yield f"the tool name {name!r} has other characters than letters, digits, _ and -"
    if not 0 < len(str(tool.get("description", ""))) <= _MOST_DESCRIPTION_CHARS:
        yield f"{name} has no description, or too long a one"
    if schema is None or schema.get("type") != "object":
        yield f"the input of {name} is no object"
    elif any(keyword in schema for keyword in _TOP_KEYWORDS):
        yield f"the input schema of {name} has a choice at its top"


def _judge_json(check: str, answer: Answer) -> Finding | None:
    is_json = answer.headers.get("content-type", "").startswith("application/json")
    try:
        is_object = isinstance(msgspec.json.decode(answer.body), dict)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        is_object = False
    if answer.status == HTTPStatus.OK and is_json and is_object:
        return None
    return problem(
        check, f"{answer.url} answers {answer.status}, and no JSON document.",
        "Look at the proxy: it must pass everything below /.well-known/ on to Headgate.",
    )  # fmt: skip


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
