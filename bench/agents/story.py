"""What happens once in the year of Dario Feldt, who repairs bicycles in Ghent; ``year.py`` adds what comes every week."""

from __future__ import annotations

from typing import NamedTuple

ME = "Dario Feldt <dario@feldt.example>"
LENA = "Lena Feldt <lena.feldt@post.example>"
YUSUF = "Yusuf Demir <yusuf@demir.example>"
PAUWELS = "Herman Pauwels <h.pauwels@verhuur.example>"
SCHOOL = "Basisschool De Linde <secretariaat@delinde.example>"
CHOIR = "Vocal Harbour <post@vocalharbour.example>"
TELVO = "Telvo Support <support@telvo.example>"
VET = "Dierenkliniek Scheldeoord <balie@scheldeoord.example>"
OVENHUIS = "Ovenhuis Kilns <sales@ovenhuis.example>"
FJORD = "Fjordlinjer Bookings <booking@fjordlinjer.example>"
INSURER = "Brabant Mutual <polis@brabantmutual.example>"
AMIRA = "Amira Feldt <amira@feldt-haddad.example>"
TAX = "Fisc Gent <noreply@fisc.example>"
PENDEL = "Pendel Car Share <hello@pendel.example>"
HOSPITAL = "AZ Sint-Baafs Eye Clinic <ogen@sintbaafs.example>"


class Mail(NamedTuple):
    """A mail; one with ``answers`` quotes the mail of that name."""

    name: str
    day: str
    sender: str
    to: str
    subject: str
    text: str
    answers: str = ""


