"""Row numbers of records, and what their bits mean.

A record's row number (rid) begins with its shelf, so the records of a shelf lie together::

    rid = sid << 40 | n                  n: the record's number in its shelf, from 1
"""

from __future__ import annotations

RID_SHIFT = 40
#: The largest numbers that there is room for: the word index holds a record's number in 32 bits.
MAX_N, MAX_SID = (1 << 27) - 1, (1 << 14) - 1
