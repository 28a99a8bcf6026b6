"""Tables: types, keys and times are found by looking, and every row of a file becomes one record."""

from __future__ import annotations

import contextlib
import datetime as dt
import decimal
import tomllib
from dataclasses import replace
from pathlib import Path

import apsw
import openpyxl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from pyarrow import parquet

from headgate.errors import InvalidRequest
from headgate.sources.importing import Importer, job_of
from headgate.sources.inputs.disk import tree_of
from headgate.sources.protocol import Reject
from headgate.sources.tables.source import TABLES
from tests.sources.source_checks import by_stream, check_all, hostile, items_of, tree_with
from tests.sources.workbooks import LOCKED_XLSX, STATEMENT_XLS, ods, ods_row
from tests.store.engines import NOW, Driven

BANK = """id;name;amount;booked;ok;zip;note
1;Ada;1,50;01.02.2026;true;01067;hello
2;Grace;2.000,25;13.02.2026;false;10115;NA
3;Mary;;;;;"two
lines"
"""


def kinds(files, corrections=None) -> dict[str, str]:
    (found,) = TABLES.detect(tree_with(files))
    if corrections is not None:
        found = TABLES.corrected(found, corrections)
    (stream,) = TABLES.declare(found)["streams"]
    return {
        name: schema.get("format")
        or [one for one in [schema["type"]] if isinstance(one, str)]
        or schema["type"]
        for name, schema in stream["schema"]["properties"].items()
    }


def stream_of(files) -> dict:
    (found,) = TABLES.detect(tree_with(files))
    (stream,) = TABLES.declare(found)["streams"]
    return stream


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_a_table_of_a_german_bank_is_read_in_any_encoding(encoding: str):
    files = {"bank.csv": BANK.replace("Ada", "Änne").encode(encoding)}
    assert by_stream(items_of(TABLES, files))["bank"] == [
        {
            "id": 1,
            "name": "Änne",
            "amount": 1.5,
            "booked": "2026-02-01",
            "ok": True,
            "zip": "01067",
            "note": "hello",
        },
        {
            "id": 2,
            "name": "Grace",
            "amount": 2000.25,
            "booked": "2026-02-13",
            "ok": False,
            "zip": "10115",
            "note": "NA",
        },
        {"id": 3, "name": "Mary", "note": "two\nlines"},
    ]


def test_a_unique_id_is_the_key_and_a_full_time_column_the_time():
    stream = stream_of({"a.csv": "at,id,text\n2026-01-01T10:00:00,x,one\n2026-01-02 11:30:00,y,two\n"})
    assert (stream["primary_key"], stream["consent_time_field"]) == (["id"], "at")
    assert stream["schema"]["properties"]["at"]["format"] == "date-time"


def test_an_id_that_repeats_far_behind_is_no_key():
    lines = [f"{number},x" for number in range(5000)]
    stream = stream_of({"a.csv": "\n".join(["id,b", *lines, "17,y"])})
    assert stream["primary_key"] == ["row_id"]


def test_a_value_far_behind_decides_the_type():
    lines = [str(number) for number in range(5000)]
    files = {"a.csv": "\n".join(["a,b", *(f"{one},x" for one in lines), "1.5,x", "n/a,x"])}
    assert kinds(files)["a"] == ["number", "null"]
    assert kinds({"a.csv": "\n".join(["a,b", *(f"{one},x" for one in lines), "many,x"])})["a"] == [
        "string",
        "null",
    ]


@pytest.mark.parametrize(
    "above",
    [
        "Transactions of Ada\n",
        "Konto 12\n\nZeitraum: März\n\n",
        '"取引 2026"\n"von Ada"\n',
        "a\n" * 20,
        "a\u2028b\x0cc\r\n\r\n",
    ],
)
def test_lines_above_the_header_are_no_part_of_the_table(above: str):
    body = "day,shop,amount\n2026-03-01,Mill,4.5\n2026-03-02,Lock,5\n2026-03-03,Quay,6,7\n"
    plain, under = (items_of(TABLES, {"a.csv": content}) for content in (body, above + body))
    assert by_stream(under) == by_stream(plain)
    (reject,) = [item for item in under if isinstance(item, Reject)]
    assert reject.place == f"a.csv line {above.count(chr(10)) + 4}"


@pytest.mark.parametrize("text", ["one\ntwo\nthree\n", "a\n" * 40 + "b,c\n1,2\n", "x\n1,2\n3,4\n", "\n\n"])
def test_lines_without_a_table_below_them_are_no_table(text: str):
    assert TABLES.detect(tree_with({"a.csv": text})) == []


