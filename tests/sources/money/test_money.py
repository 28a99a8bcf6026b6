"""Statements of every format: what is read of them, row by row."""

import json
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given, settings, strategies as st

from headgate.schema.declare import read_declaration
from headgate.sources.importing import Importer, job_of
from headgate.sources.money.source import MONEY as SOURCE
from tests.on_socket import headgate
from tests.sources.reading import check_resume, only, read_all, rejects_of, rows_of, stored, tree_from
from tests.store.engines import NOW, Driven

SGML = b"""OFXHEADER:100
DATA:OFXSGML
VERSION:102
ENCODING:USASCII
CHARSET:1252

<OFX><SIGNONMSGSRSV1><SONRS><FI><ORG>Canal Bank<FID>77</FI></SONRS></SIGNONMSGSRSV1>
<BANKMSGSRSV1><STMTTRNRS><STMTRS><CURDEF>EUR
<BANKACCTFROM><BANKID>1234<ACCTID>55 0011<ACCTTYPE>CHECKING</BANKACCTFROM>
<BANKTRANLIST><DTSTART>20260301<DTEND>20260331
<STMTTRN><TRNTYPE>DEBIT<DTPOSTED>20260302120000[-5:EST]<TRNAMT>-4.50<FITID>F1<NAME>B\xe4ckerei &amp; Mill<MEMO>Bread</STMTTRN>
<STMTTRN><TRNTYPE>CREDIT<DTPOSTED>20260303<TRNAMT>1,200.00<FITID>F2<NAME>Weir Works</STMTTRN>
<STMTTRN><TRNTYPE>DEBIT<DTPOSTED>20260303<TRNAMT>oops<FITID>F3<NAME>Broken</STMTTRN>
</BANKTRANLIST><LEDGERBAL><BALAMT>1195.50<DTASOF>20260331</LEDGERBAL></STMTRS></STMTTRNRS></BANKMSGSRSV1></OFX>
"""
XML = b"""<?xml version="1.0" encoding="UTF-8"?><?OFX OFXHEADER="200" VERSION="211"?>
<OFX><CREDITCARDMSGSRSV1><CCSTMTTRNRS><CCSTMTRS><CURDEF>USD</CURDEF><CCACCTFROM><ACCTID>4111</ACCTID></CCACCTFROM>
<BANKTRANLIST><STMTTRN><TRNTYPE>POS</TRNTYPE><DTPOSTED>20260302</DTPOSTED><TRNAMT>-9.99</TRNAMT><FITID>X1</FITID>
<NAME>Caf\xc3\xa9 Lock</NAME></STMTTRN></BANKTRANLIST></CCSTMTRS></CCSTMTTRNRS></CREDITCARDMSGSRSV1></OFX>"""
CAMT = """<?xml version="1.0" encoding="UTF-8"?>
<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08"><BkToCstmrStmt><Stmt><Id>1</Id>
<Acct><Id><IBAN>DE02120300000000202051</IBAN></Id><Ccy>EUR</Ccy><Ownr><Nm>Ines Albrecht</Nm></Ownr>
<Svcr><FinInstnId><BICFI>BYLADEM1001</BICFI></FinInstnId></Svcr></Acct>
<Bal><Tp><CdOrPrtry><Cd>CLBD</Cd></CdOrPrtry></Tp><Amt Ccy="EUR">88.10</Amt><CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>2026-03-31</Dt></Dt></Bal>
<Ntry><Amt Ccy="EUR">11.90</Amt><CdtDbtInd>DBIT</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts><BookgDt><Dt>2026-03-02</Dt></BookgDt>
<ValDt><Dt>2026-03-03</Dt></ValDt><AcctSvcrRef>R1</AcctSvcrRef><BkTxCd><Domn><Cd>PMNT</Cd><Fmly><Cd>RDDT</Cd><SubFmlyCd>ESDD</SubFmlyCd></Fmly></Domn></BkTxCd>
<NtryDtls><TxDtls><Refs><EndToEndId>E2E</EndToEndId></Refs><RltdPties><Dbtr><Pty><Nm>Ines Albrecht</Nm></Pty></Dbtr><Cdtr><Pty><Nm>Gärtnerei Mühle</Nm></Pty></Cdtr>
<CdtrAcct><Id><IBAN>DE79100110012626888888</IBAN></Id></CdtrAcct></RltdPties><RmtInf><Ustrd>Tomatoes</Ustrd><Ustrd>and barrel</Ustrd></RmtInf></TxDtls></NtryDtls></Ntry>
<Ntry><Amt Ccy="EUR">30.00</Amt><CdtDbtInd>DBIT</CdtDbtInd><BookgDt><DtTm>2026-03-04T10:00:00</DtTm></BookgDt><AddtlNtryInf>Batch</AddtlNtryInf>
<NtryDtls><TxDtls><RltdPties><Cdtr><Nm>A</Nm></Cdtr></RltdPties></TxDtls><TxDtls><RltdPties><Cdtr><Nm>B</Nm></Cdtr></RltdPties></TxDtls></NtryDtls></Ntry>
</Stmt></BkToCstmrStmt></Document>""".encode()
GERMAN = """Kontoumsätze\r
Konto;DE02 1203 0000 0000 2020 51\r
Zeitraum;01.03.2026 - 31.03.2026\r
\r
"Buchungstag";"Wertstellung";"Auftraggeber/Empfänger";"Buchungstext";"Verwendungszweck";"Betrag (€)";"Saldo"\r
"02.03.2026";"03.03.2026";"Bäckerei Weiher";"Kartenzahlung";"Brot
und Kuchen";"-1.004,50";"100,00"\r
"02.03.2026";"03.03.2026";"Mühle GmbH";"Gehalt";"März; Lohn";"2.000,00";"2.100,00"\r
"Kontostand";"";"";"";"";"2.100,00";""\r
"""


