"""Languages: their most frequent words, which of them a text is written in, and the stems of their words.

A text's languages are those whose frequent words it holds: no model, and nothing that could leave the machine.
Stems are made by the Snowball algorithms.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any

#: Words that carry grammar and no subject, by the name of the Snowball algorithm. Folded as the index folds.
STOP_WORDS: Mapping[str, frozenset[str]] = {
    name: frozenset(words.split())
    for name, words in {
        "english": "a about after all also an and any are as at be been before but by can could did do does for from "
        "had has have he her his how i if in into is it its just me my no not of on or our out she should so some "
        "than that the their them then there these they this those to up was we were what when where which who whom "
        "whose why will with would you your",
        "german": "aber als am an auch auf aus bei bin bis da das dass dem den der des die diese dieser doch du durch "
        "ein eine einem einen einer eines er es fur hat haben hatte ich ihr im in ist ja kann konnen man mein mich "
        "mir mit nach nicht noch nur oder sein seine sich sie sind so uber um und uns von vor wann war was wegen wer "
        "werden wie wir wird wo wurde zu zum zur",
        "french": "a au aux avec ce ces cette dans de des du elle elles en est et ete etre eu fait il ils j je l la le "
        "les leur lui ma mais me mes mon ne nos notre nous on ou par pas plus pour qu quand que quel quelle qui sa se "
        "ses son sont sur ta te tes ton tu un une vos votre vous",
        "spanish": "a al como con cual cuando de del donde el ella ellos en era es esta este esto fue ha han hay la las "
        "le les lo los mas me mi muy no nos o para pero por porque que quien se ser si sin sobre son su sus te tu un "
        "una uno y ya yo",
        "italian": "a ai al alla anche che chi ci come con cosa da dal dei del della delle di dove e ed era gli ha hai "
        "ho i il in io l la le lo loro ma mi mio nel nella non o per perche piu quale quando se si sono su sua suo "
        "tra tu un una uno",
        "portuguese": "a ao aos as com como da das de do dos e ela ele em era essa esta este eu foi ha isso ja mais mas "
        "me meu muito na nao nas no nos o onde os ou para pela pelo por qual quando que quem se sem seu sua tem um "
        "uma voce",
        "dutch": "aan al als bij dan dat de der deze die dit door een en er ge geen had heb hebben heeft het hij hoe ik "
        "in is je kan maar me met mijn naar niet nog of om onder ons ook op over te tot uit van veel voor waar wanneer "
        "was wat we werd wie wij wordt zal ze zich zij zijn zo",
        "swedish": "alla att av blev da de den det dig din dom du eller en er ett for fran han har hon hur i inte jag "
        "kan med mig min nar ni och om oss pa sa sig sin ska som till upp ut vad var vi vid vilken",
        "danish": "af alle at blev da de dem den der det dig din du efter eller en er et for fra han har hos hun hvad "
        "hvem hvor hvornar i ikke jeg kan man med mig min og om op os over pa sig skal som til ud var ved vi vil",
        "russian": "а без бы был была были было быть в вам вас во вот все где да для до его ее если есть еще же за и из "  # noqa: RUF001
        "или им их к как когда кто ли мне мы на не нет но о об он она они от по при с со так то ты у уже что чтобы это "  # noqa: RUF001
        "эта этот я",
    }.items()
}
#: Japanese has no spaces: these stand between its words, or end a sentence.
_PARTICLES = frozenset(
    re.findall(
        r"\S+",
        "の は を に が と で も や へ か な から まで より では には とは への での からの です ます する した して "
        "される された している など という として ため ための による によって について における または および "
        "に関する に対する この その どの こと",
    )
)
_HIRAGANA = re.compile("(に関する|に対する|[\u3041-\u309f]+)")
DEFAULT_LANGUAGE = "english"
_NAMES = tuple(STOP_WORDS)
_LANGUAGES_OF: Mapping[str, tuple[str, ...]] = {
    word: tuple(name for name in _NAMES if word in STOP_WORDS[name])
    for words in STOP_WORDS.values()
    for word in words
}
_NAMES_OF = {word.encode(): names for word, names in _LANGUAGES_OF.items()}
#: The words that tell a language, as the index holds them.
FREQUENT = frozenset(_NAMES_OF)
#: One word in so many must be a frequent word of the language, and at least this part of what the first one has.
_ONE_IN = 12
_PART_OF_FIRST = 0.5
_STEMS_MOST = 65_536
_FORMS_FROM_CHARS = 3


def languages_of(counts: Mapping[bytes, int], total: int) -> tuple[str, ...]:
    """Return in which languages a text of so many words is written, by how often each frequent word stands in it."""
    totals = dict.fromkeys(_NAMES, 0)
    for word in counts.keys() & FREQUENT:
        for name in _NAMES_OF[word]:
            totals[name] += counts[word]
    most = max(totals.values())
    return tuple(
        name
        for name, count in totals.items()
        if count * _ONE_IN >= total > 0 and count >= most * _PART_OF_FIRST
    )


def bits_of(languages: Iterable[str]) -> int:
    return sum(1 << _NAMES.index(name) for name in languages)


def languages_in(bits: int) -> tuple[str, ...]:
    return tuple(name for place, name in enumerate(_NAMES) if bits >> place & 1)


def question_words(words: Collection[str]) -> frozenset[str]:
    """Return the words of a query that carry no subject in the language that most of them belong to."""
    votes = dict.fromkeys(_NAMES, 0)
    for word in words:
        for name in _LANGUAGES_OF.get(word, ()):
            votes[name] += 1
    most = max(votes.values())
    chosen = [name for name, count in votes.items() if count == most > 0]
    return frozenset(word for word in words if any(word in STOP_WORDS[name] for name in chosen))


def at_particles(text: str) -> tuple[list[str], list[str]]:
    """Cut what is written without spaces at its Japanese particles; returns the rest, and the particles.

    Other syllables between two signs are most often part of one word: "食べ物".
    """
    words, particles = [""], list[str]()
    for part in _HIRAGANA.split(text):
        if part in _PARTICLES:
            particles.append(part)
            words.append("")
        else:
            words[-1] += part
    return [word for word in words if word], particles


def has_forms(word: str) -> bool:
    """Return whether a word can be inflected: not a number, and not very short."""
    return len(word) >= _FORMS_FROM_CHARS and word.isalpha()


@lru_cache(maxsize=_STEMS_MOST)
def stems_of(word: str, languages: tuple[str, ...]) -> frozenset[tuple[str, str]]:
    return frozenset((name, stemmer(name).stemWord(word)) for name in languages)


def scan_start(word: str, languages: tuple[str, ...]) -> str:
    """Return letters that every form of a word begins with; only these words have to be compared by their stems.

    The last letter of a stem may be another one in a form: "city" and "cities" have "citi".
    """
    starts = [_shared(word, stem) for _, stem in stems_of(word, languages)]
    return min(
        (start[:-1] if len(start) > _FORMS_FROM_CHARS else start for start in starts), key=len, default=word
    )


def _shared(word: str, stem: str) -> str:
    at = next((at for at, pair in enumerate(zip(word, stem, strict=False)) if pair[0] != pair[1]), None)
    return stem[: len(word)] if at is None else stem[:at]


@lru_cache(maxsize=len(_NAMES))
def stemmer(name: str) -> Any:
    """Return the stemmer of a language; without the package a word has no stem but itself."""
    try:
        # Its type is left open: the package has no hints.
        return importlib.import_module("Stemmer").Stemmer(name, 0)
    except ModuleNotFoundError:
        return _NoStemmer()


class _NoStemmer:
    def stemWord(self, word: str) -> str:  # noqa: N802 - the package's name
        return word
