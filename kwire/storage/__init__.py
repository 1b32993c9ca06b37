"""The logs of a broker, in Apache Kafka's own files.

    manager                      all logs of a broker, in its log dirs
    loading, survey              what a start finds
    creation, removal            logs of new partitions, and of those that are gone
    upkeep                       what is done at intervals
    room                         what may still be written to a log dir
    moving                       logs on their way to another log dir
    leftovers                    what earlier runs left
    log_dir, checkpoints, layout a log dir and its small files, the names of everything
    high_watermarks              what one of these files says, kept up by what moved
    log, received                one partition: appends, offsets, rolling; what a follower gets
    reading, timestamps          which bytes answer a fetch; which offset answers a time
    rolling, flushing, truncating, retention, recovery, swaps     the rest of a log's life, a file each
    segment, segments            one .log file with its indexes; a log's segments in order
    reserve                      padding ahead of its end, for the page cache
    offset_index, time_index, transaction_index, leader_epochs      what is looked up by what
    producer_state, producer_entry, producer_snapshot, producer_replay    who may append what next
    validation, validated, record_walk                    what a leader checks before an append
    open_files, chores, services, throttle                what all logs share

All of it belongs to the event loop's thread, except functions that say they are for a worker thread. Whatever fails
with an OSError takes its log dir offline (`LogDir.fail`) and is answered with KAFKA_STORAGE_ERROR.
"""