def bookings(files):
    return rows_of(read_all(SOURCE, only(SOURCE, files)), "transactions")


def test_the_declaration_has_people_titles_times_sums_and_children():
    streams = read_declaration(SOURCE.declare(only(SOURCE, {"a.ofx": SGML}))).streams
    transactions = streams["transactions"]
    assert transactions.consent_time_field == transactions.cursor_field == "booked_on"
    assert {"amount", "balance_after"} == set(transactions.query.aggregations.sum)
    assert "counterparty" in transactions.query.lexical_fields
    assert streams["accounts"].relationships[0].foreign_key == "account_id"


def test_an_sgml_statement_is_read():
    items = read_all(SOURCE, only(SOURCE, {"march.ofx": SGML}))
    first, second = rows_of(items, "transactions")
    assert {name: value for name, value in first.items() if name != "id"} == {
        "account_id": "550011",
        "booked_on": "2026-03-02",
        "description": "Bread",
        "counterparty": "Bäckerei & Mill",
        "amount": -4.5,
        "amount_text": "-4.50",
        "currency": "EUR",
        "kind": "debit",
        "bank_id": "F1",
        "file": "march.ofx",
    }
    assert (second["amount_text"], second["description"]) == ("1200.00", "Weir Works")
    (account,) = rows_of(items, "accounts")
    assert account == {
        "id": "550011",
        "name": "Canal Bank 55 0011",
        "number": "55 0011",
        "bank": "Canal Bank",
        "kind": "checking",
        "currency": "EUR",
        "balance": 1195.5,
        "balance_text": "1195.50",
        "balance_on": "2026-03-31",
    }
    (reject,) = rejects_of(items)
    assert (reject.place, reject.reason) == ("march.ofx, transaction 3", "It has no amount that can be read.")


