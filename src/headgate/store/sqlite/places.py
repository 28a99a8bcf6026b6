"""Where a record lies: the number of its row begins with the number of its shelf."""

from __future__ import annotations

RID_SHIFT = 40