def test_numbers_of_more_digits_than_a_number_holds_stay_as_they_are_written():
    accounts = ["40817810000000000001", "40817810000000000002", "12345678901234567890123456", "7"]
    lines = [f"{account},x" for account in accounts]
    rows = by_stream(items_of(TABLES, {"a.csv": "\n".join(["account,b", *lines])}))["a"]
    assert [row["account"] for row in rows] == accounts


def test_decimals_of_more_digits_than_a_number_holds_stay_as_they_are_written(tmp_path: Path):
    path = tmp_path / "a.parquet"
    amounts = [decimal.Decimal("12345678901234567890.25"), decimal.Decimal("1.50")]
    parquet.write_table(pa.table({"amount": pa.array(amounts, pa.decimal128(30, 2))}), path)
    (found,) = TABLES.detect(tree_of(path))
    rows = by_stream(TABLES.read(found, {}))["a"]
    assert [row["amount"] for row in rows] == ["12345678901234567890.25", "1.5"]


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["01067", "10115"], ["string", "null"]),
        (["1/2/2026", "12/25/2026"], "date"),
        (["1/2/2026", "25/12/2026"], "date"),
        (["20260101", "20260102"], ["integer", "null"]),
        (["99999999999999999999", "1"], ["string", "null"]),
        (["1234567890123456.78", "1.5"], ["string", "null"]),
        (["1.234.567.890.123.456,78", "1,5"], ["string", "null"]),
        (["-12345678901234567", "999999999999999999"], ["integer", "null"]),
        (["0.12345678901234567", "123456789012345.67", "1e20"], ["number", "null"]),
        (["1e999"], ["string", "null"]),
        (["inf", "1"], ["string", "null"]),
        (["true", "FALSE", ""], ["boolean", "null"]),
        (["2026-02-30"], ["string", "null"]),
        (["=cmd()"], ["string", "null"]),
    ],
)
def test_a_column_has_the_narrowest_type_that_fits_all_values(texts: list[str], kind: object):
    assert kinds({"a.csv": "\n".join(["c;d", *(f"{text};x" for text in texts)])})["c"] == kind


@pytest.mark.parametrize(
    ("text", "other", "stored"),
    [
        ("2012/01/31", "2012/02/01", "2012-01-31"),
        ("Jan 31 2012", "May 1, 2012", "2012-01-31"),
        ("31 January 2012", "1. Feb 2012", "2012-01-31"),
        ("31.01.2012 7:05", "01.02.2012 17:05:09", "2012-01-31T07:05:00Z"),
        ("1/31/2012 07:05 PM", "2/1/2012 12:05 AM", "2012-01-31T19:05:00Z"),
        ("2012/01/31 00:00", "2012/01/31 23:59", "2012-01-31T00:00:00Z"),
        ("2012-01-31 00:00:00+02:00", "2012-01-31T10:00:00Z", "2012-01-30T22:00:00Z"),
    ],
)
def test_dates_and_times_are_understood_as_people_and_programs_write_them(text: str, other: str, stored: str):
    files = {"a.csv": f'c;d\n"{text}";x\n"{other}";y\n'}
    assert by_stream(items_of(TABLES, files))["a"][0]["c"] == stored
    assert kinds(files)["c"] == ("date" if len(stored) == 10 else "date-time")


@pytest.mark.parametrize(
    "text", ["31.13.2012", "2012/02/30", "Foo 1 2012", "1/2/2012 25:00", "12:30", "May 2012"]
)
def test_what_is_no_date_stays_text(text: str):
    assert kinds({"a.csv": f"c;d\n{text};x\n"})["c"] == ["string", "null"]


def test_identical_lines_all_stay_and_overlapping_files_give_the_same_keys():
    first = by_stream(items_of(TABLES, {"a.csv": "d,p\n1,x\n1,x\n2,y\n"}))["a"]
    second = by_stream(items_of(TABLES, {"a.csv": "d,p\n2,y\n1,x\n1,x\n3,z\n"}))["a"]
    assert len({row["row_id"] for row in first}) == 3
    assert {row["row_id"] for row in first} < {row["row_id"] for row in second}


def test_a_line_with_too_many_cells_is_reported_with_its_place_and_the_rest_is_read():
    items = items_of(TABLES, {"a.csv": "a,b\n1,2\n1,2,3\n4\n5,6\n"})
    assert [item.place for item in items if isinstance(item, Reject)] == ["a.csv line 3"]
    assert [row.get("a") for row in by_stream(items)["a"]] == [1, 4, 5]


