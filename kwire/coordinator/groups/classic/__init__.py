"""Groups of the classic protocol: the members join, the leader among them assigns, all sync.

Empty --join--> PreparingRebalance --all joined--> CompletingRebalance --leader synced--> Stable
  ^                    |  ^                               |                                 |
  '---nobody left------'  '----- join, leave, time-out ---'---------------------------------'

group.py         the group and what can be asked of it
member.py        one member
joining.py       JoinGroup
syncing.py       SyncGroup
leaving.py       LeaveGroup, Heartbeat
rebalancing.py   what starts and completes a rebalance, sessions that expire
records.py       the group as a record, and back
"""
