"""Committed offsets: where a group goes on reading.

offsets.py         what is committed, and what open transactions would commit
records.py         offsets as records, and back
commit.py          OffsetCommit and TxnOffsetCommit
fetch.py           OffsetFetch
delete.py          OffsetDelete, and all offsets of a group
expiration.py      when offsets expire
portions.py        how many tombstones are written at once
cleanup.py         removing expired offsets and empty groups
"""
