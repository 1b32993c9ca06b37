"""Moving a partition's log to another log dir while it is written and read (KIP-113).

    /one/orders-0                                            the log, as ever
    /two/orders-0.0123456789abcdef0123456789abcdef-future    its copy: the future log

    moves       which logs are moved, how many at once; begun, given up, taken up again after a start
    future      the future log: how far the copy goes
    move        one move from its first byte to the swap
    copying     what worker threads do for it, a piece at a time
    swap        the moment in which the copy takes the log's place

A segment's copy is the same bytes at the same positions. So all that a log has in memory stays as it is when the copy
takes its place: offsets, producers, verifications, indexes, who waits. What was copied of a segment counts as long as
it is the same segment, and was not truncated (`Segment.version`): else it is copied anew.

1. All segments are copied, and what is appended meanwhile; the cleaner leaves the log alone until the end.
2. The copy is brought onto the disk, with the leader epochs, the producers' snapshots and its part of the checkpoints.
3. When all but a little is copied, flushes of the log are held, and the rest is brought onto the disk too.
4. The swap follows on the event loop, in one step: the rest is copied, the log's folder is renamed to `-delete`, and
   the log goes on in the future log's. Once that name is on the disk, the folder takes the partition's name.

Whatever ends the broker amid this, the next start finds the log where it was, and the move goes on: what is there of
the copy is compared, not copied again. Between the two renames there is the future log alone, which then is all there
is, as the folder `-delete` of the same id tells: it takes the partition's name at that start.
"""
