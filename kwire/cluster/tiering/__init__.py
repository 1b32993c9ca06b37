"""Tiered storage (KIP-405): finished segments go to an object store, and are read from there when they are gone here.

    log start            local log start      highest offset in remote storage
        v                       v                       v
        | remote segments ......................................|
                                | segment | segment | segment   | segment | active segment     |
                                  in both places, until local.retention.ms or .bytes

What is in remote storage is told by the records of `__remote_log_metadata`: a copy is announced before it begins, and
counts when a second record says that it is finished. A crash in between leaves a copy that was announced and never
finished: it is deleted, and made again. Deletions are announced likewise.

    metadata        reads and writes those records, and knows what they amount to
    tiering         what goes on beside the requests: copies, expiry, the removal of deleted topics' segments
    rounds          how it goes on: at intervals, some partitions at once, what fails again later
    copier          one partition: which segments are copied next
    remover         deleting copies
    reads           fetches and look-ups by time of what is not here any more
    settings        what of the configuration it goes by

`kwire/storage/tiered` has what one segment needs: the upload, the reading, what expires. `kwire/remote` has the stores.
"""
