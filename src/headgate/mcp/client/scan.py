"""What in the definition of a tool could deceive: looked for when a tool is pinned. Offline, by fixed rules. Pure.

Characters that a reader cannot see and names that look like other names block a tool until its owner has approved it.
Everything else is a note beside the pin: a rule that reads prose can be wrong.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

#: The grades of findings that block.
HIDDEN, LOOK_ALIKE = "hidden_characters", "look_alike"
#: Bidirectional controls, tags, spaces without width and other characters without a place on a screen. The joiners and
#: the variation selectors of emoji and scripts are not among them.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064"
    "\u2066-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e01ef\U000f0000-\U0010ffff]"
)
#: Letters of other scripts that are drawn as Latin ones.
_DRAWN_AS = str.maketrans(
    "аеорсухіјѕԁһкмтвнпгАВЕКМНОРСТХІЈЅαβεικνορτυχγΑΒΕΖΗΙΚΜΝΟΡΤΥΧ",
    "aeopcyxijsdhkmtbhnrABEKMHOPCTXIJSabeiknoptuxyABEZHIKMNOPTYX",
)
_INSTRUCTIONS = re.compile(
    r"""
    (?:ignore|disregard|forget|override)\s+(?:all\s+|any\s+|the\s+|your\s+|my\s+)*(?:previous|prior|above|earlier|other|system|safety)\s+
        (?:\w+\s+)?(?:instruction|rule|prompt|message|guideline|polic)
    | (?:do\s+not|don'?t|never|without)\s+(?:ever\s+)?(?:tell|telling|mention|mentioning|inform|informing|reveal|revealing|show|showing|notify|notifying|alert|alerting|ask|asking)
        \s+(?:\w+\s+){0,4}?(?:the\s+)?(?:user|human|person|owner)
    | <\s*/?\s*(?:important|system|secret|instructions?|hidden)\s*>
    | \b(?:system\s+prompt|hidden\s+instruction|secret\s+instruction)
    | \b(?:before|after|whenever|each\s+time|every\s+time)\s+(?:\w+\s+){0,3}?(?:using|calling|running|you\s+(?:use|call))\s+(?:this|any|other|another)\b[^.]{0,60}?
        \b(?:you\s+must|you\s+should|must\s+first|always|first\s+(?:read|call|send|open))
    | \b(?:read|open|include|attach|send|pass|forward|copy|append|put|upload|exfiltrate|leak)\b[^.]{0,60}?
        (?:\.ssh|id_rsa|id_ed25519|\.env\b|mcp\.json|/etc/passwd|\.aws/credentials|private\s+keys?|api\s+keys?|passwords?|environment\s+variables?|
        chat\s+history|conversation\s+history|previous\s+messages|system\s+prompt)
    | \b(?:you|the\s+assistant|the\s+model|the\s+agent)\s+must\s+(?:always|never|not|first|also)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
#: A tool by its name, as prose names tools.
_MENTION = re.compile(
    r"\b(?:tool|call|use|invoke|run)\s+(?:the\s+)?[`'\"]([A-Za-z]\w*(?:[_-]\w+)+)[`'\"]"
    r"|[`'\"]?\b([A-Za-z]\w*(?:_\w+)+)[`'\"]?\s+tool\b",
    re.IGNORECASE,
)
_SECRET = re.compile(
    r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{30,}|sk-(?:ant-|proj-)?[\w-]{20,}|AKIA[A-Z0-9]{16}|xox[abprs]-[\w-]{10,}"
    r"|AIza[\w-]{35}|glpat-[\w-]{20}|hg_[\w-]{30,}|eyJ[\w-]{10,}\.eyJ[\w-]{10,}\.)|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)
_MOST_TEXTS = 2_000
_TEXT_CHARS = 20_000
_QUOTED_CHARS = 80
_VALUES = frozenset({"default", "examples", "example", "const", "enum"})


@dataclass(frozen=True, slots=True)
class ToolFinding:
    """Something in a tool that could deceive."""

    #: ``hidden_characters``, ``look_alike``, ``instructions``, ``other_tool`` or ``secret``.
    kind: str
    #: Where in the definition, as a JSON pointer.
    place: str
    #: In words, for the owner.
    text: str

    @property
    def blocks(self) -> bool:
        """Whether the tool cannot be called until its owner has approved it."""
        return self.kind in {HIDDEN, LOOK_ALIKE}


def blocking(findings: Iterable[ToolFinding]) -> ToolFinding | None:
    """Return the first finding that blocks."""
    return next((finding for finding in findings if finding.blocks), None)


def scan(definitions: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[ToolFinding, ...]]:
    """Look through the tools of one server; only those with findings are returned."""
    drawn = _alike(definitions)
    by_tool = {
        name: (*drawn.get(name, ()), *_of_tool(definition, definitions.keys()))
        for name, definition in definitions.items()
    }
    return {name: findings for name, findings in by_tool.items() if findings}


def _alike(names: Iterable[str]) -> dict[str, tuple[ToolFinding, ...]]:
    """Find names that are drawn like others, or mix scripts to look like Latin."""
    plain = {name for name in names if name.isascii()}
    drawn = {_as_drawn(name): name for name in sorted(plain)}
    findings: dict[str, tuple[ToolFinding, ...]] = {}
    for name in names:
        if name in plain:
            continue
        other = drawn.get(_as_drawn(name))
        if other is not None:
            findings[name] = (ToolFinding(LOOK_ALIKE, "/name", f"Its name looks like {other}."),)
        elif _mixes_scripts(name):
            text = f"Its name has letters that look like others: {name.encode('ascii', 'backslashreplace').decode()[:_QUOTED_CHARS]}."
            findings[name] = (ToolFinding(LOOK_ALIKE, "/name", text),)
    return findings


def _as_drawn(name: str) -> str:
    return unicodedata.normalize("NFKC", _UNSEEN.sub("", name)).translate(_DRAWN_AS).casefold()


def _mixes_scripts(name: str) -> bool:
    letters = [character for character in name if character.isalpha()]
    has_latin = any(character.isascii() for character in letters)
    return has_latin and any(ord(character) in _DRAWN_AS for character in letters)


def _of_tool(definition: Mapping[str, Any], names: Iterable[str]) -> Iterator[ToolFinding]:
    known = {*names, *_properties(definition)}
    kinds: set[str] = set()
    for place, text in _texts(definition):
        for finding in _of_text(place, text, known):
            # One of each kind says enough; a thousand of them help no one.
            if finding.kind not in kinds:
                kinds.add(finding.kind)
                yield finding


def _of_text(place: str, text: str, known: set[str]) -> Iterator[ToolFinding]:
    if unseen := _UNSEEN.search(text):
        code = f"U+{ord(unseen.group()):04X}"
        yield ToolFinding(HIDDEN, place, f"It holds characters that cannot be seen, such as {code}.")
    if _SECRET.search(text):
        yield ToolFinding("secret", place, "It holds what looks like a secret.")
    if place.rpartition("/")[2].isdigit() or place.rpartition("/")[2] in _VALUES:
        return
    if instruction := _INSTRUCTIONS.search(text):
        yield ToolFinding(
            "instructions", place, f"It gives the model instructions: {_quoted(instruction.group())}."
        )
    for mention in _MENTION.finditer(text):
        name = mention[1] or mention[2]
        if name not in known:
            yield ToolFinding(
                "other_tool", place, f"It names a tool that this server does not have: {_quoted(name)}."
            )


def _quoted(text: str) -> str:
    plain = _UNSEEN.sub("", " ".join(text.split()))
    return f"“{plain if len(plain) <= _QUOTED_CHARS else plain[: _QUOTED_CHARS - 1] + '…'}”"


def _properties(definition: Mapping[str, Any]) -> Iterator[str]:
    for member in ("inputSchema", "outputSchema"):
        schema: Any = definition.get(member)
        properties: Any = (
            cast("Mapping[str, Any]", schema).get("properties") if isinstance(schema, Mapping) else None
        )
        if isinstance(properties, Mapping):
            yield from cast("Mapping[str, Any]", properties)


def _texts(definition: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the texts of a definition, names of properties too, with their places; without recursion."""
    waiting: list[tuple[str, Any]] = [("", definition)]
    yielded = 0
    while waiting and yielded < _MOST_TEXTS:
        place, value = waiting.pop()
        match value:
            case str():
                yielded += 1
                yield place, value[:_TEXT_CHARS]
            case Mapping():
                for name, inner in cast("Mapping[str, Any]", value).items():
                    if _UNSEEN.search(name):
                        yield f"{place}/{_UNSEEN.sub('?', name)[:_QUOTED_CHARS]}", name
                    waiting.append((f"{place}/{name[:_QUOTED_CHARS]}", inner))
            case list() | tuple():
                waiting.extend((f"{place}/{at}", inner) for at, inner in enumerate(cast("list[Any]", value)))
            case _:
                pass
