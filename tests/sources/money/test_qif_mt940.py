"""QIF, MT940 and the newer kinds of CAMT and OFX: what is read of them, row by row."""

from __future__ import annotations

import pytest

from headgate.sources.money.source import MONEY as SOURCE
from tests.sources.money.test_money import CAMT, XML
from tests.sources.reading import check_resume, only, read_all, rejects_of, rows_of, tree_from

QIF = b"""!Option:AutoSwitch
!Account
NGiro
TBank
$95.50
^
NHouse
TOth A
^
!Clear:AutoSwitch
!Account
NGiro
TBank
^
!Type:Bank
D3/ 2'26
T-1,004.50
PMill
MBread and cake
LFood:Bread
N1017
^
D3/14'26
U2,000.00
T2,000.00
PWeir Works
L[House]
SPay
$1,500.00
SBonus
EMarch
$500.00
AQuay 1
ALock
^
Dsoon
T1.00
^
!Type:Cat
NFood
E
^
"""
SECURITIES = b"""!Type:Invst
D02/28/2026
NBuy
YMill Works
I4.50
Q10
T45.00
^
D02/28/2026
NReinvDiv
YMill Works
Q1
T4.50
^
D02/28/2026
NShrsIn
YMill Works
Q2
^
D02/28/2026
NDiv
YMill Works
T3.00
^
"""
MT940 = """{1:F01DEUTDEFFXXXX0000000000}{2:I940}{4:
:20:STARTUMS
:25:50080000/0123456789EUR
:28C:00004/001
:60F:C260301EUR1000,00
:61:2603020302DR4,5NMSCNONREF//B77
/OCMT/EUR4,5/
:86:105?00LASTSCHRIFT?10931?20EREF+E-17?21SVWZ+Brot und Kuchen
?22aus der Muehle?30DEUTDEFF?31DE79100110012626888888
?32Mühle am Wehr, Inhaber Ines?33 Albrecht
:61:2512310102RC20,NTRFR18
:86:Returned
:61:260303C2000,00NTRFNONREF
:86:/TRTP/SEPA/IBAN/NL20INGB0001234567/NAME/Weir Works/REMI/Pay of
 March/EREF/P-3
:61:2603030303EC9,99NTRFNONREF
:61:tomorrow
:62F:C260331EUR2975,50
:86:for the statement
-}
""".encode()


def reading(name: str, content: bytes):
    return read_all(SOURCE, only(SOURCE, {name: content}))


def short(row: dict) -> tuple:
    return (
        row["account_id"],
        row["booked_on"],
        row["amount_text"],
        row["description"],
        row.get("counterparty"),
    )


def test_a_qif_file_is_read_with_its_accounts_divided_amounts_and_transfers():
    items = reading("a.qif", QIF)
    first, second = rows_of(items, "transactions")
    assert short(first) == ("giro", "2026-03-02", "-1004.50", "Bread and cake", "Mill")
    assert (first["category"], first["reference"], first["file"]) == ("Food:Bread", "1017", "a.qif")
    assert short(second) == ("giro", "2026-03-14", "2000.00", "Weir Works", "Weir Works")
    assert second["counterparty_account"] == "House"
    assert "category" not in second
    assert second["more"] == {"split": "Pay 1,500.00; Bonus March 500.00", "address": "Quay 1; Lock"}
    kinds = {row["name"]: (row["kind"], row.get("balance_text")) for row in rows_of(items, "accounts")[:2]}
    assert kinds == {"Giro": ("bank", "95.50"), "House": ("asset", None)}
    assert [reject.place for reject in rejects_of(items)] == ["a.qif, entry 3"]


def test_securities_in_a_qif_file_have_the_sign_of_the_money():
    rows = rows_of(reading("Depot 2026.qif", SECURITIES), "transactions")
    assert [(row["kind"], row["amount_text"]) for row in rows] == [
        ("Buy", "-45.00"),
        ("ReinvDiv", "0.00"),
        ("ShrsIn", "0.00"),
        ("Div", "3.00"),
    ]
    assert rows[1]["more"]["value"] == "4.50"
    assert rows[0]["more"] == {"security": "Mill Works", "price": "4.50", "quantity": "10"}
    assert {row["account_id"] for row in rows} == {"depot"}


@pytest.mark.parametrize(
    ("days", "amount", "expected"),
    [
        (["02/03/26", "14/03/26"], "1.00", "2026-03-02"),
        (["02/03/26"], "1.00", "2026-02-03"),
        (["02/03/26"], "1,50", "2026-03-02"),
        (["2.3.2026"], "1.00", "2026-03-02"),
        (["2026-03-02"], "1.00", "2026-03-02"),
        (["6/ 3' 5"], "1.00", "2005-06-03"),
    ],
)
def test_days_of_a_qif_file_are_read_by_all_that_it_says(days, amount, expected):
    entries = "".join(f"D{day}\nT{amount}\nPMill\n^\n" for day in days)
    row, *_ = rows_of(reading("a.qif", f"!Type:CCard\n{entries}".encode()), "transactions")
    assert row["booked_on"] == expected


