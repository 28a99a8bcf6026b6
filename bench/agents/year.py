"""Write the invented year as the files a person would have, and the answers that follow from what was written."""

from __future__ import annotations

import csv
import mailbox
import os
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from email.message import EmailMessage
from email.utils import format_datetime
from pathlib import Path

from bench.agents.story import CHATS, CHOIR, EVENTS, MAILS, ME, NOTES, SCHOOL, Mail

TODAY = date(2026, 9, 30)
_FIRST = date(2025, 10, 1)
_ORDERS = "Sluizeken Fietsen <orders@sluizekenfietsen.example>"
_CUSTOMERS = [
    "Sofie Verbeke",
    "Jan Roose",
    "Ayse Kaya",
    "Pieter De Wit",
    "Lotte Baert",
    "Marc Claeys",
    "Ilse Govaert",
    "Noor Haddad",
    "Kris Peeters",
    "Eva Stevens",
    "Bram Lammens",
    "Hilde Smet",
    "Omar Aziz",
    "Tine Wouters",
    "Jef Nys",
    "Sara Cools",
    "Wim Leys",
    "An Bosman",
]
_WORK = {
    "puncture repaired": 14,
    "brake pads and cables": 38,
    "chain and cassette": 72,
    "front wheel trued": 25,
    "hub gear adjusted": 31,
    "dynamo light replaced": 54,
}
_SHOPS = {
    "Colruyt": ("Groceries", 22, 95),
    "Delhaize": ("Groceries", 8, 60),
    "Bio-Planet": ("Groceries", 12, 70),
    "Koffie Kasper": ("Eating out", 3, 11),
    "Frituur Bij Gust": ("Eating out", 9, 31),
    "De Lijn": ("Transport", 2, 20),
    "Fietsdelen BV": ("Work", 15, 240),
    "Sphinx Cinema": ("Leisure", 9, 27),
    "Boekhandel Limerick": ("Leisure", 8, 48),
    "Apotheek Rabot": ("Health", 5, 40),
}
_SMALL_TALK = {
    "Feldt family": (("Dario Feldt", "Yusuf Demir", "Lena Feldt", "Ingrid Feldt"), 9),
    "Plot 14": (("Greta Maes", "Tom Ghysels", "Dario Feldt", "Rita Coppens"), 6),
    "Workshop": (("Milan Baeten", "Femke Jans", "Dario Feldt"), 14),
}
_PHRASES = [
    "can you bring {thing} {day}?",
    "i left the {thing} at yours",
    "who has the {thing}?",
    "the {thing} is broken again",
    "ok",
    "yes, {day} is fine",
    "no, {day} i cannot, sorry",
    "running ten minutes late",
    "{day} at seven then",
    "haha",
    "have you seen the {thing}? it was here {day}",
    "thanks for the {thing}!",
    "bought a new {thing}, it is awful",
    "nell wants a {thing} now, of course",
    "rain until {day}, says the radio",
    "soup is on, come over",
    "is the {thing} free {day}?",
]
_THINGS = [
    "ladder",
    "wheelbarrow",
    "green key",
    "drill",
    "cake tin",
    "pump",
    "rain coat",
    "tape",
    "thermos",
    "bread knife",
    "torch",
    "hose",
    "blue bucket",
    "trailer",
]
_DAYS = ["tomorrow", "on Monday", "on Wednesday", "tonight", "on Saturday", "next week", "after work"]
_PARAGRAPHS = (
    "The secretary reads the list of those present. Nobody asks for a change of the minutes of last year, which are approved.",
    "Long talk about the hedge on the north side: it shades the lower plots, but the birds like it. It stays for now.",
    "The treasurer shows the books. Income and expense are about equal; the reserve stands where it stood.",
    "Whoever works with clay should weigh twice and write once; I have three notebooks that say three things.",
    "A good shelf is flat, and stays flat. Turn it after ten firings, scrape it, and never lean it against the wall.",
    "The shed needs a new roof at some time. Two members know somebody who knows somebody. To be asked again.",
    "Cones tell the truth about heat, the pyrometer only about its own place. Put one cone at the top and one at the bottom.",
    "Several speakers thank the kitchen. The raffle is won by somebody who already has a wheelbarrow.",
)
_LETTERS = (
    "In the studio of the month: a potter near Hasselt who digs his own clay. Read why he throws standing up.",
    "Ten per cent on all stoneware until Sunday, and a free sponge with each bag. Only while stock lasts.",
    "Calendar: open doors in Mol, a market in Dinant, and a talk on wood firing in the museum of Frechen.",
    "Question of a reader: why does my glaze crawl? Answer: dust, grease, or too thick a coat. Wash the pot first.",
)
_RIDES = (
    "Schelde to Oudenaarde",
    "Around the Blaarmeersen",
    "Coast and back",
    "Muur and Bosberg",
    "Lys by night",
)


