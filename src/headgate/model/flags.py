"""The flag lines of a schema: what may be done with a field, in a few characters, and what they mean.

A compact schema holds one line for each field; texts for models print them, and read them back.
"""

from __future__ import annotations

from headgate.model.wire import FieldFlags, FlagBody

LEGEND = {
    "t": "declared type",
    "role": "presentation role",
    "eq": "filter by value: {field: value}",
    "r": "filter by range: {field: {op: value}}",
    "lex": "found by search",
    "sem": "found by semantic search",
    "a": "aggregations of this field",
    "g=false": "not granted",
}
_AGGREGATIONS = ("count_distinct", "group_by", "group_by_time", "sum", "min", "max")
_SEARCHES = {"lex": "lexical", "sem": "semantic"}
_UNUSABLE = "unusable:"


def flag_line(flags: FieldFlags) -> str:
    """Write the flags of a field as one line; a use that is declared and refused has its reason."""
    found = [f"t={kind}"] if (kind := flags.get("type")) else []
    found += [f"role={role}"] if (role := flags.get("role")) else []
    if flags.get("granted") is False:
        return ",".join([*found, "g=false"])
    found += _flag("eq", flags.get("exact_filter"))
    found += _flag("r", flags.get("range_filter"))
    found += _flag("lex", flags.get("lexical_search"))
    found += _flag("sem", flags.get("semantic_search"))
    aggregations = flags.get("aggregation") or {}
    usable = [kind for kind in _AGGREGATIONS if aggregations.get(kind, {}).get("usable")]
    found += [f"a={'|'.join(usable)}"] if usable else []
    return ",".join(found) or "declared"


def usable_only(flags: FieldFlags) -> FieldFlags:
    """Leave out the uses that are refused."""
    uses = ("exact_filter", "range_filter", "lexical_search", "semantic_search")
    refused = [use for use in uses if not flags.get(use, {}).get("usable")]
    chosen = flags.copy()
    for use in refused:
        chosen.pop(use, None)
    return chosen


def searches_of(line: str) -> list[str]:
    """Read which searches find a field: lexical, semantic, or both."""
    flags = line.split(",")
    return [search for flag, search in _SEARCHES.items() if flag in flags]


def aggregations_of(line: str) -> list[str]:
    """Read which aggregations a field allows."""
    written = [flag.removeprefix("a=") for flag in line.split(",") if flag.startswith("a=")]
    return [kind for kinds in written if not kinds.startswith(_UNUSABLE) for kind in kinds.split("|")]


def _flag(letters: str, flag: FlagBody | None) -> list[str]:
    if not flag:
        return []
    if flag.get("usable"):
        operators = "|".join(flag.get("operators", ()))
        return [f"{letters}={operators}" if letters == "r" else letters]
    return [f"{letters}={_UNUSABLE}{flag.get('reason')}"] if flag.get("declared") else []