MAILS = (
    Mail(
        "kiln1",
        "2026-01-08T10:12",
        ME,
        OVENHUIS,
        "Front loader for a small studio",
        """Hello,

I teach pottery twice a week and my old top loader has given up. Do you still sell the 92 litre front loader, does it run
on a single phase, and what would delivery to the third floor cost?

Dario""",
    ),
    Mail(
        "kiln2",
        "2026-01-09T15:40",
        OVENHUIS,
        ME,
        "Re: Front loader for a small studio",
        """Dear Mr Feldt,

The FL-92 is in stock at 3 480 euro. It draws 40 amperes on a single phase, so have your board checked first. Delivery is
145 euro to the kerb; for the third floor we add 210 for the stair climber. The controller carries a warranty of five years,
the elements of two.

Greet Ovens, Ovenhuis""",
        "kiln1",
    ),
    Mail(
        "kiln3",
        "2026-01-12T09:05",
        ME,
        OVENHUIS,
        "Re: Front loader for a small studio",
        """Dear Greet,

Good. I order one FL-92, with the stair climber. Please bring it after the electrician was here, in the week of 9 February.

Dario""",
        "kiln2",
    ),
    Mail(
        "kiln4",
        "2026-02-13T16:20",
        OVENHUIS,
        ME,
        "Your order OH-5519 was delivered",
        """Dear Mr Feldt,

the FL-92 with serial number 92-E-40718 was set up at your studio today. Fire it empty to 1060 degrees once before you use
it. Invoice OH-5519 over 3 835.00 euro is due on 15 March.

Ovenhuis""",
    ),
    Mail(
        "rent1",
        "2026-03-02T08:30",
        PAUWELS,
        ME,
        "Indexation of the rent",
        """Dear tenant,

by the health index the rent of the flat at Sluizeken 41 goes from 985 to 1 012 euro a month, from 1 May 2026 on. The charges
for the stairs stay at 35 euro.

H. Pauwels""",
    ),
    Mail(
        "rent2",
        "2026-03-03T19:14",
        ME,
        PAUWELS,
        "Re: Indexation of the rent",
        """Dear Mr Pauwels,

noted. Since you write: the window in the child's room still does not shut, and there is mould behind the wardrobe. You said
in November that a carpenter would come.

Dario Feldt""",
        "rent1",
    ),
    Mail(
        "rent3",
        "2026-03-05T11:02",
        PAUWELS,
        ME,
        "Re: Indexation of the rent",
        """Mr Feldt,

the joiner, Bert Wyckaert, comes on Thursday 19 March between nine and twelve. For the damp I send someone with a meter.

H. Pauwels""",
        "rent2",
    ),
    Mail(
        "damp",
        "2026-04-01T13:45",
        PAUWELS,
        ME,
        "Report on the damp",
        """Dear tenant,

the measurement found 78 % in the wall, from a leaking gutter of the neighbours. They repair it before June. Until then please
run the dryer that I left in the hall; I take 20 euro off the rent of April and May for the electricity.

H. Pauwels""",
    ),
    Mail(
        "net1",
        "2025-11-17T21:03",
        ME,
        TELVO,
        "No connection every evening",
        """Since last week the line drops each evening
around eight, for ten to forty minutes. The box shows a red light beside DSL. Customer number 880-41-227. What will you do?

Dario Feldt""",
    ),
    Mail(
        "net2",
        "2025-11-18T10:26",
        TELVO,
        ME,
        "Re: No connection every evening [case 7733104]",
        """Hello Dario,

we see interference on your line, probably from a power supply nearby. We send you a new modem, a Telvo Box 4, free of charge.
Your case has the number 7733104.

Anouk, Telvo""",
        "net1",
    ),
    Mail(
        "net3",
        "2025-12-04T20:47",
        ME,
        TELVO,
        "Re: No connection every evening [case 7733104]",
        """The new box changes nothing.
Neighbour on the second floor has the same. I ask for the month back.

Dario""",
        "net2",
    ),
    Mail(
        "net4",
        "2025-12-11T09:30",
        TELVO,
        ME,
        "Re: No connection every evening [case 7733104]",
        """Hello Dario,

a card in the street cabinet was faulty and was replaced yesterday. We credit you 41.90 euro on the bill of January.

Anouk, Telvo""",
        "net3",
    ),
    Mail(
        "trip1",
        "2026-02-21T18:11",
        FJORD,
        ME,
        "Booking FJ-70K2Q: Hirtshals - Bergen",
        """Thank you for your booking.

FJ-70K2Q, Hirtshals to Bergen, Saturday 27 June 2026, 20:00, check-in closes at 19:00. Two adults, one child, one dog in a
pet cabin (number 6114), one car under 1.9 m. Return Friday 10 July, 13:30. Total 742.60 euro. Free change until 12 June.""",
    ),
    Mail(
        "trip2",
        "2026-05-29T08:55",
        FJORD,
        ME,
        "Change of your departure FJ-70K2Q",
        """Dear traveller,

because of works in the port of Hirtshals your ship leaves on Saturday 27 June at 21:30 instead of 20:00. Check-in closes at
20:30. Your return is not affected. You may cancel without cost until 5 June.""",
    ),
    Mail(
        "trip3",
        "2026-03-14T22:10",
        LENA,
        ME,
        "The cabin at the lake",
        """Hi Dario,

I have asked Solveig: we can have the cabin at Oppheim from 28 June to 4 July, 610 kroner a night, wood included. The key is
in the blue box behind the sauna, code 2907. She wants no dogs upstairs. After that you are on your own!

Lena""",
    ),
    Mail(
        "trip4",
        "2026-03-15T07:48",
        ME,
        LENA,
        "Re: The cabin at the lake",
        """Wonderful. Pixel sleeps downstairs. I bring the
two kayaks if Pendel has a roof rack.

D.""",
        "trip3",
    ),
    Mail(
        "vet1",
        "2026-04-20T17:32",
        VET,
        ME,
        "Blood results of Pixel",
        """Dear Mr Feldt,

the values of Pixel's kidneys are slightly raised (creatinine 172). Please change to the renal food and come back in six weeks.
She may keep the tablets against the pollen allergy, half a tablet in the morning. She weighs 14.2 kg.

Dr. Katrien Maes""",
    ),
    Mail(
        "vet2",
        "2026-06-08T16:05",
        VET,
        ME,
        "Blood results of Pixel",
        """Dear Mr Feldt,

good news: creatinine is down to 131. Carry on with the food; the next check is in December. For Norway she needs the tablet
against tapeworm one to five days before you enter, signed in the passport by us. She weighs 13.6 kg now.

Dr. Katrien Maes""",
    ),
    Mail(
        "wed1",
        "2025-12-20T12:00",
        AMIRA,
        ME,
        "Save the day!",
        """Dearest cousin,

Elias and I marry on Saturday 16 May 2026, in the orangery at Meise. Will you sing? And would Nell carry the rings?

Amira""",
    ),
    Mail(
        "wed2",
        "2025-12-21T20:31",
        ME,
        AMIRA,
        "Re: Save the day!",
        """Of course I sing, and Nell practises with a cushion
already. Who plays the piano?

Dario""",
        "wed1",
    ),
    Mail(
        "wed3",
        "2026-01-05T14:19",
        AMIRA,
        ME,
        "Re: Save the day!",
        """Jeroen, from Elias' old band. He asks for "Deep River" in
E flat. Your table is number 3, with Lena and the Haddads. The gift list is at the bookshop, but what we really wish for is
a set of your bowls, the green ones.

A.""",
        "wed2",
    ),
    Mail(
        "tax1",
        "2026-06-30T06:00",
        TAX,
        ME,
        "Your assessment 2025 is ready",
        """Your assessment for the income of 2025 is ready.
You get back 1 267.18 euro, within eight weeks, on the account ending in 4471.""",
    ),
    Mail(
        "ins1",
        "2026-02-02T09:15",
        INSURER,
        ME,
        "Your policy 77-20-19381",
        """Dear Mr Feldt,

your fire and contents policy is renewed on 1 March. The premium is 318.40 euro a year, the excess 275 euro a claim. Tools and
kilns used for a trade are covered up to 5 000 euro only if the room has a smoke detector.

Brabant Mutual""",
    ),
    Mail(
        "ins2",
        "2026-08-18T10:40",
        ME,
        INSURER,
        "Water in the studio",
        """Dear sirs,

last night the hose of the washing machine of the flat above burst, and water ran into my studio at Sluizeken 41. Wet: 14 bags
of clay, a wheel (motor dead), about sixty bisque pots. Photos are attached to the form. What do you need from me?

Dario Feldt""",
    ),
    Mail(
        "ins3",
        "2026-08-20T14:22",
        INSURER,
        ME,
        "Re: Water in the studio [claim W-2026-0994]",
        """Dear Mr Feldt,

your claim has the number W-2026-0994. The expert, Ms Nadia Roels, comes on Wednesday 26 August at 14:00. Keep the wheel until
then and throw nothing away.

Brabant Mutual""",
        "ins2",
    ),
    Mail(
        "ins4",
        "2026-09-14T11:10",
        INSURER,
        ME,
        "Settlement of claim W-2026-0994",
        """Dear Mr Feldt,

by the report of Ms Roels we pay 1 846.00 euro: 1 190 for the wheel, 266 for the clay, 665 for the pots, less the excess of 275.
The money is on your account within ten days.""",
    ),
    Mail(
        "eye1",
        "2026-03-24T08:05",
        HOSPITAL,
        ME,
        "Admission of Mrs Ingrid Feldt",
        """Dear Mr Feldt,

you are the contact of your mother, Mrs Ingrid Feldt. Her right eye is operated on Tuesday 14 April at 8:15, in the day clinic,
route 340. She must eat nothing from midnight and may not drive for a week. Someone has to collect her at noon.

Eye Clinic""",
    ),
    Mail(
        "eye2",
        "2026-04-22T12:50",
        HOSPITAL,
        ME,
        "Second operation of Mrs Ingrid Feldt",
        """Dear Mr Feldt,

the left eye follows on Tuesday 5 May at 10:30. The drops as before: four times a day for a week, then twice for three weeks.

Eye Clinic""",
    ),
    Mail(
        "school1",
        "2025-11-28T15:00",
        SCHOOL,
        ME,
        "Forest week of the third form",
        """Dear parents,

the third form goes to the forest house in Oudenaarde from 20 to 24 April 2026. It costs 128 euro, to be paid by 31 January.
Bring: sleeping bag, torch, boots, and no telephone. Allergies please to Ms De Vos.

De Linde""",
    ),
    Mail(
        "school2",
        "2026-01-19T08:12",
        ME,
        SCHOOL,
        "Re: Forest week of the third form",
        """Dear Ms De Vos,

Nell is allergic to hazelnuts, not to other nuts. She has a pen (EpiPen Junior) with her. Paid today.

Dario Feldt""",
        "school1",
    ),
    Mail(
        "choir1",
        "2026-01-30T19:00",
        CHOIR,
        ME,
        "Programme and dress for the spring concert",
        """Dear singers,

we sing on Sunday 22 March at 15:00 in the Sint-Jacobs church: Fauré's Requiem and three songs by Nystedt. Black, with
something red. Soprano solo: Hanneke Lievens, baritone: our own Dario. The soup afterwards is by the altos.

Wout Baert, conductor""",
    ),
    Mail(
        "choir2",
        "2026-03-23T10:30",
        CHOIR,
        ME,
        "Thank you!",
        """Dear singers,

412 people came, and the collection for the shelter brought 1 930 euro. Our summer trip goes to Ypres on 30 August.

Wout""",
    ),
    Mail(
        "car1",
        "2026-06-20T09:00",
        PENDEL,
        ME,
        "Your reservation: Berlingo 'Otto'",
        """Hello Dario,

Otto is yours from Saturday 27 June 06:00 to Saturday 11 July 12:00. Roof rack: yes. Abroad: allowed in Norway and Denmark, the
green card is in the glove box. 39 euro a day and 0.24 a kilometre.""",
    ),
    Mail(
        "car2",
        "2026-07-14T10:00",
        PENDEL,
        ME,
        "Your trip with Otto",
        """Hello Dario,

15 days and 3 412 kilometres make 1 403.88 euro. We take it from your account on 20 July. You brought Otto back with a scratch on
the left rear door; the deposit of 150 euro covers it.""",
    ),
    Mail(
        "marathon",
        "2026-09-21T18:40",
        LENA,
        ME,
        "3:58!!!",
        """I did it: 3 hours 58 minutes and 11 seconds in Berlin, with a blister
from kilometre 30 on. Next year you run with me. The shoes you lent me were perfect.

Lena""",
    ),
    Mail(
        "job",
        "2026-05-11T09:20",
        "Saskia Moens <saskia@velodroom.example>",
        ME,
        "Workshop on Saturdays?",
        """Hi Dario,

we look for somebody who shows grown-ups how to true a wheel, four Saturdays in October, 10 to 13 h, 55 euro an hour plus the
train. Eight people at most. Are you free?

Saskia, Velodroom""",
    ),
    Mail(
        "job2",
        "2026-05-12T21:15",
        ME,
        "Saskia Moens <saskia@velodroom.example>",
        "Re: Workshop on Saturdays?",
        """Hi Saskia,

yes to 3, 10 and 24 October; the 17th I sing. I need four truing stands.

Dario""",
        "job",
    ),
)

