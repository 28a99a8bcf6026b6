"""What somebody wrote in a message, apart from what they quote of earlier ones. Nothing is lost: it is two texts."""

from __future__ import annotations

import re

#: "On 3 May 2024, Ada wrote:" in the languages that mail programs often write it in.
_ATTRIBUTION = re.compile(
    r"^\s*(?:On|Am|Le|El|Il|Op|Den|Em|Dnia|W dniu)\b.{0,400}?"
    r"(?:wrote|schrieb|a écrit|escribió|ha scritto|schreef|skrev|escreveu|napisał|pisze)\b.{0,200}:\s*$",
    re.DOTALL,
)
#: From here on everything is an earlier message.
_EARLIER = re.compile(
    r"^[ \t]*(?:-{2,}[ \t]*(?:Original Message|Ursprüngliche Nachricht|Message d'origine|Mensaje original)[ \t]*-{2,}"
    r"|_{20,}[ \t]*\n[ \t]*(?:From|Von|De|Da):"
    r"|From:[^\n]*\n(?:Sent|Date):[^\n]*\nTo:[^\n]*\n"
    r"|Von:[^\n]*\n(?:Gesendet|Datum):[^\n]*\nAn:[^\n]*\n)",
    re.MULTILINE,
)
#: One of these stands in every such beginning; looking for them is quick.
_SIGNS = ("---", "______", "From:", "Von:")
_ATTRIBUTION_LINES = 3


def fold(text: str) -> tuple[str, str]:
    """Give the new text and the quoted one; a message that only quotes is all text."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    match = _EARLIER.search(text) if any(sign in text for sign in _SIGNS) else None
    text, earlier = (text, "") if match is None else (text[: match.start()], text[match.start() :])
    new, quoted = _by_lines(text) if "\n>" in f"\n{text}" else (text, "")
    quoted = "\n\n".join(one for one in (quoted.strip("\n"), earlier.strip()) if one)
    return (new.strip(), quoted) if new.strip() else (f"{text}{earlier}".strip(), "")


def _by_lines(text: str) -> tuple[str, str]:
    new: list[str] = []
    quoted: list[str] = []
    was_quoted = False
    for line in text.split("\n"):
        is_quoted = line.startswith(">")
        if is_quoted:
            if not was_quoted:
                quoted.extend(_attribution(new))
            quoted.append(line)
        else:
            new.append(line)
        was_quoted = is_quoted
    return "\n".join(new), "\n".join(quoted)


def _attribution(new: list[str]) -> list[str]:
    """Take the line that introduces a quotation, which may be broken into several, off the new text."""
    end = len(new)
    while end and not new[end - 1].strip():
        end -= 1
    for count in range(1, min(_ATTRIBUTION_LINES, end) + 1):
        taken = new[end - count : end]
        if _ATTRIBUTION.match("\n".join(taken)):
            del new[end - count :]
            return taken
    return []