def test_names_that_requests_cannot_hold_and_repeated_names_are_changed():
    assert list(kinds({"a.csv": 'id,"a,b",[c],,d\n1,2,3,4,5\n'})) == ["id", "a_b", "_c_", "column_4", "d"]
    # A line in which a name repeats may be data; then every column is numbered.
    assert list(kinds({"a.csv": "x,x\ny,z\n"})) == ["row_id", "column_1", "column_2"]


def test_json_arrays_and_json_lines_are_tables():
    array = '[{"id": "a", "n": 1, "at": "2026-01-01T00:00:00Z"}, {"id": "b", "n": 1.5, "tags": ["x"]}, 5]'
    items = items_of(TABLES, {"a.json": array})
    assert by_stream(items)["a"][1] == {"id": "b", "n": 1.5, "tags": ["x"]}
    assert [item.reason for item in items if isinstance(item, Reject)] == ["It is no object."]
    lines = '{"a": 1, "b": "007"}\nnope\n{"a": 2}\n'
    items = items_of(TABLES, {"a.jsonl": lines})
    assert [row["a"] for row in by_stream(items)["a"]] == [1, 2]
    assert [item.place for item in items if isinstance(item, Reject)] == ["a.jsonl line 2"]


@pytest.mark.parametrize("document", ['{"a": {"b": 1}}', "[1, 2]", "[]", '"text"', "{"])
def test_json_that_is_no_table_is_left_to_others(document: str):
    assert TABLES.detect(tree_with({"a.json": document})) == []


def test_json_that_is_nested_deeply_is_refused_at_once():
    deep = '{"a":' * 100_000 + "1" + "}" * 100_000
    items = items_of(TABLES, {"a.json": f'[{{"id":1}},{deep}]'})
    assert "nests deeper" in next(item.reason for item in items if isinstance(item, Reject))
    items = items_of(
        TABLES, {"a.jsonl": f'{{"id":1}}\n{"[" * 90}{"]" * 90}\n{{"id":{"[" * 90}{"]" * 90}}}\n'}
    )
    assert len([item for item in items if isinstance(item, Reject)]) == 2


def on_disk(path: Path) -> dict[str, list[dict]]:
    (found,) = TABLES.detect(tree_of(path))
    return by_stream(TABLES.read(found, {}))


def test_parquet_values_become_json(tmp_path: Path):
    table = pa.table(
        {
            "id": [1, 2],
            "at": [dt.datetime(2026, 1, 1, 8, tzinfo=dt.UTC), None],
            "price": [decimal.Decimal("1.50"), None],
            "parts": [[1], [2, 3]],
        }
    )
    parquet.write_table(table, tmp_path / "p.parquet")
    assert on_disk(tmp_path / "p.parquet") == {
        "p": [{"id": 1, "at": "2026-01-01T08:00:00Z", "price": 1.5, "parts": [1]}, {"id": 2, "parts": [2, 3]}]
    }


def test_every_sheet_of_a_workbook_is_a_stream(tmp_path: Path):
    book = openpyxl.Workbook()
    book.active.title = "People"
    book.active.append(["Name", "Age"])
    book.active.append(["Ada", 36])
    book.create_sheet("Empty")
    book.create_sheet("More").append(["only a header"])
    book.save(tmp_path / "w.xlsx")
    (person,) = on_disk(tmp_path / "w.xlsx")["people"]
    assert (person["Name"], person["Age"]) == ("Ada", 36)


def test_every_table_of_a_database_is_a_stream_with_its_primary_key(tmp_path: Path):
    database = apsw.Connection(str(tmp_path / "d.db"))
    database.execute('CREATE TABLE "odd ""name"(a TEXT, b INTEGER, c BLOB, PRIMARY KEY(b, a)) WITHOUT ROWID')
    database.execute("""INSERT INTO "odd ""name" VALUES('x', 1, x'ff00'), ('y', 1, 2.5)""")
    database.execute("CREATE TABLE other(n); INSERT INTO other VALUES(1), (1), (NULL)")
    database.close()
    before = (tmp_path / "d.db").read_bytes()
    rows = on_disk(tmp_path / "d.db")
    assert [(row["a"], row["b"]) for row in rows["odd_name"]] == [("x", 1), ("y", 1)]
    assert len({row["row_id"] for row in rows["other"]}) == 3
    (found,) = TABLES.detect(tree_of(tmp_path / "d.db"))
    assert [one["primary_key"] for one in TABLES.declare(found)["streams"]] == [["b", "a"], ["row_id"]]
    assert (tmp_path / "d.db").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["d.db"]


