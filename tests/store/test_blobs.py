from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from headgate.errors import BlobNotFound
from headgate.model.ids import BlobId, FieldName
from headgate.model.plan import BlobPlan
from headgate.model.rows import FoundBlob
from tests.store.declared import NOTES
from tests.store.ledger import Ledger

CONTENT = bytes(range(256)) * 2500


async def _pieces(content: bytes = CONTENT) -> AsyncIterator[bytes]:
    for at in range(0, len(content), 100_000):
        yield content[at : at + 100_000]


async def _read(ledger: Ledger, blob_id: BlobId, **part: Any) -> bytes:
    return b"".join([piece async for piece in ledger.store.bare.read_blob(blob_id, **part)])


def _put(ledger: Ledger) -> BlobId:
    blob_id, size = ledger.store.put_blob(_pieces(), "image/png")
    assert size == len(CONTENT)
    return blob_id


def _found(ledger: Ledger, blob_id: BlobId, **narrowed: Any) -> tuple[FoundBlob, ...]:
    return ledger.store.blobs(BlobPlan((ledger.reach(**narrowed),), blob_id))


def test_a_file_is_named_by_its_content_and_kept_once(ledger: Ledger):
    assert _put(ledger) == _put(ledger) == f"blob_{hashlib.sha256(CONTENT).hexdigest()}"


def test_a_file_comes_back_whole_and_in_parts(ledger: Ledger):
    blob_id = _put(ledger)
    assert ledger.store.run(_read(ledger, blob_id)) == CONTENT
    assert ledger.store.run(_read(ledger, blob_id, start=255, end=258)) == b"\xff\x00\x01"
    assert ledger.store.run(_read(ledger, blob_id, start=len(CONTENT) - 2)) == b"\xfe\xff"
    assert ledger.store.run(_read(ledger, blob_id, start=5, end=5)) == b""


def test_an_empty_file_is_a_file(ledger: Ledger):
    blob_id, size = ledger.store.put_blob(_pieces(b""), "text/plain")
    assert (size, ledger.store.run(_read(ledger, blob_id))) == (0, b"")


def test_a_file_that_is_not_there_is_not_found(ledger: Ledger):
    with pytest.raises(BlobNotFound):
        ledger.store.run(_read(ledger, BlobId("blob_" + "0" * 64)))


def test_a_file_is_found_through_visible_records_that_refer_to_it(ledger: Ledger):
    blob_id = _put(ledger)
    reference = {"blob_id": blob_id, "mime_type": "image/webp"}
    assert _found(ledger, blob_id) == ()
    ledger.put({"id": "a", "file": reference, "at": "2026-01-01T00:00:00Z"}, {"id": "b", "file": reference})
    ledger.put({"id": "c", "extra": {"blob_id": blob_id}}, connection=1)
    first = FoundBlob(blob_id, ledger.ids[0], NOTES, "a", FieldName("file"), "image/webp", len(CONTENT))
    second = FoundBlob(blob_id, ledger.ids[1], NOTES, "c", FieldName("extra"), "image/png", len(CONTENT))
    assert _found(ledger, blob_id) == (first, second)
    assert _found(ledger, blob_id, fields=["file"]) == (first,)
    assert _found(ledger, blob_id, fields=["id"]) == ()
    assert _found(ledger, blob_id, resources=["x"]) == ()
    assert _found(ledger, blob_id, until="2026-01-01") == ()
    assert [one.record_id for one in _found(ledger, blob_id, resources=["b"])] == ["b"]


def test_a_record_that_no_longer_refers_to_a_file_no_longer_leads_to_it(ledger: Ledger):
    blob_id = _put(ledger)
    ledger.put({"id": "a", "file": {"blob_id": blob_id}}, {"id": "b", "file": {"blob_id": blob_id}})
    ledger.put({"id": "a", "file": {"blob_id": "blob_" + "1" * 64}})
    ledger.remove("b")
    assert _found(ledger, blob_id) == ()
    assert _found(ledger, BlobId("blob_" + "1" * 64)) == ()
