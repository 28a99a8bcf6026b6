"""An export of a Slack workspace: lists of users and channels, and a directory of days for each channel."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from headgate.sources.chat.streams import directory, reaction_count
from headgate.sources.file_source import read_each
from headgate.sources.formats.json_values import JsonValue, json_values, list_of, object_of, objects_of
from headgate.sources.formats.values import clean, id_of, integer_of, text_of, time_of_seconds, without_empty
from headgate.sources.inputs.tree import InputFile, InputTree
from headgate.sources.protocol import Certainty, Item, Recognised, Reject, Row

_ITEMS = frozenset({"item"})
#: The lists of conversations, and what kind each has.
_LISTS = {"channels.json": "channel", "groups.json": "group", "mpims.json": "group", "dms.json": "direct"}
_DAY = re.compile(r"[^/]+/\d{4}-\d\d-\d\d\.json")
_LABEL = re.compile(r"(.+?) Slack export .*", re.IGNORECASE)
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
    files = [file for file in own if file.name in lists or _DAY.fullmatch(file.name[len(root) :])]
    label = root.rstrip("/").rpartition("/")[2] or tree.label
    match = _LABEL.fullmatch(label)
    title = f"Slack: {match.group(1) if match else label}"
    return Recognised("", title, files, Certainty.EXPORT, {"root": root})


class _SlackFormat:
    """Exports of workspaces, in directories with a list of users and one of channels."""

    title = "Slack"

    def detect(self, tree: InputTree) -> Sequence[Recognised]:
        roots = (directory(name) for name in sorted(tree.names) if name.rpartition("/")[2] == "users.json")
        return [found for root in roots if (found := _export(tree, root)) is not None]

    def read(self, found: Recognised, resume: Mapping[str, Any]) -> Iterator[Item]:
        """Read members and channels, then the days of each channel."""
        root = str(found.facts["root"])
        names = _names(found, root)
        return read_each(found, resume, lambda file, content: _items(file, content, root, names))


def _names(found: Recognised, root: str) -> _Names:
    users: dict[str, str] = {}
    channels: dict[str, tuple[str, str]] = {}
    for file in sorted(found.files, key=lambda file: file.name != f"{root}users.json"):
        name = file.name[len(root) :]
        if name == "users.json":
            users = {str(one.get("id")): _user_name(one) for one in _objects(file)}
        elif name in _LISTS:
            for one in _objects(file):
                key, label = id_of(str(one.get("id"))), _channel_name(one, users)
                # Direct chats have their id for a directory, the others their name.
                channels[text_of(one.get("name")) or key] = channels[key] = (key, label)
    return _Names(users, channels)


def _objects(file: InputFile) -> Iterator[dict[str, Any]]:
    with file.open() as content:
        for value in json_values(content, _ITEMS):
            yield object_of(value.value)


def _items(file: InputFile, content: IO[bytes], root: str, names: _Names) -> Iterator[Row | Reject]:
    name = file.name[len(root) :]
    for number, found in enumerate(json_values(content, _ITEMS), 1):
        yield _item(name, found, names, f"{file.name}, entry {number}")


def _item(name: str, found: JsonValue, names: _Names, place: str) -> Row | Reject:
    if found.problem is not None:
        return Reject(place, found.problem)
    one = object_of(found.value)
    if name == "users.json" or name in _LISTS:
        if not text_of(one.get("id")):
            return Reject(place, "It has no id.")
        data = _member(one) if name == "users.json" else _channel(one, _LISTS[name], names.users)
        return Row("members" if name == "users.json" else "channels", data, place=place)
    data = _message(one, name.partition("/")[0], names)
    return Row("messages", data, place=place) if data else Reject(place, "The message has no time.")


def _user_name(one: Mapping[str, Any]) -> str:
    profile = object_of(one.get("profile"))
    found = (profile.get("real_name"), one.get("real_name"), profile.get("display_name"), one.get("name"))
    return next(filter(None, map(text_of, found)), clean(str(one.get("id"))))


def _member(one: Mapping[str, Any]) -> dict[str, Any]:
    profile = object_of(one.get("profile"))
    return without_empty(
        {
            "id": id_of(str(one["id"])),
            "name": _user_name(one),
            "user": text_of(one.get("name")),
            "email": text_of(profile.get("email")),
            "job": text_of(profile.get("title")),
            "is_bot": one.get("is_bot") is True,
            "is_deleted": one.get("deleted") is True,
        }
    )


def _channel_name(one: Mapping[str, Any], users: Mapping[str, str]) -> str:
    people = ", ".join(users.get(str(user), clean(str(user))) for user in list_of(one.get("members")))
    name = text_of(one.get("name"))
    # The names of group chats are made of short names: "mpdm-ada--ben-1".
    return people if name is None or (name.startswith("mpdm-") and people) else name


def _channel(one: Mapping[str, Any], kind: str, users: Mapping[str, str]) -> dict[str, Any]:
    members = [users.get(str(user), clean(str(user))) for user in list_of(one.get("members"))]
    return without_empty(
        {
            "id": id_of(str(one["id"])),
            "name": _channel_name(one, users),
            "service": "Slack",
            "kind": kind,
            "topic": text_of(object_of(one.get("topic")).get("value")),
            "purpose": text_of(object_of(one.get("purpose")).get("value")),
            "participants": members,
            "created_at": time_of_seconds(one.get("created")),
            "is_archived": one.get("is_archived") is True,
        }
    )


def _message(one: Mapping[str, Any], folder: str, names: _Names) -> dict[str, Any] | None:
    stamp = text_of(one.get("ts"))
    sent_at = time_of_seconds(stamp)
    if stamp is None or sent_at is None:
        return None
    channel, label = names.channels.get(folder, (id_of(folder), clean(folder)))
    thread = text_of(one.get("thread_ts"))
    subtype = text_of(one.get("subtype"))
    text = _plain_text(_text(one), names)
    files = [
        name
        for file in objects_of(one.get("files"))
        if (name := text_of(file.get("name") or file.get("title")))
    ]
    return without_empty(
        {
            "id": f"{channel}-{id_of(stamp)}",
            "channel_id": channel,
            "channel": label,
            "author": _author(one, names.users),
            "sent_at": sent_at,
            "text": text,
            "kind": "notice" if subtype and subtype not in _SPOKEN else "message" if text else "media",
            "thread_id": f"{channel}-{id_of(thread)}" if thread else None,
            "edited_at": time_of_seconds(object_of(one.get("edited")).get("ts")),
            "reactions": reaction_count(one.get("reactions")),
            "replies": integer_of(one.get("reply_count")),
            "files": files,
        }
    )


def _author(one: Mapping[str, Any], users: Mapping[str, str]) -> str | None:
    user = text_of(one.get("user")) or text_of(one.get("bot_id"))
    profile = object_of(one.get("user_profile"))
    found = (users.get(user or ""), text_of(one.get("username")), text_of(profile.get("real_name")), user)
    return next(filter(None, found), None)


def _text(one: Mapping[str, Any]) -> str:
    text = text_of(one.get("text"))
    if text is not None:
        return text
    shown = objects_of(one.get("attachments"))
    return "\n".join(filter(None, (text_of(part.get("fallback") or part.get("text")) for part in shown)))


def _plain_text(text: str, names: _Names) -> str:
    found = _MARKUP.sub(lambda match: _shown(match.group(1), names), text)
    return found.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


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
