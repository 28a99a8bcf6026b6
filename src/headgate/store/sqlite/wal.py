"""Check the WAL (write-ahead log) beside a file before SQLite opens it.

SQLite treats a WAL that is garbage as an empty one, and applies the WAL of another file as if it belonged to this
one. Either would lose or mix records without an error, so such a WAL is refused, and nothing is changed.
The format is described in https://sqlite.org/fileformat2.html#the_write_ahead_log.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

from headgate.errors import IntegrityBroken
from headgate.system import open_private, read_at

_MAGIC = {0x377F0682, 0x377F0683}
_MAGIC_LITTLE = 0x82
_WORD = 0xFFFFFFFF
_HEADER = 32
_FRAME = 24
FILE_HEADER = 100
#: Where a file's first page holds its page size, and the number that each store is given by chance.
_PAGE_SIZE = slice(16, 18)
_OWN_NUMBER = slice(68, 72)


def refuse_bad_wal(path: Path) -> None:
    """Refuse a WAL that cannot belong to the file.

    Raises:
        IntegrityBroken: it is garbage, or belongs to another file, or the file it belongs to is gone.
    """
    try:
        log = open_private(f"{path}-wal", os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        header = read_at(log, _HEADER, 0)
        # A header that is not whole, or not followed by anything, is what a power cut leaves.
        if os.fstat(log).st_size > _HEADER == len(header):
            _refuse(path, log, header)
    finally:
        os.close(log)


def _refuse(path: Path, log: int, header: bytes) -> None:
    if int.from_bytes(header[:4]) not in _MAGIC:
        raise _broken("The log beside the store is damaged.")
    with path.open("rb") as file:
        first_page = file.read(FILE_HEADER)
    if len(first_page) < FILE_HEADER:
        raise _broken("The store's file is empty, but its log is not.")
    size = int.from_bytes(header[8:12])
    # A page size of 65536 does not fit where the file notes it, and is written as 1.
    if size % 65535 != int.from_bytes(first_page[_PAGE_SIZE]) or _has_other_number(log, header, first_page):
        raise _broken("The log beside the store belongs to another file.")


def _has_other_number(log: int, header: bytes, first_page: bytes) -> bool:
    size, salt, at = int.from_bytes(header[8:12]), header[16:24], _HEADER
    while len(frame := read_at(log, _FRAME, at)) == _FRAME and frame[8:16] == salt:
        if int.from_bytes(frame[:4]) == 1:
            page = read_at(log, FILE_HEADER, at + _FRAME)
            if page[_OWN_NUMBER] != first_page[_OWN_NUMBER]:
                # A power cut may have torn the page: then SQLite does not take it either. Or it was being written
                # at this moment: then what counts is what stands there when it is whole.
                whole_page = _whole_page(log, header, at + _FRAME + size)
                return whole_page is not None and whole_page[_OWN_NUMBER] != first_page[_OWN_NUMBER]
        at += _FRAME + size
    return False


def _whole_page(log: int, header: bytes, end: int) -> bytes | None:
    """Read the page that ends at a point, if the WAL is whole up to there by SQLite's running checksum.

    Slow; used only when the first page differs.
    """
    size, order = int.from_bytes(header[8:12]), "<" if header[3] == _MAGIC_LITTLE else ">"
    sums, frame = _sums((0, 0), header[:24], order), b""
    if struct.pack(">II", *sums) != header[24:]:
        return None
    for at in range(_HEADER, end, _FRAME + size):
        frame = read_at(log, _FRAME + size, at)
        if len(frame) < _FRAME + size:
            return None
        sums = _sums(sums, frame[:8] + frame[_FRAME:], order)
        if struct.pack(">II", *sums) != frame[16:_FRAME]:
            return None
    return frame[_FRAME:]


def _sums(sums: tuple[int, int], content: bytes, order: str) -> tuple[int, int]:
    first, second = sums
    for one, other in struct.iter_unpack(f"{order}II", content):
        first = (first + one + second) & _WORD
        second = (second + other + first) & _WORD
    return first, second


def _broken(message: str) -> IntegrityBroken:
    return IntegrityBroken(
        message, hint="Put the right files back, or restore a backup; nothing was changed."
    )
