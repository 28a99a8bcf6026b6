"""An export of a Slack workspace: lists of users and channels, and a directory of days for each channel."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Any

from headgate.sources.chat.streams import directory, reaction_count
from headgate.sources.file_source import read_each
from headgate.sources.formats.json_values import JsonValue, json_values, list_of, object_of, objects_of
from headgate.sources.formats.values import clean, id_of, integer_of, text_of, time_of_seconds, without_empty
from headgate.sources.inputs.tree import InputFile, InputTree, connection_title
from headgate.sources.protocol import Certainty, Covered, Item, Recognised, Reject, Row

_ITEMS = frozenset({"item"})
#: The lists of conversations, and what kind each has.
_LISTS = {"channels.json": "channel", "groups.json": "group", "mpims.json": "group", "dms.json": "direct"}
#: What else lies beside them, and holds no message.
_BESIDE = frozenset(
    {
        "canvases.json",
        "file_conversations.json",
        "huddle_transcripts.json",
        "integration_logs.json",
        "lists.json",
    }
)
_DAY = re.compile(r"[^/]+/\d{4}-\d\d-\d\d\.json")
#: "Boat club Slack export Nov 1 2023 - Dec 1 2023", as Slack names an export.
_LABEL = re.compile(
    r"(?P<name>.+?) Slack export (?:(?P<first>[A-Z][a-z]{2} \d{1,2} \d{4}) - (?P<last>[A-Z][a-z]{2} \d{1,2} \d{4}))?.*",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"<([^<>]*)>")
_SPOKEN = frozenset(
    {"bot_message", "me_message", "file_share", "thread_broadcast", "file_comment", "reply_broadcast"}
)


@dataclass(frozen=True, slots=True)
class _Names:
    """Who and what the ids of an export are."""

    users: Mapping[str, str]
    #: The id and name of a channel by its directory.
    channels: Mapping[str, tuple[str, str]]


def _export(tree: InputTree, root: str) -> Recognised | None:
    lists = {root + name for name in ("users.json", *_LISTS)}
    if len(lists & tree.names) < 2:  # noqa: PLR2004 - the users, and one list of channels
        return None
    own = [file for file in tree.files if file.name.startswith(root)]
    names = {file: file.name[len(root) :] for file in own}
    files = [
        file for file, name in names.items() if file.name in lists or name in _BESIDE or _DAY.fullmatch(name)
    ]
    label = root.rstrip("/").rpartition("/")[2] or tree.label
    match = _LABEL.fullmatch(label)
    period = match and [_day(match[name]) for name in ("first", "last")]
    label = match["name"] if match else label
    title, older = connection_title("Slack", label), f"Slack: {label}"
    return Recognised(
        "", title, files, Certainty.EXPORT, {"root": root, "period": period}, older_titles=(older,)
    )


class _SlackFormat:
    """Exports of workspaces, in directories with a list of users and one of channels."""

    title = "Slack"

    def detect(self, tree: InputTree) -> Sequence[Recognised]:
        roots = (directory(name) for name in sorted(tree.names) if name.rpartition("/")[2] == "users.json")
        return [export for root in roots if (export := _export(tree, root)) is not None]

    def read(self, recognised: Recognised, resume: Mapping[str, Any]) -> Iterator[Item]:
        """Read members and channels, then the days of each channel."""
        root = str(recognised.facts["root"])
        names = _names(recognised, root)
        yield from read_each(recognised, resume, lambda file, content: _items(file, content, root, names))
        match recognised.facts["period"]:
            case [str() as first, str() as last]:
                yield Covered("messages", "", first, last)
            case _:
                pass


def _day(text: str | None) -> str | None:
    """Read a day as the name of an export has it: Nov 1 2023."""
    try:
        return datetime.strptime(text or "", "%b %d %Y").date().isoformat()  # noqa: DTZ007 - only the day
    except ValueError:
        return None


def _names(recognised: Recognised, root: str) -> _Names:
    users: dict[str, str] = {}
    channels: dict[str, tuple[str, str]] = {}
    for file in sorted(recognised.files, key=lambda file: file.name != f"{root}users.json"):
        name = file.name[len(root) :]
        if name == "users.json":
            users = {str(entry.get("id")): _user_name(entry) for entry in _objects(file)}
        elif name in _LISTS:
            for entry in _objects(file):
                key, label = id_of(str(entry.get("id"))), _channel_name(entry, users)
                # Direct chats have their id for a directory, the others their name.
                channels[text_of(entry.get("name")) or key] = channels[key] = (key, label)
    return _Names(users, channels)


def _objects(file: InputFile) -> Iterator[dict[str, Any]]:
    with file.open() as content:
        for value in json_values(content, _ITEMS):
            yield object_of(value.value)


def _items(file: InputFile, content: IO[bytes], root: str, names: _Names) -> Iterator[Row | Reject]:
    name = file.name[len(root) :]
    if name in _BESIDE:
        return
    for number, entry in enumerate(json_values(content, _ITEMS), 1):
        yield _item(name, entry, names, f"{file.name}, entry {number}")


def _item(name: str, entry: JsonValue, names: _Names, place: str) -> Row | Reject:
    if entry.problem is not None:
        return Reject(place, entry.problem)
    value = object_of(entry.value)
    if name == "users.json" or name in _LISTS:
        if not text_of(value.get("id")):
            return Reject(place, "It has no id.")
        data = _member(value) if name == "users.json" else _channel(value, _LISTS[name], names.users)
        return Row("members" if name == "users.json" else "channels", data, place=place)
    data = _message(value, name.partition("/")[0], names)
    return Row("messages", data, place=place) if data else Reject(place, "The message has no time.")


def _user_name(user: Mapping[str, Any]) -> str:
    profile = object_of(user.get("profile"))
    candidates = (
        profile.get("real_name"),
        user.get("real_name"),
        profile.get("display_name"),
        user.get("name"),
    )
    return next(filter(None, map(text_of, candidates)), clean(str(user.get("id"))))


def _member(user: Mapping[str, Any]) -> dict[str, Any]:
    profile = object_of(user.get("profile"))
    return without_empty(
        {
            "id": id_of(str(user["id"])),
            "name": _user_name(user),
            "user": text_of(user.get("name")),
            "email": text_of(profile.get("email")),
            "job": text_of(profile.get("title")),
            "is_bot": user.get("is_bot") is True,
            "is_deleted": user.get("deleted") is True,
        }
    )


def _channel_name(channel: Mapping[str, Any], users: Mapping[str, str]) -> str:
    people = ", ".join(users.get(str(user), clean(str(user))) for user in list_of(channel.get("members")))
    name = text_of(channel.get("name"))
    # The names of group chats are made of short names: "mpdm-ada--ben-1".
    return people if name is None or (name.startswith("mpdm-") and people) else name


def _channel(channel: Mapping[str, Any], kind: str, users: Mapping[str, str]) -> dict[str, Any]:
    members = [users.get(str(user), clean(str(user))) for user in list_of(channel.get("members"))]
    return without_empty(
        {
            "id": id_of(str(channel["id"])),
            "name": _channel_name(channel, users),
            "service": "Slack",
            "kind": kind,
            "topic": text_of(object_of(channel.get("topic")).get("value")),
            "purpose": text_of(object_of(channel.get("purpose")).get("value")),
            "participants": members,
            "created_at": time_of_seconds(channel.get("created")),
            "is_archived": channel.get("is_archived") is True,
        }
    )


def _message(message: Mapping[str, Any], folder: str, names: _Names) -> dict[str, Any] | None:
    stamp = text_of(message.get("ts"))
    sent_at = time_of_seconds(stamp)
    if stamp is None or sent_at is None:
        return None
    channel, label = names.channels.get(folder, (id_of(folder), clean(folder)))
    thread = text_of(message.get("thread_ts"))
    subtype = text_of(message.get("subtype"))
    text = _plain_text(_text(message), names)
    files = [
        name
        # Before 2018 a message had one.
        for file in objects_of(message.get("files") or [message.get("file")])
        if (name := text_of(file.get("name") or file.get("title")))
    ]
    return without_empty(
        {
            "id": f"{channel}-{id_of(stamp)}",
            "channel_id": channel,
            "channel": label,
            "author": _author(message, names.users),
            "sent_at": sent_at,
            "text": text,
            "kind": "notice" if subtype and subtype not in _SPOKEN else "message" if text else "media",
            "thread_id": f"{channel}-{id_of(thread)}" if thread else None,
            "edited_at": time_of_seconds(object_of(message.get("edited")).get("ts")),
            "reactions": reaction_count(message.get("reactions")),
            "replies": integer_of(message.get("reply_count")),
            "files": files,
        }
    )


def _author(message: Mapping[str, Any], users: Mapping[str, str]) -> str | None:
    user = text_of(message.get("user")) or text_of(message.get("bot_id"))
    profile = object_of(message.get("user_profile"))
    candidates = (
        users.get(user or ""),
        text_of(message.get("username")),
        text_of(profile.get("real_name")),
        user,
    )
    return next(filter(None, candidates), None)


def _text(message: Mapping[str, Any]) -> str:
    text = text_of(message.get("text"))
    if text is not None:
        return text
    attachments = objects_of(message.get("attachments"))
    return "\n".join(
        filter(None, (text_of(part.get("fallback") or part.get("text")) for part in attachments))
    )


def _plain_text(text: str, names: _Names) -> str:
    plain = _MARKUP.sub(lambda match: _shown(match.group(1), names), text)
    return plain.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _shown(target: str, names: _Names) -> str:
    target, _, label = target.partition("|")
    if target.startswith("@"):
        return f"@{names.users.get(target[1:], label or target[1:])}"
    if target.startswith("#"):
        return f"#{label or names.channels.get(target[1:], ('', target[1:]))[1]}"
    if target.startswith("!"):
        return label or f"@{target[1:]}"
    return f"{label} ({target})" if label and label not in target else target


SLACK = _SlackFormat()
