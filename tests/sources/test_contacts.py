"""Contacts of vCard files."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given, settings, strategies as st

from headgate.sources.contacts import CONTACTS
from headgate.sources.protocol import Attachment, Row
from tests.sources.source_checks import check_all, hostile, items_of, rejects_of, rows_of, tree_with

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(60))
THREE = (
    "BEGIN:VCARD\r\nVERSION:3.0\r\nUID:urn:uuid:1f2e\r\nN:Varga;Tomás;;Dr.;\r\nFN:Dr. Tomás Varga\r\n"
    "ORG:Mill Canal Trust;Bridges\r\nTITLE:Engineer\r\nitem1.EMAIL;TYPE=INTERNET:tomas@example.org\r\n"
    'item1.X-ABLabel:_$!<Home>!$_\r\nEMAIL;TYPE="work,pref":t.varga@mill.example\r\n'
    "TEL;TYPE=CELL:+36 1 555 0100\r\nADR;TYPE=HOME:;;Fő utca 1;Buda\r\n pest;;1011;Hungary\r\n"
    "BDAY;X-APPLE-OMIT-YEAR=1604:1604-02-29\r\nNOTE:Likes boats\\, not trains.\\nCall late.\r\n"
    "CATEGORIES:Work,Boat club\r\nREV:2026-03-01T08:00:00Z\r\n"
    "PHOTO;ENCODING=b;TYPE=PNG:{photo}\r\nEND:VCARD\r\n"
)
TWO = (
    "BEGIN:VCARD\r\nVERSION:2.1\r\nN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:M=C3=BCller;J=C3=B6rg\r\n"
    "TEL;CELL;PREF:0151 555 0101\r\nNOTE;ENCODING=QUOTED-PRINTABLE;CHARSET=ISO-8859-1:Gr=FC=\r\n"
    "=DFe=0D=0Aaus Ulm\r\nPHOTO;PNG;ENCODING=BASE64:\r\n {photo}\r\n\r\nEND:VCARD\r\n"
)
FOUR = (
    "BEGIN:VCARD\r\nVERSION:4.0\r\nFN:Aiko Mori\r\nTEL;VALUE=uri:tel:+81-3-555-0102\r\nBDAY:19840415\r\n"
    "IMPP:xmpp:aiko@chat.example\r\nURL:https://mori.example/\r\nPHOTO:data:image/png;base64,{photo}\r\nEND:VCARD\r\n"
    "BEGIN:VCARD\r\nVERSION:4.0\r\nKIND:org\r\nFN:Boat club\r\nPHOTO:https://boats.example/logo.png\r\nEND:VCARD\r\n"
)
CODED = base64.b64encode(PICTURE).decode()
BOOK = "".join(card.format(photo=CODED) for card in (THREE, TWO, FOUR))


def test_a_card_of_version_3_is_read_with_everything_in_it():
    (contact,) = rows_of(CONTACTS, {"book.vcf": THREE.format(photo=CODED)})["contacts"]
    assert contact == {
        "id": "1f2e",
        "name": "Dr. Tomás Varga",
        "given_name": "Tomás",
        "family_name": "Varga",
        "kind": "person",
        "emails": ["tomas@example.org", "t.varga@mill.example"],
        "phones": ["+36 1 555 0100"],
        "labelled_phones": ["mobile: +36 1 555 0100"],
        "organisation": "Mill Canal Trust, Bridges",
        "job": "Engineer",
        "birthday": "--02-29",
        "addresses": ["Fő utca 1, Budapest, 1011, Hungary"],
        "groups": ["Work", "Boat club"],
        "notes": "Likes boats, not trains.\nCall late.",
        "updated_at": "2026-03-01T08:00:00Z",
        "people": ["Dr. Tomás Varga", "tomas@example.org", "t.varga@mill.example"],
    }


def test_quoted_printable_text_of_version_2_is_read_in_its_charset():
    (contact,) = rows_of(CONTACTS, {"old.VCF": TWO.format(photo=CODED)})["contacts"]
    assert (contact["name"], contact["phones"]) == ("Jörg Müller", ["0151 555 0101"])
    assert contact["notes"] == "Grüße\naus Ulm"


def test_a_file_of_version_4_has_several_cards():
    aiko, club = rows_of(CONTACTS, {"book.vcf": FOUR.format(photo=CODED)})["contacts"]
    assert (aiko["phones"], aiko["birthday"]) == (["+81-3-555-0102"], "1984-04-15")
    assert (aiko["accounts"], aiko["websites"]) == (["xmpp:aiko@chat.example"], ["https://mori.example/"])
    assert (club["kind"], club["photo_url"]) == ("organisation", "https://boats.example/logo.png")


def test_phones_dates_and_people_of_a_card_have_their_labels():
    lines = (
        "BEGIN:VCARD\r\nVERSION:3.0\r\nFN:Ada\r\nTEL;TYPE=WORK,VOICE:1\r\nTEL;HOME;FAX:2\r\nitem1.TEL:3\r\nTEL:4\r\n"
        "item1.X-ABLabel:_$!<Mobile>!$_\r\nitem2.X-ABRELATEDNAMES:Bo\r\nitem2.X-ABLabel:_$!<Spouse>!$_\r\n"
        "RELATED;TYPE=child:Eve\r\nANNIVERSARY:20010203\r\nX-PHONETIC-FIRST-NAME:Eida\r\nEND:VCARD\r\n"
    )
    (contact,) = rows_of(CONTACTS, {"a.vcf": lines})["contacts"]
    assert contact["phones"] == ["1", "2", "3", "4"]
    assert contact["labelled_phones"] == ["work: 1", "home fax: 2", "mobile: 3"]
    assert contact["related"] == ["child: Eve", "spouse: Bo"]
    assert (contact["anniversary"], contact["phonetic_name"]) == ("2001-02-03", "Eida")


def test_a_person_of_an_organisation_is_a_person_and_the_organisation_is_none():
    card = "BEGIN:VCARD\nVERSION:3.0\nFN:{}\nORG:Mill\nEND:VCARD\n"
    kinds = [
        rows_of(CONTACTS, {"a.vcf": card.format(name)})["contacts"][0]["kind"] for name in ("Ada", "Mill")
    ]
    assert kinds == ["person", "organisation"]


@pytest.mark.parametrize(
    ("written", "note"),
    [(r"one\r\ntwo", "one\ntwo"), (r"one\ntwo", "one\ntwo"), (r"C:\\r\nx", "C:\\r\nx"), (r"a\rb", "arb")],
)
def test_the_line_breaks_of_a_note_are_read_as_programs_write_them(written: str, note: str):
    card = f"BEGIN:VCARD\nVERSION:4.0\nFN:Ada\nNOTE:{written}\nEND:VCARD\n"
    (row,) = rows_of(CONTACTS, {"a.vcf": card})["contacts"]
    assert row["notes"] == note


def test_a_photo_whose_comma_is_escaped_is_read():
    card = f"BEGIN:VCARD\nVERSION:4.0\nFN:Ada\nPHOTO:data:image/png;base64\\,{CODED}\nEND:VCARD\n"
    (row,) = [item for item in items_of(CONTACTS, {"a.vcf": card}) if isinstance(item, Row)]
    assert row.attachments["photo"] == Attachment(PICTURE, "image/png")


def test_a_photo_is_an_attachment_in_every_version():
    rows = [item for item in items_of(CONTACTS, {"book.vcf": BOOK}) if isinstance(item, Row)]
    photo = Attachment(PICTURE, "image/png")
    assert [row.attachments.get("photo") for row in rows] == [photo, photo, photo, None]


def test_a_card_without_an_id_is_known_by_its_name_so_that_a_change_is_an_update():
    card = "BEGIN:VCARD\nVERSION:3.0\nFN:Sam Okafor\nTEL:{}\nEND:VCARD\n"
    before, after = (rows_of(CONTACTS, {"a.vcf": card.format(phone)})["contacts"] for phone in ("1", "2"))
    assert before[0]["id"] == after[0]["id"]
    twice = rows_of(CONTACTS, {"a.vcf": card.format("1") * 2})["contacts"]
    assert len({contact["id"] for contact in twice}) == 2


def test_what_cannot_be_read_is_rejected_and_the_rest_goes_on():
    broken = "BEGIN:VCARD\nVERSION:3.0\nFN:Cut\n" + "BEGIN:VCARD\nVERSION:3.0\nEND:VCARD\n" + BOOK
    assert [(reject.place, reject.reason) for reject in rejects_of(CONTACTS, {"b.vcf": broken})] == [
        ("b.vcf, card 1", "It has no end."),
        ("b.vcf, card 2", "The card has no name, organisation, email or phone."),
    ]
    assert len([item for item in items_of(CONTACTS, {"b.vcf": broken}) if isinstance(item, Row)]) == 4


def test_a_card_beyond_the_bounds_is_rejected():
    folded = "BEGIN:VCARD\nFN:Long\nNOTE:x\n" + " y\n" * 20 + "X:1\n" * 20_000 + "END:VCARD\n"
    (reject,) = rejects_of(CONTACTS, {"b.vcf": folded})
    assert "20000 lines" in reject.reason


def test_a_file_of_another_kind_is_left_alone():
    assert CONTACTS.detect(tree_with({"a.vcf": "no cards", "b.txt": BOOK})) == []


def test_every_row_can_be_stored_and_reading_again_or_from_a_mark_gives_the_same():
    check_all(CONTACTS, {"book.vcf": BOOK * 2, "more/other.vcf": TWO.format(photo="no picture")})


@settings(max_examples=60, deadline=None)
@given(hostile(BOOK.encode()))
def test_a_broken_file_gives_rows_that_can_be_stored_or_rejects(content):
    check_all(CONTACTS, {"book.vcf": content})


@settings(max_examples=30, deadline=None)
@given(st.text(max_size=40), st.text(max_size=40))
def test_any_name_and_id_can_be_stored(name, uid):
    check_all(
        CONTACTS, {"a.vcf": f"BEGIN:VCARD\nFN:{name}\nUID:{uid}\nEND:VCARD\n".encode("utf-8", "replace")}
    )