@pytest.mark.parametrize("name", ["d.db", "p.parquet", "w.xlsx", "w.ods", "w.xls"])
def test_a_damaged_binary_file_is_refused_with_one_sentence(tmp_path: Path, name: str):
    heads = {"d.db": b"SQLite format 3\0", "p.parquet": b"PAR1", "w.xlsx": b"PK\3\4", "w.ods": b"PK\3\4"}
    heads["w.xls"] = STATEMENT_XLS[:2000]
    (tmp_path / name).write_bytes(heads[name] + b"\xff" * 2000)
    (found,) = TABLES.detect(tree_of(tmp_path / name))
    with pytest.raises(InvalidRequest, match=name):
        job_of(TABLES, found)


def test_a_person_corrects_types_key_and_time():
    corrections = tomllib.loads(
        '[a]\nkey = ["zip", "n"]\ntime = ""\n[a.types]\nzip = "integer"\nn = "text"\n'
    )
    files = {"a.csv": "zip,n,day\n01067,1,2026-01-01\nx,2,2026-01-02\n"}
    assert kinds(files, corrections) == {"zip": ["integer"], "n": ["string"], "day": "date"}
    (found,) = TABLES.detect(tree_with(files))
    items = list(TABLES.read(TABLES.corrected(found, corrections), {}))
    assert "'x' is no integer" in next(item.reason for item in items if isinstance(item, Reject))


@pytest.mark.parametrize(
    "corrections",
    [{"b": {}}, {"a": {"key": ["no"]}}, {"a": {"types": {"n": "odd"}}}, {"a": {"other": 1}}, {"a": 1}],
)
def test_corrections_that_name_what_is_not_there_are_refused(corrections: dict):
    with pytest.raises(InvalidRequest):
        kinds({"a.csv": "zip,n\n1,2\n"}, corrections)


def test_tables_with_other_columns_or_types_are_other_connectors():
    def key(content: str) -> str:
        (found,) = TABLES.detect(tree_with({"My table.csv": content}))
        return job_of(TABLES, found).connector_key

    same = key("a,b\n1,x\n")
    assert same == key("a,b\n5,y\n")
    assert same.startswith("tables-my-table-")
    assert len({same, key("a,c\n1,x\n"), key("a,b\n1.5,x\n")}) == 3


EXAMPLES = {
    "a.csv": BANK.encode(),
    "b.json": b'[{"id": 1, "t": "2026-01-01", "x": {"y": [1, null]}}, {"id": 2, "z": "\xc3\xa4"}]',
    "c.jsonl": b'{"id": 1, "t": "2026-01-01"}\n{"id": 2, "big": 123456789012345678901234567890}\n',
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_row_can_be_stored_and_reading_goes_on_from_every_mark(name: str):
    check_all(TABLES, {name: EXAMPLES[name]})


@pytest.mark.parametrize("name", EXAMPLES)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_hostile_variant_gives_rows_or_rejects(name: str, data: st.DataObject):
    with contextlib.suppress(InvalidRequest):
        check_all(TABLES, {name: data.draw(hostile(EXAMPLES[name]))})


def test_a_column_with_a_value_too_long_for_a_key_is_no_key():
    assert stream_of({"a.csv": f"id,b\n{'x' * 1024},1\ny,2\n"})["primary_key"] == ["id"]
    assert stream_of({"a.csv": f"id,b\n{'x' * 1025},1\ny,2\n"})["primary_key"] == ["row_id"]


def test_a_value_that_repeats_counts_every_time():
    # The time column is one that nearly all rows have, and a key one that all rows have with other values.
    lines = [f"2026-01-0{number % 9 + 1},{number % 3}" for number in range(100)]
    stream = stream_of({"a.csv": "\n".join(["day,some_id", *lines])})
    assert (stream["consent_time_field"], stream["primary_key"]) == ("day", ["row_id"])
    assert "day" not in stream["query"]["search"]["lexical_fields"]


def test_a_birthday_is_not_when_a_row_was_written():
    lines = [f"{number},196{number}-02-18,200{number}-08-14" for number in range(1, 9)]
    stream = stream_of({"a.csv": "\n".join(["id,BirthDate,HireDate", *lines])})
    assert stream["consent_time_field"] == "HireDate"
    only = stream_of({"a.csv": "\n".join(["id,Geburtstag", *(line.rpartition(",")[0] for line in lines)])})
    assert only["consent_time_field"] == "Geburtstag"


# Headers and values as people have them


def table_of(text: str) -> tuple[list[str], list[dict]]:
    rows = by_stream(items_of(TABLES, {"a.csv": text})).get("a", [])
    return [name for name in kinds({"a.csv": text}) if name != "row_id"], rows


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["1,234.56", "3"], [1234.56, 3]),
        (["1,234", "12"], [1234, 12]),
        (["$3.50", "- $220.00", "($1,000.00)"], [3.5, -220, -1000]),
        (["3.50-", "(4.00)", "5"], [-3.5, -4, 5]),
        (["1'234.50", "7.25"], [1234.5, 7.25]),
        (["02/20/19", "3/1/19"], ["2019-02-20", "2019-03-01"]),
        (["20.02.18", "01.03.18"], ["2018-02-20", "2018-03-01"]),
        (["23-Jan-15", "01-FEB-2016"], ["2015-01-23", "2016-02-01"]),
        (["20-02-2018", "01-03-2018"], ["2018-02-20", "2018-03-01"]),
        (["2/3/19 5:04 PM"], ["2019-02-03T17:04:00Z"]),
    ],
)
def test_amounts_and_days_are_read_as_people_write_them(texts: list[str], values: list):
    _, rows = table_of("what,c\n" + "".join(f'x,"{text}"\n' for text in texts))
    assert [row["c"] for row in rows] == values