@dataclass(frozen=True, slots=True)
class Year:
    """What the files hold, as far as questions ask for sums and counts of it."""

    mails: Sequence[Mail]
    payments: Sequence[tuple[date, str, str, str, Decimal]]
    chats: Sequence[tuple[str, str, str, str]]
    rides: Sequence[tuple[date, str, Decimal, int]]
    orders: Sequence[tuple[str, str, Decimal]]


def write_year(place: Path) -> Year:
    """Write mail, calendar, chats, bank, notes and rides into a directory."""
    chance = random.Random(41)
    place.mkdir(parents=True, exist_ok=True)
    orders = list(_orders(chance))
    mails = sorted([*MAILS, *(mail for mail, _ in orders), *_weekly_mails(chance)], key=lambda mail: mail.day)
    year = Year(
        mails, list(_payments(chance)), sorted([*CHATS, *_chats(chance)], key=lambda chat: chat[1]),
        list(_rides(chance)), [facts for _, facts in orders],
    )  # fmt: skip
    _write_mails(place / "mail.mbox", mails)
    _write_calendar(place / "calendar.ics")
    _write_chats(place, year.chats)
    _write_payments(place / "bank.csv", year.payments)
    _write_notes(place / "notes", chance)
    _write_rides(place / "rides.csv", year.rides)
    return year


def _days() -> Iterator[date]:
    return (_FIRST + timedelta(days=number) for number in range((TODAY - _FIRST).days + 1))


def _clock(chance: random.Random, day: date, first: int = 8, last: int = 19) -> str:
    return f"{day.isoformat()}T{chance.randint(first, last):02}:{chance.randrange(60):02}"


def _orders(chance: random.Random) -> Iterator[tuple[Mail, tuple[str, str, Decimal]]]:
    number = 2000
    for day in _days():
        if day.weekday() == 6 or chance.random() < 0.25:
            continue
        number += 1
        customer, (work, price) = chance.choice(_CUSTOMERS), chance.choice(list(_WORK.items()))
        total = Decimal(price) + Decimal(chance.randrange(0, 400)) / 20
        text = (
            f"Customer: {customer}\nBicycle: {chance.choice(('Gazelle', 'Cortina', 'Batavus', 'own build', 'cargo bike'))}\n"
            f"Work: {work}\n\nThe total is {total:.2f} euro. Ready on {(day + timedelta(days=2)).isoformat()}."
        )
        mail = Mail(
            f"order-{number}", _clock(chance, day), _ORDERS, ME, f"Order {number} for {customer}", text
        )
        yield mail, (customer, work, total)


def _weekly_mails(chance: random.Random) -> Iterator[Mail]:
    for week, day in enumerate(day for day in _days() if day.weekday() == 0):
        pieces = chance.sample(_LETTERS, 3)
        yield Mail(f"klei-{week}", _clock(chance, day, 6, 7), "Klei & Vuur <brief@kleienvuur.example>", ME,
                   f"Klei & Vuur, letter {300 + week}", "\n\n".join(pieces) + "\n\nTo leave this list, click here.")  # fmt: skip
        if day.month not in {7, 8}:
            lunch = chance.choice(("soup and bread", "pasta", "fish on Friday", "pancakes on Thursday"))
            yield Mail(f"linde-{week}", _clock(chance, day, 15, 16), SCHOOL, ME, f"Week {week} at De Linde",
                       f"Dear parents,\n\nthis week: {lunch}. Swimming for the third form on Wednesday, bring a cap. Lost: a grey "
                       f"mitten and a scooter.\n\nDe Linde")  # fmt: skip
            yield Mail(f"choir-{week}", _clock(chance, day, 17, 19), CHOIR, ME, "Rehearsal on Tuesday",
                       f"Dear singers,\n\nTuesday at 20:00 in the parish hall, please study pages {week * 3} to {week * 3 + 9}. "
                       f"{chance.choice(('Altos', 'Tenors', 'Basses'))} bring biscuits.\n\nWout")  # fmt: skip
            if chance.random() < 0.4:
                yield Mail(f"sorry-{week}", _clock(chance, day, 20, 22), ME, CHOIR, "Re: Rehearsal on Tuesday",
                           "I come a little late, the class runs over.\n\nDario", f"choir-{week}")  # fmt: skip


