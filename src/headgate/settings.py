"""Configuration, and where each value came from.

A value comes from the first of four places that has it: a flag on the command line, the environment
(``HEADGATE_PORT``), a TOML file, the default. No other module reads the environment.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, cast

import platformdirs

from headgate.errors import ConfigInvalid

_PREFIX = "HEADGATE_"
CONFIG_VARIABLE = f"{_PREFIX}CONFIG"
DEFAULT_HOME = platformdirs.user_data_dir("headgate")
#: How an address of PostgreSQL names a password outside of its first part.
_IN_QUERY = "password="
_HOME_NAME_MOST = 200


@dataclass(frozen=True, slots=True)
class Setting:
    """The name, description, default text and parser of one setting."""

    name: str
    about: str
    default: str
    read: Callable[[str], Any]

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return _PREFIX + self.name.upper()


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value was found: ``flag``, ``environment``, ``file`` or ``default``, and its exact place."""

    kind: str
    place: str


@dataclass(frozen=True, slots=True)
class Resolved:
    """The settings, where each came from, and ``HEADGATE_`` variables that match no setting."""

    settings: Settings
    origins: Mapping[str, Origin]
    unknown_variables: tuple[str, ...]


def _choice(*allowed: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in allowed:
            raise ValueError(f"must be one of {', '.join(allowed)}")
        return text

    return read


def _whole(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not (text.isascii() and text.isdecimal()) or not least <= int(text) <= most:
            raise ValueError(f"must be a whole number from {least} to {most}")
        return int(text)

    return read


def _switch(text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise ValueError("must be true or false")
    return text.lower() == "true"


def _names(text: str) -> frozenset[str]:
    return frozenset(name for name in text.replace(",", " ").lower().split() if name)


def _ids(text: str) -> frozenset[str]:
    return frozenset(text.replace(",", " ").split())


def _address(text: str) -> str:
    if text and not text.startswith(("http://", "https://")):
        raise ValueError("must be empty, or an address that starts with http:// or https://")
    return text.rstrip("/")


def _path(text: str) -> Path:
    if not text:
        raise ValueError("must not be empty")
    return Path(text).expanduser()


def _file(text: str) -> Path | None:
    return Path(text).expanduser() if text else None


def _model(text: str) -> str:
    is_address = text.startswith(("http://", "https://"))
    if is_address and not text.rpartition("#")[0]:
        raise ValueError("must end in # and the name of a model, such as https://models.example/v1#small")
    if not is_address and text not in {"auto", "off", "multilingual", "english"} and "/" not in text:
        raise ValueError("must be auto, off, multilingual, english, a folder or an address")
    return text


def _database(text: str) -> str:
    if text and not text.startswith(("postgresql://", "postgres://")):
        raise ValueError("must be empty, or an address that starts with postgresql://")
    user, at, _ = text.partition("://")[2].rpartition("@")
    if (at and ":" in user) or _IN_QUERY in text.casefold():
        raise ValueError("must not hold a password; put it into a .pgpass file or PGPASSWORD")
    return text


def _home_name(text: str) -> str:
    if not text or len(text) > _HOME_NAME_MOST or not text.isprintable():
        raise ValueError(f"must be a name of at most {_HOME_NAME_MOST} characters")
    return text


def _host(text: str) -> str:
    if not text or any(character.isspace() for character in text):
        raise ValueError("must be a host name or an address")
    return text


def _setting(read: Callable[[str], Any], default: str, about: str) -> Any:
    return field(metadata={"read": read, "default": default, "about": about})


@dataclass(frozen=True, slots=True)
class Settings:
    """The resolved value of every setting; each field states how its text is read, the default text and what it is for."""

    home: Path = _setting(_path, DEFAULT_HOME, "The directory that holds your records, grants and log.")
    store_url: str = _setting(
        _database,
        "",
        "A PostgreSQL database for the records, such as postgresql://user@host/name; empty is a file in the home. "
        "Put the password into a .pgpass file or PGPASSWORD.",
    )
    store_home: str = _setting(_home_name, "main", "The name of the home in that database.")
    host: str = _setting(_host, "127.0.0.1", "The address to listen on.")
    port: int = _setting(_whole(0, 65535), "8321", "The port to listen on; 0 takes any free one.")
    log_level: str = _setting(_choice("debug", "info", "warning", "error"), "info", "What is logged.")
    log_format: str = _setting(
        _choice("auto", "text", "json"),
        "auto",
        "How it is logged: auto is text on a terminal and JSON lines elsewhere.",
    )
    public_url: str = _setting(
        _address, "", "The address others reach this server by; empty is the one it listens on."
    )
    allowed_hosts: frozenset[str] = _setting(
        _names, "", "Host names to answer for beside loopback and private addresses, comma-separated."
    )
    allowed_origins: frozenset[str] = _setting(
        _names,
        "",
        "Origins of pages that may call from a browser, such as https://app.example, comma-separated.",
    )
    trusted_proxies: frozenset[str] = _setting(
        _names,
        "",
        "Addresses of proxies that may name the client and the scheme of a request, comma-separated.",
    )
    behind_proxy: bool = _setting(
        _switch,
        "false",
        "A TLS-terminating proxy is in front of this server. Without one, it listens on this machine alone.",
    )
    workers: int = _setting(_whole(1, 64), "1", "The number of server processes.")
    max_requests: int = _setting(_whole(1, 65535), "512", "How many requests a process works on at once.")
    rate_limit: int = _setting(
        _whole(0, 1_000_000), "200", "Requests a second for each token, at each process; 0 is no limit."
    )
    refresh_window: int = _setting(
        _whole(0, 3600),
        "600",
        "Seconds in which a refresh token may be exchanged again, for clients that lost the answer or share a token "
        "among sessions; 0 ends the session at once, as PDPP Core does.",
    )
    alarm_factor: int = _setting(
        _whole(0, 1000),
        "10",
        "An alarm is raised when a client reads more than this many times its usual in a day; 0 is never.",
    )
    log_queries: bool = _setting(
        _switch,
        "false",
        "Write the words that agents search for into the log of disclosures. They may repeat what your records hold, "
        "and no erasure takes them out of the log again.",
    )
    strict_core: bool = _setting(
        _switch,
        "false",
        "Refuse filters, expansion, views, grouped sums and package tokens at /v1, as PDPP Core does.",
    )
    semantic_model: str = _setting(
        _model,
        "auto",
        "What search by meaning compares texts with: auto (multilingual if the semantic extra is installed, else off), "
        "off, multilingual, english, a folder with a BERT, ONNX or model2vec model, or an address ending in #model. Only "
        "with an address do texts leave this machine: every text of every field that is searched by meaning is sent there, granted or not, "
        "and so is every query.",
    )
    semantic_key_file: Path | None = _setting(
        _file, "", "A file with the key that the address of semantic_model needs; empty is none."
    )
    gateway_servers: Path | None = _setting(
        _file,
        "",
        "A file with an mcpServers block, whose servers are offered again at /gateway; empty is no gateway.",
    )
    gateway_clients: frozenset[str] = _setting(
        _ids,
        "",
        "Clients whose tokens may use the gateway, comma-separated; other clients see no operation there.",
    )
    sync_minutes: int = _setting(
        _whole(0, 10_080),
        "15",
        "How often a server fetches from accounts that were added without --every, in minutes; 0 is never.",
    )


ALL_SETTINGS = tuple(Setting(field.name, **field.metadata) for field in fields(Settings))


def config_path(environment: Mapping[str, str]) -> Path:
    """Return the path of the TOML file: the one the environment names, or the platform's default."""
    named = environment.get(CONFIG_VARIABLE)
    return (
        Path(named).expanduser() if named else Path(platformdirs.user_config_dir("headgate")) / "config.toml"
    )


def read_config(path: Path, *, required: bool) -> dict[str, Any]:
    """Read the TOML file; a missing file is empty unless it was named explicitly."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        if not required:
            return {}
        raise ConfigInvalid(
            f"{path} is not there.", hint=f"Correct {CONFIG_VARIABLE}, or unset it."
        ) from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigInvalid(f"{path} cannot be read: {error}.", hint=f"Correct {path}.") from error


def resolve(
    flags: Mapping[str, str | None], environment: Mapping[str, str], file: Mapping[str, Any], file_path: Path
) -> Resolved:
    """Resolve each setting from the first place that has it."""
    names = {setting.name for setting in ALL_SETTINGS}
    for unknown in file.keys() - names:
        raise ConfigInvalid(
            f"{file_path} sets '{unknown}', which is no setting.",
            hint=f"Settings are {', '.join(sorted(names))}.",
            param=unknown,
        )
    values: dict[str, Any] = {}
    origins: dict[str, Origin] = {}
    for setting in ALL_SETTINGS:
        text, origin = _find(setting, flags, environment, file, file_path)
        values[setting.name], origins[setting.name] = _read(setting, text, origin), origin
    return Resolved(Settings(**values), origins, _unknown(environment))


def _find(
    setting: Setting,
    flags: Mapping[str, str | None],
    environment: Mapping[str, str],
    file: Mapping[str, Any],
    file_path: Path,
) -> tuple[str, Origin]:
    flag = flags.get(setting.name)
    if flag is not None:
        return flag, Origin("flag", "--" + setting.name.replace("_", "-"))
    if setting.variable in environment:
        return environment[setting.variable], Origin("environment", setting.variable)
    if setting.name in file:
        return _file_text(setting, file[setting.name], file_path), Origin("file", str(file_path))
    return setting.default, Origin("default", "")


def _file_text(setting: Setting, value: Any, file_path: Path) -> str:
    """Write a value of the file as the environment has it; a list is for settings that have several values."""
    if isinstance(value, list) and setting.read in {_names, _ids}:
        names = cast("list[Any]", value)
        if all(isinstance(name, str) and name.split() == [name] and "," not in name for name in names):
            return ",".join(names)
    if isinstance(value, list | dict):
        rule = "takes a list of names" if setting.read in {_names, _ids} else "takes one value"
        raise ConfigInvalid(
            f"{setting.name} {rule}, and {file_path} has something else.",
            hint="Correct it in the file.",
            param=setting.name,
        )
    return str(value)


def _read(setting: Setting, text: str, origin: Origin) -> Any:
    try:
        return setting.read(text)
    except ValueError as error:
        # An address may hold a password, and what is refused is logged.
        is_secret = "@" in text or _IN_QUERY in text.casefold()
        quoted = "" if is_secret else f", not '{text}'"
        raise ConfigInvalid(
            f"{setting.name} {error}{quoted} ({origin.place or origin.kind}).",
            hint=f"Correct it in the {origin.kind}.",
            param=setting.name,
        ) from None


def _unknown(environment: Mapping[str, str]) -> tuple[str, ...]:
    known = {setting.variable for setting in ALL_SETTINGS} | {CONFIG_VARIABLE}
    return tuple(sorted(name for name in environment if name.startswith(_PREFIX) and name not in known))
