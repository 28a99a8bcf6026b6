"""Files that records refer to: named by the digest of their content."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from typing import IO

from headgate.errors import ResourceLimit
from headgate.model.ids import BlobId, blob_id_from

MAX_BLOB_BYTES = 1024 * 1024 * 1024


async def receive(content: AsyncIterator[bytes], file: IO[bytes]) -> tuple[BlobId, int]:
    """Write what arrives to a file; return the id that its digest makes, and its size."""
    hashed, size = hashlib.sha256(), 0
    async for piece in content:
        size += len(piece)
        if size > MAX_BLOB_BYTES:
            raise ResourceLimit(f"A file may have at most {MAX_BLOB_BYTES} bytes.")
        hashed.update(piece)
        file.write(piece)
    return blob_id_from(hashed.hexdigest()), size