def _chats(chance: random.Random) -> Iterator[tuple[str, str, str, str]]:
    for group, (people, a_week) in _SMALL_TALK.items():
        for day in _days():
            for _ in range(chance.randrange(a_week * 2) // 5):
                phrase = chance.choice(_PHRASES)
                text = phrase.format(thing=chance.choice(_THINGS), day=chance.choice(_DAYS))
                yield group, _clock(chance, day, 7, 22), chance.choice(people), text


def _payments(chance: random.Random) -> Iterator[tuple[date, str, str, str, Decimal]]:
    once = {
        date(2026, 1, 19): ("Basisschool De Linde", "Forest week Nell Feldt", "School", "-128.00"),
        date(2026, 3, 13): ("Ovenhuis", "Invoice OH-5519", "Work", "-3835.00"),
        date(2026, 2, 21): ("Fjordlinjer", "FJ-70K2Q", "Travel", "-742.60"),
        date(2026, 3, 2): ("Brabant Mutual", "Policy 77-20-19381", "Insurance", "-318.40"),
        date(2026, 4, 20): ("Dierenkliniek Scheldeoord", "Pixel blood test", "Pets", "-96.50"),
        date(2026, 6, 8): ("Dierenkliniek Scheldeoord", "Pixel blood test", "Pets", "-88.00"),
        date(2026, 6, 24): ("Dierenkliniek Scheldeoord", "Pixel tablet", "Pets", "-31.20"),
        date(2026, 7, 6): ("Solveig Aamodt", "Cabin Oppheim, six nights", "Travel", "-318.75"),
        date(2026, 7, 20): ("Pendel", "Berlingo Otto 27 June to 11 July", "Travel", "-1403.88"),
        date(2026, 8, 17): ("Fisc Gent", "Assessment 2025", "Income", "1267.18"),
        date(2026, 9, 18): ("Brabant Mutual", "Claim W-2026-0994", "Income", "1846.00"),
        date(2026, 9, 9): ("Garden club", "Rent plot 14", "Leisure", "-62.00"),
    }
    for day in _days():
        if day in once:
            counterparty, description, category, amount = once[day]
            yield day, counterparty, description, category, Decimal(amount)
        if day.day == 1:
            yield day, "H. Pauwels", f"Rent {day:%B %Y}", "Housing", -_rent(day)
            yield (
                day,
                "Telvo",
                f"Internet {day:%B %Y}",
                "Housing",
                Decimal("0.00" if day == date(2026, 1, 1) else "-41.90"),
            )
        if day.day == 27:
            yield day, "Sluizeken Fietsen BV", f"Salary {day:%B %Y}", "Income", Decimal("2140.00")
        for shop, (category, least, most) in _SHOPS.items():
            if chance.random() < 0.16:
                cents = chance.randrange(least * 100, most * 100)
                yield day, shop, f"Card payment {shop}", category, -Decimal(cents) / 100


def _rent(day: date) -> Decimal:
    months = {date(2026, 4, 1): "1000.00", date(2026, 5, 1): "1027.00"}
    return Decimal(months.get(day, "1020.00" if day < date(2026, 5, 1) else "1047.00"))


def _rides(chance: random.Random) -> Iterator[tuple[date, str, Decimal, int]]:
    for day in _days():
        if chance.random() < 0.35:
            yield (
                day,
                chance.choice(_RIDES),
                Decimal(chance.randrange(180, 980)) / 10,
                chance.randrange(20, 900),
            )


def _write_mails(path: Path, mails: Sequence[Mail]) -> None:
    box = mailbox.mbox(path)
    ids = {mail.name: f"<{mail.name}@feldt.example>" for mail in mails}
    by_name = {mail.name: mail for mail in mails}
    for mail in mails:
        message, text = EmailMessage(), mail.text
        message["From"], message["To"], message["Subject"] = mail.sender, mail.to, mail.subject
        sent_at = datetime.fromisoformat(mail.day).replace(tzinfo=UTC)
        message["Date"], message["Message-ID"] = format_datetime(sent_at), ids[mail.name]
        if mail.answers:
            earlier = by_name[mail.answers]
            message["In-Reply-To"] = message["References"] = ids[mail.answers]
            text += f"\n\nOn {earlier.day[:10]} {earlier.sender} wrote:\n" + "\n".join(
                f"> {line}" for line in _whole(earlier, by_name).splitlines()
            )
        message.set_content(text)
        box.add(message)
    box.close()


def _whole(mail: Mail, by_name: Mapping[str, Mail]) -> str:
    """Return a mail with all that it quotes."""
    if not mail.answers:
        return mail.text
    return f"{mail.text}\n\n" + "\n".join(
        f"> {line}" for line in _whole(by_name[mail.answers], by_name).splitlines()
    )


def _write_calendar(path: Path) -> None:
    weekly = (
        ("20251006T190000", "Pottery class", "Studio", "MO,TH"),
        ("20251007T200000", "Choir", "Parish hall", "TU"),
        ("20251001T133000", "Nell: swimming", "Strop pool", "WE"),
    )
    extra = (("2026-09-24T11:10", "Dentist Dr. Claes: check", "Coupure 120", ""),)
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//feldt//calendar//EN", "X-WR-CALNAME:Dario"]
    for number, (start, title, where, days) in enumerate(weekly):
        lines += ["BEGIN:VEVENT", f"UID:weekly-{number}@feldt.example", f"DTSTART;TZID=Europe/Brussels:{start}", "DURATION:PT1H30M",
                  f"RRULE:FREQ=WEEKLY;UNTIL=20261220T000000Z;BYDAY={days}", f"SUMMARY:{title}", f"LOCATION:{where}", "END:VEVENT"]  # fmt: skip
    for number, (start, title, where, detail) in enumerate((*EVENTS, *extra)):
        stamp = start.replace("-", "").replace(":", "") + "00"
        lines += ["BEGIN:VEVENT", f"UID:once-{number}@feldt.example", f"DTSTART;TZID=Europe/Brussels:{stamp}", "DURATION:PT1H",
                  f"SUMMARY:{title}", f"LOCATION:{where.replace(',', chr(92) + ',')}"]  # fmt: skip
        lines += [f"DESCRIPTION:{detail.replace(',', chr(92) + ',')}"] if detail else []
        lines.append("END:VEVENT")
    path.write_text("\r\n".join([*lines, "END:VCALENDAR", ""]))


def _write_chats(place: Path, chats: Sequence[tuple[str, str, str, str]]) -> None:
    groups: dict[str, list[str]] = defaultdict(list)
    for group, at, author, text in chats:
        groups[group].append(f"[{datetime.fromisoformat(at):%d/%m/%Y, %H:%M:%S}] {author}: {text}")
    for group, lines in groups.items():
        (place / f"WhatsApp Chat with {group}.txt").write_text("\n".join([*lines, ""]))


def _write_payments(path: Path, payments: Sequence[tuple[date, str, str, str, Decimal]]) -> None:
    balance = Decimal("2210.40")
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["Date", "Account", "Counterparty", "Description", "Category", "Amount", "Currency", "Balance"]
        )
        for day, counterparty, description, category, amount in payments:
            balance += amount
            writer.writerow(
                [
                    day,
                    "BE68 5390 0754 4471",
                    counterparty,
                    description,
                    category,
                    f"{amount:.2f}",
                    "EUR",
                    f"{balance:.2f}",
                ]
            )


