"""The streams of every chat program (channels, their messages, and members), and what their formats share."""

from __future__ import annotations

import mimetypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from headgate.sources.declaring import StreamSpec, all_but, fields
from headgate.sources.file_source import read_each
from headgate.sources.formats.json_values import objects_of
from headgate.sources.formats.values import integer_of
from headgate.sources.inputs.tree import InputFile, InputTree
from headgate.sources.protocol import Attachment, Certainty, Item, Recognised, Reject, Row

#: A number that every reader of JSON can hold.
_MAX_REACTIONS = 2**53
_MAX_MEDIA_BYTES = 25 * 1024 * 1024

_MESSAGE_FIELDS = fields(
    "id channel_id channel author sent_at:time text kind thread_id answers_id forwarded_from edited_at:time "
    "reactions:integer replies:integer files:list file:file",
    channel="The name of the channel or chat.",
    sent_at="WhatsApp, Signal and old Telegram exports name no time zone: such a time is that of the "
    "phone or computer, and is compared as if it were UTC.",
    kind="message, media (without text) or notice (a person joined, a name changed).",
    thread_id="The id of the message that began the thread.",
    answers_id="The id of the message that this one answers.",
    reactions="How many reactions it has.",
    replies="How many messages its thread has.",
    files="The names of the files that came with it.",
)
CHANNELS = StreamSpec(
    name="channels",
    label="Channels",
    detail="One channel, group or direct chat, with its messages.",
    fields=fields(
        "id name service kind topic purpose participants:list created_at:time is_archived:boolean",
        service="Slack, WhatsApp, Telegram, Signal or iMessage.",
        kind="channel, group, direct, or what the program calls it.",
    ),
    title="name",
    words=("name", "topic", "purpose"),
    groups=("kind", "service"),
    views=(("names", "Names only", ("id", "name", "service", "kind")),),
    children=(("messages", "channel_id"),),
)
MESSAGES = StreamSpec(
    name="messages",
    label="Messages",
    detail="One message of a channel or chat.",
    fields=_MESSAGE_FIELDS,
    time="sent_at",
    title="text",
    words=("text", "channel"),
    groups=("channel", "author", "kind"),
    views=(
        (
            "without_texts",
            "Who wrote where and when, without texts and files",
            all_but(_MESSAGE_FIELDS, "text", "files", "file"),
        ),
        ("without_files", "Everything but files", all_but(_MESSAGE_FIELDS, "files", "file")),
    ),
)
MEMBERS = StreamSpec(
    name="members",
    label="Members",
    detail="One person or bot of a workspace.",
    fields=fields(
        "id name user email job is_bot:boolean is_deleted:boolean", user="The short name in the workspace."
    ),
    title="name",
    words=("name", "job"),
    groups=("is_bot", "is_deleted"),
    views=(("names", "Names only", ("id", "name", "user")),),
)


#: Reads a chat of an export, with what was noted of it, and with the files that belong to its messages.
ReadChat = Callable[[InputFile, IO[bytes], str, "MediaFiles"], Iterator[Row | Reject]]


@dataclass(frozen=True, slots=True)
class ChatFormat:
    """The exports of a program that have files of chats, and files beside them."""

    title: str
    #: Finds exports: the names of the files of chats, each with what its reader has to know of it, and other files.
    find: Callable[[InputTree], Iterator[tuple[Mapping[str, str], Sequence[InputFile]]]]
    read_chat: ReadChat

    def detect(self, tree: InputTree) -> Sequence[Recognised]:
        return [
            Recognised(
                "",
                self.title,
                [*(file for file in tree.files if file.name in chats), *media],
                Certainty.EXPORT,
                {"chats": chats},
            )
            for chats, media in self.find(tree)
        ]

    def read(self, recognised: Recognised, resume: Mapping[str, Any]) -> Iterator[Item]:
        chats: Mapping[str, str] = recognised.facts["chats"]
        media = MediaFiles([file for file in recognised.files if file.name not in chats])

        def read_file(file: InputFile, content: IO[bytes]) -> Iterator[Row | Reject]:
            known = chats.get(file.name)
            return iter(()) if known is None else self.read_chat(file, content, known, media)

        return read_each(recognised, resume, read_file)


class MediaFiles:
    """The files that an export has beside its messages, by the name that messages call them."""

    def __init__(self, files: Sequence[InputFile]) -> None:
        self._files = {file.name: file for file in files}

    def attachments(self, name: str | None) -> dict[str, Attachment]:
        """Return the file of a message as its attachment, if the export has it and it is not too large."""
        file = self._files.get(name or "")
        if file is None or not 0 < file.size_bytes <= _MAX_MEDIA_BYTES:
            return {}
        with file.open() as content:
            body = content.read(_MAX_MEDIA_BYTES)
        return {"file": Attachment(body, mimetypes.guess_type(file.name)[0] or "application/octet-stream")}


def reaction_count(reactions: Any) -> int | None:
    """Add up a message's reactions; nothing if it has none."""
    counts = (integer_of(reaction.get("count")) or 0 for reaction in objects_of(reactions))
    return min(sum(counts), _MAX_REACTIONS) or None


def directory(name: str) -> str:
    """Return the directory of a file's name with its ``/``, or nothing."""
    return name[: name.rfind("/") + 1]