def test_an_xml_statement_of_a_card_is_read():
    (row,) = bookings({"card.qfx": XML})
    assert (row["account_id"], row["counterparty"], row["amount_text"], row["currency"]) == (
        "4111",
        "Café Lock",
        "-9.99",
        "USD",
    )


def test_a_statement_without_a_transaction_has_its_account():
    start, end = SGML.index(b"<STMTTRN>"), SGML.rindex(b"</STMTTRN>")
    items = read_all(SOURCE, only(SOURCE, {"empty.ofx": SGML[:start] + SGML[end + len(b"</STMTTRN>") :]}))
    assert [row["id"] for row in rows_of(items)] == ["550011"]
    assert rejects_of(items) == []
    nothing = read_all(SOURCE, only(SOURCE, {"nothing.ofx": b"OFXHEADER:100\n<OFX></OFX>"}))
    assert [reject.reason for reject in rejects_of(nothing)] == [
        "The file has no account and no transaction."
    ]


def test_a_bank_number_names_a_line_in_every_statement_and_another_line_with_it_stays():
    again = SGML.replace(b"Bread", b"Bread and cake")
    one, two = (read_all(SOURCE, only(SOURCE, {"a.ofx": text})) for text in (SGML, again))
    assert len(stored(one, two)) == 3
    twice = SGML.replace(b"<FITID>F2", b"<FITID>F1")
    assert len({row["id"] for row in bookings({"a.ofx": twice})}) == 2
    same = SGML.replace(b"20260303<TRNAMT>1,200.00<FITID>F2", b"20260302<TRNAMT>-4.50<FITID>F1")
    assert len({row["id"] for row in bookings({"a.ofx": same})}) == 1


@pytest.mark.parametrize("zone", ["Z", "+02:00", "-11:30"])
def test_days_of_a_camt_statement_may_have_a_zone(zone: str):
    with_zones = CAMT.replace(b"</Dt></", f"{zone}</Dt></".encode())
    assert with_zones.count(zone.encode()) == 3
    plain, zoned = (read_all(SOURCE, only(SOURCE, {"c.xml": content})) for content in (CAMT, with_zones))
    assert rows_of(zoned) == rows_of(plain)
    assert rejects_of(zoned) == []