def test_a_table_with_semicolons_has_decimal_commas():
    _, rows = table_of("what;c;d\nx;1,234;€ 1.234\nx;2,5;€ 3,50\n")
    assert [(row["c"], row["d"]) for row in rows] == [(1.234, 1234), (2.5, 3.5)]


@pytest.mark.parametrize(
    "texts",
    [
        ["555 123 456"],
        ["192.168.100.200"],
        ["(555)"],
        ["1.2.15"],
        ["$3.50", "€4.00"],
        ["12,345,678,901,234,567.89"],
        ["1-2-15"],
        ["$01"],
    ],
)
def test_what_only_looks_like_an_amount_or_a_day_stays_text(texts: list[str]):
    _, rows = table_of("what,c\n" + "".join(f'x,"{text}"\n' for text in texts))
    assert [row["c"] for row in rows] == texts


def test_names_that_repeat_are_a_header_if_data_stands_below():
    names, rows = table_of("Fecha,Concepto,Fecha,Importe\n01/02/2018,Mill,03/02/2018,4.50\n")
    assert names == ["Fecha", "Concepto", "Fecha_2", "Importe"]
    assert len(rows) == 1


@pytest.mark.parametrize("first", ['6/12/15,Mill,"1,000.00"', "23-Jan-15,Mill,$3.50"])
def test_a_table_without_a_header_loses_no_row(first: str):
    names, rows = table_of(f'{first}\n7/12/15,Weir,"2,000.00"\n')
    assert names == ["column_1", "column_2", "column_3"]
    assert len(rows) == 2


@pytest.mark.parametrize("encoding", ["cp1250", "cp1251"])
def test_tables_of_central_and_eastern_europe_are_read(encoding: str):
    words = {"cp1250": "Příliš žluťoučký kůň, září", "cp1251": "Хлеб из старой мельницы"}[encoding]
    rows = by_stream(items_of(TABLES, {"a.csv": f"id;text\n1;{words}\n".encode(encoding)}))["a"]
    assert rows == [{"id": 1, "text": words}]


# Workbooks


def workbook(path: Path, *rows: list) -> Path:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def test_lines_above_the_header_of_a_sheet_are_no_part_of_the_table(tmp_path: Path):
    rows = [["Report of Ada"], [], ["Name", "Age", "2026"], ["Ada", 36, 1], ["Grace", 37, 2]]
    table = on_disk(workbook(tmp_path / "w.xlsx", *rows))["sheet"]
    assert [{**row, "row_id": ""} for row in table] == [
        {"row_id": "", "Name": "Ada", "Age": 36, "2026": 1},
        {"row_id": "", "Name": "Grace", "Age": 37, "2026": 2},
    ]


def test_a_sheet_without_a_header_loses_no_row(tmp_path: Path):
    rows = [[dt.date(2026, 3, 1), "Mill", 4.5], [dt.date(2026, 3, 2), "Weir", 5]]
    table = on_disk(workbook(tmp_path / "w.xlsx", *rows))["sheet"]
    assert [(row["column_2"], row["column_3"]) for row in table] == [("Mill", 4.5), ("Weir", 5)]