EVENTS = (
    (
        "2025-10-23T14:30",
        "Dentist Dr. Claes: wisdom tooth",
        "Coupure 120",
        "Lower left. No coffee for a day.",
    ),
    ("2026-02-03T09:00", "Electrician: 40 A for the kiln", "Studio", "Ruben Lemaire, 0470 55 18 20"),
    ("2026-02-13T13:00", "Kiln arrives", "Studio", "Ovenhuis, two men and the stair climber"),
    ("2026-03-19T09:00", "Joiner Wyckaert: window of Nell", "Home", ""),
    ("2026-03-22T15:00", "Spring concert", "Sint-Jacobs", "Be there at 13:30 to warm up"),
    ("2026-04-14T12:00", "Collect mother from the clinic", "AZ Sint-Baafs, route 340", ""),
    ("2026-04-20T08:15", "Nell to the forest week", "School", "Bus leaves 8:30"),
    ("2026-05-05T13:30", "Collect mother from the clinic", "AZ Sint-Baafs, route 340", "Left eye"),
    ("2026-05-16T14:00", "Wedding of Amira and Elias", "Orangery, Meise", "Bowls are wrapped"),
    ("2026-06-24T16:30", "Pixel: tablet for Norway", "Dierenkliniek Scheldeoord", "Take the passport"),
    ("2026-06-27T21:30", "Ship to Bergen", "Hirtshals", "Check-in closes 20:30"),
    ("2026-07-10T13:30", "Ship home", "Bergen", ""),
    ("2026-08-26T14:00", "Expert of the insurance", "Studio", "Ms Roels"),
    ("2026-08-30T09:00", "Choir trip to Ypres", "Platform 7", "Sandwiches"),
    ("2026-09-08T19:30", "Parents' evening De Linde", "Room 2.04", "New teacher: Mr Okonkwo"),
    ("2026-10-03T10:00", "Wheel workshop 1", "Velodroom", ""),
    ("2026-10-10T10:00", "Wheel workshop 2", "Velodroom", ""),
    ("2026-10-17T19:00", "Concert with the Antwerp choir", "Antwerp", ""),
    ("2026-10-24T10:00", "Wheel workshop 3", "Velodroom", ""),
    ("2026-12-07T10:00", "Pixel: blood again", "Dierenkliniek Scheldeoord", ""),
)