def test_a_camt_statement_is_read():
    items = read_all(SOURCE, only(SOURCE, {"c.xml": CAMT}))
    first, batch = rows_of(items, "transactions")
    assert {name: value for name, value in first.items() if name != "id"} == {
        "account_id": "DE02120300000000202051",
        "booked_on": "2026-03-02",
        "value_on": "2026-03-03",
        "description": "Tomatoes and barrel",
        "counterparty": "Gärtnerei Mühle",
        "counterparty_account": "DE79100110012626888888",
        "amount": -11.9,
        "amount_text": "-11.90",
        "currency": "EUR",
        "kind": "ESDD",
        "status": "BOOK",
        "reference": "E2E",
        "bank_id": "R1",
        "file": "c.xml",
    }
    assert (batch["description"], batch.get("counterparty"), batch["amount_text"]) == (
        "Batch",
        None,
        "-30.00",
    )
    (account,) = rows_of(items, "accounts")
    assert (account["owner"], account["bank"], account["balance_text"]) == (
        "Ines Albrecht",
        "BYLADEM1001",
        "88.10",
    )
    assert rejects_of(items) == []


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "latin-1"])
def test_a_german_table_is_read_in_every_encoding(encoding):
    text = GERMAN.replace("€", "EUR") if encoding == "latin-1" else GERMAN
    items = read_all(SOURCE, only(SOURCE, {"umsatz.csv": text.encode(encoding)}))
    first, second = rows_of(items, "transactions")
    assert {name: value for name, value in first.items() if name != "id"} == {
        "account_id": "DE02120300000000202051",
        "booked_on": "2026-03-02",
        "value_on": "2026-03-03",
        "description": "Brot und Kuchen",
        "counterparty": "Bäckerei Weiher",
        "amount": -1004.5,
        "amount_text": "-1004.50",
        "currency": "EUR",
        "kind": "Kartenzahlung",
        "balance_after": 100.0,
        "file": "umsatz.csv",
    }
    assert second["description"] == "März; Lohn"
    (account,) = rows_of(items, "accounts")
    assert account["id"] == "DE02120300000000202051"
    assert [reject.reason for reject in rejects_of(items)] == ["It has no day that can be read."]


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (  # French, debit and credit columns
            "Date opération;Libellé;Débit;Crédit;Devise\n02/03/2026;Péniche;12,50;;EUR\n13/03/2026;Salaire;;1 200,00;EUR\n",
            [("2026-03-02", "-12.50", "Péniche", "EUR"), ("2026-03-13", "1200.00", "Salaire", "EUR")],
        ),
        (  # Spanish
            "Fecha;Concepto;Importe;Saldo\n02/03/2026;Molino;-12,50;10,00\n",
            [("2026-03-02", "-12.50", "Molino", None)],
        ),
        (  # American
            "Posting Date,Description,Amount,Type,Balance,Check or Slip #\n03/02/2026,LOCK 4,-12.50,DEBIT,1,\n",
            [("2026-03-02", "-12.50", "LOCK 4", None)],
        ),
        (  # British, with money out as a positive number
            "Date,Type,Description,Money Out,Money In,Balance\n02/03/2026,DD,Canal,12.50,,1\n13/03/2026,CR,Pay,,5,6\n",
            [("2026-03-02", "-12.50", "Canal", None), ("2026-03-13", "5.00", "Pay", None)],
        ),
        (  # A column for the sign
            "Buchungstag;Verwendungszweck;Umsatz;Währung;S/H\n02.03.2026;Miete;12,50;EUR;S\n02.03.2026;Lohn;5,00;EUR;H\n",
            [("2026-03-02", "-12.50", "Miete", "EUR"), ("2026-03-02", "5.00", "Lohn", "EUR")],
        ),
        (  # Times after the day, and tabs
            (
                "Type\tStarted Date\tCompleted Date\tDescription\tAmount\tFee\tCurrency\tState\tBalance\n"
                "CARD\t2026-03-01 10:00:00\t2026-03-02 12:00:00\tMill\t-12.50\t0.00\tGBP\tCOMPLETED\t1.00\n"
            ),
            [("2026-03-02", "-12.50", "Mill", "GBP")],
        ),
    ],
)
def test_tables_of_other_countries_are_read(table, expected):
    rows = bookings({"export.csv": table.encode()})
    assert [
        (row["booked_on"], row["amount_text"], row["description"], row.get("currency")) for row in rows
    ] == expected


HEAD = "Buchungsdatum;Zahlungspflichtige*r;Zahlungsempfänger*in;Verwendungszweck;IBAN;Betrag\n"
PAID = (
    "02.03.2026;Ines;Bäckerei;Brot;DE79100110012626888888;-4,50\n"
    "03.03.2026;Mühle;Ines;Lohn;DE21500500009876543210;2.000,00\n"
    "04.03.2026;Ines;Bäckerei;Kuchen;DE79100110012626888888;-9,50\n"
)