def _write_notes(place: Path, chance: random.Random) -> None:
    place.mkdir(exist_ok=True)
    for name, day, text in NOTES:
        pieces = text.split("{filler}")
        fillers = ["\n\n".join(chance.choices(_PARAGRAPHS, k=14)) for _ in pieces[1:]]
        whole = pieces[0] + "".join(filler + piece for filler, piece in zip(fillers, pieces[1:], strict=True))
        path = place / f"{name}.md"
        path.write_text(f"# {name}\n\n{whole}\n")
        at = datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()
        os.utime(path, (at, at))


def _write_rides(path: Path, rides: Sequence[tuple[date, str, Decimal, int]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["ride_date", "route", "kilometres", "metres_climbed"])
        writer.writerows(rides)


def questions(year: Year) -> list[tuple[str, str]]:
    """Return the questions, each with its answer."""
    colruyt = sum(
        -amount
        for day, who, *_, amount in year.payments
        if who == "Colruyt" and (day.year, day.month) == (2026, 3)
    )
    months: Counter[str] = Counter()
    for day, _, _, category, amount in year.payments:
        if category == "Groceries":
            months[f"{day:%B %Y}"] += int(-amount * 100)
    ((dear, cents),) = months.most_common(1)
    punctures = sum(work == "puncture repaired" for _, work, _ in year.orders)
    sofie = [total for customer, _, total in year.orders if customer == "Sofie Verbeke"]
    writers = Counter(author for group, _, author, _ in year.chats if group == "Plot 14")
    femke = sum(
        group == "Workshop" and author == "Femke Jans" and at.startswith("2026-08")
        for group, at, author, _ in year.chats
    )
    may = [kilometres for day, _, kilometres, _ in year.rides if (day.year, day.month) == (2026, 5)]
    return [
        ("What is the serial number of my kiln?", "92-E-40718"),
        (
            "How many amperes does the kiln need, and what is the phone number of the electrician who came for that?",
            "40 A; Ruben Lemaire, 0470 55 18 20",
        ),
        (
            "My rent went up this year: from which month, to what, and how much did I actually transfer to the landlord for May 2026?",
            "1 May, 985 to 1012 (plus 35 charges); transferred 1027.00",
        ),
        (
            "Who was to mend the window in Nell's room, and on which day?",
            "Bert Wyckaert, joiner, Thursday 19 March 2026",
        ),
        (
            "What turned out to be the cause of my internet trouble, and what did I get back for it?",
            "faulty card in the street cabinet; 41.90 euro credit in January",
        ),
        (
            "At what time was our ship to Bergen finally due to leave, and until when could we check in?",
            "27 June 21:30, check-in until 20:30",
        ),
        ("What is the code of the box with the key of the cabin in Norway?", "2907"),
        (
            "How did the dog's kidney value and her weight change between the two blood tests?",
            "172 to 131; 14.2 to 13.6 kg",
        ),
        (
            "At Amira's wedding: which piece did the pianist ask for and in which key, and which table was mine?",
            "Deep River in E flat; table 3",
        ),
        ("How much did I spend at Colruyt in March 2026?", f"{colruyt:.2f}"),
        ("In which month did I spend most on groceries, and how much?", f"{dear}: {cents / 100:.2f}"),
        ("How many repair orders were for a puncture?", str(punctures)),
        (
            "What do all repair orders of Sofie Verbeke come to, and how many are there?",
            f"{sum(sofie):.2f} in {len(sofie)}",
        ),
        (
            "Who writes most in the chat group of the allotment garden (Plot 14), and how many messages is that?",
            str(writers.most_common(1)[0]),
        ),
        ("How many messages did Femke write in the Workshop chat in August 2026?", str(femke)),
        (
            "How many kilometres did I cycle in May 2026, and how long was the longest ride of that month?",
            f"{sum(may)} km; {max(may)} km",
        ),
        (
            "What did the garden club decide about water meters, with how many votes?",
            "rejected: 19 for, 23 against, 4 abstained; stays 18 euro a year",
        ),
        (
            "At which top temperature and for how long do I hold the green glaze before it may fall?",
            "1222 degrees, 18 minutes",
        ),
        ("Did I ever get a parking fine?", "nothing about one"),
        (
            "What did the insurance pay for the water damage in the studio, and when did the money arrive?",
            "1846.00; 18 September 2026",
        ),
        (
            "Today is Wednesday 30 September 2026. What was in my calendar last week (Monday 21 to Sunday 27)?",
            "Mon, Thu pottery; Tue choir; Wed swimming; Thu 24 dentist 11:10",
        ),
        (
            "Which book did I lend to the woman who announces things for the garden club?",
            "Noma guide to fermentation (Greta)",
        ),
        ("What is Nell allergic to, and what does she carry for it?", "hazelnuts only; EpiPen Junior"),
        (
            "How many potatoes did we plant, when, and how much did the first harvest bring?",
            "24 Charlotte, 5 April 2026; 11 kilos on 19 July",
        ),
    ]
