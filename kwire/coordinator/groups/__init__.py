"""Consumer groups: who is in them, what is assigned to whom, and the offsets they have committed.

machine.py     the state of one partition of __consumer_offsets
replay.py      which record changes what of it
group.py       what every kind of group can tell
requests.py    the requests of members, for groups of either kind
admin.py       ListGroups, DescribeGroups, DeleteGroups
classic/       groups of the classic protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup
consumer/      groups of the consumer protocol (KIP-848): ConsumerGroupHeartbeat
offsets/       committed offsets, those of open transactions too, and their expiry
"""
