"""Tables of banks: signs, accounts, days and texts that no single column says plainly."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from headgate.errors import InvalidRequest
from headgate.sources.importing import Importer, job_of
from headgate.sources.money.source import MONEY as SOURCE
from headgate.sources.protocol import Recognised
from tests.on_socket import headgate
from tests.sources.reading import only, read_all, rejects_of, rows_of, tree_from
from tests.store.engines import NOW, Driven


def reading(table: str, name: str = "export.csv", **chosen: str):
    recognised = only(SOURCE, {name: table.encode()})
    return read_all(SOURCE, SOURCE.corrected(recognised, {"signs": chosen}) if chosen else recognised)


def amounts(table: str, name: str = "export.csv") -> list[str]:
    return [row["amount_text"] for row in rows_of(reading(table, name), "transactions")]


# Signs


@pytest.mark.parametrize(
    ("name", "out", "back"),
    [
        ("Transaction Type", "debit", "credit"),
        ("D/C", "D", "C"),
        ("Dr / Cr", "Dr.", "Cr."),
        ("CreditDebet", "D", "C"),
        ("Richting", "Debet", "Credit"),
        ("Af Bij", "Af", "Bij"),
        ("Whatever", "S", "H"),
        ("", "DBIT", "CRDT"),
    ],
)
def test_a_column_of_nothing_but_two_ways_is_the_sign_whatever_its_name(name, out, back):
    table = f"Date,Description,Amount,{name}\n2026-03-01,Rent,1500.00,{out}\n2026-03-02,Pay,2000.00,{back}\n"
    items = reading(table)
    assert [row["amount_text"] for row in rows_of(items, "transactions")] == ["-1500.00", "2000.00"]
    assert rejects_of(items) == []


def test_a_word_for_one_way_alone_is_enough_and_a_letter_alone_is_not():
    assert amounts("Date,Description,Amount,Way\n2026-03-01,Rent,15.00,debit\n") == ["-15.00"]
    items = reading("Date,Description,Amount,Mark\n2026-03-01,Rent,15.00,D\n")
    assert [row["amount_text"] for row in rows_of(items, "transactions")] == ["15.00"]
    assert len(rejects_of(items)) == 1


@pytest.mark.parametrize("is_newest_first", [False, True])
def test_amounts_that_the_balance_contradicts_are_turned(is_newest_first):
    lines = ["2026-03-01,Mill,10.00,90.00", "2026-03-02,Weir,20.00,70.00", "2026-03-03,Back,-5.00,75.00"]
    rows = "\n".join(reversed(lines) if is_newest_first else lines)
    turned = ["-10.00", "-20.00", "5.00"]
    table = f"Date,Description,Amount,Balance\n{rows}\n"
    assert amounts(table) == (turned[::-1] if is_newest_first else turned)


def test_amounts_that_the_balance_confirms_stay():
    lines = "2026-03-01,Mill,10.00,110.00\n2026-03-02,Weir,20.00,130.00\n2026-03-03,Pay,20.00,150.00\n"
    items = reading(f"Date,Description,Amount,Balance\n{lines}")
    assert [row["amount_text"] for row in rows_of(items, "transactions")] == ["10.00", "20.00", "20.00"]
    assert rejects_of(items) == []


def test_equal_amounts_are_compared_with_the_balance_in_the_order_of_their_days():
    lines = "2026-03-01,Mill,10.00,90.00\n2026-03-02,Weir,10.00,80.00\n2026-03-03,Pond,10.00,70.00\n"
    assert amounts(f"Date,Description,Amount,Balance\n{lines}") == ["-10.00"] * 3


CARD = "Transaction Date,Merchant Name,Amount\n01/02/2026,Mill,36.33\n02/14/2026,Weir,4.00\n"


def test_a_file_that_says_nothing_of_signs_is_reported_with_the_name_of_its_column():
    items = reading(CARD)
    assert [row["amount_text"] for row in rows_of(items, "transactions")] == ["36.33", "4.00"]
    (reject,) = rejects_of(items)
    assert reject.place == "export.csv"
    assert "No amount of the column 'Amount' is negative" in reject.reason
    assert "--declare" in reject.reason


def test_a_card_with_few_negative_amounts_says_nothing_of_signs():
    table = (
        "Date,Description,Card Member,Amount\n"
        "2026-03-01,Mill,Ines,5.00\n2026-03-02,Weir,Ines,6.00\n2026-03-03,Payment,Ines,-11.00\n"
    )
    (reject,) = rejects_of(reading(table))
    assert "Few amounts of the column 'Amount' are negative" in reject.reason


@pytest.mark.parametrize(
    ("signs", "expected"), [({"export.csv": "out"}, ["-36.33", "-4.00"]), ({"exp*": "in"}, ["36.33", "4.00"])]
)
def test_what_is_declared_of_signs_is_believed(signs, expected):
    items = reading(CARD, **signs)
    assert [row["amount_text"] for row in rows_of(items, "transactions")] == expected
    assert rejects_of(items) == []
    as_written = rows_of(reading(CARD), "transactions")
    assert [row["id"] for row in rows_of(items, "transactions")] == [row["id"] for row in as_written]


@pytest.mark.parametrize(
    "corrections",
    [{}, {"signs": []}, {"signs": {"export.csv": "up"}}, {"signs": {"b.csv": "out"}}, {"transactions": {}}],
)
def test_a_declaration_that_does_not_fit_is_refused(corrections):
    with pytest.raises(InvalidRequest):
        SOURCE.corrected(only(SOURCE, {"export.csv": CARD.encode()}), corrections)


def transactions_of(place: Path) -> list[dict]:
    assert headgate(place, "--home", "home", "export", "Bank statements", "out").code == 0
    lines = (place / "out" / "transactions.jsonl").read_text().splitlines()
    (place / "out").rename(place / f"out-{len(list(place.iterdir()))}")
    return [json.loads(line) for line in lines]


def test_signs_that_nothing_says_end_the_import_with_65_and_a_declaration_mends_them(tmp_path):
    (tmp_path / "card.csv").write_text(CARD)
    (tmp_path / "signs.toml").write_text('[signs]\n"card.csv" = "out"\n')
    run = partial(headgate, tmp_path, "--home", "home", "import", "card.csv", "--yes")
    first = run()
    assert (first.code, "'Amount'" in first.out) == (65, True)
    mended = run("--declare", "signs.toml")
    assert mended.code == 0, mended.err
    assert "transactions: 0 new, 2 known already" in mended.out
    assert sorted(line["amount"] for line in transactions_of(tmp_path)) == [-36.33, -4.0]


# Accounts


def test_a_line_names_the_file_that_it_came_from():
    (row,) = rows_of(
        read_all(
            SOURCE, only(SOURCE, {"2026/giro.csv": b"Date,Description,Amount\n2026-03-01,Mill,-1.00\n"})
        ),
        "transactions",
    )
    assert row["file"] == "giro.csv"


def test_one_number_has_an_account_for_each_currency():
    table = (
        "Date,Description,Amount,Currency,Account number\n"
        "2026-03-01,Interest,0.42,EUR,1234567\n2026-03-01,Interest,0.42,GBP,1234567\n2026-03-02,Fee,-1.00,GBP,1234567\n"
    )
    items = reading(table)
    assert {row["id"] for row in rows_of(items, "accounts")} == {"1234567 EUR", "1234567 GBP"}
    assert len({row["id"] for row in rows_of(items, "transactions")}) == 3


def test_a_column_of_accounts_with_names_is_no_number():
    table = "Date,Description,Amount,Account Name\n2026-03-01,Mill,-1.00,Checking\n2026-03-01,Mill,-1.00,Savings\n"
    accounts = rows_of(reading(table, "mint.csv"), "accounts")
    assert sorted(row["id"] for row in accounts) == ["mint checking", "mint savings"]
    assert all("number" not in row for row in accounts)


REVOLUT = (
    "Type,Product,Started Date,Completed Date,Description,Amount,Fee,Currency,State,Balance\n"
    "CARD_PAYMENT,Current,2021-10-01 10:00:00,2021-10-02 10:00:00,Coffee,-3.00,0.00,EUR,COMPLETED,10.00\n"
)
OLDER = {
    "card.csv": CARD,
    "mint.csv": "Date,Description,Amount,Transaction Type,Account Name\n3/02/2026,Rent,15.00,debit,Checking\n",
    "revolut.csv": REVOLUT,
    "ing.csv": (
        "Datum;Naam / Omschrijving;Rekening;Tegenrekening;Code;Af Bij;Bedrag (EUR);MutatieSoort;Mededelingen\n"
        "20260301;Molen;NL20INGB0001234567;;BA;Af;1,00;Betaalautomaat;Pas 1\n;;;;;;;;meer\n"
    ),
}

#: Accounts and keys of these lines by form, as the version that last made connections of the third form gave them.
_CARD = [("card", "678375b26675028d8092805decb8d5"), ("card", "a91b393b006972fc99956924a2660f")]
_ING = [("NL20INGB0001234567", "cedbcd427a6fb01b3f618488eec82b")]
_MINT = [("CHECKING", "03068105a7194af8c6093dbd2d688d")]
_REVOLUT = [("revolut current eur", "c78837f3332b12ef918df108f8e717")]
KEYS = {
    "card.csv": (
        [("main", "4f32afb72ff2051fa070698946e0c3"), ("main", "3d5aec8a8487cda2acf1e36db8659a")], _CARD, _CARD,
    ),
    "ing.csv": (_ING, _ING, _ING),
    "mint.csv": (_MINT, _MINT, _MINT),
    "revolut.csv": ([("CURRENT", "00dc85ad478ca8feaf5491b43805c8")], _REVOLUT, _REVOLUT),
}  # fmt: skip


@pytest.mark.parametrize("form", [1, 2, 3])
@pytest.mark.parametrize("name", sorted(OLDER))
def test_lines_of_an_older_connection_keep_their_keys(name, form):
    recognised = replace(only(SOURCE, {name: OLDER[name].encode()}), form=form)
    rows = rows_of(read_all(SOURCE, recognised), "transactions")
    assert [(row["account_id"], row["id"]) for row in rows] == KEYS[name][form - 1]


def test_signs_in_an_older_connection_are_mended_by_importing_again():
    recognised = only(SOURCE, {"mint.csv": OLDER["mint.csv"].encode()})
    (row,) = rows_of(read_all(SOURCE, replace(recognised, form=3)), "transactions")
    assert row["amount_text"] == "-15.00"


def test_an_older_connection_with_one_account_for_all_says_how_to_mend_it():
    recognised: Recognised = only(
        SOURCE, {"revolut.csv": b"Date,Description,Amount\n2026-03-01,Mill,-1.00\n"}
    )
    (reject,) = rejects_of(read_all(SOURCE, replace(recognised, form=1)))
    assert "erase the connection and import its files again" in reject.reason


def test_the_same_file_in_another_currency_changes_nothing_that_is_stored(tmp_path):
    store = Driven("sqlite", tmp_path)
    try:
        importer = Importer(store.bare, clock=lambda: NOW)
        added = [
            store.run(importer.run(job_of(SOURCE, only(SOURCE, {"statement.csv": table.encode()}))))
            .streams["transactions"]
            .added
            for table in (REVOLUT, REVOLUT.replace("EUR", "GBP"), REVOLUT)
        ]
    finally:
        store.close()
    assert added == [1, 1, 0]


# Banks


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (  # The text stands in the column of the kind.
            ("Buchungstag;Wertstellung;Umsatzart;Buchungstext;Betrag;Währung;IBAN Auftraggeberkonto;Kategorie\n"
            "02.03.2026;02.03.2026;Lastschrift;Mühle dankt;-4,50;EUR;DE02120300000000202051;Haus\n"),
            ("2026-03-02", "-4.50", "Mühle dankt", None),
        ),
        (  # A card: two columns of kinds, and the currency in the name of the amount.
            ('"Umsätze Visa-Karte";"Zeitraum: 30 Tage";\n\n'
            '"Buchungstag";"Umsatztag";"Vorgang";"Referenz";"Buchungstext";"Umsatz in EUR";\n'
            '"02.03.2026";"01.03.2026";"Visa-Umsatz";"123";"Kiosk am Wehr";"-4,50";\n'),
            ("2026-03-02", "-4.50", "Kiosk am Wehr", None),
        ),
        (
            ("KNAB EXPORT;;;;\nRekeningnummer;Transactiedatum;Valutacode;CreditDebet;Bedrag;Tegenrekeningnummer;"
            "Tegenrekeninghouder;Valutadatum;Betaalwijze;Omschrijving;Type betaling;Machtigingsnummer;Incassant ID;Adres;Referentie\n"
            "NL01KNAB0123456789;02-03-2026;EUR;D;4,50;NL20INGB0001234567;De Molen;02-03-2026;Pin;Brood;BA;;;;R1\n"),
            ("2026-03-02", "-4.50", "Brood", "De Molen"),
        ),
        (  # 26 columns, of which many are not known.
            ("IBAN/BBAN,Munt,BIC,Volgnr,Datum,Rentedatum,Bedrag,Saldo na trn,Tegenrekening IBAN/BBAN,Naam tegenpartij,"
            "Naam uiteindelijke partij,Naam initiërende partij,BIC tegenpartij,Code,Batch ID,Transactiereferentie,"
            "Machtigingskenmerk,Incassant ID,Betalingskenmerk,Omschrijving-1,Omschrijving-2,Omschrijving-3,Reden retour,Oorspr bedrag,Oorspr munt,Koers\n"
            'NL01RABO0123456789,EUR,RABONL2U,1,2026-03-02,2026-03-02,"-4,50","+100,00",NL20INGB0001234567,De Molen,,,,bc,,,,,,Brood,en,koek,,,,\n'),
            ("2026-03-02", "-4.50", "Brood en koek", "De Molen"),
        ),
        (  # The counterparty's number in the column of its name.
            ("Date;Interest Date;Amount;Account;Counterparty;Name;Description\n"
            "2026-03-02;2026-03-02;-4,50;NL01BUNQ0123456789;NL20INGB0001234567;De Molen;Brood\n"),
            ("2026-03-02", "-4.50", "Brood", "De Molen"),
        ),
        (
            ("Datum;Naam / Omschrijving;Rekening;Tegenrekening;Code;Af Bij;Bedrag (EUR);MutatieSoort;Mededelingen\n"
            "20260302;De Molen;NL20INGB0001234567;;BA;Af;4,50;Betaalautomaat;Valutadatum: 03-03-2026\n"),
            ("2026-03-02", "-4.50", "Valutadatum: 03-03-2026", "De Molen"),
        ),
        (
            ("kredietkaart;kaarthouder;uitgavenstaat;datum verrichting;datum verrekening;bedrag;credit;debet;munt;koers;Handelaar;locatie;land\n"
            "5299 1234;INES;3;02/03/2026;13/03/2026;-4,50;;-4,50;EUR;;De Molen;Gent;BE\n"),
            ("2026-03-02", "-4.50", "De Molen", "De Molen"),
        ),
        (
            "Date,Payee,Label,Outflow,Inflow\n02/28/2026,Mill,Bread,4.50,\n",
            ("2026-02-28", "-4.50", "Bread", "Mill"),
        ),
        (
            "Data;Entrate;Uscite;Descrizione;Stato\n02/03/2026;;4,50;Mulino;Contabilizzato\n",
            ("2026-03-02", "-4.50", "Mulino", None),
        ),
        (
            (",ID,Datetime,Type,Status,Note,From,To,Amount (total),Amount (tip),Funding Source,Destination,Beginning Balance,Ending Balance\n"
            ",77,2026-03-02T10:00:00,Payment,Complete,Bread,Ines,Mill,- $4.50,,Bank,,,\n"),
            ("2026-03-02", "-4.50", "Bread", "Mill"),
        ),
        (
            ('"Transactions for account Individual XXXX-1234 as of 03/14/2026"\n"Date","Action","Symbol","Description","Quantity","Price","Fees & Comm","Amount"\n'
            '"03/02/2026","Buy","MILL","MILL CORP","1","$4.50","","-$4.50"\n'),
            ("2026-03-02", "-4.50", "MILL CORP", None),
        ),
        (
            ("Тип счёта;Номер счета;Валюта;Дата операции;Референс проводки;Описание операции;Приход;Расход;\n"
            "Текущий;40817810000000000001;RUR;02.03.26;R1;Мельница;0;4,50;\n"),
            ("2026-03-02", "-4.50", "Мельница", None),
        ),
        (
            ("Číslo účtu;Datum zaúčtování;Název protiúčtu;IBAN;BIC;Protiúčet;Kód banky protiúčtu;Částka;Měna;Zpráva pro příjemce;Poznámka;Variabilní symbol\n"
            "1234567;02.03.2026;Mlýn u řeky;;;7654321;0800;-4,50;CZK;Chléb;;5\n"),
            ("2026-03-02", "-4.50", "Chléb", "Mlýn u řeky"),
        ),
        (
            ("#Data operacji;#Data księgowania;#Opis operacji;#Tytuł;#Nadawca/Odbiorca;#Numer konta;#Kwota;#Saldo po operacji;\n"
            "2026-03-02;2026-03-02;PRZELEW;Chleb;Młyn;12 3456;-4,50;100,00;\n"),
            ("2026-03-02", "-4.50", "PRZELEW Chleb", "Młyn"),
        ),
    ],
)  # fmt: skip
def test_tables_of_large_banks_are_read(table, expected):
    (row,) = rows_of(reading(table), "transactions")
    assert (row["booked_on"], row["amount_text"], row["description"], row.get("counterparty")) == expected


@pytest.mark.parametrize(
    ("encoding", "table", "text"),
    [
        ("cp1251", "Дата операции;Описание;Сумма\n02.03.2026;Хлеб из мельницы;-4,50\n", "Хлеб из мельницы"),
        ("cp1250", "Datum zaúčtování;Poznámka;Částka\n02.03.2026;Příští mlýn u řeky;-4,50\n", "Příští mlýn u řeky"),
        ("cp1250", "#Data operacji;#Tytuł;#Kwota\n2026-03-02;Chleb żytni, świeży, łagodny;-4,50\n", "Chleb żytni, świeży, łagodny"),
        ("cp1252", "Date;Libellé;Montant\n02/03/2026;Crème brûlée à la mère Noël;-4,50\n", "Crème brûlée à la mère Noël"),
        ("cp1252", "Data;Descrizione;Importo\n02/03/2026;Città, perché più caffè così;-4,50\n", "Città, perché più caffè così"),
        ("cp1252", "Datum;Text;Betrag\n02.03.2026;Größe für Äpfel, Straße 5³ €;-4,50\n", "Größe für Äpfel, Straße 5³ €"),
        ("cp1252", "Dato;Tekst;Beløb\n02.03.2026;Rødgrød på øen, læst;-4,50\n", "Rødgrød på øen, læst"),
        ("cp1252", "Data;Descrição;Valor\n02/03/2026;Pão e limões, três cafés às nove, não;-4,50\n", "Pão e limões, três cafés às nove, não"),
    ],
)  # fmt: skip
def test_tables_in_the_encodings_of_windows_are_read(encoding, table, text):
    (row,) = rows_of(read_all(SOURCE, only(SOURCE, {"export.csv": table.encode(encoding)})), "transactions")
    assert (row["description"], row["amount_text"]) == (text, "-4.50")


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (
            (
                "AT02120300000000202051;Bäckerei am Wehr;02.03.2026;03.03.2026;-4,50;EUR\n"
                "AT02120300000000202051;Lohn der Mühle;13.03.2026;13.03.2026;900,00;EUR\n"
            ),
            [("2026-03-02", "-4.50", "Bäckerei am Wehr"), ("2026-03-13", "900.00", "Lohn der Mühle")],
        ),
        (
            "6/12/15,Bread from the mill,4.50,debit,Food\n6/13/15,Pay of the mill,900.00,credit,Income\n",
            [("2015-06-12", "-4.50", "Bread from the mill"), ("2015-06-13", "900.00", "Pay of the mill")],
        ),
        (
            (
                "02-03-2026,NL01ASNB0123456789,De Molen aan de kade,EUR,100.00,EUR,-4.50\n"
                "03-03-2026,NL01ASNB0123456789,Loon van de Molen,EUR,95.50,EUR,900.00\n"
                "14-03-2026,NL01ASNB0123456789,De Molen aan de kade,EUR,995.50,EUR,-1.00\n"
            ),
            [
                ("2026-03-02", "-4.50", "De Molen aan de kade"),
                ("2026-03-03", "900.00", "Loon van de Molen"),
                ("2026-03-14", "-1.00", "De Molen aan de kade"),
            ],
        ),
    ],
)
def test_tables_without_a_head_are_read_and_lose_no_line(table, expected):
    rows = rows_of(reading(table), "transactions")
    assert [(row["booked_on"], row["amount_text"], row["description"]) for row in rows] == expected


@pytest.mark.parametrize(
    "table",
    [
        "2026-03-01,Canal gauge,4.50,1.20\n2026-03-02,Canal gauge,4.60,1.30\n",
        "date,value,type\n2026-03-01,70.1,weight\n",
        "Date,Type,Value,Unit,Device,Version\n2026-03-01,Steps,70.10,count,Watch,2\n",
        "order,date,name,amount,status,colour,size,shop,street,city,zip,phone\n1,2026-03-01,Ines,3.00,sent,red,L,a,b,c,d,e\n",
    ],
)
def test_measurements_and_orders_are_no_bank_tables(table):
    assert SOURCE.detect(tree_from({"a.csv": table.encode()})) == []


def days(table: str, name: str = "export.csv") -> list[str]:
    return [row["booked_on"] for row in rows_of(reading(table, name), "transactions")]


def test_the_order_of_a_day_is_decided_by_all_that_the_file_says():
    def table(*written: str, head: str = "Datum;Text;Betrag"):
        mark = ";" if ";" in head else ","
        return f"{head}\n" + "".join(f"{day}{mark}Mill{mark}-1.00\n" for day in written)

    # By lines in their order, oldest or newest first.
    assert days(table("02/09/2026", "03/01/2026", "04/02/2026")) == ["2026-02-09", "2026-03-01", "2026-04-02"]
    assert days(table("04/02/2026", "03/01/2026", "02/09/2026"))[0] == "2026-04-02"
    # By the day in the name of the file, which is after all of them.
    english = "Date,Description,Amount"
    assert days(table("10/02/2018", head=english), "20180226_12345678.csv") == ["2018-02-10"]
    assert days(table("10/02/2018", head=english)) == ["2018-10-02"]
    # By the language and the currency.
    assert days(table("05/03/2021", head="Transaction Date,Description,Amount")) == ["2021-05-03"]
    pounds = "Transaction Date,Description,Amount,Currency\n05/03/2021,Mill,-1.00,GBP\n"
    assert days(pounds) == ["2021-03-05"]


def test_rows_that_continue_a_text_belong_to_the_line_before():
    table = (
        "Transaction date,Value date,Description,Withdrawals (SGD),Deposits (SGD)\n"
        "31/03/2026,31/03/2026,POS PURCHASE,10.00,\n,,THE MILL,,\n,,SINGAPORE,,\n"
        "31/03/2026,31/03/2026,PAY,,20.00\n"
    )
    items = reading(table)
    rows = rows_of(items, "transactions")
    assert [row["description"] for row in rows] == ["POS PURCHASE THE MILL SINGAPORE", "PAY"]
    assert rejects_of(items) == []


def test_lines_that_are_not_booked_yet_are_left_out_without_a_reject():
    table = "Date,Description,Amount\nPending,Mill,-3.00\n2026-03-01,Weir,-1.00\nsoon,Weir,-1.00\n"
    items = reading(table)
    assert len(rows_of(items, "transactions")) == 1
    assert [reject.place for reject in rejects_of(items)] == ["export.csv, row 4"]
