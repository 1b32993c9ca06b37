"""Groups of the consumer protocol (KIP-848): members heartbeat, the coordinator assigns, each member reconciles.

A change of who is in the group, of what the members subscribe to or of their topics begins a group epoch; an assignor
makes the target assignment of that epoch; each member gives up and gets partitions until it has its target and with it
the epoch. A partition goes to its new owner only when the one before says that it has let go.

                .-- subscription or topics change -- group epoch + 1
                v
    Empty --> Assigning -- target assignment --> Reconciling -- every member has its target --> Stable

    member.py           a member, and its own state: Stable, UnrevokedPartitions, UnreleasedPartitions
    group.py            the group and what can be asked of it
    counts.py           how many members subscribe to what
    records.py          the records that the state is made of
    replay.py           the state made of them
    draft.py            what an operation is about to write, tried out
    settings.py         time-outs, by group
    validation.py       requests that can't be right
    heartbeat.py        ConsumerGroupHeartbeat of a member that stays
    membership.py       who a heartbeat comes from: dynamic and static members, epochs
    leaving.py          members that leave or are fenced
    sessions.py         members that fall silent, or do not let go of partitions
    epochs.py           when a group epoch begins, and the target assignment of one
    metadata_hash.py    whether the topics of a group have changed
    xxh3.py             the hash function for that
    reconciliation.py   a member's next step towards its target
    patterns.py         members that subscribe to regular expressions
    resolution.py       the topics that these match
    assignors/          who gets which partitions
    describing.py       ConsumerGroupDescribe
    classic_members.py  members of the classic protocol in such a group
    migration.py        a classic group becomes a consumer group, and back
"""
