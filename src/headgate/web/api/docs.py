"""The page at ``/docs``: the OpenAPI document, drawn for people.

It knows the document and nothing else, so that no second list can disagree with it. Every text of the
document is escaped on its way in; the page has no script and loads nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from html import escape
from typing import Any
from urllib.parse import quote

import msgspec

from headgate.web.addresses import WebRequest
from headgate.web.api.openapi import openapi_document
from headgate.web.pages import PAGE_HEADERS, template
from headgate.web.replies import HttpReply

Part = Mapping[str, Any]
_CODE = re.compile(r"`([^`]+)`")
_LIMITS = (("default", "default"), ("minimum", "at least"), ("maximum", "at most"))

_PAGE = template("docs.html")


async def docs(_request: WebRequest) -> HttpReply:
    """Show the REST interface to a person."""
    return HttpReply(_docs_html(), headers=PAGE_HEADERS)


async def openapi(_request: WebRequest) -> HttpReply:
    """Answer with the OpenAPI document."""
    return HttpReply(_openapi_json(), headers=((b"content-type", b"application/json"),))


@cache
def _docs_html() -> bytes:
    return docs_page(openapi_document()).encode()


@cache
def _openapi_json() -> bytes:
    return msgspec.json.encode(openapi_document())


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
    good = "\n".join(_answer(status, response) for status, response in responses.items() if status < "400")
    refusals = {status: response for status, response in responses.items() if status >= "400"}
    rows = "\n".join(_answer(status, response) for status, response in refusals.items())
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


def _answer(status: str, response: Part) -> str:
    shapes = "".join(
        f" <small>{_kind(content['schema'])} as {_plain(media_type)}.</small>"
        for media_type, content in response.get("content", {}).items()
    )
    return _row(_code(status), f"{_prose(response['description'])}{shapes}{_leads(response)}")


def _leads(response: Part) -> str:
    ways = ", ".join(
        _link("call", way["operationId"], _plain(name)) for name, way in response.get("links", {}).items()
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
            return " or ".join(
                _kind(kind) + _limits(kind) for kind in kinds if kind.keys() & {"type", "$ref"}
            )
        case _:
            return _type(schema)


def _type(schema: Part) -> str:
    match schema:
        case {"type": "array", "items": items}:
            return f"list of {_kind(items)}"
        case {"type": "object", "properties": inner}:
            return f"object with {', '.join(map(_code, inner))}"
        case {"type": "object", "additionalProperties": {**inner}} if inner:
            return f"object of {_kind(inner)}"
        case {"type": [*kinds]}:
            return " or ".join(map(_plain, kinds))
        case _:
            return _plain(schema.get("type", "any"))


def _limits(schema: Part) -> str:
    limits = [f"{words} {_plain(schema[name])}" for name, words in _LIMITS if name in schema]
    limits += ["not empty"] if schema.get("minLength") else []
    return f"<small>, {', '.join(limits)}</small>" if limits else ""


# Tables


def _must(*, is_required: bool) -> str:
    return '<span class="must">required</span>' if is_required else ""


def _fields(rows: str, *names: str) -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    return f'<table class="fields">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody>\n</table>'


def _row(*cells: str) -> str:
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
