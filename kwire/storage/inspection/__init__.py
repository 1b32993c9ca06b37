"""Looking through the files of logs without touching them: is everything as the code that reads it expects it?

    log_dir         a log dir: how it was left, its checkpoints, its partitions
    partition       one partition's folder: segment after segment, in one pass
    batches         one segment: what looks like a batch, and what does not
    records         one batch's records, where they are to be looked at too
    indexes         .index and .timeindex beside the batches
    transactions    .txnindex and the producers' snapshots beside the batches
    fault           what is found
    sizes, remote_sizes     how much the partitions take, on the disk and in an object store

It takes no locks, so a broker may be at work: then only batches are looked at. What recovery would build anew after an
unclean stop is not held against anybody either.
"""
