"""``headgate rules``: what no client ever sees, whatever it was granted."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from headgate.auth.clock import now
from headgate.auth.keys import fresh_id
from headgate.cli.homes import use_stores
from headgate.cli.terminal import AsJson, group, printable, put
from headgate.model.hiding import HidingRule, ReadySet, RuleId, RuleKind
from headgate.model.instants import iso
from headgate.reading.rules import ChosenRule, active_rules, add_rule, try_rule
from headgate.wiring import Services

app = group()
_Stream = Annotated[str, typer.Option(help="Only in this stream.", metavar="STREAM")]
_Field = Annotated[str, typer.Option(help="Only in this field.", metavar="FIELD")]
_SHOWN_CHARS = 80


@app.command("list")
def list_(context: typer.Context, *, as_json: AsJson = False) -> None:
    """List the rules, and how many records each hides."""

    async def work(stores: Services) -> list[dict[str, Any]]:
        return [_document(rule.rule, hidden=rule.hidden) for rule in await active_rules(stores.store)]

    rules = use_stores(context, work)
    lines = [f"{rule['id']}  hides {rule['hidden']}  {_words(rule)}" for rule in rules]
    put(rules, lines, as_json=as_json)
    if not (rules or as_json):
        typer.echo("There is no rule: clients see what their grants allow.", err=True)


@app.command()
def add(  # noqa: PLR0913 - the options of a command
    context: typer.Context,
    *,
    value: Annotated[
        str, typer.Option(help="A value of --field; * matches any characters.", metavar="VALUE")
    ] = "",
    words: Annotated[str, typer.Option(help="Consecutive words, in any text.", metavar="WORDS")] = "",
    pattern: Annotated[str, typer.Option(help="A regular expression, in any text.", metavar="REGEX")] = "",
    ready: Annotated[ReadySet | None, typer.Option("--set", help="A ready-made rule.")] = None,
    field: _Field = "",
    stream: _Stream = "",
    only_count: Annotated[
        bool, typer.Option("--count", help="Count the matching records; add nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Add a rule.

    When the command ends, no client can see the records that match; you still can.
    """
    kind, text = _chosen(value, words, pattern, ready)

    async def work(stores: Services) -> dict[str, Any]:
        chosen = ChosenRule(kind, text, field, stream)
        if only_count:
            matches = await try_rule(stores.store, chosen)
            return {
                "found": matches.total,
                "streams": matches.by_stream,
                "hidden_before": matches.hidden_before,
            }
        added = await add_rule(stores.store, chosen, RuleId(fresh_id("rul")), now())
        return _document(added.rule, hidden=added.hidden)

    done = use_stores(context, work)
    if only_count:
        streams = ", ".join(f"{count} of {name}" for name, count in done["streams"].items())
        text = f"It finds {done['found']} records{f': {streams}' if streams else ''}."
    else:
        text = f"{done['id']} hides {done['hidden']} records that clients could see."
    put(done, [text], as_json=as_json)


@app.command()
def remove(
    context: typer.Context,
    rule: Annotated[str, typer.Argument(help="The rule's id; see 'headgate rules list'.", metavar="RULE")],
    *,
    as_json: AsJson = False,
) -> None:
    """Remove a rule.

    Clients can again see what their grants allow, unless another rule hides it.
    """
    count = use_stores(context, lambda stores: stores.store.remove_rule(RuleId(rule), at=now()))
    text = f"{rule} is removed; {count} records are hidden no longer."
    put({"id": rule, "shown": count}, [text], as_json=as_json, indent=None)


def _chosen(value: str, words: str, pattern: str, ready: ReadySet | None) -> tuple[RuleKind, str]:
    options = {
        RuleKind.VALUE: value,
        RuleKind.WORDS: words,
        RuleKind.PATTERN: pattern,
        RuleKind.SET: "" if ready is None else ready.value,
    }
    chosen = [(kind, text) for kind, text in options.items() if text]
    if len(chosen) != 1:
        raise typer.BadParameter("give one of --value, --words, --pattern and --set")
    return chosen[0]


def _document(rule: HidingRule, *, hidden: int) -> dict[str, Any]:
    return {
        "id": rule.id,
        "kind": rule.kind.value,
        "text": rule.text,
        "field": rule.field,
        "stream": rule.stream,
        "created_at": iso(rule.created_at),
        "hidden": hidden,
    }


def _words(rule: dict[str, Any]) -> str:
    where = f" in {rule['field']}" if rule["field"] else ""
    of = f" of {rule['stream']}" if rule["stream"] else ""
    return f"{rule['kind']} {printable(rule['text'], _SHOWN_CHARS)}{where}{of}"