@pytest.mark.parametrize(
    ("table", "accounts", "others"),
    [
        # The file names the account, and the column holds other numbers, though one of them repeats.
        (f"Girokonto;DE02120300000000202051\n\n{HEAD}{PAID}", ["DE02120300000000202051"], 3),
        # By the short number that the bank calls it by.
        (f"Kontonummer: 0000202051\n\n{HEAD}{PAID}", ["0000202051"], 3),
        # Nothing names it; a payment without a number is none of the account's column.
        (f"{HEAD}{PAID}05.03.2026;Ines;Kiosk;Zeitung;;-2,00\n", ["export"], 3),
        (f"{HEAD}{PAID}", ["export"], 3),
        # The account's column stands beside it.
        ("Auftragskonto;" + HEAD + "".join(f"DE02;{one}\n" for one in PAID.splitlines()), ["DE02"], 3),
        # The account itself, in every row.
        (HEAD + "".join(f"0{n}.03.2026;a;b;c;DE02120300000000202051;-{n},00\n" for n in range(1, 6)), ["DE02120300000000202051"], 0),
        # Also under the short number, and two accounts in one file.
        (f"Kontonummer: 0000202051\n\n{HEAD}" + "02.03.2026;a;b;c;DE02120300000000202051;-1,00\n" * 2, ["DE02120300000000202051"], 0),
        (HEAD + "02.03.2026;a;b;c;DE02;-1,00\n" * 3 + "02.03.2026;a;b;c;DE03;-1,00\n" * 3, ["DE02", "DE03"], 0),
    ],
)  # fmt: skip
def test_a_column_of_numbers_is_the_accounts_or_the_other_parties(table, accounts, others):
    items = read_all(SOURCE, only(SOURCE, {"export.csv": table.encode()}))
    found = [row["id"] for row in rows_of(items, "accounts")]
    payments = rows_of(items, "transactions")
    assert found == accounts
    assert {row["account_id"] for row in payments} == set(accounts)
    assert len([row for row in payments if row.get("counterparty_account")]) == others


@pytest.mark.parametrize(
    ("name", "account"),
    [
        ("joint account", "joint account"),
        ("Joint_account (2)", "joint account"),
        ("joint account 2026-03", "joint account"),
        ("joint account-20260331-2", "joint account"),
        ("Joint account 01.03.2026 - 31.03.2026", "joint account"),
        ("joint account March 2026 copy", "joint account"),
        ("Marks account", "marks account"),
        ("2026-03-31", "main"),
        ("März", "main"),
        ("0", "main"),
    ],
)
def test_an_account_without_a_number_is_named_by_its_file_without_days_and_counters(name, account):
    items = read_all(SOURCE, only(SOURCE, {f"{name}.csv": statement([(1, "-9.99", "NETFLIX")])}))
    assert [row["id"] for row in rows_of(items, "accounts")] == [account]


CHASE = "Details,Posting Date,Description,Amount,Type,Balance,Check or Slip #\n"
NETFLIX = "DEBIT,03/01/2026,NETFLIX,-9.99,ACH_DEBIT,100.00,,\n"


def test_equal_lines_of_two_accounts_without_numbers_both_stay(tmp_path):
    place = tmp_path / "files"
    place.mkdir()
    (place / "checking.csv").write_text(f"{CHASE}{NETFLIX}DEBIT,03/02/2026,RENT,-900.00,ACH_DEBIT,90.00,,\n")
    (place / "joint account.csv").write_text(
        f"{CHASE}{NETFLIX}DEBIT,03/02/2026,SHOES,-50.00,ACH_DEBIT,40.00,,\n"
    )
    run = partial(headgate, tmp_path, "--home", "home")
    for name in ("checking.csv", "joint account.csv", "checking.csv"):
        done = run("import", "--yes", str(place / name))
        assert done.code == 0, done.err
    assert run("export", "Bank statements", "out").code == 0
    lines = [json.loads(line) for line in (tmp_path / "out" / "transactions.jsonl").read_text().splitlines()]
    assert sorted((line["account_id"], line["description"]) for line in lines) == [
        ("checking", "DEBIT NETFLIX"), ("checking", "DEBIT RENT"), ("joint account", "DEBIT NETFLIX"), ("joint account", "DEBIT SHOES"),
    ]  # fmt: skip


