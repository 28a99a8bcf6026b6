"""Rules: what no agent ever sees. Each with how many records it hides; a new one is counted before it is added."""

from __future__ import annotations

from headgate.auth.keys import fresh_id
from headgate.console.formatting import counted, number
from headgate.console.pages import Form, Frame, OwnerRequest, View, page, part, see_other
from headgate.errors import HeadgateError, InvalidRequest, NotFound
from headgate.model.hiding import HidingRule, ReadySet, RuleId, RuleKind
from headgate.reading.rules import ActiveRule, ChosenRule, active_rules, add_rule, try_rule
from headgate.web.replies import HttpReply
from headgate.wiring import Services

_PATH = "/console/rules"
_SETS = {
    ReadySet.ONE_TIME_CODES: ("One-time codes", "messages with a code for signing in or confirming"),
    ReadySet.PASSWORD_RESETS: ("Password resets", "messages that let somebody set a new password"),
}


async def show(console: Services, request: OwnerRequest) -> HttpReply:
    hidden, unhidden = request.query.number("hidden"), request.query.number("shown")
    notice = "" if hidden is None else f"The rule hides {counted(hidden, 'record')} from now on."
    if unhidden is not None:
        notice = f"The rule is removed; {counted(unhidden, 'record')} may be shown again."
    typed = _typed(request.query)
    # A record's page brings the rule along that would hide everything of its sender.
    view = await (_counted(console, typed) if typed.text else _view(console, typed))
    return page("rules.html", Frame("Rules", request, "rules", notice), view)


async def add(console: Services, request: OwnerRequest) -> HttpReply:
    """Add a rule, or count what it would hide: htmx asks for that while the owner types, a button without it."""
    form = await request.form()
    try:
        chosen = _chosen(form)
        if request.is_partial:
            return part("rule_count.html", request, await _counted(console, chosen))
        if form.get("do") == "count":
            view = await _counted(console, chosen)
            return page("rules.html", Frame("Rules", request, "rules"), view)
        rule = await add_rule(console.reads.store, chosen, RuleId(fresh_id("rul")), console.clock())
    except InvalidRequest as error:
        view = await _view(console, _typed(form), problem=f"{error.message} {error.hint}")
        if request.is_partial:
            return part("rule_count.html", request, view)
        return page("rules.html", Frame("Rules", request, "rules"), view, status=error.status)
    return see_other(f"{_PATH}?hidden={rule.hidden}")


async def remove(console: Services, request: OwnerRequest) -> HttpReply:
    await request.form()
    try:
        unhidden = await console.reads.store.remove_rule(
            RuleId(request.places["rule_id"]), at=console.clock()
        )
    except NotFound as error:
        raise _gone(error) from None
    return see_other(f"{_PATH}?shown={unhidden}")


def rule_words(rule: HidingRule) -> str:
    """Describe a rule in a sentence."""
    of = f" of {rule.stream}" if rule.stream else ""
    where = f"{rule.field}{of}" if rule.field else f"any text{of}"
    match rule.kind:
        case RuleKind.VALUE:
            return f"{where} is “{rule.text}”"
        case RuleKind.WORDS:
            return f"{where} holds the words “{rule.text}”"
        case RuleKind.PATTERN:
            return f"{where} matches {rule.text}"
        case RuleKind.SET:
            return f"{_SETS[ReadySet(rule.text)][0]} in {where}"


def _gone(error: HeadgateError) -> NotFound:
    return NotFound(error.message, hint="It may have been removed meanwhile.")


def _typed(form: Form) -> ChosenRule:
    kind = form.get("kind")
    is_known = kind in set(RuleKind)
    return ChosenRule(
        RuleKind(kind) if is_known else RuleKind.VALUE,
        form.get("text"),
        form.get("field").strip(),
        form.get("stream").strip(),
    )


def _chosen(form: Form) -> ChosenRule:
    if form.get("kind") not in set(RuleKind):
        raise InvalidRequest("Choose what the rule looks at.", param="kind")
    return _typed(form)


async def _counted(console: Services, chosen: ChosenRule) -> View:
    trial = await try_rule(console.reads.store, chosen)
    streams = ", ".join(f"{number(count)} of {name}" for name, count in trial.by_stream.items())
    text = f"It finds {counted(trial.total, 'record')}{f': {streams}' if streams else ''}."
    if trial.hidden_before:
        text += f" Other rules hide {counted(trial.hidden_before, 'of these', 'of these')} already."
    return await _view(console, chosen, found=text)


async def _view(console: Services, chosen: ChosenRule, *, found: str = "", problem: str = "") -> View:
    rules = await active_rules(console.reads.store)
    used = {rule.rule.text for rule in rules if rule.rule.kind is RuleKind.SET}
    sources = (await console.reads.catalog()).declarations.values()
    streams = {name: stream for source in sources for name, stream in source.streams.items()}
    return View(
        rules=tuple(_line(rule) for rule in rules),
        sets=tuple(
            View(name=name.value, title=title, explanation=explanation, is_used=name.value in used)
            for name, (title, explanation) in _SETS.items()
        ),
        streams=tuple(sorted(streams)),
        fields=tuple(sorted({name for stream in streams.values() for name in stream.fields})),
        chosen=chosen,
        found=found,
        problem=problem,
    )


def _line(active: ActiveRule) -> View:
    return View(id=active.rule.id, words=rule_words(active.rule), hidden=active.hidden)
