"""Generated functions are typed, run as they are, and nothing a server says can become code in them."""

import ast
import asyncio
import json
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from headgate.errors import CallError
from headgate.operations.content import MCP_CONTENT_SCHEMA
from headgate.operations.spec import OutputKind
from headgate.operations.stubs import identifier, stub_module
from tests.operations.parts import operation, registry, spec
from tests.schema.test_normalise import of

ROOT = Path(__file__).resolve().parents[2]
EVIL = '"""\nimport os\nos.system("x")\n"""\\\n\u202e\'; raise SystemExit  # noqa'
NODE = of(["value"], value={"type": "integer"}, kids={"type": "array", "items": {"$ref": "#/$defs/Node"}})
SPECS = [
    spec(
        "list-issues",
        namespace="github",
        description=EVIL,
        input_schema={
            **of(
                ["owner"],
                owner={"type": "string"},
                state={"enum": ["open", "closed", EVIL]},
                since={"type": ["string", "null"]},
                node={"$ref": "#/$defs/Node"},
                caller={"type": "integer"},
                class_={"type": "boolean"},
            ),
            "$defs": {"Node": NODE},
        },
        output_schema={
            **of(
                ["items"],
                items={"type": "array", "items": {"$ref": "#/$defs/Node"}},
                total={"type": "number"},
            ),
            "$defs": {"Node": NODE},
        },
    ),
    # Names that would change the meaning of a type, or are no names.
    spec(
        "list",
        input_schema=of(
            ["str"], str={"type": "string"}, list={"type": "array", "items": {"type": "integer"}}
        ),
    ),
    spec(
        "int", output_schema=of(int={"type": "integer"}, str={"type": "string"}, Literal={"const": "Literal"})
    ),
    spec("class", output_schema={"anyOf": [{"type": "null"}, of(a={"type": "boolean"})]}),
    spec(
        "Node", output_schema=of(["a-b", "from", "__x"], **{"a-b": True, "from": {"type": "null"}, "__x": {}})
    ),
    spec("1 + 1", output_schema={"type": "object", "additionalProperties": {"type": "integer"}}),
    spec("é", input_schema={"type": "object", "properties": {}}, output_schema={"enum": [1, None, True]}),
    spec("_", input_schema=of(call_with={"type": "string"}, UNSET={}, arguments={"enum": [[1]]})),
    spec("Caller", output_schema={"type": "array", "prefixItems": [{}]}),
    spec("blocks", output_schema=MCP_CONTENT_SCHEMA, output_kind=OutputKind.CONTENT_BLOCKS),
    spec("loop", output_schema={"type": "array", "items": {"$ref": "#"}}),
    spec("either", input_schema={"anyOf": [of(a={"type": "string"}), of(b={"type": "string"})]}),
]


def load(text):
    names = {}
    exec(compile(text, "stubs.py", "exec"), names)
    return names


def only_functions_types_and_imports(text):
    tree = ast.parse(text)
    kinds = (ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign)
    header, *rest = tree.body
    return isinstance(header, ast.Expr) and all(isinstance(node, kinds) for node in rest)


@pytest.mark.anyio
async def test_the_functions_call_their_operations_with_what_was_given():
    listing = SPECS[0]
    held = registry(operation(name="list-issues", namespace="github", input_schema=listing.input_schema))
    list_issues = load(stub_module([listing]))["list_issues"]
    assert await list_issues(held, owner="a") == {"owner": "a"}
    given = {"owner": "a", "since": None, "node": {"value": 1}, "state": "open"}
    assert await list_issues(held, **given, caller_=3) == {**given, "caller": 3}
    with pytest.raises(TypeError):
        await list_issues(held)
    with pytest.raises(CallError):
        await list_issues(held, owner=1)


def test_what_a_server_says_is_text_and_never_code():
    text = stub_module(SPECS)
    assert only_functions_types_and_imports(text)
    assert text.isascii()
    assert load(text)["list_issues"].__doc__ == EVIL


@given(
    st.lists(
        st.builds(
            lambda name, description, keys, value: spec(
                name,
                description=description,
                input_schema=of(keys, **{"x": {"enum": [value]}, **{key: {"const": key} for key in keys}}),
                output_schema=of(**{key: {"enum": [value, key]} for key in keys}),
            ),
            st.text(min_size=1).filter(lambda text: text != "ns/"),
            st.text(),
            st.lists(st.text(), max_size=3, unique=True),
            st.text(),
        ),
        max_size=3,
        unique_by=lambda one: one.id,
    )
)
def test_any_names_and_texts_give_a_module_that_can_be_imported(specs):
    text = stub_module(specs)
    assert only_functions_types_and_imports(text)
    functions = [name for name, value in load(text).items() if asyncio.iscoroutinefunction(value)]
    assert len(functions) == len(specs) + 1


@given(st.text(), st.sets(st.text(max_size=3)))
def test_an_identifier_is_new_public_and_no_keyword(text, taken):
    name = identifier(text, taken)
    assert name.isidentifier()
    assert name not in taken
    assert not name.startswith("_")
    assert identifier(text, {*taken, name}) != name


@pytest.mark.anyio
async def test_a_strict_type_checker_accepts_the_module_and_sees_a_wrong_call(tmp_path):
    pytest.importorskip("pyright", reason="the type checker is not installed")
    (tmp_path / "tools.py").write_text(stub_module(SPECS), encoding="utf-8")
    use = "from headgate import Registry\nfrom tools import list_issues\n\nasync def use(registry: Registry) -> float:\n"
    right = "    found = await list_issues(registry, owner='a', state='open', node={'value': 1})\n"
    (tmp_path / "right.py").write_text(
        use + right + "    return found['items'][0]['value']\n", encoding="utf-8"
    )
    (tmp_path / "wrong.py").write_text(
        use + right.replace("'open'", "'opened'") + "    return 1\n", encoding="utf-8"
    )
    settings = {
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "venvPath": str(ROOT),
        "venv": ".venv",
        "extraPaths": [str(ROOT / "src")],
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "pyright",
        "--outputjson",
        cwd=tmp_path,
        env={
            **os.environ,
            "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1",
            "PYRIGHT_PYTHON_CACHE_DIR": str(ROOT / ".cache/pyright"),
        },
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    found = json.loads(out)["generalDiagnostics"]
    assert {Path(one["file"]).name for one in found} == {"wrong.py"}, found
    assert any("opened" in one["message"] for one in found)