def test_importing_again_into_a_connection_of_before_adds_nothing(tmp_path):
    found = only(SOURCE, {"checking.csv": f"{CHASE}{NETFLIX}".encode()})
    store = Driven("sqlite", tmp_path)
    try:
        importer = Importer(store.bare, clock=lambda: NOW)
        first = store.run(importer.run(job_of(SOURCE, replace(found, form=1))))
        store.run(store.bare.put_state(first.connection_id, b'{"import": {"resume": {}}}'))
        again = store.run(importer.run(job_of(SOURCE, found)))
    finally:
        store.close()
    assert {name: count.added for name, count in first.streams.items()} == {"accounts": 1, "transactions": 1}
    assert {name: count.added for name, count in again.streams.items()} == {"accounts": 0, "transactions": 0}


@pytest.mark.parametrize("currencies", [("EUR", "GBP")])
def test_accounts_of_one_file_are_kept_apart_by_currency_and_product(currencies):
    head = "Type,Product,Started Date,Completed Date,Description,Amount,Fee,Currency,State,Balance\n"
    line = "CARD_PAYMENT,{product},2021-10-01 10:00:00,2021-10-02 10:00:00,Coffee,-3.00,0.00,{currency},COMPLETED,10.00\n"
    table = head + "".join(
        line.format(product=product, currency=currency)
        for product in ("Current", "Savings")
        for currency in currencies
    )
    items = read_all(SOURCE, only(SOURCE, {"account-statement_2021-10-01.csv": table.encode()}))
    assert [row["id"] for row in rows_of(items, "accounts")] == [
        "revolut eur",
        "revolut gbp",
        "revolut savings eur",
        "revolut savings gbp",
    ]
    assert rows_of(items, "accounts")[0]["name"] == "Revolut EUR"
    assert len({row["id"] for row in rows_of(items, "transactions")}) == 4


def test_the_one_who_is_paid_and_the_one_who_pays_are_distinguished_by_the_sign():
    table = (
        "Buchungsdatum;Zahlungspflichtige*r;Zahlungsempfänger*in;Verwendungszweck;Betrag\n"
        "01.03.26;Ines Albrecht;Bäckerei;Brot;-3,00\n01.03.26;Mühle;Ines Albrecht;Lohn;9,00\n"
    )
    assert [row["counterparty"] for row in bookings({"a.csv": table.encode()})] == ["Bäckerei", "Mühle"]


def test_columns_without_a_field_are_not_lost():
    table = "Date,Description,Amount,Fee,Branch\n2026-03-01,Mill,-3.00,0.10,Weir\n"
    (row,) = bookings({"a.csv": table.encode()})
    assert row["more"] == {"Fee": "0.10", "Branch": "Weir"}


@pytest.mark.parametrize(
    "table",
    [
        b"name,age\nInes,4\n",
        b"date,amount\n2026-03-01,3\n",
        b"date,amount,description,height,width,depth,colour,weight,shape\n2026-03-01,3,x,1,2,3,4,5,6\n",
        b"",
        b"\0\0\0",
        b"<html>",
    ],
)
def test_other_tables_are_left_to_other_sources(table):
    assert SOURCE.detect(tree_from({"a.csv": table, "a.xml": table, "a.ofx": table})) == []


@pytest.mark.parametrize("name", ["a.ofx", "b.xml", "c.csv"])
def test_reading_again_and_from_every_mark_gives_the_same(name):
    many = "Date,Description,Amount\n" + "".join(
        f"2026-03-{1 + n % 28:02},Mill {n % 7},-{n % 5}.00\n" for n in range(2500)
    )
    files = {"a.ofx": SGML, "b.xml": CAMT, "c.csv": many.encode()}
    check_resume(SOURCE, only(SOURCE, {name: files[name], "z.qfx": XML}))


LEDGER = st.lists(
    st.tuples(
        st.integers(1, 9), st.sampled_from(["-4.50", "-4.51", "20.00"]), st.sampled_from(["Mill", "Weir"])
    ),
    max_size=30,
).map(sorted)