def test_an_mt940_statement_is_read():
    items = reading("a.sta", MT940)
    first, second, third = rows_of(items, "transactions")
    assert {name: value for name, value in first.items() if name != "id"} == {
        "account_id": "0123456789",
        "booked_on": "2026-03-02",
        "value_on": "2026-03-02",
        "description": "Brot und Kuchen aus der Muehle",
        "counterparty": "Mühle am Wehr, Inhaber Ines Albrecht",
        "counterparty_account": "DE79100110012626888888",
        "amount": -4.5,
        "amount_text": "-4.50",
        "currency": "EUR",
        "kind": "LASTSCHRIFT",
        "reference": "E-17",
        "bank_id": "B77",
        "file": "a.sta",
    }
    # The entry of a payment of the last day of the year; a credit that was taken back is money that went out.
    assert short(second) == ("0123456789", "2026-01-02", "-20.00", "Returned", None)
    assert (second["value_on"], second["reference"]) == ("2025-12-31", "R18")
    assert short(third) == ("0123456789", "2026-03-03", "2000.00", "Pay of March", "Weir Works")
    assert (third["counterparty_account"], third["reference"]) == ("NL20INGB0001234567", "P-3")
    account = rows_of(items, "accounts")[-1]
    assert (account["number"], account["bank"], account["balance_text"]) == (
        "0123456789",
        "50080000",
        "2975.50",
    )
    assert [reject.place for reject in rejects_of(items)] == ["a.sta, transaction 5"]


@pytest.mark.parametrize("name", ["a.txt", "a.940", "statement"])
def test_mt940_is_recognised_by_its_content(name):
    assert len(rows_of(reading(name, MT940.partition(b"\n")[2]), "transactions")) == 3
    assert SOURCE.detect(tree_from({name: b":20:\nnotes about :25: and more\n"})) == []


def test_a_value_on_the_30th_of_february_is_of_the_day_of_its_entry():
    content = b":20:A\n:25:1\n:28C:1\n:61:2602300301C4,50NMSCX\n:86:Mill\n"
    (row,) = rows_of(reading("a.sta", content), "transactions")
    assert (row["booked_on"], row["value_on"]) == ("2026-03-01", "2026-03-01")


@pytest.mark.parametrize(
    ("number", "root", "statement"),
    [("052", b"BkToCstmrAcctRpt", b"Rpt"), ("054", b"BkToCstmrDbtCdtNtfctn", b"Ntfctn")],
)
def test_reports_and_notices_of_camt_have_the_lines_of_the_statement(number, root, statement):
    content = CAMT.replace(b"camt.053", f"camt.{number}".encode()).replace(b"BkToCstmrStmt", root)
    content = content.replace(b"Stmt>", statement + b">")
    items = reading("c.xml", content)
    assert rows_of(items, "transactions") == rows_of(reading("c.xml", CAMT), "transactions")
    assert rows_of(items, "accounts")[0]["number"] == "DE02120300000000202051"
    # What is pending comes with the statement when it is booked.
    pending = content.replace(b"<Cd>BOOK</Cd>", b"<Cd>PDNG</Cd>")
    assert len(rows_of(reading("c.xml", pending), "transactions")) == 1


def test_an_entry_of_a_notice_without_a_day_is_of_the_day_of_the_notice():
    content = CAMT.replace(b"camt.053", b"camt.054").replace(b"BkToCstmrStmt", b"BkToCstmrDbtCdtNtfctn")
    content = content.replace(b"Stmt>", b"Ntfctn>").replace(
        b"<Id>1</Id>", b"<CreDtTm>2026-03-05T08:00:00</CreDtTm>"
    )
    content = content.replace(b"BookgDt", b"X").replace(b"ValDt", b"Y")
    rows = rows_of(reading("c.xml", content), "transactions")
    assert [row["booked_on"] for row in rows] == ["2026-03-05", "2026-03-05"]
    # A statement has the days of its lines.
    statement = CAMT.replace(b"<Id>1</Id>", b"<CreDtTm>2026-03-05T08:00:00</CreDtTm>").replace(
        b"BookgDt", b"X"
    )
    assert len(rejects_of(reading("c.xml", statement.replace(b"ValDt", b"Y")))) == 2


@pytest.mark.parametrize("name", ["a.xml", "a.sgml"])
def test_ofx_is_recognised_by_its_content(name):
    assert len(rows_of(reading(name, XML), "transactions")) == 1


def test_every_account_of_a_list_of_accounts_is_read():
    accounts = b"".join(
        b"<ACCTINFO><DESC>A</DESC><BANKACCTINFO><BANKACCTFROM><BANKID>12</BANKID><ACCTID>%d</ACCTID>"
        b"<ACCTTYPE>SAVINGS</ACCTTYPE></BANKACCTFROM></BANKACCTINFO></ACCTINFO>" % number
        for number in range(4)
    )
    items = reading("a.ofx", b"<OFX><SIGNUPMSGSRSV1><ACCTINFOTRNRS><ACCTINFORS>" + accounts + b"</OFX>")
    assert [row["id"] for row in rows_of(items, "accounts")] == ["0", "1", "2", "3"]
    assert rejects_of(items) == []


def test_securities_that_move_without_money_are_lines_without_money():
    transfer = (
        b"<OFX><INVSTMTRS><CURDEF>EUR<INVACCTFROM><BROKERID>b<ACCTID>7</INVACCTFROM><INVTRANLIST><TRANSFER><INVTRAN>"
        b"<FITID>T1<DTTRADE>20260302<MEMO>Moved here</INVTRAN><SECID><UNIQUEID>DE0007<UNIQUEIDTYPE>ISIN</SECID>"
        b"<UNITS>12.5</TRANSFER></INVTRANLIST></INVSTMTRS></OFX>"
    )
    (row,) = rows_of(reading("a.ofx", transfer), "transactions")
    assert (row["amount_text"], row["description"], row["kind"]) == ("0.00", "Moved here", "transfer")
    assert row["more"] == {"uniqueid": "DE0007", "units": "12.5"}


@pytest.mark.parametrize(("name", "content"), [("a.qif", QIF), ("a.sta", MT940)])
def test_reading_goes_on_from_every_mark(name, content):
    check_resume(SOURCE, only(SOURCE, {name: content}))
