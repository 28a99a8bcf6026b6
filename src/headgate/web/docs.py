"""The page at ``/docs``: the OpenAPI document, drawn for people.

It knows the document and nothing else, so that no second list can disagree with it. Every text of the
document is escaped on its way in; the page has no script and loads nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from string import Template
from typing import Any
from urllib.parse import quote

from headgate.web.page import BEGINNING

Part = Mapping[str, Any]
_CODE = re.compile(r"`([^`]+)`")
_LIMITS = (("default", "default"), ("minimum", "at least"), ("maximum", "at most"))

_PAGE = Template(
    BEGINNING
    + """\
<title>$title</title>
<style>
:root { --ink: #1b2a30; --soft: #55676d; --paper: #f4f7f7; --card: #fff; --line: #d3dfe1; --code: #e3ebec;
  --link: #0b6273; --get: #0b6273; --write: #8a4b00; --end: #a3252b }
@media (prefers-color-scheme: dark) { :root { --ink: #dfe8ea; --soft: #9db0b6; --paper: #11191c;
  --card: #182327; --line: #2c3c42; --code: #22323a; --link: #7cc7d8; --get: #7cc7d8; --write: #e7b271;
  --end: #f0979b } }
* { box-sizing: border-box }
html { scroll-padding-top: 1rem; -webkit-text-size-adjust: 100% }
body { font: 1rem/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0;
  overflow-wrap: anywhere }
a { color: var(--link) }
code, pre { font: .9em/1.5 ui-monospace, monospace }
code { background: var(--code); padding: .1em .35em; border-radius: .25rem }
pre { background: var(--code); padding: .75rem 1rem; border-radius: .375rem; white-space: pre-wrap }
pre code { padding: 0 }
.frame { max-width: 76rem; margin: 0 auto; padding: 1.5rem 1.25rem 4rem }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .75rem }
h2 { font-size: 1.4rem; margin: 3rem 0 .25rem }
h3 { font-size: 1.05rem; margin: 0; display: flex; flex-wrap: wrap; gap: .35rem .6rem; align-items: baseline }
h3 a { color: inherit; text-decoration: none }
h3 a:hover { text-decoration: underline }
h3 code { background: none; padding: 0; font-size: 1em }
h4 { font-size: .8rem; text-transform: uppercase; letter-spacing: .05em; color: var(--soft); margin: 1.1rem 0 .25rem }
small, .who, .soft { color: var(--soft) }
.who { font-size: .9rem }
article { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; padding: 1rem 1.1rem;
  margin: 1rem 0 }
article p { margin: .4rem 0 }
article:target { border-color: var(--link); box-shadow: 0 0 0 1px var(--link) }
.method { font: 700 .8rem/1 ui-monospace, monospace; color: var(--get) }
.put, .post, .patch { color: var(--write) }
.delete { color: var(--end) }
nav { margin-top: 2.5rem }
nav ul { list-style: none; margin: .25rem 0 1rem; padding: 0; font-size: .85rem }
nav li { margin: .3rem 0; line-height: 1.35 }
nav a { text-decoration: none }
nav a:hover { text-decoration: underline }
nav code { background: none; padding: 0; font-size: 1em }
nav li a { display: flex; gap: .5rem; align-items: baseline }
nav .method { font-size: .7rem; flex: 0 0 3.2rem }
nav .names li { display: inline-block; margin: .15rem .75rem .15rem 0 }
nav p { margin: 0 0 1rem }
nav strong { font-size: .9rem }
table { border-collapse: collapse; width: 100%; font-size: .92rem }
th { text-align: left; font-weight: 600; font-size: .8rem; color: var(--soft) }
th, td { padding: .4rem .75rem .4rem 0; border-top: 1px solid var(--line); vertical-align: top }
thead th { border-top: 0; padding-top: 0 }
td:first-child { width: 15rem }
td:nth-child(2) { width: 13rem }
.answers td:first-child { width: 4rem }
.answers td:nth-child(2) { width: auto }
.must { color: var(--end); font-size: .8rem }
summary { cursor: pointer; font-size: .9rem; color: var(--soft); padding: .35rem 0 }
@media (min-width: 62rem) {
  .frame { display: grid; grid: "nav head" auto "nav main" 1fr / 20rem minmax(0, 1fr); column-gap: 3rem }
  header { grid-area: head }
  main { grid-area: main }
  nav { grid-area: nav; position: sticky; top: 0; align-self: start; max-height: 100vh; overflow-y: auto;
    padding: .5rem 0; margin: 0 }
}
@media (max-width: 40rem) {
  .fields thead { display: none }
  .fields tr { display: block; border-top: 1px solid var(--line); padding: .45rem 0 }
  .fields td, .fields td:first-child, .fields td:nth-child(2) { display: block; width: auto; border: 0;
    padding: .05rem 0 }
}
</style>
</head>
<body>
<div class="frame">
<header>
$beginning
</header>
<nav aria-label="Contents">
$contents
</nav>
<main>
$groups
$shapes
</main>
</div>
</body>
</html>
"""
)


def docs_page(document: Part) -> str:
    """Write the page of an OpenAPI document."""
    info: Part = document["info"]
    return _PAGE.substitute(
        title=_plain(info["title"]),
        contents=_contents(document),
        beginning=_beginning(document),
        groups="\n".join(_group(document, tag) for tag in document["tags"]),
        shapes=_shapes(document["components"]["schemas"]),
    )


def _plain(text: object) -> str:
    return escape(str(text))


def _code(text: object) -> str:
    return f"<code>{_plain(text)}</code>"


def _prose(text: object) -> str:
    """Escape a sentence, and set what stands in backticks as code."""
    return _CODE.sub(r"<code>\1</code>", _plain(text))


def _link(kind: str, name: str, shown: str) -> str:
    return f'<a href="#{_plain(quote(f"{kind}-{name}"))}">{shown}</a>'


def _place(kind: str, name: str) -> str:
    return f'id="{_plain(f"{kind}-{name}")}"'


# The beginning


def _beginning(document: Part) -> str:
    info: Part = document["info"]
    bearer: Part = document["components"]["securitySchemes"]["bearer"]
    return f"""\
<h1>{_plain(info["title"])}</h1>
<p>{_prose(info["description"])}</p>
<p class="soft">Version {_plain(info["version"])}. Drawn from <a href="/openapi.json">/openapi.json</a>, the same
document for programs.</p>
<h2 id="authorise">How to authorise</h2>
<p>Every call carries a bearer token. {_prose(bearer["description"])}</p>
<p>With the token in <code>TOKEN</code> and this server's address, without a path, in <code>SERVER</code>:</p>
<pre><code>curl -H "Authorization: Bearer $TOKEN" "$SERVER/v1/schema?view=compact"</code></pre>"""


# The contents


def _contents(document: Part) -> str:
    groups = "\n".join(_contents_of_group(document, tag["name"]) for tag in document["tags"])
    shapes = "".join(
        f"<li>{_link('shape', name, _plain(name))}</li>" for name in document["components"]["schemas"]
    )
    return f"""\
<p><strong><a href="#authorise">How to authorise</a></strong></p>
{groups}
<strong>{_link("group", "shapes", "Shapes")}</strong>
<ul class="names">{shapes}</ul>"""


def _contents_of_group(document: Part, group: str) -> str:
    lines = "\n".join(
        f"<li>{_link('call', call['operationId'], _route(method, path))}</li>"
        for method, path, call in _calls(document, group)
    )
    return f"<strong>{_link('group', group, _plain(group))}</strong>\n<ul>\n{lines}\n</ul>"


def _calls(document: Part, group: str) -> Iterator[tuple[str, str, Part]]:
    """Give method, path and operation of everything in a group."""
    for path, methods in document["paths"].items():
        for method, call in methods.items():
            if group in call["tags"]:
                yield method, path, call


def _route(method: str, path: str) -> str:
    kind = f'class="method {_plain(method)}"'
    breaking = _code(path).replace("{", "<wbr>{")
    return f"<span {kind}>{_plain(method.upper())}</span> {breaking}"


# The endpoints


def _group(document: Part, tag: Part) -> str:
    name = tag["name"]
    calls = "\n".join(_call(method, path, call, tag) for method, path, call in _calls(document, name))
    return f"<h2 {_place('group', name)}>{_plain(name)}</h2>\n<p>{_prose(tag['description'])}</p>\n{calls}"


def _call(method: str, path: str, call: Part, tag: Part) -> str:
    name = call["operationId"]
    return f"""\
<article {_place("call", name)}>
<h3>{_link("call", name, _route(method, path))}</h3>
<p>{_prose(call["summary"])}</p>
<p class="who">{_prose(tag["description"])}</p>
{_parameters(call["parameters"])}
{_body(call.get("requestBody"))}
{_answers(call["responses"])}
</article>"""


def _parameters(parameters: Iterable[Part]) -> str:
    rows = "\n".join(_parameter(parameter) for parameter in parameters)
    return f"<h4>Parameters</h4>\n{_fields(rows, 'Name', 'Type', 'Meaning')}" if rows else ""


def _parameter(parameter: Part) -> str:
    schema: Part = parameter["schema"]
    where = f"<small>{_plain(parameter['in'])}</small> {_must(is_required=parameter['required'])}"
    return _row(
        f"{_code(parameter['name'])} {where}",
        _kind(schema) + _limits(schema),
        _prose(parameter["description"]),
    )


def _body(body: Part | None) -> str:
    return "" if body is None else "<h4>Body</h4>\n" + "\n".join(_body_parts(body))


def _body_parts(body: Part) -> Iterator[str]:
    must = _must(is_required=body["required"]) or "<small>may be empty</small>"
    for media_type, content in body["content"].items():
        yield f"<p>{_prose(body['description'])} {_code(media_type)} {must}</p>"
        yield _properties(content["schema"])


def _answers(responses: Part) -> str:
    good = "\n".join(_answer(status, told) for status, told in responses.items() if status < "400")
    refusals = {status: told for status, told in responses.items() if status >= "400"}
    rows = "\n".join(_answer(status, told) for status, told in refusals.items())
    return f"""\
<h4>Answers</h4>
<table class="answers">
{good}
</table>
<details>
<summary>Refusals: {_plain(", ".join(refusals))}</summary>
<table class="answers">
{rows}
</table>
</details>"""


def _answer(status: str, told: Part) -> str:
    shapes = "".join(
        f" <small>{_kind(content['schema'])} as {_plain(media_type)}.</small>"
        for media_type, content in told.get("content", {}).items()
    )
    return _row(_code(status), f"{_prose(told['description'])}{shapes}{_leads(told)}")


def _leads(told: Part) -> str:
    ways = ", ".join(
        _link("call", way["operationId"], _plain(name)) for name, way in told.get("links", {}).items()
    )
    return f" <small>Leads to {ways}.</small>" if ways else ""


# The shapes of answers


def _shapes(schemas: Part) -> str:
    shapes = "\n".join(_shape(name, schema) for name, schema in schemas.items())
    return f"<h2 {_place('group', 'shapes')}>Shapes</h2>\n<p>What answers are made of.</p>\n{shapes}"


def _shape(name: str, schema: Part) -> str:
    inside = _properties(schema) or f"<p>{_kind(schema)}</p>"
    return f"<article {_place('shape', name)}>\n<h3>{_code(name)}</h3>\n{inside}\n</article>"


def _properties(schema: Part) -> str:
    needed = schema.get("required", ())
    rows = "\n".join(
        _row(f"{_code(name)} {_must(is_required=name in needed)}", _kind(inner))
        for name, inner in schema.get("properties", {}).items()
    )
    return _fields(rows, "Name", "Type") if rows else ""


# The words for a schema


def _kind(schema: Part) -> str:
    """Say in words what fits a schema."""
    match schema:
        case {"$ref": str(target)}:
            name = target.rpartition("/")[2]
            return _link("shape", name, _code(name))
        case {"const": only}:
            return f"always {_code(only)}"
        case {"enum": [*choices]}:
            return f"one of {', '.join(map(_code, choices))}"
        case {"anyOf": [*kinds]}:
            return " or ".join(_kind(kind) + _limits(kind) for kind in kinds if "type" in kind)
        case _:
            return _type(schema)


def _type(schema: Part) -> str:
    match schema:
        case {"type": "array", "items": items}:
            return f"list of {_kind(items)}"
        case {"type": "object", "properties": inner}:
            return f"object with {', '.join(map(_code, inner))}"
        case {"type": "object", "additionalProperties": inner} if inner:
            return f"object of {_kind(inner)}"
        case {"type": [*kinds]}:
            return " or ".join(map(_plain, kinds))
        case _:
            return _plain(schema.get("type", "any"))


def _limits(schema: Part) -> str:
    said = [f"{words} {_plain(schema[name])}" for name, words in _LIMITS if name in schema]
    said += ["not empty"] if schema.get("minLength") else []
    return f"<small>, {', '.join(said)}</small>" if said else ""


# Tables


def _must(*, is_required: bool) -> str:
    return '<span class="must">required</span>' if is_required else ""


def _fields(rows: str, *names: str) -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    return f'<table class="fields">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>'


def _row(*cells: str) -> str:
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
