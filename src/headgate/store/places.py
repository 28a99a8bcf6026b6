"""Where the records of a home are: in a file of the home, or in a database that several homes share."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.home import Home


@dataclass(frozen=True, slots=True)
class HomeInDatabase(Home):
    """A home whose records are in a PostgreSQL database; keys and journals stay in its directory."""

    url: str
    #: The name of the home in the database.
    name: str


def home_in(home: Home, url: str, name: str) -> Home:
    """Say where the records of a home are; without an address they are in a file of the home."""
    return HomeInDatabase(home.path, url, name) if url else home