def test_years_and_a_few_numbers_are_names_of_columns(tmp_path: Path):
    table = on_disk(workbook(tmp_path / "w.xlsx", ["Country", 2025, 2026], ["DE", 1, 2]))["sheet"]
    assert [sorted(row) for row in table] == [["2025", "2026", "Country", "row_id"]]


def test_open_document_and_older_excel_files_are_tables(tmp_path: Path):
    (tmp_path / "o.ods").write_bytes(ods(ods_row("Name", "Age", "born") + ods_row("Ada", 36, "1815-12-10")))
    (person,) = on_disk(tmp_path / "o.ods")["sheet"]
    assert (person["Name"], person["Age"], person["born"]) == ("Ada", 36, "1815-12-10")
    (tmp_path / "x.xls").write_bytes(STATEMENT_XLS)
    first, second = on_disk(tmp_path / "x.xls")["ums_tze"]
    assert (first["Verwendungszweck"], first["Betrag"], second["Saldo"]) == ("Brot und Kuchen", -4.5, 1295.6)


def test_a_table_of_text_that_is_called_xls_is_read():
    assert by_stream(items_of(TABLES, {"a.xls": "id\tname\n1\tplank\n"}))["a"] == [{"id": 1, "name": "plank"}]


def test_a_password_is_called_a_password(tmp_path: Path):
    (tmp_path / "w.xlsx").write_bytes(LOCKED_XLSX)
    (found,) = TABLES.detect(tree_of(tmp_path / "w.xlsx"))
    with pytest.raises(InvalidRequest) as refused:
        job_of(TABLES, found)
    assert refused.value.message == "w.xlsx is encrypted with a password."


# JSON


def test_the_arrays_of_an_object_are_tables():
    document = (
        '{"made": "2026", "nodes": [{"id": 1, "tags": [{"t": 1}]}, {"id": 2}], "names": ["a"],'
        ' "more": {"links": [{"source": 1, "target": 2}]}, "grid": [[1, 2]], "empty": []}'
    )
    rows = by_stream(items_of(TABLES, {"graph.json": document}))
    assert sorted(rows) == ["more_links", "nodes"]
    assert rows["nodes"] == [{"id": 1, "tags": [{"t": 1}]}, {"id": 2}]
    assert [(row["source"], row["target"]) for row in rows["more_links"]] == [(1, 2)]


def test_an_object_with_more_arrays_than_are_tables_is_refused():
    members = ", ".join(f'"k{number}": [{{"a": 1}}]' for number in range(60))
    (found,) = TABLES.detect(tree_with({"a.json": f"{{{members}}}"}))
    with pytest.raises(InvalidRequest, match="more than 50 arrays"):
        job_of(TABLES, found)


def test_the_arrays_of_a_cut_document_are_read_as_far_as_they_go():
    items = items_of(TABLES, {"a.json": '{"nodes": [{"id": 1}, {"id": 2}, {"id"'})
    assert [row["id"] for row in by_stream(items)["nodes"]] == [1, 2]
    assert len([item for item in items if isinstance(item, Reject)]) == 1


# Older connections


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", 'x,c\nx,"1,234.56"\n'),
        ("a.csv", "x,d\nx,02/20/19\n"),
        ("a.csv", "x,x,c\ny,y,1\n"),
        ("a.csv", '6/12/15,Mill,"1,000.00"\n7/12/15,Weir,"2,000.00"\n'),
        ("w.xlsx", [["Title"], [], ["Name", "Age"], ["Ada", 36]]),
    ],
)
def test_importing_a_table_again_into_an_older_connection_adds_nothing(tmp_path: Path, name: str, content):
    path = tmp_path / name
    path.write_text(content) if isinstance(content, str) else workbook(path, *content)
    (found,) = TABLES.detect(tree_of(path))
    job = job_of(TABLES, found)
    assert job.older_key not in {None, job.connector_key}
    older = replace(found, form=1, facts={"tables": found.facts["tables"].older})
    store = Driven("sqlite", tmp_path)
    try:
        importer = Importer(store.bare, clock=lambda: NOW)
        first = store.run(importer.run(replace(job_of(TABLES, older), form=1)))
        again = store.run(importer.run(job))
        assert again.connection_id == first.connection_id
        assert sum(count.added for count in first.streams.values()) > 0
        assert sum(count.added for count in again.streams.values()) == 0
        assert again.rejects == ()
    finally:
        store.close()
