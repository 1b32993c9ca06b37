"""The log cleaner: of each key of a compacted log the latest record stays (cleanup.policy=compact).

      clean part                      dirty part               not to be cleaned yet
    | segment 0 | segment 4711 | segment 9000 | segment 9500 | segment 9800 (active)
                               ^                             ^
                  first dirty offset             first segment that is active, has records of open
       (cleaner-offset-checkpoint)               transactions, or is younger than min.compaction.lag.ms

A cleaning has two parts. First the dirty part is read, and the offset map learns the latest offset of each key. Then
all segments up to there are written anew, in groups that make one segment each: without the records that have a later
one, without those of aborted transactions, in time without tombstones and markers. Offsets, sequences, timestamps and
the last batch of each producer stay. A group is swapped in at once; a crash leaves the old segments or the new one.

Who does what:

    log_cleaner      picks the dirtiest log, throttles, keeps the checkpoint, gives up on what can't be cleaned
    cleanable        what of a log can be cleaned, and whether it is worth it
    shortages        which logs wait for room on their volume
    crew             the workers: started when one is needed, ended when none is
    cleaning         one cleaning of one log: has a worker do it, and swaps the segments
    work             what the worker does, without knowing the log
    mapping          the first part          offset_map      key -> latest offset, in bounded memory
                                             marks           what of the records seen is superseded, what a tombstone
    rewriting        the second part         batch_filter    what stays of a batch
    transactions     which batches are aborted, which markers may go
    grouping         which segments become one
    cleaned          the files of a segment that is being written
"""
