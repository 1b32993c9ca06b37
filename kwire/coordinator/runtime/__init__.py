"""What group, transaction and other coordinators run on: revertible state over a partition of an internal topic.

A coordinator's state machine is pure: an operation takes the time and answers with an `Outcome`, the records to append
and the response. The runtime replays the records into the state at once, appends them, and lets the response go when
they are committed; where the append fails, the state goes back. At start, or when leadership comes, the same replay
rebuilds the state from the log.

    timeline.py    state that can go back, and be read as it was committed
    outcome.py     what an operation answers with
    deadlines.py   what is to happen later
    machine.py     what a state machine must have
    log.py         what the runtime needs of a partition's log
    shard.py       one partition: load, write, read
    coordinator.py all partitions of one internal topic
"""
