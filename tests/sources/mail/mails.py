"""Mail for tests: messages as programs write them, and how a source reads them."""

from pathlib import Path

import msgspec

from headgate.model.declaration import Semantics
from headgate.schema.declare import read_declaration
from headgate.sources.inputs.disk import tree_of
from headgate.sources.mail.source import MAIL as SOURCE
from headgate.sources.protocol import Mark, Reject, Row
from headgate.store.format.lines import LineError, read_line

STREAMS = read_declaration(SOURCE.declare(None)).streams
LETTER = b"""\
Delivered-To: ada@example.org
Message-ID: <one@example.org>
From: =?utf-8?q?J=C3=B6rg_M=C3=BCller?= <Joerg@Example.ORG>
To: Ada <ada@example.org>, "Babbage, C." <cb@example.org>
Cc: team@example.org
Subject: The bridge
Date: Tue, 3 Mar 2026 10:00:00 +0200

The planks are here.

Joerg
"""
ANSWER = b"""\
Message-ID: <two@example.org>
In-Reply-To: <one@example.org>
References: <one@example.org>
From: ada@example.org
To: joerg@example.org
Subject: Re: The bridge
Date: Tue, 3 Mar 2026 12:30:00 +0000

Good.

On Tue, 3 Mar 2026 at 10:00, Joerg
<joerg@example.org> wrote:
> The planks are here.
>
> Joerg
"""


def mbox(*messages: bytes) -> bytes:
    return b"".join(b"From x@example.org Tue Mar  3 10:00:00 2026\n" + one + b"\n" for one in messages)


def items_of(path: Path, resume=None):
    (found,) = SOURCE.detect(tree_of(path))
    return list(SOURCE.read(found, resume or {}))


def rows_of(path: Path, stream: str = "messages"):
    return [item.data for item in items_of(path) if isinstance(item, Row) and item.stream == stream]


def read_mbox(tmp_path: Path, *messages: bytes, stream: str = "messages"):
    path = tmp_path / "Inbox.mbox"
    path.write_bytes(mbox(*messages))
    return rows_of(path, stream)


def read_one(tmp_path: Path, raw: bytes):
    (only,) = read_mbox(tmp_path, raw)
    return only


def state_of(items, before=None):
    """Give what a store would hold: the last row of a key, or the first of an append-only stream."""
    held = dict(before or {})
    for item in items:
        if isinstance(item, Row):
            key = (item.stream, item.data["id"])
            if STREAMS[item.stream].semantics is Semantics.MUTABLE_STATE or key not in held:
                held[key] = item
    return held


def check_items(items):
    """Check that the store takes every row and that marks stand in their file."""
    for item in items:
        assert isinstance(item, Row | Reject | Mark)
        if isinstance(item, Row):
            line = msgspec.json.encode({"data": item.data})
            stored = read_line(0, line, STREAMS[item.stream], received_at=0)
            assert not isinstance(stored, LineError), stored
