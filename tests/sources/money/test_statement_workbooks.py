"""Bank statements as workbooks are bank data, not tables."""

from __future__ import annotations

import datetime as dt
import io
from pathlib import Path

import openpyxl

from headgate.sources.inputs.disk import tree_of
from headgate.sources.money.source import MONEY as SOURCE
from headgate.sources.planning import plan_imports
from headgate.sources.registry import sources
from tests.sources.reading import read_all, rejects_of, rows_of
from tests.sources.workbooks import STATEMENT_XLS, ods, ods_row


def xlsx(*sheets: tuple[str, list[list]]) -> bytes:
    book = openpyxl.Workbook()
    book.remove(book.active)
    for title, rows in sheets:
        sheet = book.create_sheet(title)
        for row in rows:
            sheet.append(row)
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()


HEAD = ["Buchungstag", "Verwendungszweck", "Betrag", "Saldo"]
ROWS = [
    ["Konto DE02120300000000202051"],
    [],
    HEAD,
    [dt.date(2026, 3, 2), "Brot und Kuchen", -4.5, 95.5],
    [dt.date(2026, 3, 3), "Lohn", 1200.1, 1295.6000000000001],
]
ODS_ROWS = [
    ods_row("Konto DE02120300000000202051"),
    ods_row(),
    ods_row(*HEAD),
    ods_row("2026-03-02", "Brot und Kuchen", -4.5, 95.5),
    ods_row("2026-03-03", "Lohn", 1200.1, 1295.6),
]
WORKBOOKS = {"a.xls": STATEMENT_XLS, "a.xlsx": xlsx(("Umsätze", ROWS)), "a.ods": ods("".join(ODS_ROWS))}


def test_a_statement_has_the_same_lines_in_every_workbook_and_as_csv(tmp_path: Path):
    table = "Konto DE02120300000000202051\n\n" + ";".join(HEAD)
    rows = "\n02.03.2026;Brot und Kuchen;-4,50;95,50\n03.03.2026;Lohn;1200,10;1295,60\n"
    files = {**WORKBOOKS, "a.csv": (table + rows).encode()}
    found = {}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
        (recognised,) = SOURCE.detect(tree_of(tmp_path / name))
        items = read_all(SOURCE, recognised)
        assert rejects_of(items) == []
        found[name] = [{**row, "file": ""} for row in rows_of(items)]
    assert [row["amount_text"] for row in found["a.csv"][:2]] == ["-4.50", "1200.10"]
    assert found["a.csv"][0]["account_id"] == "DE02120300000000202051"
    assert found["a.xls"] == found["a.xlsx"] == found["a.ods"] == found["a.csv"]


def test_a_statement_in_a_workbook_is_bank_data_and_another_sheet_is_a_table(tmp_path: Path):
    (tmp_path / "giro.xlsx").write_bytes(WORKBOOKS["a.xlsx"])
    (tmp_path / "people.xlsx").write_bytes(xlsx(("People", [["Name", "Age"], ["Ada", 36]])))
    plan = plan_imports([tree_of(tmp_path)], sources())
    assert sorted((one.source, *one.files) for one in plan.imports) == [
        ("money", "giro.xlsx"),
        ("tables", "people.xlsx"),
    ]


def test_every_sheet_with_lines_is_read_and_those_of_sheets_without_numbers_stay_apart(tmp_path: Path):
    rows = [HEAD, ROWS[3]]
    (tmp_path / "both.xlsx").write_bytes(xlsx(("Giro", rows), ("Notes", [["a"]]), ("Savings", rows)))
    (recognised,) = SOURCE.detect(tree_of(tmp_path))
    transactions = rows_of(read_all(SOURCE, recognised), "transactions")
    assert len({row["id"] for row in transactions}) == 2
    assert {row["file"] for row in transactions} == {"both.xlsx"}


def test_a_workbook_in_which_nothing_says_the_sign_is_asked_about(tmp_path: Path):
    (tmp_path / "card.xlsx").write_bytes(
        xlsx(("Card", [["Date", "Merchant Name", "Amount"], [dt.date(2026, 3, 2), "Mill", 36.33]]))
    )
    (found,) = SOURCE.detect(tree_of(tmp_path))
    assert [question.file for question in SOURCE.questions(found)] == ["card.xlsx"]
    turned = SOURCE.answered(found, {"card.xlsx": True})
    (row,) = rows_of(read_all(SOURCE, turned), "transactions")
    assert row["amount_text"] == "-36.33"