#: Group, time, who, text.
CHATS = (
    ("Feldt family", "2025-10-23T17:02", "Dario Feldt", "tooth is out. i look like a hamster"),
    (
        "Feldt family",
        "2025-12-24T11:20",
        "Ingrid Feldt",
        "The goose is 4.8 kilos, so come hungry. We eat at six",
    ),
    (
        "Feldt family",
        "2026-04-14T12:41",
        "Dario Feldt",
        "mum is home, eye patched, already complaining about the tea",
    ),
    ("Feldt family", "2026-05-06T09:15", "Ingrid Feldt", "I can read the number on the bus from my chair!!"),
    (
        "Feldt family",
        "2026-07-02T21:50",
        "Lena Feldt",
        "who left the sauna door open? 14 mosquitoes in my bed",
    ),
    ("Feldt family", "2026-07-02T21:58", "Yusuf Demir", "guilty. i pay in waffles"),
    ("Feldt family", "2026-09-20T15:44", "Lena Feldt", "finished!! 3:58 something, crying in a foil blanket"),
    (
        "Plot 14",
        "2026-03-08T10:05",
        "Greta Maes",
        "The tap on the lane is open again from Monday, code of the shed is now 3318",
    ),
    (
        "Plot 14",
        "2026-04-05T17:30",
        "Dario Feldt",
        "planted: 24 potatoes (Charlotte), peas, two rows of broad beans",
    ),
    (
        "Plot 14",
        "2026-05-31T18:02",
        "Tom Ghysels",
        "Slugs ate all my lettuce. Whoever has beer to spare, bring it",
    ),
    (
        "Plot 14",
        "2026-07-19T19:22",
        "Dario Feldt",
        "first potatoes: 11 kilos from 24 plants, not bad for clay soil",
    ),
    (
        "Plot 14",
        "2026-09-06T12:10",
        "Greta Maes",
        "Rent of the plots is due: 62 euro, cash in the tin or on the account of the club",
    ),
    (
        "Workshop",
        "2025-11-04T08:12",
        "Milan Baeten",
        "compressor makes a noise like a dying goose, I switched it off",
    ),
    (
        "Workshop",
        "2025-11-05T16:40",
        "Dario Feldt",
        "it was the belt. new one is an SPZ 1287, spare in the drawer under the vice",
    ),
    ("Workshop", "2026-02-17T09:01", "Milan Baeten", "alarm code changed, ask me in person, not here"),
    (
        "Workshop",
        "2026-05-19T12:15",
        "Femke Jans",
        "the red Cortina belongs to the notary, he collects it Thursday, he still owes 86",
    ),
    (
        "Workshop",
        "2026-08-11T07:55",
        "Milan Baeten",
        "off sick till Friday, the back again. Femke has the key",
    ),
)