def statement(lines, *, is_newest_first=False):
    order = list(reversed(lines)) if is_newest_first else lines
    table = "".join(f"0{day}.03.2026;{who};{amount.replace('.', ',')}\n" for day, amount, who in order)
    return f"Buchungstag;Verwendungszweck;Betrag\n{table}".encode()


def imported(*tables):
    # The names of the months of one account, as they are downloaded.
    names = ("Giro 2026-03-31.csv", "giro_2026-04 (1).csv")
    readings = [
        read_all(SOURCE, only(SOURCE, {name: table})) for name, table in zip(names, tables, strict=True)
    ]
    found = [row for (stream, _), row in stored(*readings).items() if stream == "transactions"]
    return sorted((int(row["booked_on"][-2:]), row["amount_text"], row["description"]) for row in found)


@given(LEDGER, st.integers(0, 10), st.integers(0, 10), st.booleans())
@settings(max_examples=60, deadline=None)
def test_any_two_overlapping_statements_of_one_ledger_are_the_ledger(ledger, one, two, is_newest_first):
    first, last = sorted((one, two))
    early = [line for line in ledger if line[0] <= last]
    late = [line for line in ledger if line[0] >= first]
    assert imported(statement(early), statement(late, is_newest_first=is_newest_first)) == ledger


def ofx_statement(lines):
    """Write lines with the bank's numbers, by which OFX tells them apart."""
    rows = "".join(
        f"<STMTTRN><TRNTYPE>OTHER<DTPOSTED>2026030{day}<TRNAMT>{amount}<FITID>F{number}<MEMO>{who}</STMTTRN>\n"
        for number, (day, amount, who) in lines
    )
    head, _, rest = SGML.partition(b"<STMTTRN>")
    return head + rows.encode() + b"</BANKTRANLIST>" + rest.partition(b"</BANKTRANLIST>")[2]


def camt_statement(lines):
    rows = "".join(
        f"<Ntry><Amt Ccy='EUR'>{amount.removeprefix('-')}</Amt>"
        f"<CdtDbtInd>{'DBIT' if amount.startswith('-') else 'CRDT'}</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts>"
        f"<BookgDt><Dt>2026-03-0{day}</Dt></BookgDt><AcctSvcrRef>R{number}</AcctSvcrRef>"
        f"<AddtlNtryInf>{who}</AddtlNtryInf></Ntry>"
        for number, (day, amount, who) in lines
    )
    head, _, _ = CAMT.partition(b"<Ntry>")
    return head + rows.encode() + b"</Stmt></BkToCstmrStmt></Document>"


@pytest.mark.parametrize(("write", "ending"), [(ofx_statement, "ofx"), (camt_statement, "xml")])
@given(ledger=LEDGER, one=st.integers(0, 30), two=st.integers(0, 30))
@settings(max_examples=40, deadline=None)
def test_overlapping_statements_with_the_numbers_of_a_bank_are_the_ledger(write, ending, ledger, one, two):
    first, last = sorted((min(one, len(ledger)), min(two, len(ledger))))
    lines = list(enumerate(ledger))
    parts = [part for part in (lines[:last], lines[first:]) if part]
    readings = [
        read_all(SOURCE, only(SOURCE, {f"{n}.{ending}": write(part)})) for n, part in enumerate(parts)
    ]
    found = [row for (stream, _), row in stored(*readings).items() if stream == "transactions"]
    assert (
        sorted((int(row["booked_on"][-2:]), row["amount_text"], row["description"]) for row in found)
        == ledger
    )


@given(LEDGER, st.integers(0, 30), st.integers(0, 30))
@settings(max_examples=60, deadline=None)
def test_statements_cut_inside_a_day_double_nothing_and_lose_no_kind_of_line(ledger, one, two):
    first, last = sorted((min(one, len(ledger)), min(two, len(ledger))))
    found = imported(statement(ledger[:last]), statement(ledger[first:]))
    assert set(found) == set(ledger)
    assert all(found.count(line) <= ledger.count(line) for line in set(ledger))