_GLAZES = """Everything I learned about the green glaze, so that I do not lose it again.

Base: nepheline syenite 38, whiting 18, kaolin 12, silica 25, zinc oxide 7. Copper carbonate 4.2 gives the green that Amira
likes; at 5 it goes metallic. Sieve twice through 80 mesh. Dip three seconds, not more: the batch of October ran off the foot
rings and took two shelves with it.

{filler}

Firing for the green: 60 degrees an hour to 200, 150 an hour to 1000, then full power to 1222, and hold for 18 minutes. Let it fall
freely to 1050, then close the damper and hold for half an hour: that is where the crystals come from. Nothing helps if the kiln is
packed too full. Test tile 31 is the reference.

{filler}

The white liner is the recipe of Greet: it fits the stoneware of Westerwald with 25 % chamotte and crazes on everything else.
"""
_STATUTES = """Minutes of the general meeting of the garden club, copied because Greta asked me to keep them.

{filler}

Item 7, water. The board proposed a meter at each plot. 19 for, 23 against, 4 abstained: rejected. Each plot pays 18 euro a year
as before.

{filler}

Item 11, bees. Tom Ghysels may keep two hives behind plot 22, if he is insured and puts up a sign. 41 for, 5 against.

{filler}

Item 14, any other business. Whoever has not weeded the lane by 1 June gets one reminder, then pays 15 euro.
"""
#: Name, day, text; {filler} is filled with paragraphs of no interest.
NOTES = (
    ("Green glaze", "2026-01-25", _GLAZES),
    ("Garden club meeting 2026", "2026-02-28", _STATUTES),
    (
        "Packing for Norway",
        "2026-06-18",
        "Kayaks (2), paddles (3), tent pegs, renal food for 15 days = 4.5 kg, passport of Pixel, head nets, the good stove, waffle iron for Yusuf, chess, Nell's boots size 34.\nNot again: the guitar.",
    ),
    (
        "Presents",
        "2025-11-30",
        "Mother: magnifier with lamp. Lena: running belt. Yusuf: the Ottolenghi book he pretends not to want. Nell: microscope (seen for 89 at the museum shop). Milan: earplugs.",
    ),
    (
        "Wheel class plan",
        "2026-05-20",
        "1: lateral true. 2: radial, hub height. 3: spoke tension by ear (pluck!) and by meter, 100-120 kgf on the drive side. Everyone builds on an old rim. Homework: name five ways to break a spoke.",
    ),
    (
        "Books lent",
        "2026-04-11",
        "To Femke: The Hare with Amber Eyes. To Greta: Noma guide to fermentation. To Jeroen: my Fauré score, needs it back by September.",
    ),
    (
        "Sizes",
        "2025-12-02",
        "Nell: shoe 33, jacket 134. Yusuf: shirt 41, belt 95. Mother: gloves 7. My saddle height 73.5 cm.",
    ),
    (
        "Sourdough",
        "2026-03-29",
        "100 g starter, 700 g flour (half of it spelt), 480 g water, 14 g salt. Fold four times, overnight in the cellar, 45 minutes at 240 with the lid on for the first 25.",
    ),
    (
        "Ideas for the studio",
        "2026-07-30",
        "Second wheel from the insurance if they pay. Evening for beginners: six people, 35 euro, glaze included. Ask Ruben whether the board carries a second kiln (probably not).",
    ),
)
